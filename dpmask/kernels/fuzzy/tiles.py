"""The inner loops of fuzzy clustering: 128 records at a time, the innermost loop over records.

A tile holds its records column by column, so every innermost loop runs over 128 neighbouring numbers and becomes vector
instructions; a tile of records and distances stays in the processor's cache whatever the size of the block. Symbols as
in Torra (2020) and Torra, Endo, Miyamoto (2009): records x_k, centres v_i, memberships u_ik, fuzziness m, entropy
weight lambda, tolerance kappa_k, d_ik = |x_k - v_i|^2.

The memberships never appear as such. With r_ik = min_j d_jk / d_ik and q_ik = r_ik^(1/(m-1)) the membership is
u_ik = q_ik / sum_j q_jk (Prop. 1 of Torra 2020), and since q_ik^(m-1) = r_ik, the weight of a record in a centre is
u_ik^m = q_ik r_ik (sum_j q_jk)^-m: one power for each record and cluster instead of two, and none for m = 2 and 1.5.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.compile import compiled
from dpmask.kernels.vector_math import total_of

Floats = NDArray[np.float64]

ROWS = 128


class Tile(NamedTuple):
    """Room for 128 records (the last axis) and what is computed about them."""

    records: Floats  # columns x ROWS, 0 where missing
    seen: Floats  # columns x ROWS, 1 or, where missing, 0; no columns when nothing may be missing
    factor: Floats  # columns / observed columns
    weight: Floats  # record weights, 0 behind the end of the block
    tolerance: Floats  # kappa
    shares: Floats  # clusters (made even) x ROWS: first d_ik, then q_ik r_ik
    nearest: Floats  # min_i d_ik
    total: Floats  # sum_i q_ik
    scale: Floats  # what turns shares into u_ik^m, times the record's weight
    objective: Floats  # the record's part of J


@compiled(part=True)
def new_tile(columns: int, clusters: int, partial: bool) -> Tile:
    """An empty tile."""
    records, seen = np.zeros((columns, ROWS)), np.zeros((columns if partial else 0, ROWS))
    shares, lines = np.zeros((clusters + clusters % 2, ROWS)), np.zeros((7, ROWS))
    for k in range(ROWS):
        lines[0, k] = 1.0
    return Tile(records, seen, lines[0], lines[1], lines[2], shares, lines[3], lines[4], lines[5], lines[6])


@compiled(part=True)
def load(tile: Tile, block: Floats, first: int, weights: Floats) -> int:
    """Copy the records from `first` on into the tile; places behind the end get weight 0. Returns how many there are.

    Without `weights` each record weighs 1.
    """
    count = min(ROWS, block.shape[1] - first)
    for s in range(block.shape[0]):
        copy(block[s], first, count, tile.records[s])
    for k in range(ROWS):
        tile.weight[k] = 1.0 if k < count else 0.0
    if weights.size > 0:
        copy(weights, first, count, tile.weight)
    return count


@compiled(part=True)
def copy(values: Floats, first: int, count: int, line: Floats) -> None:
    """Some values, and 0 behind them. Loops: numba's slices would compile the text of their errors, for seconds."""
    for k in range(count):
        line[k] = values[first + k]
    for k in range(count, ROWS):
        line[k] = 0.0


@compiled(part=True)
def separate_missing(tile: Tile, count: int) -> int:
    """Mark what is observed, set the factor t/|O_k|, give records without any value no weight; returns the others."""
    observed, counted = np.zeros(ROWS), 0
    for s in range(tile.records.shape[0]):
        column, seen = tile.records[s], tile.seen[s]
        for k in range(ROWS):
            present = column[k] == column[k]
            seen[k] = 1.0 if present else 0.0
            column[k] = column[k] if present else 0.0
            observed[k] += seen[k]
    for k in range(ROWS):
        tile.factor[k] = tile.records.shape[0] / observed[k] if observed[k] > 0.0 else 0.0
        tile.weight[k] = tile.weight[k] if observed[k] > 0.0 else 0.0
    for k in range(count):
        counted += observed[k] > 0.0
    return counted


@compiled(part=True)
def nothing_missing(tile: Tile, count: int) -> int:
    """All records of the tile count."""
    return count


@cache
def find_distances(partial: bool) -> Any:
    """The part that finds shares_ik = d_ik and nearest_k = min_i d_ik."""
    fill_distances = _partial_distances if partial else _whole_distances

    @compiled(part=True)
    def find(tile: Tile, records: Floats, centers: Floats) -> None:
        fill_distances(tile, records, centers)
        nearest = tile.nearest
        for k in range(ROWS):
            nearest[k] = np.inf
        for i in range(centers.shape[0]):
            distance = tile.shares[i]
            for k in range(ROWS):
                nearest[k] = min(nearest[k], distance[k])

    return find


@compiled(part=True)
def _whole_distances(tile: Tile, records: Floats, centers: Floats) -> None:
    """`centers` has an even number of rows, the last perhaps twice."""
    for i in range(0, centers.shape[0], 2):
        _two_distances(records, centers[i], centers[i + 1], tile.shares[i], tile.shares[i + 1])


@compiled(part=True)
def _two_distances(records: Floats, one: Floats, two: Floats, to_one: Floats, to_two: Floats) -> None:
    # Two centres and four columns at a time: each number is loaded once for eight multiplications.
    for k in range(ROWS):
        to_one[k] = 0.0
        to_two[k] = 0.0
    whole = records.shape[0] // 4 * 4
    for s in range(0, whole, 4):
        x0, x1, x2, x3 = records[s], records[s + 1], records[s + 2], records[s + 3]
        a0, a1, a2, a3 = one[s], one[s + 1], one[s + 2], one[s + 3]
        b0, b1, b2, b3 = two[s], two[s + 1], two[s + 2], two[s + 3]
        for k in range(ROWS):
            to_one[k] += (x0[k] - a0) ** 2 + (x1[k] - a1) ** 2 + (x2[k] - a2) ** 2 + (x3[k] - a3) ** 2
            to_two[k] += (x0[k] - b0) ** 2 + (x1[k] - b1) ** 2 + (x2[k] - b2) ** 2 + (x3[k] - b3) ** 2
    for s in range(whole, records.shape[0]):
        x, a, b = records[s], one[s], two[s]
        for k in range(ROWS):
            to_one[k] += (x[k] - a) ** 2
            to_two[k] += (x[k] - b) ** 2


@compiled(part=True)
def _partial_distances(tile: Tile, records: Floats, centers: Floats) -> None:
    """d_ik = t/|O_k| times the sum over the observed columns O_k."""
    for i in range(centers.shape[0]):
        distance = tile.shares[i]
        for k in range(ROWS):
            distance[k] = 0.0
        for s in range(records.shape[0]):
            x, seen, v = records[s], tile.seen[s], centers[i, s]
            for k in range(ROWS):
                distance[k] += seen[k] * (x[k] - v) ** 2
        for k in range(ROWS):
            distance[k] *= tile.factor[k]


@cache
def add_to_sums(partial: bool) -> Any:
    """The part that adds a tile to sum_k w_k u_ik^m x_k and sum_k w_k u_ik^m, and returns its J."""
    add_shares = _add_partial if partial else _add_whole

    @compiled(part=True)
    def add(tile: Tile, records: Floats, weighted: Floats, weight: Floats) -> float:
        scale, own, objective = tile.scale, tile.weight, tile.objective
        for k in range(ROWS):
            objective[k] = own[k] * objective[k] if own[k] > 0.0 else 0.0  # which may be infinite
            scale[k] *= own[k]
        add_shares(tile, records, weighted, weight)
        return total_of(objective, ROWS)

    return add


@compiled(part=True)
def _add_whole(tile: Tile, records: Floats, weighted: Floats, weight: Floats) -> None:
    """For an even number of clusters."""
    for i in range(0, weighted.shape[0], 2):
        one, two = tile.shares[i], tile.shares[i + 1]
        _scale(one, tile.scale)
        _scale(two, tile.scale)
        weight[i, 0] += total_of(one, ROWS)
        weight[i + 1, 0] += total_of(two, ROWS)
        _add_two(records, one, two, weighted[i], weighted[i + 1])


@compiled(part=True)
def _scale(shares: Floats, scale: Floats) -> None:
    for k in range(ROWS):
        shares[k] *= scale[k]


@compiled(part=True)
def _add_two(records: Floats, one: Floats, two: Floats, sum_one: Floats, sum_two: Floats) -> None:
    # Two clusters and four columns at a time, as in _two_distances.
    whole = records.shape[0] // 4 * 4
    for s in range(0, whole, 4):
        x0, x1, x2, x3 = records[s], records[s + 1], records[s + 2], records[s + 3]
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
        for k in range(ROWS):
            a0 += one[k] * x0[k]
            a1 += one[k] * x1[k]
            a2 += one[k] * x2[k]
            a3 += one[k] * x3[k]
            b0 += two[k] * x0[k]
            b1 += two[k] * x1[k]
            b2 += two[k] * x2[k]
            b3 += two[k] * x3[k]
        sum_one[s] += a0
        sum_one[s + 1] += a1
        sum_one[s + 2] += a2
        sum_one[s + 3] += a3
        sum_two[s] += b0
        sum_two[s + 1] += b1
        sum_two[s + 2] += b2
        sum_two[s + 3] += b3
    for s in range(whole, records.shape[0]):
        x, a, b = records[s], 0.0, 0.0
        for k in range(ROWS):
            a += one[k] * x[k]
            b += two[k] * x[k]
        sum_one[s] += a
        sum_two[s] += b


@compiled(part=True)
def _add_partial(tile: Tile, records: Floats, weighted: Floats, weight: Floats) -> None:
    """A column counts where it was observed, with the distance's factor: otherwise J would not fall."""
    for i in range(weighted.shape[0]):
        shares = tile.shares[i]
        for k in range(ROWS):
            shares[k] *= tile.scale[k] * tile.factor[k]
        for s in range(records.shape[0]):
            x, seen, sum_x, sum_w = records[s], tile.seen[s], 0.0, 0.0
            for k in range(ROWS):
                sum_x += shares[k] * x[k]
                sum_w += shares[k] * seen[k]
            weighted[i, s] += sum_x
            weight[i, s] += sum_w
