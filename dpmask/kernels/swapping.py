"""Rank swapping: where a value meets its partner, and who gets whose value.

Every value goes from its rank by a random distance and changes places with the one that comes to lie next to it. The
distances are normal, so the ranks of two partners differ by the difference of two of them, which is normal, too: three
eighths of the window on average, as far as in swaps at random within fixed windows of that size once their loss is the
same; by no more than a window for 97 of 100; and no window bounds it.
"""

from __future__ import annotations

import math

import numpy as np

from dpmask.kernels.arrays import Floats, Integers

_TAIL = 4.0  # standard deviations before the first and beyond the last rank that still get shards of their own


def mean_distance(window: float) -> float:
    """How far apart in rank two values that change places are on average; shares of the column, as the window."""
    return 0.375 * window


def distance_sd(window: float) -> float:
    """The standard deviation of the distance in rank between two values that change places."""
    return mean_distance(window) * math.sqrt(math.pi / 2.0)


def fewest_values(window: float) -> int:
    """A third of the values that a stratum must have to be swapped by itself: the window has two of so many."""
    return math.ceil(2 / window)


def meeting_places(low: Floats, high: Floats, lots: Floats, normals: Floats, window: float) -> Floats:
    """Where values meet: a rank between ``low`` and ``high``, by lot, and a normal distance from it.

    Two partners add their distances, so each has half of the variance.
    """
    return low + lots * (high - low) + distance_sd(window) / math.sqrt(2.0) * normals


def shards_for(values: int, window: float, shard: int) -> int:
    """How many shards of about so many values the meeting places of a column are cut into."""
    parts = max(1, -(-values // shard))
    return math.ceil(parts * (1.0 + 2.0 * _tail(window))) if parts > 1 else 1


def shard_of(places: Floats, window: float, shards: int) -> Integers:
    """The shard of each meeting place: equal parts of the ranks and of the tails on both sides."""
    tail = _tail(window)
    width = (1.0 + 2.0 * tail) / shards
    return np.clip(np.floor((places + tail) / width), 0, shards - 1).astype(np.int64)


def _tail(window: float) -> float:
    return _TAIL * distance_sd(window) / math.sqrt(2.0)


def swapped(places: Floats) -> Integers:
    """For each value the one that its record gets: neighbours two by two change places; an odd last one stays."""
    order = np.argsort(places, kind="stable")
    pairs = len(order) // 2 * 2
    first, second = order[0:pairs:2], order[1:pairs:2]
    source = np.arange(len(places))
    source[first], source[second] = second, first
    return source
