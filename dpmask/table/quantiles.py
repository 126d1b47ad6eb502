"""Exact order statistics of several columns at once, whatever the table's size.

A first pass draws a keyed sample of each column; a second counts all values at the sampled ones, so that each wanted
rank is known to lie at one of them or between two neighbours; a third collects what lies between, a small share. Where
that would be too much (bad luck, a sample that missed a crowd) the interval is cut evenly, in the order of the doubles
themselves, and counted again: at most a few passes more, for any data. Missing values are left out; -0.0 is 0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmask.engine.draws import make_key, record_uniforms
from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import Position
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.order.float_order import (
    Bracket,
    Keys,
    Positions,
    WeighedKeys,
    count_at,
    cut_evenly,
    from_keys,
    merge_counts,
    order_keys,
    weighed_keys,
    whole_weights,
)
from dpmask.kernels.order.partial_sort import (
    Contents,
    PartialSort,
    contents_of,
    joined_weights,
    key_ranges,
    merge_contents,
)
from dpmask.table.table import Table

_PARTS = 1 << 10
_KEY = make_key("order", seed=0).subkey("splitters")
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1  # beyond the infinities

PlacedValues = Sequence[tuple[Integers, Floats]]
"""Values of a block, and their places in it, which rise."""
Ranks = Callable[[int], Sequence[int]]
"""From the number of values a column has to the ranks that are wanted, 0 the smallest."""


class QuantileSample(NamedTuple):
    """How many values a column has, and the keys of some of them; where records weigh, what all and each of them do."""

    values: int
    keys: Keys
    total: int | None = None
    weights: Integers | None = None

    @property
    def whole(self) -> bool:
        """Whether the sample is the column."""
        return len(self.keys) == self.values

    @property
    def size(self) -> int:
        """How many values there are, each counted as often as it weighs."""
        return self.values if self.total is None else self.total

    @property
    def unit(self) -> int:
        """What a value weighs, about."""
        return max(self.size // max(self.values, 1), 1)

    @property
    def ordered(self) -> WeighedKeys:
        """The sampled keys in order."""
        return weighed_keys(self.keys, self.weights)


class Ordered(NamedTuple):
    """How many values a column has, and its values at the wanted ranks."""

    size: int
    values: Floats


def order_statistics(
    table: Table, columns: Sequence[str], ranks: Ranks, label: str, weigh: Weigh | None = None
) -> list[Ordered]:
    """For each column the values at the ranks that ``ranks`` names; none where the column has no value.

    With ``weigh`` a value counts as often as its record weighs.
    """
    if weigh is not None:
        return _searched(table, columns, ranks, label, list(dict.fromkeys([*columns, weigh.column])), weigh)
    return _searched(table, columns, ranks, label, columns, None)


class Weigh(NamedTuple):
    """A column of weights, and the power of two that makes them integers whose sum has 62 bits."""

    column: str
    scale: float


def _weighing(
    function: Callable[..., Any], count: int, place: int, scale: float, columns: Sequence[Floats], *more: Any
) -> Any:
    """A function of columns and weights, as one of all columns that are read."""
    return function(columns[:count], *more, weights=whole_weights(columns[place], scale))


def _searched(
    table: Table, columns: Sequence[str], ranks: Ranks, label: str, reads: Sequence[str], weigh: Weigh | None
) -> list[Ordered]:
    def weighed(function: Callable[..., Any]) -> Callable[..., Any]:
        if weigh is None:
            return function
        return partial(_weighing, function, len(columns), list(reads).index(weigh.column), weigh.scale)

    draw = weighed(partial(draw_samples, sampled_share(table.rows)))
    blocks = table.floats(reads).with_positions()
    drawn: list[QuantileSample] = blocks.reduce(draw, join_samples, f"{label}: sample")
    samples = sorted_samples(drawn)
    wanted = [list(ranks(sample.size)) if sample.size else [] for sample in samples]
    searches = [RankSearch(rows, sample) for rows, sample in zip(wanted, samples, strict=True)]
    splitters = [search.splitters() for search in searches]
    while any(len(cuts) for cuts in splitters):
        counted = table.reduce(reads, weighed(partial(count_at, splitters)), merge_counts, f"{label}: count")
        for search, cuts, found in zip(searches, splitters, counted, strict=True):
            search.narrow(cuts, found)
        splitters = [search.splitters() for search in searches]
    ranges = [key_ranges(search.ranges) for search in searches]
    if any(len(some.ends) for some in ranges):
        gathered: list[Contents] = table.reduce(
            reads, weighed(partial(contents_of, ranges)), merge_contents, f"{label}: collect"
        )
        for search, some, part in zip(searches, ranges, gathered, strict=True):
            search.answer(PartialSort(some, part))
    return [Ordered(search.size, search.values(rows)) for search, rows in zip(searches, wanted, strict=True)]


def quantiles(table: Table, columns: Sequence[str], shares: Sequence[float], label: str) -> list[Floats]:
    """For each column its quantiles at these shares, as numpy's default gives them; none where it has no value."""
    found = order_statistics(table, columns, partial(_neighbours, shares), label)
    return [_interpolated(one, np.asarray(shares, np.float64)) if one.size else one.values for one in found]


def value_positions(table: Table, columns: Sequence[str], values: Sequence[Floats], label: str) -> list[Positions]:
    """For each column how many of its values lie below, and how many at or below, each of these."""
    return _positions(table, columns, [order_keys(np.asarray(some, np.float64)) for some in values], label)


def sampled_splitters(table: Table, columns: Sequence[str], parts: int, label: str) -> list[Floats]:
    """For each column up to ``parts`` - 1 values that cut it into about equal parts, judged by a sample."""
    if parts == 1:
        return [np.empty(0)] * len(columns)
    places = np.arange(1, parts)
    samples = _sampled(table, columns, label)
    return [
        from_keys(np.unique(one.keys[places * len(one.keys) // parts])) if len(one.keys) else np.empty(0)
        for one in samples
    ]


class RankSearch:
    """Where the wanted ranks of one column lie: answered, or in a bracket that narrows with every count."""

    def __init__(self, ranks: Sequence[int], sample: QuantileSample) -> None:
        self.size, self.unit = sample.size, sample.unit
        self.answers: dict[int, int] = {}
        whole = Bracket(_LOWEST, _HIGHEST, 0, sample.size)
        self.open = dict.fromkeys(sorted(set(ranks)), whole)
        self.next = np.unique(sample.keys)
        if sample.whole:
            ordered = sample.ordered
            self.answers = {rank: int(ordered.keys[ordered.at(rank)]) for rank in self.open}
            self.open = {}

    def splitters(self) -> Keys:
        """What to count at next: the sample, then even cuts of brackets that hold too much; none when all are small."""
        if not self.open:
            return np.empty(0, np.int64)
        drawn, self.next = self.next, np.empty(0, np.int64)
        if len(drawn):
            return drawn
        brackets, most = self.brackets(), current_limits().quantile_values * self.unit
        if sum(one.inside for one in brackets) <= most:
            return drawn
        cuts = [cut_evenly(one.low, one.high, _PARTS) for one in brackets if one.inside > most // len(brackets)]
        return np.unique(np.concatenate(cuts))

    def narrow(self, splitters: Keys, counted: Positions) -> None:
        """Place each open rank at a splitter or between two neighbours."""
        for rank, old in list(self.open.items()):
            above = int(np.searchsorted(counted.below, rank, "right"))  # splitters with at most rank values below
            at = above - 1
            if at >= 0 and rank < counted.through[at]:
                self.answers[rank] = int(splitters[at])
                del self.open[rank]
                continue
            low, before = (int(splitters[at]), int(counted.through[at])) if at >= 0 else (_LOWEST, 0)
            last = above < len(splitters)
            high, end = (int(splitters[above]), int(counted.below[above])) if last else (_HIGHEST, self.size)
            if low < old.low:
                low, before = old.low, old.before
            if high > old.high:
                high, end = old.high, old.before + old.inside
            self.open[rank] = Bracket(low, high, before, end - before)

    def brackets(self) -> list[Bracket]:
        """The brackets that are open, each once."""
        return sorted(set(self.open.values()))

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Where the open ranks lie."""
        return [(one.low, one.high) for one in self.brackets()]

    def brackets_of(self, ranks: Sequence[int]) -> list[tuple[int, int]]:
        """The keys that the value at each of some ranks lies between, or twice its own."""
        at = {rank: (key, key) for rank, key in self.answers.items()}
        return [at[rank] if rank in at else self.open[rank][:2] for rank in ranks]

    def answer(self, known: PartialSort) -> None:
        """Read the open ranks off what is known of their brackets."""
        self.answers |= {rank: known.at(rank) for rank in self.open}

    def values(self, ranks: Sequence[int]) -> Floats:
        """The values at these ranks."""
        return from_keys(np.array([self.answers[rank] for rank in ranks], np.int64))


def _sampled(table: Table, columns: Sequence[str], label: str) -> list[QuantileSample]:
    blocks, draw = table.floats(columns).with_positions(), partial(draw_samples, sampled_share(table.rows))
    found: list[QuantileSample] = blocks.reduce(draw, join_samples, f"{label}: sample")
    return sorted_samples(found)


def sampled_share(rows: int, most: int | None = None) -> float:
    """The share of records to sample of so many."""
    sample = current_limits().quantile_sample
    return min(1.0, min(sample, most or sample) / max(rows, 1))


def sorted_samples(samples: Sequence[QuantileSample]) -> list[QuantileSample]:
    """Joined samples, each in order."""
    return [_sorted(one) for one in samples]


def _sorted(sample: QuantileSample) -> QuantileSample:
    keys, before = sample.ordered
    return sample._replace(keys=keys, weights=None if sample.weights is None else np.diff(before))


def draw_samples(
    share: float,
    columns: Sequence[Floats],
    position: Position,
    sizes: Sequence[int] | None = None,
    weights: Integers | None = None,
) -> list[QuantileSample]:
    """A block's share of each column's sample: the same records for any partitioning. Sizes may be known already."""
    drawn = np.flatnonzero(record_uniforms(_KEY, position.first, len(columns[0])) < share)
    sizes = [len(one) - int(np.isnan(one).sum()) for one in columns] if sizes is None else sizes
    each = zip(columns, sizes, strict=True)
    if weights is None:
        return [QuantileSample(size, order_keys(_present(one[drawn]))) for one, size in each]
    return [_weighed_sample(one, size, drawn, weights) for one, size in each]


def _weighed_sample(values: Floats, size: int, drawn: Integers, weights: Integers) -> QuantileSample:
    there = ~np.isnan(values)
    drawn = drawn[there[drawn]]
    return QuantileSample(size, order_keys(values[drawn]), int(weights[there].sum()), weights[drawn])


def placed_samples(share: float, lists: PlacedValues, position: Position) -> list[QuantileSample]:
    """The same for lists of values of a block, none missing, each with its places there."""
    rows = max((int(places[-1]) + 1 for places, _ in lists if len(places)), default=0)
    drawn = record_uniforms(_KEY, position.first, rows) < share
    return [QuantileSample(len(values), order_keys(values[drawn[places]])) for places, values in lists]


def _present(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def join_samples(left: list[QuantileSample], right: list[QuantileSample]) -> list[QuantileSample]:
    """The samples of both parts together."""
    return [
        QuantileSample(
            a.values + b.values,
            np.concatenate([a.keys, b.keys]),
            None if a.total is None or b.total is None else a.total + b.total,
            joined_weights(a.weights, b.weights),
        )
        for a, b in zip(left, right, strict=True)
    ]


def _positions(table: Table, columns: Sequence[str], splitters: Sequence[Keys], label: str) -> list[Positions]:
    return table.reduce(columns, partial(count_at, splitters), merge_counts, label)


def _neighbours(shares: Sequence[float], count: int) -> list[int]:
    """The two ranks that each quantile lies between."""
    lower = np.floor(np.asarray(shares, np.float64) * (count - 1)).astype(np.int64)
    return [*lower.tolist(), *np.minimum(lower + 1, count - 1).tolist()]


def _interpolated(ordered: Ordered, shares: Floats) -> Floats:
    """Between two neighbours, from the nearer one: numpy's own rounding."""
    low, high = ordered.values[: len(shares)], ordered.values[len(shares) :]
    places = shares * (ordered.size - 1)
    part = places - np.floor(places)
    step = high - low
    return np.where(part < 0.5, low + step * part, high - step * (1.0 - part))  # noqa: PLR2004
