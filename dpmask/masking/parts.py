"""The parts of a table that are masked by themselves: strata, and in each the patterns of what is there.

One pass counts the records of every stratum and pattern. Strata of fewer than three groups are joined to the nearest.
A pattern of fewer records than a group is masked with the same one of the nearest strata, so that no value becomes zero
or missing. One that is as rare in the whole table is merged with the nearest one of its stratum that covers it; those
that none covers are masked with each other; where these are too few, too, their zeros count as values, and gaps that
fewer records than a group have are refused. What follows is known to every task: it depends on the counts alone, so it
is the same for any partitioning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.constraints.strata import MOST_STRATA, Strata, Stratum, too_many
from dpmask.errors import ColumnError, InputError, JobError
from dpmask.kernels.arrays import Flags, Floats, Integers
from dpmask.kernels.patterns import (
    MISSING,
    STATES,
    THERE,
    ZERO,
    Patterns,
    ZerosKept,
    join_strata,
    lost_values,
    merge_patterns,
    pattern_codes,
    patterns_of,
    states,
)
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats
from dpmask.table.table import Table

MOST_PATTERNS = 1 << 14
_GROUPS_IN_A_STRATUM = 3
_Counts = Counter[tuple[int, Stratum, int]]
"""Records by group of variables, stratum and pattern."""


class PartsReport(NamedTuple):
    """What strata and patterns came to."""

    strata: int
    strata_joined: int
    records_joined: int
    patterns: int
    patterns_merged: int
    records_merged: int
    values_to_zero: int
    values_to_missing: int
    records_across: int


class Parts(NamedTuple):
    """Which part of the table a record is masked with, by its stratum and what it has in some columns."""

    columns: tuple[str, ...]
    strata: Strata
    zeros: tuple[bool, ...]  # of each column, whether its zeros must stay
    places: Mapping[tuple[Stratum, int], int]  # -1 where nothing is masked
    patterns: Patterns  # parts x columns: what each part has
    rules: tuple[tuple[int, ...], ...]  # for each part, which rules apply to it
    sizes: Integers
    report: PartsReport | None

    @property
    def reads(self) -> list[str]:
        """The columns that distinguish records."""
        return list(dict.fromkeys([*self.columns, *self.strata.columns]))

    def of(self, rows: Rows, values: Floats, who: str) -> Integers:
        """The part of each record of a block, whose values (columns x rows) are given as floats."""
        if self.report is None and not np.isnan(values).any():
            return np.zeros(values.shape[1], np.int64)
        numbers, strata = self.strata.of(rows)
        width = STATES ** len(self.columns)
        used, inverse = np.unique(numbers * width + pattern_codes(states(values, self.zeros)), return_inverse=True)
        found = [self.places.get((strata[one // width], one % width)) for one in used.tolist()]
        if None in found:
            raise InputError(
                f"{who}: this table has a stratum, or a pattern of zeros or missing values, that the fitted one does "
                "not have. Fit to this table."
            )
        return np.array(found, np.int64)[inverse]

    def fixed(self, part: int, rows: Floats) -> Floats:
        """Rows (rows x columns) as they are released: zeros and missing values where the part has them."""
        pattern = self.patterns[part]
        return np.where(pattern == ZERO, 0.0, np.where(pattern == MISSING, np.nan, rows))

    def kept(self, part: int) -> Flags:
        """The columns in which the values of a part must not become zero."""
        return np.array(self.zeros) & (self.patterns[part] == THERE)

    @property
    def free(self) -> Integers:
        """The parts with something to mask."""
        return np.flatnonzero((self.patterns < ZERO).any(axis=1))


def whole_table(columns: Sequence[str], rows: int) -> Parts:
    """One part, of all records: nothing distinguishes them."""
    columns = tuple(columns)
    pattern = np.zeros((1, len(columns)), np.uint8)
    zeros = (False,) * len(columns)
    return Parts(columns, Strata((), ()), zeros, {((), 0): 0}, pattern, ((),), np.array([rows]), None)


def patterns_fit(columns: Sequence[str]) -> bool:
    """Whether these columns are few enough for patterns of zeros and missing values."""
    return STATES ** len(columns) <= (1 << 62) // MOST_STRATA


def count_parts(
    table: Table, groups: Sequence[Sequence[str]], strata: Strata, zeros: Sequence[ZerosKept], who: str
) -> Mapping[tuple[int, Stratum, int], int]:
    """How many records each stratum and pattern has, for each group of variables, in one pass.

    ``zeros`` says of each group whose zeros stay.
    """
    for group in groups:
        if not patterns_fit(group):
            raise JobError(
                f"{who}: patterns of zeros and missing values of {len(group)} columns together are too many. Mask them "
                "in several groups."
            )
    columns = list(dict.fromkeys([*(name for group in groups for name in group), *strata.columns]))
    count = partial(_count, tuple(map(tuple, groups)), strata, tuple(zeros))
    return table.select(columns).reduce(count, _add, "parts: count")


def _count(groups: Sequence[Sequence[str]], strata: Strata, zeros: Sequence[ZerosKept], rows: Rows) -> _Counts:
    numbers, found = strata.of(rows)
    counts: _Counts = Counter()
    for group, columns in enumerate(groups):
        width = STATES ** len(columns)
        codes = pattern_codes(states(np.array([floats(rows, name) for name in columns]), zeros[group]))
        used, times = np.unique(numbers * width + codes, return_counts=True)
        for one, count in zip(used.tolist(), times.tolist(), strict=True):
            counts[group, found[one // width], one % width] = count
    return counts


def _add(left: _Counts, right: _Counts) -> _Counts:
    both = left + right
    if len(both) > MOST_STRATA * MOST_PATTERNS // STATES:
        raise too_many("these columns with the patterns of zeros and missing values")
    return both


def make_parts(
    counts: Mapping[tuple[int, Stratum, int], int],
    group: int,
    columns: Sequence[str],
    strata: Strata,
    zeros: ZerosKept,
    least: int,
    totals: Sequence[str] = (),
) -> Parts:
    """The parts of one group of variables, each of at least so many records, if there are as many.

    Strata are joined within domains by ``totals`` first, so that few totals move.
    """
    known = _patterns_of(group, counts)
    names = sorted(known, key=repr)
    if len(names) > MOST_STRATA:
        raise too_many(", ".join(strata.columns))
    sizes = np.array([known[one].total() for one in names])
    gaps = strata.distances(names, totals)
    joined = join_strata(gaps, sizes, _GROUPS_IN_A_STRATUM * least)
    members = [[names[at] for at in np.flatnonzero(joined == home)] for home in np.unique(joined)]
    homes = [_Home(some, sum((known[one] for one in some), Counter[int]())) for some in members]
    shared = _alike(homes, _between(gaps, joined), [_applying(one.members, strata) for one in homes], least)
    found = _merged(homes, shared, len(columns), least)
    rare = sum(count for one in found if one.size < least for count in one.codes.values())
    if rare and len(found) > 1:
        found = _absorbed(found, least) if rare < least else _pooled(found, least)
    places = {
        (stratum, code): n for n, one in enumerate(found) for stratum, code in one.members() if code in known[stratum]
    }
    return Parts(
        tuple(columns),
        strata,
        (zeros,) * len(columns) if isinstance(zeros, bool) else zeros,
        places,
        np.array([one.pattern for one in found]),
        tuple(_applying([stratum for home in one.homes for stratum in home], strata) for one in found),
        np.array([one.size for one in found]),
        _reported(sizes, joined, homes, found, len(columns), least),
    )


def _patterns_of(group: int, counts: Mapping[tuple[int, Stratum, int], int]) -> dict[Stratum, Counter[int]]:
    """How many records of each stratum have each pattern of a group of variables."""
    found: dict[Stratum, Counter[int]] = {}
    for (number, stratum, code), count in counts.items():
        if number == group:
            found.setdefault(stratum, Counter())[code] += count
    return found


def _reported(
    sizes: Integers, joined: Integers, homes: Sequence[_Home], parts: Sequence[_StrataPart], columns: int, least: int
) -> PartsReport:
    """What became of strata of these sizes, which were ``joined`` to homes, and of the patterns there."""
    lost = [
        lost_values(patterns_of(np.array(list(one.codes)), columns), one.pattern[None], np.array([*one.codes.values()]))
        for one in parts
    ]
    few = [count for one in homes for count in one.codes.values() if count < least]
    apart = joined != np.arange(len(joined))
    return PartsReport(
        len(sizes),
        int(apart.sum()),
        int(sizes[apart].sum()),
        sum(len(one.codes) for one in homes),
        len(few),
        sum(few),
        sum(to_zero for to_zero, _ in lost),
        sum(to_missing for _, to_missing in lost),
        sum(one.size for one in parts if len(one.homes) > 1),
    )


def _applying(members: Sequence[Stratum], strata: Strata) -> tuple[int, ...]:
    """The rules that apply to any of these strata."""
    flags = range(len(strata.classings), len(strata.classings) + len(strata.rules))
    return tuple(number for number, at in enumerate(flags) if any(stratum[at] for stratum in members))


class _Home(NamedTuple):
    """Strata that are masked together, and how many records have each pattern there."""

    members: Sequence[Stratum]
    codes: Counter[int]


class _StrataPart(NamedTuple):
    """Records of some strata with some patterns, and the pattern that covers these."""

    homes: Mapping[tuple[Stratum, ...], Sequence[int]]  # the codes of each
    codes: Counter[int]
    pattern: Patterns

    @property
    def size(self) -> int:
        return self.codes.total()

    def members(self) -> Iterator[tuple[Stratum, int]]:
        for home, codes in self.homes.items():
            yield from ((stratum, code) for stratum in home for code in codes)


def _between(gaps: Floats, joined: Integers) -> Floats:
    """How far joined strata are from each other: as the nearest of their members."""
    order = np.argsort(joined, kind="stable")
    firsts = np.flatnonzero(np.diff(joined[order], prepend=-1))
    return np.minimum.reduceat(np.minimum.reduceat(gaps[np.ix_(order, order)], firsts, axis=0), firsts, axis=1)


def _alike(
    homes: Sequence[_Home], gaps: Floats, rules: Sequence[tuple[int, ...]], least: int
) -> dict[tuple[int, int], tuple[int, int]]:
    """For a pattern that is rare in a stratum: where it is masked with the same one of the nearest strata.

    By the numbers of strata and their codes, those of the first stratum that it is masked in. Strata to which other
    rules apply are left out, and patterns that fewer than ``least`` records of all strata have.
    """
    having: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for number, (home, own) in enumerate(zip(homes, rules, strict=True)):
        for code in home.codes:
            having.setdefault((code, own), []).append(number)
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for (code, _), numbers in having.items():
        counts = np.array([homes[one].codes[code] for one in numbers])
        if counts.min() < least <= counts.sum():
            place = join_strata(gaps[np.ix_(numbers, numbers)], counts, least, sparing=True)
            found |= {(one, code): (numbers[at], code) for one, at in zip(numbers, place.tolist(), strict=True)}
    return found


def _merged(
    homes: Sequence[_Home], shared: Mapping[tuple[int, int], tuple[int, int]], columns: int, least: int
) -> list[_StrataPart]:
    """The parts of all strata: a pattern and those merged with it; then those that are in several strata."""
    sizes: Counter[tuple[int, int]] = Counter()
    for number, home in enumerate(homes):
        for code, count in home.codes.items():
            sizes[shared.get((number, code), (number, code))] += count
    found: dict[tuple[int, int], _StrataPart] = {}
    for number, home in enumerate(homes):
        codes = np.array(sorted(home.codes), np.int64)
        parts = [shared.get((number, code), (number, code)) for code in codes.tolist()]
        counts = np.array([sizes[part] for part in parts])
        place, now = merge_patterns(patterns_of(codes, columns), counts, least, covered=True)
        for at in np.unique(place).tolist():
            own = codes[place == at].tolist()
            some = Counter({code: home.codes[code] for code in own})
            part = found.setdefault(parts[at], _StrataPart({}, Counter(), now[at]))
            found[parts[at]] = part._replace(homes={**part.homes, tuple(home.members): own}, codes=part.codes + some)
    return sorted(found.values(), key=lambda one: len(one.homes) > 1)


def _absorbed(parts: Sequence[_StrataPart], least: int) -> list[_StrataPart]:
    """Parts too rare in the whole table, each with a large one that has its gaps: its zeros become values as others.

    A gap that no other covers would show its record, and is refused.
    """
    found = [one for one in parts if one.size >= least]
    for small in (one for one in parts if one.size < least):
        pattern = np.where(small.pattern == ZERO, THERE, small.pattern)
        fits = [at for at, one in enumerate(found) if (np.maximum(pattern, one.pattern) == one.pattern).all()]
        if not fits:
            raise ColumnError(
                f"microaggregation: fewer than {least} records lack the same values, and no others lack them, too: "
                "the gaps would show them. Fill them in, drop those records, or take the column out."
            )
        near = min(fits, key=lambda at: (not small.homes.keys() & found[at].homes.keys(), found[at].pattern.sum(), at))
        homes = {**found[near].homes}
        for home, codes in small.homes.items():
            homes[home] = [*homes.get(home, ()), *codes]
        found[near] = _StrataPart(homes, found[near].codes + small.codes, found[near].pattern)
    return found


def _pooled(parts: Sequence[_StrataPart], least: int) -> list[_StrataPart]:
    """The parts that are large enough, and the others of all strata merged as those of one."""
    small = [one for one in parts if one.size < least]
    patterns = np.array([one.pattern for one in small])
    place, now = merge_patterns(patterns, np.array([one.size for one in small]), least)
    found = [one for one in parts if one.size >= least]
    for at in np.unique(place).tolist():
        own = [small[number] for number in np.flatnonzero(place == at)]
        homes: dict[tuple[Stratum, ...], list[int]] = {}
        for one in own:
            for home, codes in one.homes.items():
                homes.setdefault(home, []).extend(codes)
        found.append(_StrataPart(homes, sum((one.codes for one in own), Counter[int]()), now[at]))
    return found
