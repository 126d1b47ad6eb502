"""Fuzzy c-regression on one block: one pass gives Gram matrices that add up over blocks and yield the next models.

Hathaway and Bezdek (1993), as in Cano and Torra (2009), section II.C. Symbols: records z_k = (1, x_k) and y_k, models
B_i, errors E_ik = |y_k - B_i' z_k|^2, memberships u_ik = E_ik^(-1/(m-1)) / sum_j E_jk^(-1/(m-1)), fuzziness m; records
may have weights w_k. Memberships are never stored: a pass needs room for one tile of records (see regression_tiles).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.compile import compiled, plain, read_only
from dpmask.kernels.elementary import power
from dpmask.kernels.regression.tiles import (
    ROWS,
    differ,
    find_errors,
    load,
    multiply,
    new_tile,
    to_shares,
    unpack,
    weigh,
)
from dpmask.kernels.vector_math import copy_columns


class ModelSums(NamedTuple):
    """One block's share of the next models, and what it says of the present ones."""

    gram: Floats  # models x p x p: sum_k w_k u_ik^m z_k z_k'
    cross: Floats  # models x p x t: sum_k w_k u_ik^m z_k y_k'
    sizes: Integers  # models: records nearest to each, the first of several; one without weight shapes none
    objective: float  # E_m = sum_ik w_k u_ik^m E_ik
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


def start_sums(z: Floats, y: Floats, shares: Floats, fuzziness: float, weights: Floats | None = None) -> ModelSums:
    """The sums of a block whose memberships (models x rows) are given: there are no models yet."""
    powers = power(shares, fuzziness) if weights is None else power(shares, fuzziness) * weights
    gram, cross = _no_sums(len(shares), z, y)
    _add_products(plain(z), plain(y), plain(powers), gram, cross)
    return ModelSums(gram, cross, np.bincount(shares.argmax(axis=0), minlength=len(shares)), np.inf, True)


def gram_of(block: Floats, weights: Floats | None = None) -> Floats:
    """The products of a block's rows (rows of numbers x records) with each other, summed over the records."""
    alone = np.empty((0, block.shape[1]))
    return start_sums(block, alone, np.ones((1, block.shape[1])), 1.0, weights).gram[0]


def model_sums(
    z: Floats,
    y: Floats,
    models: Floats,
    fuzziness: float,
    before: Floats | None = None,
    change: float = 0.0,
    weights: Floats | None = None,
) -> ModelSums:
    """One pass of one block, z (p x rows) and y (t x rows), at `models` (models x p x t); without weights all are 1.

    With the models ``before`` it is looked whether any membership has changed by ``change`` or more since; the search
    ends with the first one found, so it costs little until nothing moves any more.
    """
    own = np.ones((1, z.shape[1])) if weights is None else weights[None]
    gram, cross = _no_sums(len(models), z, y)
    sizes = np.zeros(len(models), np.int64)
    earlier = np.empty((0, *models.shape[1:])) if before is None else before
    exponent = 1.0 / (fuzziness - 1.0)
    objective, moved = _sum_block(
        plain(z), plain(y), plain(own), _by_column(models), _by_column(earlier), change, exponent, gram, cross, sizes
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
    _fill_values(plain(z), plain(models), read_only(labels), values)
    return values


def _by_column(models: Floats) -> Floats:
    """Models x t x p: the coefficients of each dependent side by side."""
    return plain(models.transpose(0, 2, 1))


def _no_sums(models: int, z: Floats, y: Floats) -> tuple[Floats, Floats]:
    return np.zeros((models, len(z), len(z))), np.zeros((models, len(z), len(y)))


@compiled(allocates=True)
def _sum_block(
    z: Floats,
    y: Floats,
    weights: Floats,
    models: Floats,
    before: Floats,
    change: float,
    exponent: float,
    gram: Floats,
    cross: Floats,
    sizes: Integers,
) -> tuple[float, bool]:
    tile = new_tile(len(z), len(y), len(models))
    earlier = np.empty((len(before), ROWS))
    objective, moved = 0.0, False
    for first in range(0, z.shape[1], ROWS):
        count = load(tile, z, y, first)
        if len(before) > 0 and not moved:
            find_errors(tile, before, earlier)
            to_shares(tile, earlier, exponent)
            find_errors(tile, models, tile.shares)
            to_shares(tile, tile.shares, exponent)
            moved = differ(tile.shares, earlier, count, change)
        find_errors(tile, models, tile.shares)
        copy_columns(weights, first, count, tile.weights)
        objective += weigh(tile, exponent, sizes)
        multiply(tile)
    unpack(tile, gram, cross)
    return objective, moved


@compiled(allocates=True)
def _add_products(z: Floats, y: Floats, weights: Floats, gram: Floats, cross: Floats) -> None:
    tile = new_tile(len(z), len(y), len(weights))
    for first in range(0, z.shape[1], ROWS):
        count = load(tile, z, y, first)
        copy_columns(weights, first, count, tile.shares)
        multiply(tile)
    unpack(tile, gram, cross)


@compiled(allocates=True)
def _all_errors(z: Floats, y: Floats, models: Floats, exponent: float, errors: Floats) -> None:
    """E_ik, or u_ik where there is an exponent."""
    tile = new_tile(len(z), len(y), len(models))
    for first in range(0, z.shape[1], ROWS):
        count = load(tile, z, y, first)
        find_errors(tile, models, tile.shares)
        if exponent > 0.0:
            to_shares(tile, tile.shares, exponent)
        for i in range(len(models)):
            for k in range(count):
                errors[i, first + k] = tile.shares[i, k]


@compiled()
def _fill_values(z: Floats, models: Floats, labels: Integers, values: Floats) -> None:
    for j in range(len(values)):
        for s in range(len(z)):
            for k in range(len(labels)):
                values[j, k] += models[labels[k], s, j] * z[s, k]
