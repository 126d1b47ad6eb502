"""From distances to the share of a record in each centre: one function for each model, and the tolerance.

`find_shares` turns `tile.shares` from d_ik into q_ik r_ik (see fuzzy_tiles) or, for plain memberships, into q_ik, and
fills `tile.total` with sum_i q_ik. `finish` then finds what normalises the shares and what a record adds to J.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.compile import compiled
from dpmask.kernels.fuzzy.tiles import ROWS, Tile, find_distances
from dpmask.kernels.vector_math import exp2, log2

Floats = NDArray[np.float64]

CRISP, FUZZY_2, FUZZY_1_5, FUZZY_WHOLE, FUZZY, ENTROPY = range(6)

# Outside this range the squares in a distance overflow or lose digits: such a record's distances are computed again.
_SMALLEST_DISTANCE, _LARGEST_DISTANCE = 1e-280, 1e300
_SMALLEST_RATIO = 2.0**-1022
_LN2 = math.log(2.0)


class Model(NamedTuple):
    """Which memberships: their kind, and the fuzziness m or the entropy weight lambda."""

    kind: int
    parameter: float


@compiled(part=True)
def find_shares(tile: Tile, records: Floats, centers: Floats, clusters: int, model: Model, powered: bool) -> None:
    """Distances, then shares: those of u_ik^m when `powered`, else those of u_ik."""
    find_distances(tile, records, centers)
    if model.kind == CRISP:
        _crisp(tile, clusters)
    elif model.kind == FUZZY_2:
        _fuzzy_2(tile, clusters, powered)
    elif model.kind == FUZZY_1_5:
        _fuzzy_1_5(tile, clusters, powered)
    elif model.kind == FUZZY_WHOLE:
        _fuzzy_whole(tile, clusters, round(1.0 / (model.parameter - 1.0)), powered)
    elif model.kind == FUZZY:
        _fuzzy(tile, clusters, 1.0 / (model.parameter - 1.0), powered)
    else:
        _entropy(tile, clusters, model.parameter)
    extreme = 0
    for k in range(ROWS):
        extreme += (tile.nearest[k] < _SMALLEST_DISTANCE) | (tile.nearest[k] > _LARGEST_DISTANCE)
    if extreme > 0:
        for k in range(ROWS):
            if tile.nearest[k] < _SMALLEST_DISTANCE or tile.nearest[k] > _LARGEST_DISTANCE:
                _extreme_shares(tile, records, centers, clusters, model, powered, k)


@compiled(part=True)
def _crisp(tile: Tile, clusters: int) -> None:
    """M = 1: everything to the nearest centre, the first of several."""
    total, nearest = tile.total, tile.nearest
    total[:] = 0.0
    for i in range(clusters):
        share = tile.shares[i]
        for k in range(ROWS):
            first = (share[k] <= nearest[k]) & (total[k] == 0.0)
            share[k] = 1.0 if first else 0.0
            total[k] += share[k]


@compiled(part=True)
def _fuzzy_2(tile: Tile, clusters: int, powered: bool) -> None:
    """M = 2: q = r."""
    total, nearest = tile.total, tile.nearest
    total[:] = 0.0
    for i in range(clusters):
        share = tile.shares[i]
        for k in range(ROWS):
            ratio = nearest[k] / share[k]
            total[k] += ratio
            share[k] = ratio * ratio if powered else ratio


@compiled(part=True)
def _fuzzy_1_5(tile: Tile, clusters: int, powered: bool) -> None:
    """M = 1.5: q = r^2."""
    total, nearest = tile.total, tile.nearest
    total[:] = 0.0
    for i in range(clusters):
        share = tile.shares[i]
        for k in range(ROWS):
            ratio = nearest[k] / share[k]
            square = ratio * ratio
            total[k] += square
            share[k] = square * ratio if powered else square


@compiled(part=True)
def _fuzzy_whole(tile: Tile, clusters: int, exponent: int, powered: bool) -> None:
    """M = 1.1, 1.05, 1.25 and the like: q = r^exponent with a whole exponent, by squaring."""
    total, nearest, power, square = tile.total, tile.nearest, np.empty(ROWS), np.empty(ROWS)
    total[:] = 0.0
    for i in range(clusters):
        share = tile.shares[i]
        for k in range(ROWS):
            share[k] = nearest[k] / share[k]
            square[k] = share[k]
            power[k] = share[k] if exponent & 1 else 1.0
        bits = exponent >> 1
        while bits > 0:
            for k in range(ROWS):
                square[k] *= square[k]
            if bits & 1:
                for k in range(ROWS):
                    power[k] *= square[k]
            bits >>= 1
        for k in range(ROWS):
            total[k] += power[k]
            share[k] = power[k] * share[k] if powered else power[k]


@compiled(part=True)
def _fuzzy(tile: Tile, clusters: int, exponent: float, powered: bool) -> None:
    """Any m > 1: q = r^exponent with exponent = 1/(m-1)."""
    total, nearest, power = tile.total, tile.nearest, np.empty(ROWS)
    total[:] = 0.0
    for i in range(clusters):
        share = tile.shares[i]
        for k in range(ROWS):  # two loops: one would need more registers than there are
            share[k] = nearest[k] / share[k]
            power[k] = exponent * log2(max(share[k], _SMALLEST_RATIO))
        for k in range(ROWS):
            q = exp2(power[k])
            total[k] += q
            share[k] = q * share[k] if powered else q


@compiled(part=True)
def _entropy(tile: Tile, clusters: int, entropy: float) -> None:
    """Eq. 3 of Torra 2020 as a softmax that cannot overflow: q = exp(-lambda (d - min d))."""
    total, nearest, slope = tile.total, tile.nearest, -entropy / _LN2
    total[:] = 0.0
    for i in range(clusters):
        share = tile.shares[i]
        for k in range(ROWS):
            share[k] = exp2(slope * (share[k] - nearest[k]))
            total[k] += share[k]


@compiled(part=True, reassociate=False)
def _extreme_shares(
    tile: Tile, records: Floats, centers: Floats, clusters: int, model: Model, powered: bool, k: int
) -> None:
    """Shares of one record that lies on a centre, or so near or so far that squares fail: from distances |x - v|."""
    smallest = np.inf
    for i in range(clusters):
        tile.shares[i, k] = _safe_distance(tile, records, centers[i], k)
        smallest = min(smallest, tile.shares[i, k])
    total = 0.0
    for i in range(clusters):
        distance = tile.shares[i, k]
        if model.kind == CRISP:
            ratio = q = 1.0 if distance == smallest and total == 0.0 else 0.0
        elif distance == smallest:  # also: records on several centres share themselves among these
            ratio = q = 1.0
        elif model.kind == ENTROPY:
            ratio, q = 1.0, math.exp(-model.parameter * (distance - smallest) * (distance + smallest))
        else:
            ratio = (smallest / distance) ** 2
            q = ratio ** (1.0 / (model.parameter - 1.0))
        total += q
        tile.shares[i, k] = q * ratio if powered else q
    tile.total[k] = total
    tile.nearest[k] = smallest**2


@compiled(part=True, reassociate=False)
def _safe_distance(tile: Tile, records: Floats, center: Floats, k: int) -> float:
    """The (partial) distance of record k, not squared, from differences divided by the largest."""
    partial = tile.seen.shape[0] > 0
    largest = 0.0
    for s in range(len(center)):
        if not partial or tile.seen[s, k] > 0.0:
            largest = max(largest, abs(records[s, k] - center[s]))
    if not 0.0 < largest < np.inf:
        return largest
    squares = 0.0
    for s in range(len(center)):
        if not partial or tile.seen[s, k] > 0.0:
            squares += ((records[s, k] - center[s]) / largest) ** 2
    return largest * math.sqrt(squares * tile.factor[k])


@compiled(part=True)
def finish(tile: Tile, model: Model, powered: bool) -> None:
    """scale_k, which turns shares into u_ik^m (or u_ik), and objective_k, the record's part of J.

    FCM: min d (sum q)^(1-m). EFCM: min d - log(sum q) / lambda. Both equal the sums over clusters (eq. 2) at these u.
    """
    total, nearest, scale, objective = tile.total, tile.nearest, tile.scale, tile.objective
    fuzziness = model.parameter
    if model.kind == CRISP:
        for k in range(ROWS):
            scale[k] = 1.0
            objective[k] = nearest[k]
    elif model.kind == FUZZY_2:
        for k in range(ROWS):
            scale[k] = 1.0 / (total[k] * total[k])
            objective[k] = nearest[k] / total[k]
    elif model.kind == FUZZY_1_5:
        for k in range(ROWS):
            root = math.sqrt(total[k])
            scale[k] = 1.0 / (total[k] * root)
            objective[k] = nearest[k] / root
    elif model.kind in (FUZZY_WHOLE, FUZZY):
        for k in range(ROWS):
            scale[k] = exp2(-fuzziness * log2(total[k]))
            objective[k] = nearest[k] * total[k] * scale[k]
    else:
        for k in range(ROWS):
            scale[k] = 1.0 / total[k]
            objective[k] = nearest[k] - log2(total[k]) * (_LN2 / model.parameter)
    if not powered:
        for k in range(ROWS):
            scale[k] = 1.0 / total[k]
