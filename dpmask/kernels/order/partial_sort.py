"""A column known in part: counts at the ends of some ranges, and every value inside them.

What the ranges cover is known exactly: the value at a rank that falls there, and how many values lie below any value
there. Parts of a column add. Values are keys in the order of the doubles (order.py). A value at an end is counted and
not kept, however often it occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Floats, Integers
from dpmask.kernels.order.edge_lookup import edge_counts_and_rows, edge_lookup
from dpmask.kernels.order.float_order import (
    HIGHEST_DOUBLE,
    LOWEST_DOUBLE,
    Keys,
    Positions,
    from_keys,
    order_keys,
    weighed_keys,
    weighed_values,
)

_NO_KEY = np.iinfo(np.int64).min  # below the keys of all doubles


class KeyRanges(NamedTuple):
    """Different keys in order, and whether what lies between each and the next one is wanted."""

    ends: Keys
    wanted: NDArray[np.bool_]

    def at_most(self, cuts: Keys, counted: Positions, size: int) -> int:
        """How many values the ranges hold at the most, by a column's counts at other keys."""
        below, through = np.append(counted.below, size), np.concatenate([[0], counted.through])
        held = below[np.searchsorted(cuts, self.ends[1:])] - through[np.searchsorted(cuts, self.ends[:-1], "right")]
        return int(held[self.wanted].sum())


def within_doubles(pairs: Sequence[tuple[int, int]]) -> Keys:
    """Pairs of keys as an array, those beyond the infinities replaced by theirs."""
    return np.clip(np.array(pairs, np.int64).reshape(-1, 2), LOWEST_DOUBLE, HIGHEST_DOUBLE)


def key_ranges(pairs: Sequence[tuple[int, int]]) -> KeyRanges:
    """The ranges from one key through another; they may overlap."""
    both = within_doubles(pairs)
    ends = np.unique(both)
    started = np.bincount(np.searchsorted(ends, both[:, 0]), minlength=len(ends))
    ended = np.bincount(np.searchsorted(ends, both[:, 1]), minlength=len(ends))
    return KeyRanges(ends, np.cumsum(started - ended)[:-1] > 0)


class Contents(NamedTuple):
    """How many values lie below, and at or below, each end of a range; and the values strictly inside ranges."""

    below: Counts
    through: Counts
    inside: Keys
    weights: Integers | None = None  # of the values inside


def contents_of(
    ranges: Sequence[KeyRanges], columns: Sequence[Floats], weights: Integers | None = None
) -> list[Contents]:
    """What one block has in each column's ranges, NaN being a missing value; with weights a record counts so often."""
    each = zip(ranges, columns, strict=True)
    if weights is None:
        return [_gathered(some, values) for some, values in each]
    return [_weighed(some, values, weights) for some, values in each]


def _weighed(ranges: KeyRanges, values: Floats, weights: Integers) -> Contents:
    keys, before = found = weighed_values(values, weights)
    place = np.searchsorted(ranges.ends, keys)
    at_end = np.append(ranges.ends, _NO_KEY)[place] == keys
    inside = ~at_end & np.concatenate([[False], ranges.wanted, [False]])[place]
    return Contents(*found.positions(ranges.ends), keys[inside], np.diff(before)[inside])


def _gathered(ranges: KeyRanges, values: Floats) -> Contents:
    wanted = np.zeros(2 * len(ranges.ends) + 2, np.bool_)
    wanted[2:-2:2] = ranges.wanted
    counts, rows = edge_counts_and_rows(values, edge_lookup(from_keys(ranges.ends)), wanted)
    sums = np.cumsum(counts)[:-2].reshape(-1, 2)
    return Contents(sums[:, 0], sums[:, 1], order_keys(values[rows]))


def merge_contents(left: list[Contents], right: list[Contents]) -> list[Contents]:
    """What both parts have in the ranges."""
    return [
        Contents(
            one.below + two.below,
            one.through + two.through,
            np.concatenate([one.inside, two.inside]),
            joined_weights(one.weights, two.weights),
        )
        for one, two in zip(left, right, strict=True)
    ]


def joined_weights(left: Integers | None, right: Integers | None) -> Integers | None:
    """The weights of both parts together, where there are any."""
    return None if left is None or right is None else np.concatenate([left, right])


class PartialSort:
    """A whole column, known in its ranges."""

    def __init__(self, ranges: KeyRanges, part: Contents) -> None:
        self.ranges, self.below, self.through = ranges, part.below, part.through
        self.inside = weighed_keys(part.inside, part.weights)

    def covers(self, keys: Keys) -> bool:
        """Whether all these are ends, or lie in ranges."""
        place = np.searchsorted(self.ranges.ends, keys)
        is_end = np.append(self.ranges.ends, _NO_KEY)[place] == keys
        return bool((is_end | np.concatenate([[False], self.ranges.wanted, [False]])[place]).all())

    def positions(self, keys: Keys) -> Positions:
        """How many values lie below, and at or below, each of some keys that are covered."""
        end = np.searchsorted(self.ranges.ends, keys, "right") - 1
        is_end = self.ranges.ends[end] == keys
        before = self.through[end] - self.inside.positions(self.ranges.ends[end]).through
        low, high = (before + some for some in self.inside.positions(keys))
        return Positions(np.where(is_end, self.below[end], low), np.where(is_end, self.through[end], high))

    def at(self, rank: int) -> int:
        """The key of the value at a rank, 0 the smallest, which must be covered."""
        end = int(np.searchsorted(self.below, rank, "right")) - 1  # the last with at most so many values below
        if rank < self.through[end]:
            return int(self.ranges.ends[end])
        first = int(self.inside.positions(self.ranges.ends[end : end + 1]).through[0])
        return int(self.inside.keys[self.inside.at(first + rank - int(self.through[end]))])
