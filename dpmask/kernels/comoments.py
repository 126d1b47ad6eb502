"""Moments of pairs of columns in one pass, up to order 4, in summaries that merge without cancellation.

A summary keeps, for each pair of columns i and j, the sums of (x_i - c_i)^p (x_j - c_j)^q over the records that have
both values. The centre c is about the mean of what the summary has seen, and each sum is about exactly that double. Two
summaries are merged by moving both to a common centre, by the binomial formula. So nothing large is ever subtracted
from something as large, wherever a column's mean lies and in whatever order its values come. No BLAS: its matrices are
too small for it (9 ns of CPU a value against 3), and its threads would get in the way of Dask's.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.moments import Moments
from dpmask.kernels.vector_math import compiled, total_of

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_POWERS = ((0, 0), (1, 0), (2, 0), (1, 1), (3, 0), (4, 0), (2, 1), (2, 2), (3, 1))
_LEAST_ORDER = 2
_OF_ORDER = {_LEAST_ORDER: _POWERS[:4], 4: _POWERS}
_ROUNDING = 1e-14  # of the squares about the centre: what is left of a variance that is none
_TILE = 1 << 12  # rows whose deviations stay in the cache
_STRIP = 1 << 8  # rows whose powers stay in the fastest one


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
        """Correlations of the pairs of columns; NaN where one of them is constant in the records that have both."""
        with np.errstate(over="ignore", invalid="ignore"):
            mu20 = self.central(2, 0)
            rounding = _ROUNDING * self.sum(2, 0) / np.maximum(self.sum(0, 0), 1.0)
            deviation = np.sqrt(np.where(mu20 > rounding, mu20, np.nan))
            return self.central(1, 1) / (deviation * deviation.T)


def comoments(columns: Sequence[Floats], order: int) -> CoMoments:
    """One block's moments up to order 2 or 4, given as its columns; NaN is a missing value."""
    with np.errstate(over="ignore", invalid="ignore"):  # values near the largest double have no moments
        return _without_gaps(columns, order) or _with_gaps(columns, order)


def _without_gaps(columns: Sequence[Floats], order: int) -> CoMoments | None:
    """The moments where every value is there and finite; None as soon as one is not."""
    count, size = len(columns), len(columns[0])
    center = np.array([_about_mean(values) for values in columns])
    low, high, total = np.full(count, np.inf), np.full(count, -np.inf), np.zeros(count)
    sums = np.zeros((len(_POWERS), count, count))
    for start in range(0, size, _TILE):
        tile = np.array([values[start : start + _TILE] for values in columns])
        np.minimum(low, tile.min(axis=1), out=low)
        np.maximum(high, tile.max(axis=1), out=high)
        _add_products(tile, center, tile.shape[1], order > _LEAST_ORDER, total, sums)
        if not np.isfinite(total).all():
            return None
    sums[0], sums[1] = size, total[:, None]
    for power, product in ((2, 3), (4, 6), (5, 7)):  # a column's powers are its products with itself
        sums[power] = sums[product].diagonal()[:, None]
    return CoMoments(np.full(count, size), np.zeros(count, np.int64), low, high, center, sums[: len(_OF_ORDER[order])])


def _about_mean(values: Floats) -> float:
    """The mean of values spread evenly over a column, which is as good a centre as the mean; 0 where there are none.

    Values that are all the same are their own centre: a constant column deviates from itself by exactly nothing.
    """
    some = values[:: max(len(values) // _TILE, 1)]
    if not len(some):
        return 0.0
    return float(some[0] if (some == some[0]).all() else some.mean())


def _with_gaps(columns: Sequence[Floats], order: int) -> CoMoments:
    """The moments where values are missing or infinite: each pair of columns has its own records."""
    present = [np.isfinite(values) for values in columns]
    kept = [values[there] for values, there in zip(columns, present, strict=True)]
    center, nothing = np.array([_about_mean(values) for values in kept]), np.zeros(len(columns))
    sums = np.zeros((len(_POWERS), len(columns), len(columns)))
    tile, there = np.empty((len(columns), _TILE)), np.ones((len(columns), _TILE))
    for start in range(0, len(columns[0]), _TILE):
        rows = min(_TILE, len(columns[0]) - start)
        for number, values in enumerate(columns):
            np.subtract(values[start : start + rows], center[number], out=tile[number, :rows])
            there[number, :rows] = present[number][start : start + rows]
            tile[number, :rows][~present[number][start : start + rows]] = 0.0
        _add_products(tile, nothing, rows, order > _LEAST_ORDER, np.zeros(len(columns)), sums)
        _add_powers(tile, there, rows, sums)
    return CoMoments(
        np.array([len(values) for values in kept]),
        np.array([np.isinf(values).sum() for values in columns]),
        np.array([values.min(initial=np.inf) for values in kept]),
        np.array([values.max(initial=-np.inf) for values in kept]),
        center,
        sums[: len(_OF_ORDER[order])],
    )


@compiled()
def _add_products(tile: Floats, center: Floats, rows: int, higher: bool, total: Floats, sums: Floats) -> None:
    """Add the deviations from a centre, and the products of their powers of two columns."""
    columns = len(tile)
    strip, square = np.empty((columns, _STRIP)), np.empty((columns, _STRIP))  # contiguous, so that loops vectorise
    for start in range(0, rows, _STRIP):
        count = min(_STRIP, rows - start)
        for i in range(columns):
            for row in range(count):
                strip[i, row] = tile[i, start + row] - center[i]
                square[i, row] = strip[i, row] * strip[i, row]
            total[i] += total_of(strip[i], count)
            for j in range(i + 1):
                s11 = _product(strip[i], strip[j], count)  # the same sum with and without higher powers
                if higher:
                    s21, s12, s22, s31, s13 = _products(strip[i], strip[j], square[i], square[j], count)
                    sums[6, i, j] += s21
                    sums[7, i, j] += s22
                    sums[8, i, j] += s31
                    if i != j:
                        sums[6, j, i] += s12
                        sums[7, j, i] += s22
                        sums[8, j, i] += s13
                sums[3, i, j] += s11
                if i != j:
                    sums[3, j, i] += s11


@compiled(part=True)
def _products(x: Floats, y: Floats, xx: Floats, yy: Floats, count: int) -> tuple[float, ...]:
    s21 = s12 = s22 = s31 = s13 = 0.0
    for row in range(count):
        xy = x[row] * y[row]
        s21 += xx[row] * y[row]
        s12 += x[row] * yy[row]
        s22 += xx[row] * yy[row]
        s31 += xx[row] * xy
        s13 += xy * yy[row]
    return s21, s12, s22, s31, s13


@compiled(part=True)
def _product(x: Floats, y: Floats, count: int) -> float:
    total = 0.0
    for row in range(count):
        total += x[row] * y[row]
    return total


@compiled()
def _add_powers(tile: Floats, there: Floats, rows: int, sums: Floats) -> None:
    """Add the powers of one column over the records that have another one; ``there`` is 1 where a value is present."""
    for i in range(len(tile)):
        for j in range(len(tile)):
            s0 = s1 = s2 = s3 = s4 = 0.0
            for row in range(rows):
                value = tile[i, row] * there[j, row]
                square = value * value
                s0 += there[i, row] * there[j, row]
                s1 += value
                s2 += square
                s3 += square * value
                s4 += square * square
            sums[0, i, j] += s0
            sums[1, i, j] += s1
            sums[2, i, j] += s2
            sums[4, i, j] += s3
            sums[5, i, j] += s4


def merge_comoments(left: CoMoments, right: CoMoments) -> CoMoments:
    """The moments of both parts together."""
    values = left.values + right.values
    with np.errstate(over="ignore", invalid="ignore"):
        center = left.center + (right.center - left.center) * (right.values / np.maximum(values, 1))
        center = np.where(right.values == 0, left.center, np.where(left.values == 0, right.center, center))
        sums = _recentred(left, center) + _recentred(right, center)
    return CoMoments(
        values,
        left.infinite + right.infinite,
        np.minimum(left.low, right.low),
        np.maximum(left.high, right.high),
        center,
        sums,
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
