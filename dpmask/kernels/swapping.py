"""Rank swapping on the values of one shard: who gets whose value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def swapped(keys: Integers, ties: NDArray[np.uint64], draws: Floats, share: float, window: int) -> Integers:
    """For each value, the place of the value that its record gets: its own, or that of its partner in the window.

    Values are ranked by their keys, equal ones by ``ties``, and cut into windows of at most ``window`` neighbours.
    Those whose draw is below ``share`` are paired within their window in the order of the draws, a random one.
    """
    order = _ranked(keys, ties)
    count = -(-len(order) // window)
    windows = np.empty(len(order), np.int64)
    windows[order] = np.arange(len(order)) * count // max(len(order), 1)
    chosen = np.flatnonzero(draws < share)
    chosen = chosen[np.argsort(_in_one(windows[chosen], draws[chosen], count))]
    first, second = _pairs(windows[chosen])
    source = np.arange(len(keys))
    source[chosen[first]], source[chosen[second]] = chosen[second], chosen[first]
    return source


def _ranked(keys: Integers, ties: NDArray[np.uint64]) -> Integers:
    """The order of the keys, and of equal ones by their ties: these alone need the slow sort by both."""
    order = np.argsort(keys)
    ranked = keys[order]
    equal = np.concatenate([[False], ranked[1:] == ranked[:-1], [False]])
    tied = np.flatnonzero(equal[1:] | equal[:-1])
    order[tied] = order[tied][np.lexsort((ties[order[tied]], ranked[tied]))]
    return order


def _in_one(windows: Integers, draws: Floats, count: int) -> Integers:
    """Window and draw as one number that sorts by both, for one fast sort."""
    bits = 62 - count.bit_length()
    return (windows << bits) | (draws * 2.0**bits).astype(np.int64)


def _pairs(windows: Integers) -> tuple[Integers, Integers]:
    """Neighbours two by two in each window (given sorted); where a window has an odd number the last stays alone."""
    starts = np.searchsorted(windows, windows, "left")
    first = np.flatnonzero((np.arange(len(windows)) - starts) % 2 == 0)
    first = first[first + 1 < len(windows)]
    first = first[windows[first] == windows[first + 1]]
    return first, first + 1


class Cuts(NamedTuple):
    """Where one column is cut into shards: the ranks, and the values at these, with their own places in the column."""

    ranks: Integers
    keys: Integers  # of the values at the ranks, each once
    below: Integers  # how many values lie below each
    through: Integers  # and how many at or below

    @property
    def shards(self) -> int:
        """How many parts there are."""
        return len(self.ranks) + 1


def shard_of(keys: Integers, draws: Floats, cuts: Cuts) -> Integers:
    """The shard of each value. Values equal to one at a cut go to either side of it, by their draws, as rank says.

    Between two cuts a value's rank is known well enough; at a cut it is drawn from the ranks that equal values share.
    """
    if not len(cuts.ranks):
        return np.zeros(len(keys), np.int64)
    place = np.searchsorted(cuts.keys, keys)
    ranks = np.concatenate([[0], cuts.through])[place]
    at = np.flatnonzero(cuts.keys[np.minimum(place, len(cuts.keys) - 1)] == keys)
    below, through = cuts.below[place[at]], cuts.through[place[at]]
    ranks[at] = below + (draws[at] * (through - below)).astype(np.int64)
    return np.searchsorted(cuts.ranks, ranks, "right")
