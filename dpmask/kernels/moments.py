"""Count, mean, variance and range of each column, in one pass, summaries that merge without loss.

Means and sums of squared deviations are merged as in Chan, Golub and LeVeque (1979), "Updating formulae and a pairwise
algorithm for computing sample variances". A mean is kept as an unevaluated sum of two doubles: the difference of two
means far from zero would otherwise carry their rounding into the variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats

_TILE = 1 << 14  # rows whose temporaries stay in the cache


class Moments(NamedTuple):
    """For each column: values seen, their mean, sum of squared deviations, range, and how many were infinite."""

    values: NDArray[np.int64]
    mean: Floats
    rest: Floats  # what the mean lost to rounding
    squares: Floats
    low: Floats
    high: Floats
    infinite: NDArray[np.int64]

    @property
    def sd(self) -> Floats:
        """Standard deviation, divided by n."""
        return np.sqrt(self.squares / np.maximum(self.values, 1))

    def of(self, columns: slice) -> Moments:
        """The moments of some of the columns."""
        return Moments._make(part[columns] for part in self)


def column_moments(columns: Sequence[Floats]) -> Moments:
    """The moments of one block, given as its columns; NaN is a missing value."""
    return Moments(*(np.array(part) for part in zip(*map(_one_column, columns), strict=True)))


def _one_column(values: Floats) -> tuple[int, float, float, float, float, float, int]:
    with np.errstate(invalid="ignore"):
        total = values.sum()
    infinite = 0
    if not np.isfinite(total):
        seen = values[~np.isnan(values)]
        values = seen[np.isfinite(seen)]
        infinite = len(seen) - len(values)
        total = values.sum()
    if not len(values):
        return 0, 0.0, 0.0, 0.0, np.inf, -np.inf, infinite
    mean = total / len(values)
    squares = rest = 0.0
    low, high = values[0], values[0]
    for start in range(0, len(values), _TILE):
        tile = values[start : start + _TILE]
        low, high = min(low, tile.min()), max(high, tile.max())
        deviations = tile - mean
        rest += deviations.sum()
        squares += np.square(deviations, out=deviations).sum()
    rest /= len(values)
    return len(values), mean, rest, squares - len(values) * rest**2, low, high, infinite


def merge_moments(left: Moments, right: Moments) -> Moments:
    """The moments of both parts together."""
    values = left.values + right.values
    share = right.values / np.maximum(values, 1)
    step = (right.mean - left.mean) + (right.rest - left.rest)
    mean, rest = _two_sum(left.mean, left.rest + step * share)
    alone = left.values == 0  # the step from no mean at all would round away the right one's rest
    return Moments(
        values,
        np.where(alone, right.mean, mean),
        np.where(alone, right.rest, rest),
        left.squares + right.squares + step**2 * left.values * share,
        np.minimum(left.low, right.low),
        np.maximum(left.high, right.high),
        left.infinite + right.infinite,
    )


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The rounded sum, and what the rounding lost (Knuth)."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)
