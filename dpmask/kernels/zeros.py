"""Zeros of columns, counted in one pass: how many there are, and whether the other values differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Flags, Floats, Integers

MANY_ZEROS = 0.05
"""The share of a column's values from which zeros are many: amounts that some have and others do not."""


class ZeroCounts(NamedTuple):
    """For each column: values that are there, zeros among them, and the range of the others."""

    values: Integers
    zeros: Integers
    low: Floats
    high: Floats

    @property
    def many(self) -> Flags:
        """Columns of which many values are zero."""
        return (self.zeros > 0) & (self.zeros >= MANY_ZEROS * self.values)

    @property
    def others(self) -> Integers:
        """Values that are not zero; none where they are all the same, as in a column of flags."""
        return np.where(self.low < self.high, self.values - self.zeros, 0)


def zero_counts(columns: Sequence[Floats]) -> ZeroCounts:
    """The counts of one block, given as its columns; NaN is a missing value."""
    return ZeroCounts(*(np.array(part) for part in zip(*map(_one_column, columns), strict=True)))


def _one_column(values: Floats) -> tuple[int, int, float, float]:
    there = values[~np.isnan(values)]
    other = there[there != 0.0]
    ends = (float(other.min()), float(other.max())) if len(other) else (np.inf, -np.inf)
    return len(there), len(there) - len(other), *ends


def merge_zero_counts(left: ZeroCounts, right: ZeroCounts) -> ZeroCounts:
    """Both parts together."""
    return ZeroCounts(
        left.values + right.values,
        left.zeros + right.zeros,
        np.minimum(left.low, right.low),
        np.maximum(left.high, right.high),
    )
