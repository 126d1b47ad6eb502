"""Count, mean, variance and range of each column, in one pass, summaries that merge without loss.

Means and sums of squared deviations are merged as in Chan, Golub and LeVeque (1979), "Updating formulae and a pairwise
algorithm for computing sample variances": nothing cancels, however far a column lies from zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Moments(NamedTuple):
    """For each column: values seen, their mean, sum of squared deviations, range, and how many were infinite."""

    values: NDArray[np.int64]
    mean: Floats
    squares: Floats
    low: Floats
    high: Floats
    infinite: NDArray[np.int64]

    @property
    def sd(self) -> Floats:
        """Standard deviation, divided by n."""
        sd: Floats = np.sqrt(self.squares / np.maximum(self.values, 1))
        return sd


def column_moments(block: Floats) -> Moments:
    """The moments of one block (columns x rows); NaN is a missing value."""
    columns = [_one_column(values) for values in block]
    count, mean, squares, low, high, infinite = zip(*columns, strict=True)
    return Moments(
        np.array(count), np.array(mean), np.array(squares), np.array(low), np.array(high), np.array(infinite)
    )


def _one_column(values: Floats) -> tuple[int, float, float, float, float, int]:
    total = values.sum()
    infinite = 0
    if not np.isfinite(total):
        seen = values[~np.isnan(values)]
        values = seen[np.isfinite(seen)]
        infinite = len(seen) - len(values)
        total = values.sum()
    if not len(values):
        return 0, 0.0, 0.0, np.inf, -np.inf, infinite
    mean = total / len(values)
    deviations = values - mean
    return len(values), mean, deviations @ deviations, values.min(), values.max(), infinite


def merge_moments(left: Moments, right: Moments) -> Moments:
    """The moments of both parts together."""
    count = left.values + right.values
    share = right.values / np.maximum(count, 1)
    step = right.mean - left.mean
    return Moments(
        count,
        left.mean + step * share,
        left.squares + right.squares + step**2 * left.values * share,
        np.minimum(left.low, right.low),
        np.maximum(left.high, right.high),
        left.infinite + right.infinite,
    )
