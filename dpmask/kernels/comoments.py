"""Moments of pairs of columns in one pass, up to order 4, in summaries that merge without cancellation.

A summary keeps, for each pair of columns i and j, the sums of (x_i - c_i)^p (x_j - c_j)^q over the records that have
both values. The centre c is about the mean of what the summary has seen, and each sum is about exactly that double. Two
summaries are merged by moving both to a common centre, by the binomial formula. So nothing large is ever subtracted
from something as large, wherever a column's mean lies and in whatever order its values come.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.moments import Moments

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_POWERS = ((0, 0), (1, 0), (2, 0), (1, 1), (3, 0), (4, 0), (2, 1), (2, 2), (3, 1))
_OF_ORDER = {2: _POWERS[:4], 4: _POWERS}
_TILE = 1 << 12  # rows whose powers stay in the cache


class CoMoments(NamedTuple):
    """Present values, infinite ones and range of each column; sums of powers (powers x columns x columns)."""

    values: Counts
    infinite: Counts
    low: Floats
    high: Floats
    center: Floats
    sums: Floats

    def sum(self, p: int, q: int) -> Floats:
        """For columns i and j the sum of (x_i - c_i)^p (x_j - c_j)^q over the records with both."""
        return self.sums[_POWERS.index((p, q))] if (p, q) in _POWERS else self.sums[_POWERS.index((q, p))].T

    @property
    def moments(self) -> Moments:
        """Each column's own count, mean, squared deviations and range."""
        total, squares = self.sum(1, 0).diagonal(), self.sum(1, 1).diagonal()
        step = total / np.maximum(self.values, 1)
        mean = self.center + step
        rest = (self.center - mean) + step
        return Moments(self.values, mean, rest, squares - total * step, self.low, self.high, self.infinite)

    def central(self, p: int, q: int) -> Floats:
        """mu_pq of each pair of columns: about the means of its own records, divided by their number."""
        count = np.maximum(self.sum(0, 0), 1.0)
        mean = self.sum(1, 0) / count
        return _moved(self, -mean, -mean.T, p, q) / count

    @property
    def correlation(self) -> Floats:
        """Correlations of the pairs of columns; NaN where one of them is constant."""
        mu20 = self.central(2, 0)
        product = np.sqrt(mu20) * np.sqrt(mu20.T)
        return self.central(1, 1) / np.where(product > 0.0, product, np.nan)


def comoments(columns: Sequence[Floats], order: int) -> CoMoments:
    """One block's moments up to order 2 or 4, given as its columns; NaN is a missing value."""
    present = [np.isfinite(values) for values in columns]
    whole = all(bool(there.all()) for there in present)
    kept = columns if whole else [values[there] for values, there in zip(columns, present, strict=True)]
    low = np.array([values.min(initial=np.inf) for values in kept])
    high = np.array([values.max(initial=-np.inf) for values in kept])
    # a constant column deviates from itself by exactly nothing
    center = np.array([values.mean() if a < b else a for values, a, b in zip(kept, low, high, strict=True)])
    center[low > high] = 0.0
    sums = np.zeros((len(_OF_ORDER[order]), len(columns), len(columns)))
    for start in range(0, len(columns[0]), _TILE):
        stop = start + _TILE
        tile = np.array([values[start:stop] for values in columns]) - center[:, None]
        there = None if whole else np.array([one[start:stop] for one in present])
        sums += _tile_sums(tile if there is None else np.where(there, tile, 0.0), there, order)
    return CoMoments(
        np.array([len(values) for values in kept]),
        np.array([np.isinf(values).sum() if not whole else 0 for values in columns]),
        low,
        high,
        center,
        sums,
    )


def _tile_sums(tile: Floats, present: NDArray[np.bool_] | None, order: int) -> Floats:
    """The sums of a tile of deviations, which are 0 where a value is missing."""
    square = tile * tile
    powers = {1: tile, 2: square} | ({3: square * tile, 4: square * square} if order > 2 else {})  # noqa: PLR2004
    there = None if present is None else present.astype(np.float64)
    sums = np.empty((len(_OF_ORDER[order]), len(tile), len(tile)))
    for place, (p, q) in enumerate(_OF_ORDER[order]):
        if q:
            sums[place] = powers[p] @ powers[q].T
        elif there is not None:
            sums[place] = (powers[p] if p else there) @ there.T
        else:
            sums[place] = powers[p].sum(axis=1)[:, None] if p else tile.shape[1]
    return sums


def merge_comoments(left: CoMoments, right: CoMoments) -> CoMoments:
    """The moments of both parts together."""
    values = left.values + right.values
    center = left.center + (right.center - left.center) * (right.values / np.maximum(values, 1))
    center = np.where(right.values == 0, left.center, np.where(left.values == 0, right.center, center))
    return CoMoments(
        values,
        left.infinite + right.infinite,
        np.minimum(left.low, right.low),
        np.maximum(left.high, right.high),
        center,
        _recentred(left, center) + _recentred(right, center),
    )


def _recentred(one: CoMoments, center: Floats) -> Floats:
    """The sums about another centre."""
    step = (one.center - center)[:, None] + np.zeros(len(center))
    return np.array([_moved(one, step, step.T, p, q) for p, q in _POWERS[: len(one.sums)]])


def _moved(one: CoMoments, x: Floats, y: Floats, p: int, q: int) -> Floats:
    """The sum of (x_i - c_i + x)^p (x_j - c_j + y)^q."""
    total = np.zeros_like(x)
    for i in range(p + 1):
        for j in range(q + 1):
            total += comb(p, i) * comb(q, j) * x ** (p - i) * y ** (q - j) * one.sum(i, j)
    return total
