"""The inner loops of fuzzy clustering: 128 records at a time, the innermost loop over records.

A tile holds its records column by column, so every innermost loop runs over 128 neighbouring numbers and becomes vector
instructions; a tile of records and distances stays in the processor's cache whatever the size of the block. Symbols as
in Torra (2020) and Torra, Endo, Miyamoto (2009): records x_k, centres v_i, memberships u_ik, fuzziness m, entropy
weight lambda, tolerance kappa_k, d_ik = |x_k - v_i|^2.

The memberships never appear as such. With r_ik = f_k / d_ik and q_ik = r_ik^(1/(m-1)), where the unit f_k is any
distance, the membership is u_ik = q_ik / sum_j q_jk (Prop. 1 of Torra 2020), and since q_ik^(m-1) = r_ik, the weight of
a record in a centre is u_ik^m = q_ik r_ik (sum_j q_jk)^-m: one power for each record and cluster instead of two, and
none for m = 2 and 1.5. The unit is 1 for these, and min_j d_jk for others, whose powers would overflow.

Parts are given the arrays of a tile that they work on and no more: what each takes and hands on is compiled, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.kernels.compile import compiled, prefetch
from dpmask.kernels.vector_math import copy_columns

ROWS = 128
_LINE = 8
"""Numbers that a processor brings from memory at once."""
WEIGHT, FACTOR, TOLERANCE, NEAREST, FARTHEST, UNIT, RATIO, POWER, TOTAL, SCALE, OBJECTIVE = range(11)
REACH, SIZE, ROUND, STEP, RATE, MOVING, CHANGE = range(11, 18)
"""The lines of a tile: record weights, 0 behind the end of the block; columns / observed columns; kappa; min_i d_ik and
max_i d_ik; the distance over which shares are taken; r_ik and powers of it for one i; sum_i q_ik; what turns shares
into u_ik^m, times the record's weight; the record's part of J; and of records that move min(1, kappa / |p - x|),
|x|^2 + |p|^2, how often they have, their last squared step, over
the one before, whether they will move on, and a sum."""


class Tile(NamedTuple):
    """Room for 128 records (the last axis) and what is computed about them."""

    records: Floats  # columns x ROWS, 0 where missing
    seen: Floats  # columns x ROWS, 1 or, where missing, 0; no columns when nothing may be missing
    lines: Floats  # the lines above x ROWS
    shares: Floats  # clusters (made even) x ROWS: first d_ik, then q_ik r_ik or q_ik
    moved: Floats  # columns x ROWS: x_k + e_k; no columns without tolerance
    target: Floats  # columns x ROWS: p_k; likewise


def new_tile(columns: int, clusters: int, *, partial: bool, tolerant: bool = False) -> Tile:
    """An empty tile."""
    sizes = (columns, columns * partial, CHANGE + 1, clusters + clusters % 2, columns * tolerant, columns * tolerant)
    tile = Tile(*(np.zeros((size, ROWS)) for size in sizes))
    tile.lines[FACTOR] = 1.0
    return tile


@compiled(part=True)
def load(block: Floats, first: int, weights: Floats, records: Floats, lines: Floats) -> int:
    """Copy the records from `first` on into a tile; places behind the end get weight 0. Returns how many there are.

    Without `weights` each record weighs 1.
    """
    count = block.shape[1] - first
    count = count if count < ROWS else ROWS
    copy_columns(block, first, count, records)
    for k in range(ROWS):
        lines[WEIGHT, k] = 1.0 if k < count else 0.0
    own = weights[first:]
    if weights.size > 0:
        for k in range(count):
            lines[WEIGHT, k] = own[k]
    return count


@compiled(part=True)
def prefetch_tile(block: Floats, first: int, part: int, parts: int) -> None:
    """Have one of so many parts of the records from `first` on brought near, while others are worked on.

    All parts at once would be more than a processor can wait for beside its work.
    """
    if first + ROWS <= block.shape[1]:
        for s in range(block.shape[0] * part // parts, block.shape[0] * (part + 1) // parts):
            for k in range(0, ROWS, _LINE):
                prefetch(block, s, first + k)


@compiled(part=True)
def separate_missing(records: Floats, seen: Floats, lines: Floats, count: int) -> int:
    """Mark what is observed, set the factor t/|O_k|, give records without any value no weight; returns the others."""
    counted = 0
    for k in range(ROWS):
        lines[TOTAL, k] = 0.0
    for s in range(records.shape[0]):
        for k in range(ROWS):
            present = records[s, k] == records[s, k]
            seen[s, k] = 1.0 if present else 0.0
            records[s, k] = records[s, k] if present else 0.0
            lines[TOTAL, k] += seen[s, k]
    for k in range(ROWS):
        observed = lines[TOTAL, k]
        lines[FACTOR, k] = records.shape[0] / observed if observed > 0.0 else 0.0
        lines[WEIGHT, k] = lines[WEIGHT, k] if observed > 0.0 else 0.0
    for k in range(count):
        counted += lines[TOTAL, k] > 0.0
    return counted


@compiled(part=True)
def nothing_missing(records: Floats, seen: Floats, lines: Floats, count: int) -> int:
    """All records of the tile count."""
    return count


def find_distances(partial: bool) -> Any:
    """The part that finds shares_ik = d_ik; `centers` has an even number of rows, the last perhaps twice."""
    return _partial_distances if partial else _whole_distances


@compiled(part=True)
def _whole_distances(records: Floats, seen: Floats, lines: Floats, centers: Floats, shares: Floats) -> None:
    # Two centres and four columns at a time: each number is loaded once for eight multiplications.
    columns, whole = records.shape[0], records.shape[0] // 4 * 4
    for i in range(0, centers.shape[0], 2):
        j = i + 1
        for k in range(ROWS):
            shares[i, k] = 0.0
            shares[j, k] = 0.0
        for s in range(0, whole, 4):
            a0, a1, a2, a3 = centers[i, s], centers[i, s + 1], centers[i, s + 2], centers[i, s + 3]
            b0, b1, b2, b3 = centers[j, s], centers[j, s + 1], centers[j, s + 2], centers[j, s + 3]
            for k in range(ROWS):
                x0, x1, x2, x3 = records[s, k], records[s + 1, k], records[s + 2, k], records[s + 3, k]
                c0, c1, c2, c3 = x0 - a0, x1 - a1, x2 - a2, x3 - a3
                d0, d1, d2, d3 = x0 - b0, x1 - b1, x2 - b2, x3 - b3
                shares[i, k] += c0 * c0 + c1 * c1 + c2 * c2 + c3 * c3
                shares[j, k] += d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3
        for s in range(whole, columns):
            a, b = centers[i, s], centers[j, s]
            for k in range(ROWS):
                c, d = records[s, k] - a, records[s, k] - b
                shares[i, k] += c * c
                shares[j, k] += d * d


@compiled(part=True)
def _partial_distances(records: Floats, seen: Floats, lines: Floats, centers: Floats, shares: Floats) -> None:
    """d_ik = t/|O_k| times the sum over the observed columns O_k."""
    for i in range(centers.shape[0]):
        for k in range(ROWS):
            shares[i, k] = 0.0
        for s in range(records.shape[0]):
            v = centers[i, s]
            for k in range(ROWS):
                away = records[s, k] - v
                shares[i, k] += seen[s, k] * (away * away)
        for k in range(ROWS):
            shares[i, k] *= lines[FACTOR, k]


@compiled(part=True)
def find_nearest(shares: Floats, clusters: int, lines: Floats) -> None:
    """min_i d_ik."""
    for k in range(ROWS):
        lines[NEAREST, k] = np.inf
    for i in range(clusters):
        for k in range(ROWS):
            nearest, distance = lines[NEAREST, k], shares[i, k]
            lines[NEAREST, k] = distance if distance < nearest else nearest


@compiled(part=True)
def total_line(lines: Floats, line: int) -> float:
    """The sum of a line, by a loop that stores nothing.

    One that does is run as vectors or not, by where its arrays happen to lie, and so its sum would depend on that.
    """
    total = 0.0
    for k in range(ROWS):
        total += lines[line, k]
    return total


@compiled(part=True)
def scale_shares(shares: Floats, lines: Floats) -> float:
    """Turn shares into w_k u_ik^m; returns the tile's J."""
    for k in range(ROWS):
        weight, objective = lines[WEIGHT, k], lines[OBJECTIVE, k]
        lines[OBJECTIVE, k] = weight * objective if weight > 0.0 else 0.0  # which may be infinite
        lines[SCALE, k] *= weight
    for i in range(shares.shape[0]):
        for k in range(ROWS):
            shares[i, k] *= lines[SCALE, k]
    return total_line(lines, OBJECTIVE)


def add_to_sums(partial: bool) -> Any:
    """The part that adds scaled shares to sum_k w_k u_ik^m x_k and sum_k w_k u_ik^m."""
    return _add_partial if partial else _add_whole


@compiled(part=True)
def _add_whole(records: Floats, seen: Floats, lines: Floats, shares: Floats, weighted: Floats, weight: Floats) -> None:
    # Two clusters and four columns at a time, as in _whole_distances.
    columns, whole = records.shape[0], records.shape[0] // 4 * 4
    for i in range(0, weighted.shape[0], 2):
        j = i + 1
        weight[i, 0] += total_line(shares, i)
        weight[j, 0] += total_line(shares, j)
        for s in range(0, whole, 4):
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
            for k in range(ROWS):
                one, two = shares[i, k], shares[j, k]
                x0, x1, x2, x3 = records[s, k], records[s + 1, k], records[s + 2, k], records[s + 3, k]
                a0, a1, a2, a3 = a0 + one * x0, a1 + one * x1, a2 + one * x2, a3 + one * x3
                b0, b1, b2, b3 = b0 + two * x0, b1 + two * x1, b2 + two * x2, b3 + two * x3
            _add_four(weighted, i, s, a0, a1, a2, a3)
            _add_four(weighted, j, s, b0, b1, b2, b3)
        for s in range(whole, columns):
            a = b = 0.0
            for k in range(ROWS):
                a += shares[i, k] * records[s, k]
                b += shares[j, k] * records[s, k]
            weighted[i, s] += a
            weighted[j, s] += b


@compiled(part=True)
def _add_four(sums: Floats, i: int, s: int, a0: float, a1: float, a2: float, a3: float) -> None:
    sums[i, s] += a0
    sums[i, s + 1] += a1
    sums[i, s + 2] += a2
    sums[i, s + 3] += a3


@compiled(part=True)
def _add_partial(
    records: Floats, seen: Floats, lines: Floats, shares: Floats, weighted: Floats, weight: Floats
) -> None:
    """A column counts where it was observed, with the distance's factor: otherwise J would not fall."""
    for i in range(weighted.shape[0]):
        for k in range(ROWS):
            shares[i, k] *= lines[FACTOR, k]
        for s in range(records.shape[0]):
            sum_x = sum_w = 0.0
            for k in range(ROWS):
                sum_x += shares[i, k] * records[s, k]
                sum_w += shares[i, k] * seen[s, k]
            weighted[i, s] += sum_x
            weight[i, s] += sum_w
