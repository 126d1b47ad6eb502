"""How often each value of a column occurs, values known by a key, as long as they are not too many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.keys import Words

Counts = NDArray[np.int64]

MOST_VALUES = 1 << 16


class Tally(NamedTuple):
    """Different keys, sorted, and how often each occurs; cut off where there are too many."""

    keys: Words
    counts: Counts

    @property
    def many(self) -> bool:
        """Whether there were more values than are counted."""
        return len(self.keys) > MOST_VALUES

    def beside(self, other: Tally) -> tuple[Counts, Counts]:
        """The counts of both at each key that either has."""
        keys = np.union1d(self.keys, other.keys)
        return self._at(keys), other._at(keys)

    def _at(self, keys: Words) -> Counts:
        counts = np.zeros(len(keys), np.int64)
        counts[np.searchsorted(keys, self.keys)] = self.counts
        return counts


def tally(keys: Words) -> Tally:
    """One block's count."""
    return _held(*np.unique(keys, return_counts=True))


def merge_tallies(left: Tally, right: Tally) -> Tally:
    """The counts of both parts together."""
    keys = np.union1d(left.keys, right.keys)
    return _held(keys, left._at(keys) + right._at(keys))


def _held(keys: Words, counts: Counts) -> Tally:
    return Tally(keys[: MOST_VALUES + 1], counts[: MOST_VALUES + 1])
