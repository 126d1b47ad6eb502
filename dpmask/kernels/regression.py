"""Fuzzy c-regression on one block: one pass gives Gram matrices that add up over blocks and yield the next models.

Hathaway and Bezdek (1993), as in Cano and Torra (2009), section II.C. Symbols: records z_k = (1, x_k) and y_k, models
B_i, errors E_ik = |y_k - B_i' z_k|^2, memberships u_ik = E_ik^(-1/(m-1)) / sum_j E_jk^(-1/(m-1)), fuzziness m. With
r_ik = min_j E_jk / E_ik and q_ik = r_ik^(1/(m-1)) the weight of a record in a model is u_ik^m = q_ik r_ik (sum_j
q_jk)^-m, as in dpmask.kernels.fuzzy_tiles. Memberships are never stored: a pass needs room for one tile of records.

Errors are summed from residuals, never from Gram matrices: memberships depend on the smallest of them. Gram matrices
are products of tiles small enough for BLAS to stay in its thread, so their bits do not depend on how many it may use.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.vector_math import compiled, exp2, log2, plain

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROWS = 256
_ONE_THREAD = 1 << 18  # multiplications that OpenBLAS never divides among threads
_NO_ERROR = 1e-100  # what an error of 0 counts as (section II.C, step 3)
_TRUNCATED = 1e-13
_SMALLEST_RATIO = 2.0**-1022


class ModelSums(NamedTuple):
    """One block's share of the next models, and what it says of the present ones."""

    gram: Floats  # models x p x p: sum_k u_ik^m z_k z_k'
    cross: Floats  # models x p x t: sum_k u_ik^m z_k y_k'
    sizes: Integers  # models: records nearest to each, the first of several
    objective: float  # E_m = sum_ik u_ik^m E_ik
    moved: bool  # whether a membership differs from that of the models before by the given change

    def plus(self, other: ModelSums) -> ModelSums:
        """Both parts together."""
        return ModelSums(
            self.gram + other.gram,
            self.cross + other.cross,
            self.sizes + other.sizes,
            self.objective + other.objective,
            self.moved or other.moved,
        )


def start_sums(z: Floats, y: Floats, shares: Floats, fuzziness: float) -> ModelSums:
    """The sums of a block whose memberships (models x rows) are given: there are no models yet."""
    weights = plain(shares**fuzziness)
    gram, cross = _no_sums(len(shares), z, y)
    _add_products(plain(z), plain(y), weights, gram, cross)
    return ModelSums(gram, cross, np.bincount(shares.argmax(axis=0), minlength=len(shares)), np.inf, True)


def gram_of(block: Floats) -> Floats:
    """The products of a block's rows (rows of numbers x records) with each other, summed over the records."""
    alone = np.empty((0, block.shape[1]))
    return start_sums(block, alone, np.ones((1, block.shape[1])), 1.0).gram[0]


def model_sums(
    z: Floats, y: Floats, models: Floats, fuzziness: float, before: Floats | None = None, change: float = 0.0
) -> ModelSums:
    """One pass of one block, z (p x rows) and y (t x rows), at `models` (models x p x t).

    With the models ``before`` it is looked whether any membership has changed by ``change`` or more since; the search
    ends with the first one found, so it costs little until nothing moves any more.
    """
    gram, cross = _no_sums(len(models), z, y)
    sizes = np.zeros(len(models), np.int64)
    earlier = np.empty((0, *models.shape[1:])) if before is None else before
    exponent = 1.0 / (fuzziness - 1.0)
    objective, moved = _sum_block(
        plain(z), plain(y), _by_column(models), _by_column(earlier), change, exponent, gram, cross, sizes
    )
    return ModelSums(gram, cross, sizes, objective, moved or before is None)


def shares_at(z: Floats, y: Floats, models: Floats, fuzziness: float) -> Floats:
    """u_ik (models x rows)."""
    shares = np.empty((len(models), z.shape[1]))
    _all_errors(plain(z), plain(y), _by_column(models), 1.0 / (fuzziness - 1.0), shares)
    return shares


def errors_at(z: Floats, y: Floats, models: Floats) -> Floats:
    """E_ik (models x rows), 1e-100 in place of 0."""
    errors = np.empty((len(models), z.shape[1]))
    _all_errors(plain(z), plain(y), _by_column(models), 0.0, errors)
    return errors


def values_at(z: Floats, models: Floats, labels: Integers) -> Floats:
    """B_i' z_k (t x rows) with the model i that each record is labelled with."""
    values = np.zeros((models.shape[2], z.shape[1]))
    _fill_values(plain(z), plain(models), labels, values)
    return values


def solve_models(gram: Floats, cross: Floats, previous: Floats | None = None) -> Floats:
    """B_i = G_i^+ H_i for each model; one that nobody weighs on stays as it was."""
    models = np.array([solve(one, two) for one, two in zip(gram, cross, strict=True)])
    if previous is not None:
        empty = gram[:, 0, 0] == 0.0
        models[empty] = previous[empty]
    return models


def solve(gram: Floats, cross: Floats) -> Floats:
    """G^+ H, where columns that depend on others share their weight: singular designs have a solution, too."""
    inverse, _ = inverted(gram)
    solution: Floats = inverse @ cross
    return solution


def inverted(gram: Floats) -> tuple[Floats, int]:
    """G^+ and the rank of G: columns made equal in size, eigenvalues below p 1e-13 of the largest left out."""
    diagonal = np.diag(gram)
    scale = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(gram * np.outer(scale, scale))
    kept = values > max(len(gram) * _TRUNCATED * values[-1], 0.0)
    half = scale[:, None] * vectors[:, kept]
    return (half / values[kept]) @ half.T, int(kept.sum())


def lower_root(matrix: Floats) -> Floats:
    """L with L L' = the matrix, lower triangular (Cholesky); where it is singular, columns of L are 0."""
    rest, root = matrix.copy(), np.zeros(matrix.shape)
    least = len(matrix) * _TRUNCATED * np.diag(matrix)
    for j in range(len(matrix)):
        if rest[j, j] > least[j]:
            root[j:, j] = rest[j:, j] / np.sqrt(rest[j, j])
            rest -= np.outer(root[:, j], root[:, j])
    return root


def _by_column(models: Floats) -> Floats:
    """Models x t x p: the coefficients of each dependent side by side."""
    return plain(models.transpose(0, 2, 1))


def _no_sums(models: int, z: Floats, y: Floats) -> tuple[Floats, Floats]:
    return np.zeros((models, len(z), len(z))), np.zeros((models, len(z), len(y)))


@compiled()
def _sum_block(
    z: Floats,
    y: Floats,
    models: Floats,
    before: Floats,
    change: float,
    exponent: float,
    gram: Floats,
    cross: Floats,
    sizes: Integers,
) -> tuple[float, bool]:
    tile = _new_tile(len(z), len(y), len(models))
    earlier = np.empty((len(before), _ROWS))
    objective, moved = 0.0, False
    for first in range(0, z.shape[1], _ROWS):
        count = _load(tile, z, y, first)
        if len(before) > 0 and not moved:
            _find_errors(tile, before, earlier)
            _to_shares(tile, earlier, exponent)
            _find_errors(tile, models, tile.shares)
            _to_shares(tile, tile.shares, exponent)
            moved = _differ(tile.shares, earlier, count, change)
        _find_errors(tile, models, tile.shares)
        objective += _weigh(tile, count, exponent, sizes)
        _multiply(tile)
    _unpack(tile, gram, cross)
    return objective, moved


class _Tile(NamedTuple):
    """Room for 256 records (the last axis) and what is computed about them; the last three add up over tiles."""

    z: Floats  # p x ROWS
    y: Floats  # t x ROWS
    residuals: Floats  # 2 x ROWS
    shares: Floats  # models x ROWS: E_ik, then min_j E_jk / E_ik, then u_ik^m
    nearest: Floats  # min_i E_ik
    label: Integers  # where it is
    total: Floats  # sum_i q_ik
    products: Floats  # ROWS x (p (p + 1) / 2 + p t): z z' above the diagonal, then z y'
    sums: Floats  # models x (p (p + 1) / 2 + p t)


@compiled(part=True)
def _new_tile(p: int, t: int, models: int) -> _Tile:
    width = p * (p + 1) // 2 + p * t
    return _Tile(
        np.zeros((p, _ROWS)),
        np.zeros((t, _ROWS)),
        np.zeros((2, _ROWS)),
        np.zeros((models, _ROWS)),
        np.zeros(_ROWS),
        np.zeros(_ROWS, np.int64),
        np.zeros(_ROWS),
        np.zeros((width, _ROWS)),
        np.zeros((models, width)),
    )


@compiled(part=True)
def _load(tile: _Tile, z: Floats, y: Floats, first: int) -> int:
    """The records from `first` on, zeros behind the end of the block; returns how many there are."""
    count = min(_ROWS, z.shape[1] - first)
    _copy(z, first, count, tile.z)
    _copy(y, first, count, tile.y)
    return count


@compiled(part=True)
def _copy(block: Floats, first: int, count: int, tile: Floats) -> None:
    for s in range(len(block)):
        for k in range(count):
            tile[s, k] = block[s, first + k]
        for k in range(count, _ROWS):
            tile[s, k] = 0.0


@compiled(part=True)
def _find_errors(tile: _Tile, models: Floats, errors: Floats) -> None:
    """errors[i, k] = |y_k - B_i' z_k|^2, with models x t x p; two dependents or two models at a time."""
    for i in range(len(models)):
        for k in range(_ROWS):
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
        for k in range(_ROWS):
            error[k] = max(error[k], _NO_ERROR)


@compiled(part=True)
def _two_residuals(z: Floats, y: Floats, y2: Floats, one: Floats, two: Floats, residuals: Floats) -> None:
    # two models and four columns at a time: each number is loaded once for eight multiplications
    first, second = residuals[0], residuals[1]
    for k in range(_ROWS):
        first[k] = y[k]
        second[k] = y2[k]
    whole = len(z) // 4 * 4
    for s in range(0, whole, 4):
        z0, z1, z2, z3 = z[s], z[s + 1], z[s + 2], z[s + 3]
        a0, a1, a2, a3 = one[s], one[s + 1], one[s + 2], one[s + 3]
        b0, b1, b2, b3 = two[s], two[s + 1], two[s + 2], two[s + 3]
        for k in range(_ROWS):
            first[k] -= a0 * z0[k] + a1 * z1[k] + a2 * z2[k] + a3 * z3[k]
            second[k] -= b0 * z0[k] + b1 * z1[k] + b2 * z2[k] + b3 * z3[k]
    for s in range(whole, len(z)):
        column, a, b = z[s], one[s], two[s]
        for k in range(_ROWS):
            first[k] -= a * column[k]
            second[k] -= b * column[k]


@compiled(part=True)
def _add_squares(residual: Floats, error: Floats) -> None:
    for k in range(_ROWS):
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
def _to_ratios(tile: _Tile, errors: Floats, exponent: float) -> None:
    """Turn errors into r_ik = min_j E_jk / E_ik; nearest, label and total are found."""
    nearest, label, total = tile.nearest, tile.label, tile.total
    nearest[:] = np.inf
    total[:] = 0.0
    for i in range(len(errors)):
        error = errors[i]
        for k in range(_ROWS):
            label[k] = i if error[k] < nearest[k] else label[k]
            nearest[k] = min(nearest[k], error[k])
    for i in range(len(errors)):
        error = errors[i]
        for k in range(_ROWS):
            error[k] = nearest[k] / error[k]
            total[k] += _power(error[k], exponent)


@compiled(part=True)
def _to_shares(tile: _Tile, errors: Floats, exponent: float) -> None:
    """Turn errors into u_ik."""
    _to_ratios(tile, errors, exponent)
    for i in range(len(errors)):
        error = errors[i]
        for k in range(_ROWS):
            error[k] = _power(error[k], exponent) / tile.total[k]


@compiled(part=True)
def _differ(shares: Floats, earlier: Floats, count: int, change: float) -> bool:
    for i in range(len(shares)):
        for k in range(count):
            if abs(shares[i, k] - earlier[i, k]) >= change:
                return True
    return False


@compiled(part=True)
def _weigh(tile: _Tile, count: int, exponent: float, sizes: Integers) -> float:
    """The errors in `shares` become u_ik^m; returns what the records add to the objective, and counts their labels."""
    _to_ratios(tile, tile.shares, exponent)
    objective, nearest, total = 0.0, tile.nearest, tile.total
    for k in range(_ROWS):
        scale = math.sqrt(total[k]) if exponent == 2.0 else total[k] ** (1.0 / exponent)  # noqa: PLR2004 - (sum q)^(m-1)
        nearest[k] /= scale
        total[k] = 1.0 / (scale * total[k])
    for k in range(count):
        objective += nearest[k]
        sizes[tile.label[k]] += 1
    for i in range(len(tile.shares)):
        share = tile.shares[i]
        for k in range(_ROWS):
            share[k] = _power(share[k], exponent + 1.0) * total[k]
        for k in range(count, _ROWS):
            share[k] = 0.0
    return objective


@compiled(part=True)
def _multiply(tile: _Tile) -> None:
    """Add what the tile's records weigh in each model's Gram matrix: one product of weights and of z z', z y'."""
    z, y, products, at = tile.z, tile.y, tile.products, 0
    for s in range(len(z)):
        for r in range(s, len(z)):
            for k in range(_ROWS):
                products[at, k] = z[s, k] * z[r, k]
            at += 1
    for s in range(len(z)):
        for j in range(len(y)):
            for k in range(_ROWS):
                products[at, k] = z[s, k] * y[j, k]
            at += 1
    step = max(1, _ONE_THREAD // (_ROWS * len(tile.shares)))
    for low in range(0, len(products), step):
        part = np.dot(tile.shares, products[low : low + step].T)
        for i in range(part.shape[0]):
            for j in range(part.shape[1]):
                tile.sums[i, low + j] += part[i, j]


@compiled(part=True)
def _unpack(tile: _Tile, gram: Floats, cross: Floats) -> None:
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


@compiled()
def _add_products(z: Floats, y: Floats, weights: Floats, gram: Floats, cross: Floats) -> None:
    tile = _new_tile(len(z), len(y), len(weights))
    for first in range(0, z.shape[1], _ROWS):
        count = _load(tile, z, y, first)
        _copy(weights, first, count, tile.shares)
        _multiply(tile)
    _unpack(tile, gram, cross)


@compiled()
def _all_errors(z: Floats, y: Floats, models: Floats, exponent: float, errors: Floats) -> None:
    """E_ik, or u_ik where there is an exponent."""
    tile = _new_tile(len(z), len(y), len(models))
    for first in range(0, z.shape[1], _ROWS):
        count = _load(tile, z, y, first)
        _find_errors(tile, models, tile.shares)
        if exponent > 0.0:
            _to_shares(tile, tile.shares, exponent)
        for i in range(len(models)):
            for k in range(count):
                errors[i, first + k] = tile.shares[i, k]


@compiled()
def _fill_values(z: Floats, models: Floats, labels: Integers, values: Floats) -> None:
    for j in range(len(values)):
        for s in range(len(z)):
            for k in range(len(labels)):
                values[j, k] += models[labels[k], s, j] * z[s, k]
