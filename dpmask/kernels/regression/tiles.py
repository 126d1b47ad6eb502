"""Fuzzy c-regression on one tile of records: errors, memberships, and the products that add up to Gram matrices.

The formulas and symbols are those of gram.py. With r_ik = min_j E_jk / E_ik and q_ik = r_ik^(1/(m-1))
the weight of a record in a model is u_ik^m = q_ik r_ik (sum_j q_jk)^-m, as in dpmask.kernels.fuzzy.tiles, times w_k.

Errors are summed from residuals, never from Gram matrices: memberships depend on the smallest of them. Gram matrices
are products of tiles small enough for BLAS to stay in its thread, so their bits do not depend on how many it may use.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.compile import compiled
from dpmask.kernels.vector_math import copy_columns, exp2, log2, total_of

ROWS = 256
_ONE_THREAD = 1 << 18  # multiplications that OpenBLAS never divides among threads
_NO_ERROR = 1e-100  # what an error of 0 counts as (section II.C, step 3)
_SMALLEST_RATIO = 2.0**-1022


class RegressionTile(NamedTuple):
    """Room for 256 records (the last axis) and what is computed about them; ``sums`` add up over tiles."""

    z: Floats  # p x ROWS
    y: Floats  # t x ROWS
    weights: Floats  # 1 x ROWS: the records' own
    residuals: Floats  # 2 x ROWS
    shares: Floats  # models x ROWS: E_ik, then min_j E_jk / E_ik, then w_k u_ik^m
    nearest: Floats  # min_i E_ik
    label: Integers  # where it is
    total: Floats  # sum_i q_ik
    products: Floats  # (p (p + 1) / 2 + p t) x ROWS: z z' above the diagonal, then z y'
    sums: Floats  # models x (p (p + 1) / 2 + p t)


@compiled(part=True, allocates=True)
def new_tile(p: int, t: int, models: int) -> RegressionTile:
    """An empty tile for so many columns of z and y."""
    width = p * (p + 1) // 2 + p * t
    return RegressionTile(
        np.zeros((p, ROWS)),
        np.zeros((t, ROWS)),
        np.zeros((1, ROWS)),
        np.zeros((2, ROWS)),
        np.zeros((models, ROWS)),
        np.zeros(ROWS),
        np.zeros(ROWS, np.int64),
        np.zeros(ROWS),
        np.zeros((width, ROWS)),
        np.zeros((models, width)),
    )


@compiled(part=True)
def load(tile: RegressionTile, z: Floats, y: Floats, first: int) -> int:
    """The records from `first` on, zeros behind the end of the block; returns how many there are."""
    count = min(ROWS, z.shape[1] - first)
    copy_columns(z, first, count, tile.z)
    copy_columns(y, first, count, tile.y)
    return count


@compiled(part=True)
def find_errors(tile: RegressionTile, models: Floats, errors: Floats) -> None:
    """errors[i, k] = |y_k - B_i' z_k|^2, with models x t x p; two dependents or two models at a time."""
    for i in range(len(models)):
        for k in range(ROWS):
            errors[i, k] = 0.0
    t, pairs = len(tile.y), len(models) * len(tile.y)
    for number in range(0, pairs, 2):
        other = min(number + 1, pairs - 1)
        i, j, i2, j2 = number // t, number % t, other // t, other % t
        _two_residuals(tile.z, tile.y[j], tile.y[j2], models[i, j], models[i2, j2], tile.residuals)
        _add_squares(tile.residuals[0], errors[i])
        if other > number:
            _add_squares(tile.residuals[1], errors[i2])
    for i in range(len(models)):
        error = errors[i]
        for k in range(ROWS):
            error[k] = max(error[k], _NO_ERROR)


@compiled(part=True)
def _two_residuals(z: Floats, y: Floats, y2: Floats, one: Floats, two: Floats, residuals: Floats) -> None:
    # two models and four columns at a time: each number is loaded once for eight multiplications
    first, second = residuals[0], residuals[1]
    for k in range(ROWS):
        first[k] = y[k]
        second[k] = y2[k]
    whole = len(z) // 4 * 4
    for s in range(0, whole, 4):
        z0, z1, z2, z3 = z[s], z[s + 1], z[s + 2], z[s + 3]
        a0, a1, a2, a3 = one[s], one[s + 1], one[s + 2], one[s + 3]
        b0, b1, b2, b3 = two[s], two[s + 1], two[s + 2], two[s + 3]
        for k in range(ROWS):
            first[k] -= a0 * z0[k] + a1 * z1[k] + a2 * z2[k] + a3 * z3[k]
            second[k] -= b0 * z0[k] + b1 * z1[k] + b2 * z2[k] + b3 * z3[k]
    for s in range(whole, len(z)):
        column, a, b = z[s], one[s], two[s]
        for k in range(ROWS):
            first[k] -= a * column[k]
            second[k] -= b * column[k]


@compiled(part=True)
def _add_squares(residual: Floats, error: Floats) -> None:
    for k in range(ROWS):
        error[k] += residual[k] * residual[k]


@compiled(part=True)
def _power(ratio: float, exponent: float) -> float:
    """A power of a ratio in [0, 1]; 2 and 3 are those of m = 1.5."""
    if exponent == 2.0:  # noqa: PLR2004
        return ratio * ratio
    if exponent == 3.0:  # noqa: PLR2004
        return ratio * ratio * ratio
    return exp2(exponent * log2(max(ratio, _SMALLEST_RATIO)))


@compiled(part=True)
def _to_ratios(tile: RegressionTile, errors: Floats, exponent: float) -> None:
    """Turn errors into r_ik = min_j E_jk / E_ik; nearest, label and total are found."""
    nearest, label, total = tile.nearest, tile.label, tile.total
    nearest[:] = np.inf
    total[:] = 0.0
    for i in range(len(errors)):
        error = errors[i]
        for k in range(ROWS):
            label[k] = i if error[k] < nearest[k] else label[k]
            nearest[k] = min(nearest[k], error[k])
    for i in range(len(errors)):
        error = errors[i]
        for k in range(ROWS):
            error[k] = nearest[k] / error[k]
            total[k] += _power(error[k], exponent)


@compiled(part=True)
def to_shares(tile: RegressionTile, errors: Floats, exponent: float) -> None:
    """Turn errors into u_ik."""
    _to_ratios(tile, errors, exponent)
    for i in range(len(errors)):
        error = errors[i]
        for k in range(ROWS):
            error[k] = _power(error[k], exponent) / tile.total[k]


@compiled(part=True)
def differ(shares: Floats, earlier: Floats, count: int, change: float) -> bool:
    """Whether a membership of the first `count` records has changed that much."""
    for i in range(len(shares)):
        for k in range(count):
            if abs(shares[i, k] - earlier[i, k]) >= change:
                return True
    return False


@compiled(part=True)
def weigh(tile: RegressionTile, exponent: float, sizes: Integers) -> float:
    """The errors in `shares` become w_k u_ik^m; returns what the records add to the objective, and counts their labels.

    A record without weight, as behind the end of the block, adds nothing and is not counted.
    """
    _to_ratios(tile, tile.shares, exponent)
    nearest, total, weights = tile.nearest, tile.total, tile.weights[0]
    for k in range(ROWS):
        scale = math.sqrt(total[k]) if exponent == 2.0 else total[k] ** (1.0 / exponent)  # noqa: PLR2004 - (sum q)^(m-1)
        nearest[k] = weights[k] * nearest[k] / scale  # now the part of the objective
        total[k] = weights[k] / (scale * total[k])
    for k in range(ROWS):
        sizes[tile.label[k]] += weights[k] > 0.0
    for i in range(len(tile.shares)):
        share = tile.shares[i]
        for k in range(ROWS):
            share[k] = _power(share[k], exponent + 1.0) * total[k]
    return total_of(nearest, ROWS)


@compiled(part=True, allocates=True)
def multiply(tile: RegressionTile) -> None:
    """Add what the tile's records weigh in each model's Gram matrix: one product of weights and of z z', z y'."""
    z, y, products, at = tile.z, tile.y, tile.products, 0
    for s in range(len(z)):
        for r in range(s, len(z)):
            for k in range(ROWS):
                products[at, k] = z[s, k] * z[r, k]
            at += 1
    for s in range(len(z)):
        for j in range(len(y)):
            for k in range(ROWS):
                products[at, k] = z[s, k] * y[j, k]
            at += 1
    step = max(1, _ONE_THREAD // (ROWS * len(tile.shares)))
    for low in range(0, len(products), step):
        part = np.dot(tile.shares, products[low : low + step].T)
        for i in range(part.shape[0]):
            for j in range(part.shape[1]):
                tile.sums[i, low + j] += part[i, j]


@compiled(part=True)
def unpack(tile: RegressionTile, gram: Floats, cross: Floats) -> None:
    """The sums as matrices."""
    for i in range(len(gram)):
        at = 0
        for s in range(gram.shape[1]):
            for r in range(s, gram.shape[1]):
                gram[i, s, r] = gram[i, r, s] = tile.sums[i, at]
                at += 1
        for s in range(cross.shape[1]):
            for j in range(cross.shape[2]):
                cross[i, s, j] = tile.sums[i, at]
                at += 1
