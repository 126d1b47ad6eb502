"""Both tables' quantiles, and what lies around and between them, in the passes after the first.

The second pass counts at the sampled values: how far the two distributions lie apart, and between which values
quantiles are. The third gathers what lies there, which gives exact quantiles; and what lies where the counts around
them will be needed, which are then known, too. Only where that would be too much a fourth pass counts them. None is
made for tables no larger than the sample. A quantile that the sample does not bracket closely enough costs a pass more
(table/quantiles.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from dpmask.engine.limits import current_limits
from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.order.float_order import (
    Keys,
    Positions,
    count_at,
    from_keys,
    merge_counts,
    order_keys,
    window,
)
from dpmask.kernels.order.partial_sort import (
    KeyRanges,
    PartialSort,
    contents_of,
    key_ranges,
    merge_contents,
    within_doubles,
)
from dpmask.measures.measure import Need
from dpmask.measures.utility.first_pass import FirstPass
from dpmask.measures.utility.table_pair import TablePair
from dpmask.measures.utility.weights import Weights
from dpmask.table.quantiles import QuantileSample, RankSearch

PERCENTS = np.arange(5, 100, 5)
"""Which percentiles are compared; they are also the edges of the bins."""
WINDOW = 1000
"""The density at a quantile is that within the range over this on either side."""

_KeyPairs = list[tuple[int, int]]
_Found = TypeVar("_Found")


class Steps(NamedTuple):
    """How many of a column's values lie below, and at or below, some values in both tables."""

    original: Positions
    masked: Positions


class Around(NamedTuple):
    """What lies close to the original's quantiles, and between them."""

    within: list[Counts]  # for each column and quantile: how many originals lie within the window
    bins: tuple[list[Counts], list[Counts]]


class QuantileSearch:
    """The search for both tables' quantiles: ``narrow``, then ``quantiles``, then ``around``."""

    def __init__(
        self,
        tables: TablePair,
        numbers: Sequence[str],
        found: tuple[FirstPass, FirstPass],
        needs: Need,
        who: str,
        weights: Weights | None = None,
    ) -> None:
        self.tables, self.numbers, self.found, self.needs, self.who = tables, numbers, found, needs, who
        self.weights = weights
        self.samples = [one.samples for one in found]
        wanted = bool(needs & (Need.QUANTILES | Need.BINS)), bool(needs & Need.QUANTILES)
        self.ranks = [
            [_ranks(one) if asked else [] for one in table] for table, asked in zip(self.samples, wanted, strict=True)
        ]
        self.searches = [list(map(RankSearch, *table)) for table in zip(self.ranks, self.samples, strict=True)]
        self.cuts: list[list[Keys]] = []
        self.counted: list[list[Positions]] = []
        self.known: list[list[PartialSort]] = []

    @property
    def whole(self) -> bool:
        """Whether the samples hold all values, so that no further pass is needed."""
        return all(one.whole for table in self.samples for one in table)

    def narrow(self) -> list[Steps]:
        """Count until each quantile lies between two values that are close; the first counts are the steps."""
        cuts = self._splitters()
        if self.needs & (Need.STEPS | Need.BINS):
            union = [np.union1d(one.keys, two.keys) for one, two in zip(*self.samples, strict=True)]
            cuts = [union, union]
        while any(len(some) for table in cuts for some in table):
            found = self._count(cuts, "count")
            if not self.counted:
                self.cuts, self.counted = cuts, found
            for table, some, counts in zip(self.searches, cuts, found, strict=True):
                for search, keys, positions in zip(table, some, counts, strict=True):
                    search.narrow(keys, positions)
            cuts = self._splitters()
        return [Steps(*both) for both in zip(*self.counted, strict=True)] if self.needs & Need.STEPS else []

    def _splitters(self) -> list[list[Keys]]:
        return [[search.splitters() for search in table] for table in self.searches]

    def _count(self, keys: Sequence[list[Keys]], label: str) -> list[list[Positions]]:
        """Both tables' counts at keys; without a pass where they are known."""
        if self.whole:
            return [
                [one.ordered.positions(cuts) for one, cuts in zip(table, some, strict=True)]
                for table, some in zip(self.samples, keys, strict=True)
            ]
        asked = [list(zip(*table, strict=True)) for table in zip(self.known, keys, strict=False)]
        if asked and all(known.covers(cuts) for table in asked for known, cuts in table):
            return [[known.positions(cuts) for known, cuts in table] for table in asked]
        return self._reduce([partial(count_at, some) for some in keys], merge_counts, label)

    def _reduce(
        self, functions: Sequence[Callable[..., _Found]], merge: Callable[[_Found, _Found], _Found], label: str
    ) -> list[_Found]:
        """A function of each table's numbers, and of what its records weigh if they do."""
        names, label = self.numbers, f"{self.who}: {label}"
        if self.weights is not None:
            names, functions = self.weights.beside(names), self.weights.weighing(functions, names)
        return self.tables.reduce_floats(names, functions, merge, label)

    def quantiles(self) -> tuple[list[Floats], list[Floats]]:
        """The values at the wanted ranks."""
        ranges = [[search.ranges for search in table] for table in self.searches]
        if any(some for table in ranges for some in table):
            self.known = self._gather(self._with_around(ranges))
            for table, known in zip(self.searches, self.known, strict=True):
                for search, one in zip(table, known, strict=True):
                    search.answer(one)
        original, masked = (
            [search.values(ranks) for search, ranks in zip(table, some, strict=True)]
            for table, some in zip(self.searches, self.ranks, strict=True)
        )
        return original, masked

    def _gather(self, ranges: list[list[KeyRanges]]) -> list[list[PartialSort]]:
        """What each table has in ranges of each column."""
        found = self._reduce([partial(contents_of, some) for some in ranges], merge_contents, "collect")
        return [list(map(PartialSort, *both)) for both in zip(ranges, found, strict=True)]

    def _with_around(self, ranges: list[list[_KeyPairs]]) -> list[list[KeyRanges]]:
        """The ranges of the open quantiles, and of what ``around`` will ask for if that is not too much."""
        more = [
            [[*one, *other] for one, other in zip(*both, strict=True)]
            for both in zip(ranges, self._around_ranges(), strict=True)
        ]
        asked = [[key_ranges(some) for some in table] for table in more]
        gathered = sum(
            some.at_most(cuts, counted, sample.size) // sample.unit
            for table in zip(asked, self.cuts, self.counted, self.samples, strict=True)
            for some, cuts, counted, sample in zip(*table, strict=True)
        )
        return (
            asked
            if gathered <= current_limits().gathered_values
            else [[key_ranges(some) for some in table] for table in ranges]
        )

    def _around_ranges(self) -> tuple[list[_KeyPairs], list[_KeyPairs]]:
        """Where in both tables the values lie that ``around`` may ask for."""
        brackets = [search.brackets_of(ranks) for search, ranks in zip(self.searches[0], self.ranks[0], strict=True)]
        edges = brackets if self.needs & Need.BINS else [[] for _ in brackets]
        if not self.needs & Need.QUANTILES:
            return edges, edges
        near = [_window_ranges(some, h) for some, h in zip(brackets, self._reaches, strict=True)]
        return [[*one, *other] for one, other in zip(edges, near, strict=True)], edges

    def around(self, quantiles: list[Floats]) -> Around:
        """How many originals lie close to each quantile; and how many values of both tables between them."""
        edges = [np.unique(order_keys(some)) for some in quantiles] if self.needs & Need.BINS else self._none
        near = self._windows(quantiles) if self.needs & Need.QUANTILES and quantiles else self._none
        if not any(len(some) for some in (*edges, *near)):
            return Around([], ([], []))
        asked = [np.concatenate(both) for both in zip(edges, near, strict=True)]
        original, masked = self._count([asked, edges], "around")
        within = [np.diff(_halves(len(cuts), found), axis=0)[0] for cuts, found in zip(edges, original, strict=True)]
        bins = [
            list(map(partial(_bins, one.size), edges, one.samples, counts))
            for one, counts in zip(self.found, (original, masked), strict=True)
        ]
        return Around(within, (bins[0], bins[1]))

    @property
    def _none(self) -> list[Keys]:
        return [np.empty(0, np.int64)] * len(self.numbers)

    def _windows(self, quantiles: list[Floats]) -> list[Keys]:
        """The first and then the last value that count as close to each quantile."""
        return [np.concatenate(window(some, h)) for some, h in zip(quantiles, self._reaches, strict=True)]

    @property
    def _reaches(self) -> list[float]:
        """How far from a quantile of each column a value counts as close."""
        moments = self.found[0].moments
        assert moments is not None
        return ((moments.high - moments.low) / WINDOW).tolist()


def _ranks(sample: QuantileSample) -> list[int]:
    """Where the quantiles lie: a share of all values but one, each counted as often as it weighs."""
    size, count = sample.size, sample.values
    return [size * (count - 1) * share // (count * 100) for share in PERCENTS.tolist()] if size else []


def _window_ranges(brackets: _KeyPairs, reach: float) -> _KeyPairs:
    """Where the first and the last value close to a quantile lie, if it lies in one of the brackets."""
    lows, highs = from_keys(within_doubles(brackets)).T
    return [pair for ends in zip(window(lows, reach), window(highs, reach), strict=True) for pair in _pairs(*ends)]


def _pairs(low: Keys, high: Keys) -> _KeyPairs:
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _halves(start: int, found: Positions) -> Counts:
    """How many values lie below the first ends of some windows, and how many through the last ones."""
    middle = (start + len(found.below)) // 2
    return np.array([found.below[start:middle], found.through[middle:]])


def _bins(size: int, edges: Keys, column: QuantileSample, found: Positions) -> Counts:
    """How many values lie between neighbouring edges, and how many are missing."""
    return np.diff(np.concatenate([[0], found.below[: len(edges)], [column.size, size]]))
