"""Refinement in a series of releases of the same people: frozen trees, and BCF-anonymity as a condition of validity.

A later release may stop at a node that an earlier one refined, or go below its leaves, but never cut across: then one
of two values of a column contains the other, and what all releases leave of a group is counted exactly
(dpmask/kernels/series.py). That only falls when a group is split, so a refinement that breaks it once does so for ever.

The people are counted once, by their codes, what is released beside them and their block; the driver keeps these
counts, and a refinement is tried on those that it touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmask.engine.limits import current_limits
from dpmask.errors import PolicyRefusal
from dpmask.kernels.arrays import Counts
from dpmask.kernels.keys import RowKeys, grouped, new_keys, with_word
from dpmask.kernels.series import PastGroups, PastRelease, SeriesPeople, Touched, TrueSizes, nested
from dpmask.lake.reading import Rows
from dpmask.masking.earlier_releases import EarlierRelease
from dpmask.masking.refinement.attributes import Attribute, Candidate
from dpmask.masking.refinement.columns import WHO, MaskedColumn
from dpmask.masking.refinement.parameters import MONDRIAN
from dpmask.masking.refinement.stops import Stop
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.people import KnownPeople
from dpmask.table.requirement import Requirement
from dpmask.table.row_keys import row_keys
from dpmask.table.table import Table


@dataclass(frozen=True, repr=False)
class Series:
    """The releases before this one, who was in them, and the columns that all release as they are."""

    releases: tuple[EarlierRelease, ...]
    people: KnownPeople
    beside: tuple[str, ...]

    def splits(self, column: str) -> dict[tuple[float, float], float]:
        """Where earlier releases cut intervals of a column in two."""
        rows = [row for one in self.releases for row in one.cuts[column].get("splits", ())]
        return {(low, high): at for low, high, at in rows}

    def condition(
        self, table: Table, columns: Sequence[MaskedColumn], requirements: Sequence[Requirement]
    ) -> SeriesCondition:
        """What the cuts of a table must keep; one pass over it."""
        encoders = tuple(one.encoder for one in columns)
        names = [one.column for one in encoders]
        wanted = tuple(dict.fromkeys([*names, *self.beside, *self.people.columns]))
        count = partial(_counted, encoders, self.beside, self.people)
        found = table.select(wanted).reduce(count, _added, f"{WHO}: series")
        values = grouped(found.values).numbers()
        people = SeriesPeople(found.codes, values, int(values.max()) + 1, found.blocks, found.counts)
        held = [np.isin(np.arange(self.people.number + 1), list(one.holds)) for one in self.releases]
        lows = [tuple(column.frozen_lows(one.cuts[name]) for name, column in zip(names, columns, strict=True))
                for one in self.releases]  # fmt: skip
        past = [PastRelease(*pair) for pair in zip(held, lows, strict=True)]
        required = _required([(sets, one.k) for one in requirements for sets in one.sets], self.releases)
        checks = [
            SeriesCheck(sets, k, PastGroups(people, [names.index(column) for column in sets], past))
            for sets, k in required
        ]
        return SeriesCondition(checks, [one.number for one in self.releases], lows)


def _required(
    own: Sequence[tuple[Sequence[str], int]], releases: Sequence[EarlierRelease]
) -> list[tuple[tuple[str, ...], int]]:
    """All that this release and earlier ones promise, but for what another promise covers."""
    given = [*own, *(pair for one in releases for pair in one.required)]
    most: dict[frozenset[str], int] = {}
    for columns, k in given:
        most[frozenset(columns)] = max(k, most.get(frozenset(columns), 0))
    return [
        (tuple(sorted(columns)), k)
        for columns, k in most.items()
        if not any(columns < other and k <= more for other, more in most.items())
    ]


class SeriesCheck(NamedTuple):
    """A set of columns whose groups must leave k people, and what earlier releases made of them."""

    columns: tuple[str, ...]
    k: int
    past: PastGroups


class SeriesFigure(NamedTuple):
    """The least number of records that people are left among, by one earlier release, or by all jointly."""

    columns: str
    releases: str
    people: str
    least: int
    k: int


class SeriesCondition:
    """BCF-anonymity of a search: whether a refinement keeps it, and which ones did not."""

    def __init__(self, checks: Sequence[SeriesCheck], numbers: Sequence[int], lows: Sequence[Sequence[Counts]]) -> None:
        self.checks, self.numbers, self.lows = list(checks), list(numbers), lows
        self.stops: dict[str, Stop] = {}

    def require(self, attributes: Sequence[Attribute]) -> None:
        """Refuse cuts that break it: which release, which columns, how many people, what would help."""
        broken = [
            (check, found)
            for check, found in self._sizes(attributes, pairs=True)
            if found.release is not None and found.least < check.k
        ] or [(check, found) for check, found in self._sizes(attributes) if found.least < check.k]
        if broken:
            lines = [f"{WHO}: with earlier releases of the series, people would be found among fewer than k records:"]
            raise PolicyRefusal("\n".join([*lines, *(self._broken(check, found) for check, found in broken)]))
        for past in self.lows:
            for attribute, low in zip(attributes, past, strict=True):
                if not nested(attribute.lows, low):
                    raise PolicyRefusal(f"{WHO}: '{attribute.name}' is cut across values of an earlier release.")

    def _broken(self, check: SeriesCheck, found: TrueSizes) -> str:
        text = (
            f"  {self._release(found)}, by {', '.join(check.columns)}: {found.below(check.k):,} "
            f"{'people who are new since' if found.new else 'people who are in both'} are left among fewer than "
            f"{check.k}, the least among {found.least}. "
        )
        if found.new:
            return text + f"Wait until {check.k} or more people are new, or leave the new ones out."
        return text + "Keep or require less of these columns, or lower k."

    def allows(self, attributes: Sequence[Attribute], number: int, candidate: Candidate) -> bool:
        """Whether all holds with a refinement taken; ``attributes`` are as they are then."""
        name, lows = attributes[number].name, [one.lows for one in attributes]
        touched = Touched(number, *attributes[number].codes_of(candidate))
        for check in self.checks:
            if name not in check.columns:
                continue
            for found in check.past.sizes(lows, touched):
                if found.least < check.k:
                    self._note(check, found, attributes[number], candidate)
                    return False
        return True

    def _note(self, check: SeriesCheck, found: TrueSizes, attribute: Attribute, candidate: Candidate) -> None:
        text = (
            f"{found.below(check.k):,} people would be left among fewer than {check.k} by it and {self._release(found)}"
        )
        label = attribute.label_of(candidate)
        self.stops.setdefault(attribute.name, Stop(attribute.name, label, _joined(check), found.least, text))

    def _release(self, found: TrueSizes) -> str:
        return "all earlier releases" if found.release is None else f"release {self.numbers[found.release]}"

    def _sizes(
        self, attributes: Sequence[Attribute], *, pairs: bool = False
    ) -> Iterator[tuple[SeriesCheck, TrueSizes]]:
        lows = [one.lows for one in attributes]
        for check in self.checks:
            yield from ((check, found) for found in check.past.sizes(lows, pairs=pairs))

    def figures(self, attributes: Sequence[Attribute]) -> tuple[SeriesFigure, ...]:
        """What is left in the end, counted once more over all groups; refused where that is too little."""
        self.require(attributes)
        return tuple(
            SeriesFigure(_joined(check), self._release(one), "new since" if one.new else "in both", one.least, check.k)
            for check, one in self._sizes(attributes, pairs=True)
        )


def _joined(check: SeriesCheck) -> str:
    return " + ".join(check.columns)


class _PeopleRows(NamedTuple):
    """Rows of codes, values beside them and blocks, each once, and how many people have it."""

    codes: Any
    values: RowKeys
    blocks: Counts
    counts: Counts

    def each_once(self) -> _PeopleRows:
        keys = self.values
        for words in (*self.codes, self.blocks):
            keys = with_word(keys, words.astype(np.uint64))
        groups = grouped(keys)
        firsts = groups.firsts
        return _PeopleRows(self.codes[:, firsts], self.values.at(firsts), self.blocks[firsts], groups.sums(self.counts))


def _counted(
    encoders: tuple[CodeEncoder, ...], beside: tuple[str, ...], people: KnownPeople, rows: Rows
) -> _PeopleRows:
    codes = np.array([one.encode(rows) for one in encoders]).astype(np.uint16)
    values = row_keys(rows, beside) if beside else new_keys(rows.num_rows)
    return _PeopleRows(codes, values, people.blocks_of(rows), np.ones(rows.num_rows, np.int64)).each_once()


def _added(left: _PeopleRows, right: _PeopleRows) -> _PeopleRows:
    found = _PeopleRows(
        np.concatenate([left.codes, right.codes], axis=1),
        RowKeys(*(np.concatenate(pair) for pair in zip(left.values, right.values, strict=True))),
        np.concatenate([left.blocks, right.blocks]),
        np.concatenate([left.counts, right.counts]),
    ).each_once()
    most = current_limits().series_rows
    if len(found.counts) > most:
        raise PolicyRefusal(
            f"{WHO}: more than {most:,} different people by the columns of the series, which is more than the driver "
            "can check. Release fewer columns as they are, or cut numbers at fewer places (start)."
        )
    return found


def check_series(method: Any, series: Series) -> None:
    """Refuse what cannot be counted in a series."""
    if method.suppress_records or method.suppress_cells:
        raise PolicyRefusal(
            f"{WHO}: in a series no record and no cell may be left out: another release would show which. Take "
            "suppress_records and suppress_cells out."
        )
    if method.search == MONDRIAN:
        raise PolicyRefusal(
            f"{WHO}: in a series all releases must cut the same trees, and regions have boxes of their own. Take "
            f"search: {MONDRIAN} out."
        )
    if method.of_households:
        raise PolicyRefusal(
            f"{WHO}: what a series leaves is counted of people, not of households. Take of: households out, and drop "
            "what shows who lives together."
        )
    treeless = [one for one in method.masks if one not in method.domains and method.taxonomies.get(one) is None]
    if treeless:
        raise PolicyRefusal(
            f"{WHO}: in a series every column needs a tree that all releases cut; '{treeless[0]}' has none. Give it a "
            "taxonomy (or a domain, if it is a number)."
        )
    for one in series.releases:
        if set(one.cuts) != set(method.grouped):
            other = sorted(set(one.cuts) ^ set(method.grouped))[0]
            raise PolicyRefusal(
                f"{WHO}: release {one.number} of the series generalises '{other}', and this one does not, or the "
                "reverse. Releases of the same people must generalise the same columns, if need be to one value."
            )
