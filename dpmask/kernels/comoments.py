"""Moments of pairs of columns in one pass, up to order 4, in summaries that merge without cancellation.

A summary keeps, for each pair of columns i and j, the sums of (x_i - c_ij)^p (x_j - c_ji)^q over the records that have
both values. The centre c_ij is about the mean of x_i in these records, as far as the summary has seen them, and each
sum is about exactly that double. Two summaries are merged by moving both to a common centre, by the binomial formula.
So nothing large is ever subtracted from something as large, wherever a column's mean lies, in whatever order its values
come, and whatever stands where the other value is missing. No BLAS: its matrices are too small for it (9 ns of CPU a
value against 3), and its threads would get in the way of Dask's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.compile import compiled
from dpmask.kernels.elementary import power
from dpmask.kernels.moments import Moments
from dpmask.kernels.vector_math import total_of

_POWERS = ((0, 0), (1, 0), (2, 0), (1, 1), (3, 0), (4, 0), (2, 1), (2, 2), (3, 1))
_LEAST_ORDER = 2
_OF_ORDER = {_LEAST_ORDER: _POWERS[:4], 4: _POWERS}
_ROUNDING = 1e-14  # of the squares about the centre: what is left of a variance that is none
_TILE = 1 << 12  # rows whose deviations stay in the cache
_STRIP = 1 << 8  # rows whose powers stay in the fastest one


class CoMoments(NamedTuple):
    """Present values, infinite ones and range of each column; of each pair its centres and sums (powers x pairs).

    Records may weigh: then sums are weighted, and ``squared`` has the sums of squared weights.
    """

    values: Counts
    infinite: Counts
    low: Floats
    high: Floats
    center: Floats
    sums: Floats
    squared: Floats

    def sum(self, p: int, q: int) -> Floats:
        """For columns i and j the sum of (x_i - c_ij)^p (x_j - c_ji)^q over the records with both."""
        return self.sums[_POWERS.index((p, q))] if (p, q) in _POWERS else self.sums[_POWERS.index((q, p))].T

    @property
    def moments(self) -> Moments:
        """Each column's own count, mean, squared deviations and range."""
        total, squares = self.sum(1, 0).diagonal(), self.sum(1, 1).diagonal()
        weight = _or_one(self.sum(0, 0).diagonal())
        step, center = total / weight, self.center.diagonal()
        mean = center + step
        rest = (center - mean) + step
        squares = (squares - total * step) * (np.maximum(self.values, 1) / weight)
        return Moments(self.values, mean, rest, squares, self.low, self.high, self.infinite)

    @property
    def effective(self) -> Floats:
        """Kish's effective size of each pair of columns, (sum w)^2 / sum w^2: the number of records, unweighted."""
        weight = self.sum(0, 0)
        return weight * (weight / _or_one(self.squared))

    def central(self, p: int, q: int) -> Floats:
        """mu_pq of each pair of columns: about the means of its own records, divided by their number."""
        count = _or_one(self.sum(0, 0))
        mean = self.sum(1, 0) / count
        return _moved(self, -mean, -mean.T, p, q) / count

    @property
    def correlation(self) -> Floats:
        """Correlations of the pairs of columns; NaN where one of them is constant in the records that have both."""
        with np.errstate(over="ignore", invalid="ignore"):
            mu20 = self.central(2, 0)
            rounding = _ROUNDING * self.sum(2, 0) / _or_one(self.sum(0, 0))
            deviation = np.sqrt(np.where(mu20 > rounding, mu20, np.nan))
            return self.central(1, 1) / (deviation * deviation.T)


def comoments(columns: Sequence[Floats], order: int, weights: Floats | None = None) -> CoMoments:
    """One block's moments up to order 2 or 4, given as its columns; NaN is a missing value."""
    with np.errstate(over="ignore", invalid="ignore"):  # values near the largest double have no moments
        if weights is not None:
            return _with_gaps(columns, order, weights)
        return _without_gaps(columns, order) or _with_gaps(columns, order, np.ones(len(columns[0])))


def _or_one(weight: Floats) -> Floats:
    """What to divide by: 1 where nothing was summed."""
    return np.where(weight > 0.0, weight, 1.0)


def _without_gaps(columns: Sequence[Floats], order: int) -> CoMoments | None:
    """The moments where every value is there and finite; None as soon as one is not."""
    count, size = len(columns), len(columns[0])
    center = np.array([_about_mean(values) for values in columns])
    low, high, total = np.full(count, np.inf), np.full(count, -np.inf), np.zeros(count)
    sums = np.zeros((len(_POWERS), count, count))
    strip, square = np.empty((2, count, _STRIP))
    for start in range(0, size, _TILE):
        tile = np.array([values[start : start + _TILE] for values in columns])
        np.minimum(low, tile.min(axis=1), out=low)
        np.maximum(high, tile.max(axis=1), out=high)
        _add_products(tile, center, tile.shape[1], order > _LEAST_ORDER, strip, square, total, sums)
        if not np.isfinite(total).all():
            return None
    sums[0], sums[1] = size, total[:, None]
    for powers, product in ((2, 3), (4, 6), (5, 7)):  # a column's powers are its products with itself
        sums[powers] = sums[product].diagonal()[:, None]
    centers = np.repeat(center[:, None], count, axis=1)
    values, infinite = np.full(count, size), np.zeros(count, np.int64)
    return CoMoments(values, infinite, low, high, centers, sums[: len(_OF_ORDER[order])], sums[0].copy())


def _about_mean(values: Floats) -> float:
    """The mean of values spread evenly over a column, which is as good a centre as the mean; 0 where there are none.

    Values that are all the same are their own centre: a constant column deviates from itself by exactly nothing.
    """
    some = values[:: max(len(values) // _TILE, 1)]
    if not len(some):
        return 0.0
    return float(some[0] if (some == some[0]).all() else some.mean())


def _with_gaps(columns: Sequence[Floats], order: int, weights: Floats) -> CoMoments:
    """The moments where values are missing or infinite, or records weigh: each pair of columns has its own records."""
    count, squared = len(columns), np.zeros((len(columns),) * 2)
    present = np.array([np.isfinite(values) for values in columns])
    center = _pair_means(columns, present)
    low, high, sums = np.full(count, np.inf), np.full(count, -np.inf), np.zeros((len(_POWERS), count, count))
    for tile, there, weight in _tiles(columns, present, weights):
        np.minimum(low, np.where(there, tile, np.inf).min(axis=1), out=low)
        np.maximum(high, np.where(there, tile, -np.inf).max(axis=1), out=high)
        _add_pairs(tile, there, weight, center, order > _LEAST_ORDER, sums)
        squared += np.einsum("ik,jk->ij", there * weight**2, there)
    infinite = np.array([np.isinf(values).sum() for values in columns])
    return CoMoments(present.sum(axis=1), infinite, low, high, center, sums[: len(_OF_ORDER[order])], squared)


def _tiles(
    columns: Sequence[Floats], present: NDArray[np.bool_], weights: Floats
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Some rows at a time: the values, 0 where there is none, 1 where there is one, and the weights."""
    for start in range(0, len(columns[0]), _TILE):
        there = present[:, start : start + _TILE]
        tile = np.array([values[start : start + _TILE] for values in columns])
        tile[~there] = 0.0
        yield tile, there.astype(np.float64), weights[start : start + _TILE]


def _pair_means(columns: Sequence[Floats], present: NDArray[np.bool_]) -> Floats:
    """The mean of each column in the records that have another one, 0 where there is none.

    As the first value and the mean distance from it: a constant deviates from its mean by exactly nothing.
    """
    count = len(columns)
    first = np.zeros((count, count))
    if not len(columns[0]):
        return first
    for i in range(count):
        for j in range(i + 1):
            both = present[i] & present[j]
            place = int(both.argmax())
            if both[place]:
                first[i, j], first[j, i] = columns[i][place], columns[j][place]
    sums = np.zeros((2, count, count))
    for tile, there, _ in _tiles(columns, present, np.ones(len(columns[0]))):
        _add_distances(tile, there, first, sums)
    return first + sums[1] / np.maximum(sums[0], 1.0)


@compiled()
def _add_distances(tile: Floats, there: Floats, first: Floats, sums: Floats) -> None:
    """Add the records that have both of two columns, and the distances of each from a value of its own."""
    for i in range(len(tile)):
        for j in range(i + 1):
            count, s10, s01, one, two = 0.0, 0.0, 0.0, first[i, j], first[j, i]
            for row in range(tile.shape[1]):
                both = there[i, row] * there[j, row]
                count += both
                s10 += (tile[i, row] - one) * both
                s01 += (tile[j, row] - two) * both
            sums[0, i, j] += count
            sums[1, i, j] += s10
            if i != j:
                sums[0, j, i] += count
                sums[1, j, i] += s01


@compiled()
def _add_pairs(tile: Floats, there: Floats, weight: Floats, center: Floats, higher: bool, sums: Floats) -> None:
    """Add the weighted powers and products of the deviations of two columns, over the records that have both."""
    for i in range(len(tile)):
        for j in range(len(tile)):
            c, d = center[i, j], center[j, i]
            s00, s10, s20, s11 = _lower_sums(tile[i], tile[j], there[i], there[j], weight, c, d)
            sums[0, i, j] += s00
            sums[1, i, j] += s10
            sums[2, i, j] += s20
            sums[3, i, j] += s11
            if higher:
                s30, s40, s21, s22, s31 = _higher_sums(tile[i], tile[j], there[i], there[j], weight, c, d)
                sums[4, i, j] += s30
                sums[5, i, j] += s40
                sums[6, i, j] += s21
                sums[7, i, j] += s22
                sums[8, i, j] += s31


@compiled(part=True)
def _lower_sums(x: Floats, y: Floats, has_x: Floats, has_y: Floats, w: Floats, c: float, d: float) -> tuple[float, ...]:
    s00 = s10 = s20 = s11 = 0.0
    for row in range(len(x)):
        both = has_x[row] * has_y[row]
        a, b = (x[row] - c) * both, (y[row] - d) * both
        weighed = w[row] * a
        s00 += w[row] * both
        s10 += weighed
        s20 += weighed * a
        s11 += weighed * b
    return s00, s10, s20, s11


@compiled(part=True)
def _higher_sums(
    x: Floats, y: Floats, has_x: Floats, has_y: Floats, w: Floats, c: float, d: float
) -> tuple[float, ...]:
    s30 = s40 = s21 = s22 = s31 = 0.0
    for row in range(len(x)):
        both = has_x[row] * has_y[row]
        a, b = (x[row] - c) * both, (y[row] - d) * both
        square, product = w[row] * a * a, a * b
        s30 += square * a
        s40 += square * a * a
        s21 += square * b
        s22 += w[row] * product * product
        s31 += square * product
    return s30, s40, s21, s22, s31


@compiled()
def _add_products(
    tile: Floats, center: Floats, rows: int, higher: bool, strip: Floats, square: Floats, total: Floats, sums: Floats
) -> None:
    """Add the deviations from a centre, and the products of their powers of two columns."""
    columns = len(tile)
    for start in range(0, rows, _STRIP):
        count = _STRIP if start + _STRIP < rows else rows - start
        for i in range(columns):
            values = tile[i, start:]  # from a place like start + row, which may be negative, no vector is loaded
            for row in range(count):
                strip[i, row] = values[row] - center[i]
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


def merge_comoments(left: CoMoments, right: CoMoments) -> CoMoments:
    """The moments of both parts together."""
    values = left.values + right.values
    with np.errstate(over="ignore", invalid="ignore"):
        some, more = left.sum(0, 0), right.sum(0, 0)
        center = left.center + (right.center - left.center) * (more / _or_one(some + more))
        center = np.where(more == 0, left.center, np.where(some == 0, right.center, center))
        sums = _recentred(left, center) + _recentred(right, center)
    return CoMoments(
        values,
        left.infinite + right.infinite,
        np.minimum(left.low, right.low),
        np.maximum(left.high, right.high),
        center,
        sums,
        left.squared + right.squared,
    )


def _recentred(one: CoMoments, center: Floats) -> Floats:
    """The sums about another centre."""
    step = one.center - center
    return np.array([_moved(one, step, step.T, p, q) for p, q in _POWERS[: len(one.sums)]])


def _moved(one: CoMoments, x: Floats, y: Floats, p: int, q: int) -> Floats:
    """The sum of (x_i - c_i + x)^p (x_j - c_j + y)^q."""
    total = np.zeros_like(x)
    for i in range(p + 1):
        for j in range(q + 1):
            total += comb(p, i) * comb(q, j) * power(x, p - i) * power(y, q - j) * one.sum(i, j)
    return total
