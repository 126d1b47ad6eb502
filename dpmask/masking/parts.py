"""The parts of a table that are masked by themselves: strata, and in each the patterns of what is there.

One pass counts the records of every stratum and pattern. Strata of fewer than three groups are joined to the nearest,
then, in each stratum, patterns of fewer records than a group are merged with the nearest one that covers them. Rare
patterns that no other of their stratum covers are masked with those of other strata; where these are too few, too,
their zeros count as values, and gaps that fewer records than a group have are refused. What follows is known to every
task: it depends on the counts alone, so it is the same for any partitioning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.constraints.strata import MOST_STRATA, Strata, Stratum, too_many
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.patterns import (
    MISSING,
    STATES,
    THERE,
    ZERO,
    Patterns,
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
    zeros: bool
    places: Mapping[tuple[Stratum, int], int]  # -1 where nothing is masked
    patterns: Patterns  # parts x columns: what each part has
    rules: tuple[tuple[int, ...], ...]  # for each part, which rules apply to it
    sizes: Integers
    report: PartsReport | None

    @property
    def reads(self) -> list[str]:
        """The columns that records are told apart by."""
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

    @property
    def free(self) -> Integers:
        """The parts with something to mask."""
        return np.flatnonzero((self.patterns < ZERO).any(axis=1))


def whole_table(columns: Sequence[str], rows: int) -> Parts:
    """One part, of all records: there is nothing to tell apart."""
    columns = tuple(columns)
    pattern = np.zeros((1, len(columns)), np.uint8)
    return Parts(columns, Strata((), ()), False, {((), 0): 0}, pattern, ((),), np.array([rows]), None)


def count_parts(
    table: Table, groups: Sequence[Sequence[str]], strata: Strata, zeros: bool, who: str
) -> Mapping[tuple[int, Stratum, int], int]:
    """How many records each stratum and pattern has, for each group of variables, in one pass."""
    for group in groups:
        if STATES ** len(group) > (1 << 62) // MOST_STRATA:
            raise JobError(
                f"{who}: patterns of zeros and missing values of {len(group)} columns together are too many. Mask them "
                "in several groups."
            )
    columns = list(dict.fromkeys([*(name for group in groups for name in group), *strata.columns]))
    count = partial(_count, tuple(map(tuple, groups)), strata, zeros)
    return table.select(columns).reduce(count, _add, "parts: count")


def _count(groups: Sequence[Sequence[str]], strata: Strata, zeros: bool, rows: Rows) -> _Counts:
    numbers, found = strata.of(rows)
    counts: _Counts = Counter()
    for group, columns in enumerate(groups):
        width = STATES ** len(columns)
        codes = pattern_codes(states(np.array([floats(rows, name) for name in columns]), zeros))
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
    zeros: bool,
    least: int,
) -> Parts:
    """The parts of one group of variables, each of at least so many records, if there are as many."""
    known: dict[Stratum, Counter[int]] = {}
    for (number, stratum, code), count in counts.items():
        if number == group:
            known.setdefault(stratum, Counter())[code] += count
    names = sorted(known, key=repr)
    if len(names) > MOST_STRATA:
        raise too_many(", ".join(strata.columns))
    sizes = np.array([known[one].total() for one in names])
    joined = join_strata(strata.distances(names), sizes, _GROUPS_IN_A_STRATUM * least)
    homes = [[names[at] for at in np.flatnonzero(joined == home)] for home in np.unique(joined)]
    made = [_Home(members, sum((known[one] for one in members), Counter[int]())) for members in homes]
    found = _merged(made, len(columns), least)
    rare = sum(count for one in found if one.size < least for count in one.codes.values())
    if rare and len(found) > 1:
        found = _absorbed(found, least) if rare < least else _pooled(found, len(columns), least)
    places = {
        (stratum, code): n for n, one in enumerate(found) for stratum, code in one.members() if code in known[stratum]
    }
    before = [patterns_of(np.array(list(one.codes)), len(columns)) for one in found]
    counts_of = [np.array(list(one.codes.values())) for one in found]
    lost = [lost_values(old, one.pattern[None], some) for old, one, some in zip(before, found, counts_of, strict=True)]
    few = [count for one in made for count in one.codes.values() if count < least]
    apart = joined != np.arange(len(joined))
    report = PartsReport(
        len(names),
        int(apart.sum()),
        int(sizes[apart].sum()),
        sum(len(one.codes) for one in made),
        len(few),
        sum(few),
        sum(to_zero for to_zero, _ in lost),
        sum(to_missing for _, to_missing in lost),
        sum(one.size for one in found if len(one.homes) > 1),
    )
    return Parts(
        tuple(columns),
        strata,
        zeros,
        places,
        np.array([one.pattern for one in found]),
        tuple(_applying([stratum for home in one.homes for stratum in home], strata) for one in found),
        np.array([one.size for one in found]),
        report,
    )


def _applying(members: Sequence[Stratum], strata: Strata) -> tuple[int, ...]:
    """The rules that apply to any of these strata."""
    flags = range(len(strata.classings), len(strata.classings) + len(strata.rules))
    return tuple(number for number, at in enumerate(flags) if any(stratum[at] for stratum in members))


class _Home(NamedTuple):
    """Strata that are masked together, and how many records have each pattern there."""

    members: Sequence[Stratum]
    codes: Counter[int]


class _Part(NamedTuple):
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


def _merged(homes: Sequence[_Home], columns: int, least: int) -> list[_Part]:
    """The patterns of each of these strata, merged."""
    found = []
    for home in homes:
        codes = np.array(sorted(home.codes), np.int64)
        counts = np.array([home.codes[code] for code in codes.tolist()])
        place, now = merge_patterns(patterns_of(codes, columns), counts, least, covered=True)
        for at in np.unique(place).tolist():
            own = codes[place == at].tolist()
            some = Counter({code: home.codes[code] for code in own})
            found.append(_Part({tuple(home.members): own}, some, now[at]))
    return found


def _absorbed(parts: Sequence[_Part], least: int) -> list[_Part]:
    """Parts too rare in the whole table, each with a large one that has its gaps: its zeros become values as others.

    A gap that no other covers would show its record, and is refused.
    """
    found = [one for one in parts if one.size >= least]
    for small in (one for one in parts if one.size < least):
        pattern = np.where(small.pattern == ZERO, THERE, small.pattern)
        fits = [at for at, one in enumerate(found) if (np.maximum(pattern, one.pattern) == one.pattern).all()]
        if not fits:
            raise InputError(
                f"microaggregation: fewer than {least} records lack the same values, and no others lack them, too: "
                "the gaps would show them. Fill them in, drop those records, or take the column out."
            )
        near = min(fits, key=lambda at: (not small.homes.keys() & found[at].homes.keys(), found[at].pattern.sum(), at))
        homes = {**found[near].homes}
        for home, codes in small.homes.items():
            homes[home] = [*homes.get(home, ()), *codes]
        found[near] = _Part(homes, found[near].codes + small.codes, found[near].pattern)
    return found


def _pooled(parts: Sequence[_Part], columns: int, least: int) -> list[_Part]:
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
        found.append(_Part(homes, sum((one.codes for one in own), Counter[int]()), now[at]))
    return found
