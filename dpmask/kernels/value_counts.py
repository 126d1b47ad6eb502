"""How often each value of a column occurs, values known by a key, as long as they are not too many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Integers, Words

MOST_VALUES = 1 << 16


class ValueCounts(NamedTuple):
    """Different keys, sorted, and how often each occurs; cut off where there are more than ``most``."""

    keys: Words
    counts: Counts
    most: int

    @property
    def many(self) -> bool:
        """Whether there were more values than are counted."""
        return len(self.keys) > self.most

    def beside(self, other: ValueCounts) -> tuple[Counts, Counts]:
        """The counts of both at each key that either has."""
        keys = np.union1d(self.keys, other.keys)
        return self._at(keys), other._at(keys)

    def plus(self, other: ValueCounts) -> ValueCounts:
        """The counts of both parts together."""
        keys, most = np.union1d(self.keys, other.keys), self.most + 1
        return ValueCounts(keys[:most], (self._at(keys) + other._at(keys))[:most], self.most)

    def _at(self, keys: Words) -> Counts:
        counts = np.zeros(len(keys), np.int64)
        counts[np.searchsorted(keys, self.keys)] = self.counts
        return counts


def value_counts(keys: Words, most: int = MOST_VALUES, weights: Integers | None = None) -> ValueCounts:
    """One block's counts; with weights a record counts so many times."""
    if weights is None:
        found, counts = np.unique(keys, return_counts=True)
    else:
        found, inverse = np.unique(keys, return_inverse=True)
        counts = np.zeros(len(found), np.int64)
        np.add.at(counts, inverse, weights)
    return ValueCounts(found[: most + 1], counts[: most + 1], most)
