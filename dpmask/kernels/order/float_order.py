"""Order statistics over blocks: doubles as integers in the same order, and counts at splitters.

The bits of a double, read as a signed integer and with the lower 63 of a negative one flipped, are in the order of the
doubles. So a range of doubles can be halved, or cut into any number of parts, until ties are all that is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Floats, Integers
from dpmask.kernels.compile import bits_of, compiled, from_bits, read_only
from dpmask.kernels.order.edge_lookup import edge_counts, edge_lookup

Keys = NDArray[np.int64]

_LOWER = np.int64(0x7FFF_FFFF_FFFF_FFFF)
HIGHEST_DOUBLE = 0x7FF0_0000_0000_0000  # the key of infinity
LOWEST_DOUBLE = -1 - HIGHEST_DOUBLE
_NEGATIVE_ZERO = -1  # no value's key: it would count as 0.0
_CROWDED = 50.0


def order_keys(values: Floats) -> Keys:
    """Integers in the same order as the doubles, the same for -0.0 and 0.0. There must be no NaN."""
    bits = (values + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & _LOWER)


def from_keys(keys: Keys) -> Floats:
    """The doubles behind the integers."""
    return (keys ^ ((keys >> 63) & _LOWER)).view(np.float64)


def sorted_keys(values: Floats) -> Keys:
    """The keys of a column's present values, sorted; NaN is a missing value."""
    keys = np.empty(len(values), np.int64)
    keys = keys[: _present_keys(read_only(values), keys)]
    keys.sort()
    return keys


@compiled(reassociate=False)
def _present_keys(values: Floats, keys: Keys) -> int:
    """The keys of values that are not missing, one after the other; and how many there are."""
    count = 0
    for row in range(len(values)):
        value = values[row] + 0.0
        bits = np.int64(bits_of(value))
        keys[count] = bits ^ ((bits >> 63) & _LOWER)
        count += value == value  # noqa: PLR0124 - NaN is not
    return count


class Positions(NamedTuple):
    """For each of some values, how many of a column's lie below it, and how many at or below."""

    below: Counts
    through: Counts


def positions_in(keys: Keys, values: Keys) -> Positions:
    """Where values lie in a sorted column."""
    return Positions(np.searchsorted(keys, values, "left"), np.searchsorted(keys, values, "right"))


def whole_weights(weights: Floats, scale: float) -> Integers:
    """Weights as integers, multiples of 1 / scale."""
    return np.rint(weights * scale).astype(np.int64)


class WeighedKeys(NamedTuple):
    """Keys of a column in order, and before each, and after the last, how much the keys before it weigh."""

    keys: Keys
    before: Integers

    def positions(self, values: Keys) -> Positions:
        """How much lies below, and how much at or below, each of some values."""
        return Positions(*(self.before[np.searchsorted(self.keys, values, side)] for side in ("left", "right")))

    def at(self, weight: int) -> int:
        """The place of the key at which more than a weight is reached."""
        return int(np.searchsorted(self.before, weight, "right")) - 1


def weighed_keys(keys: Keys, weights: Integers | None) -> WeighedKeys:
    """Keys in any order and what each weighs, all the same by default."""
    if weights is None:
        return WeighedKeys(np.sort(keys), np.arange(len(keys) + 1))
    order = np.argsort(keys, kind="stable")
    return WeighedKeys(keys[order], np.concatenate([[0], np.cumsum(weights[order])]))


def weighed_values(values: Floats, weights: Integers) -> WeighedKeys:
    """The values of a column that are not missing."""
    there = ~np.isnan(values)
    return weighed_keys(order_keys(values[there]), weights[there])


def count_at(splitters: Sequence[Keys], columns: Sequence[Floats], weights: Integers | None = None) -> list[Positions]:
    """One block's counts at each column's splitters; with weights a record counts so many times."""
    each = zip(columns, splitters, strict=True)
    if weights is None:
        return [_counted(values, cuts) for values, cuts in each]
    return [weighed_values(values, weights).positions(cuts) for values, cuts in each]


def _counted(values: Floats, cuts: Keys) -> Positions:
    """By a grid over the cuts, unless a sort of the values is faster: where cuts crowd in few places."""
    if _is_double(cuts).all():
        if (cuts[1:] > cuts[:-1]).all():
            edges, back = cuts, np.arange(len(cuts))
        else:
            edges, back = np.unique(cuts, return_inverse=True)
        grid = edge_lookup(from_keys(edges))
        if grid.crowding < _CROWDED:
            counts = np.cumsum(edge_counts(values, grid))
            return Positions(counts[2 * back], counts[2 * back + 1])
    return positions_in(sorted_keys(values), cuts)


def _is_double(keys: Keys) -> NDArray[np.bool_]:
    return (keys >= LOWEST_DOUBLE) & (keys <= HIGHEST_DOUBLE)


def merge_counts(left: list[Positions], right: list[Positions]) -> list[Positions]:
    """The counts of both parts together."""
    return [Positions(a.below + b.below, a.through + b.through) for a, b in zip(left, right, strict=True)]


class Bracket(NamedTuple):
    """The values above ``low`` and below ``high``, as keys: ``before`` values are not above, ``inside`` lie between."""

    low: int
    high: int
    before: int
    inside: int


def cut_evenly(low: int, high: int, parts: int) -> Keys:
    """Splitters strictly between two keys, that cut what lies between into at most this many even parts."""
    steps = np.arange(1, parts, dtype=object)  # Python's integers: the width may need 65 bits
    cuts = (low + steps * (high - low) // parts).astype(np.int64)
    cuts = np.unique(np.where(cuts == _NEGATIVE_ZERO, 0, cuts))
    return cuts[(cuts > low) & (cuts < high)]


def window(centers: Floats, reach: float) -> tuple[Keys, Keys]:
    """The keys of the first and the last double x with |x - center| <= reach, as this difference is rounded.

    A rounded difference does not fall as x grows, so the last one is found by halving the range of keys.
    """
    return order_keys(-from_keys(_last(read_only(-centers), reach))), _last(read_only(centers), reach)


@compiled(allocates=True, reassociate=False, contract=False)
def _last(centers: Floats, reach: float) -> Keys:
    found = np.empty(len(centers), np.int64)
    for row in range(len(centers)):
        bits = np.int64(bits_of(centers[row] + 0.0))
        inside, outside = np.int64(bits ^ ((bits >> 63) & _LOWER)), np.int64(HIGHEST_DOUBLE)
        while True:
            middle = (inside & outside) + ((inside ^ outside) >> 1)  # the mean, which cannot overflow
            if middle == inside:
                break
            value = from_bits(np.uint64(middle ^ ((middle >> 63) & _LOWER)))
            if value - centers[row] <= reach:
                inside = middle
            else:
                outside = middle
        found[row] = inside
    return found
