"""From distances to the share of a record in each centre: one function for each model, and the tolerance.

`find_shares` turns `tile.shares` from d_ik into q_ik r_ik (see fuzzy_tiles) or, for plain memberships, into q_ik, and
fills `tile.total` with sum_i q_ik. `finish` then finds what normalises the shares and what a record adds to J.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.compile import compiled
from dpmask.kernels.fuzzy.tiles import ROWS, Tile, find_distances
from dpmask.kernels.vector_math import exp2, log2

Floats = NDArray[np.float64]

CRISP, FUZZY_WHOLE, FUZZY, ENTROPY = "crisp", "whole", "fuzzy", "entropy"

# Outside this range the squares in a distance overflow or lose digits: such a record's distances are computed again.
_SMALLEST_DISTANCE, _LARGEST_DISTANCE = 1e-280, 1e300
_SMALLEST_RATIO = 2.0**-1022
_LN2 = math.log(2.0)


class Model(NamedTuple):
    """Which memberships: their kind, and the whole exponent 1/(m-1) if it is one.

    These are chosen when a kernel is built: it has the code of one kind only.
    """

    kind: str
    whole: int = 0


@cache
def find_shares(model: Model, partial: bool, powered: bool) -> Any:
    """The part that finds distances, then shares: those of u_ik^m when `powered`, else those of u_ik.

    Its last argument is 1/(m-1) or lambda.
    """
    find, to_shares, mend = (
        find_distances(partial),
        _to_shares(model, powered),
        _extreme_shares(model, partial, powered),
    )

    @compiled(part=True)
    def shares(tile: Tile, records: Floats, centers: Floats, clusters: int, exponent: float) -> None:
        find(tile, records, centers)
        to_shares(tile, clusters, exponent)
        extreme = 0
        for k in range(ROWS):
            extreme += (tile.nearest[k] < _SMALLEST_DISTANCE) | (tile.nearest[k] > _LARGEST_DISTANCE)
        if extreme > 0:
            for k in range(ROWS):
                if tile.nearest[k] < _SMALLEST_DISTANCE or tile.nearest[k] > _LARGEST_DISTANCE:
                    mend(tile, records, centers, clusters, exponent, k)

    return shares


def _to_shares(model: Model, powered: bool) -> Any:
    if model.kind == FUZZY_WHOLE:
        return _fuzzy_whole(model.whole, powered)
    if model.kind == FUZZY:
        return _fuzzy(powered)
    return _crisp if model.kind == CRISP else _entropy


@compiled(part=True)
def _crisp(tile: Tile, clusters: int, exponent: float) -> None:
    """M = 1: everything to the nearest centre, the first of several."""
    total, nearest = tile.total, tile.nearest
    for k in range(ROWS):
        total[k] = 0.0
    for i in range(clusters):
        share = tile.shares[i]
        for k in range(ROWS):
            first = (share[k] <= nearest[k]) & (total[k] == 0.0)
            share[k] = 1.0 if first else 0.0
            total[k] += share[k]


@cache
def _fuzzy_whole(whole: int, powered: bool) -> Any:
    """Where 1/(m-1) is a whole number, as for m = 2, 1.5 and 1.1: q = r^whole, as a few multiplications."""

    @compiled(part=True)
    def shares(tile: Tile, clusters: int, exponent: float) -> None:
        total, nearest = tile.total, tile.nearest
        for k in range(ROWS):
            total[k] = 0.0
        for i in range(clusters):
            share = tile.shares[i]
            for k in range(ROWS):
                ratio = nearest[k] / share[k]
                q = ratio**whole
                total[k] += q
                share[k] = q * ratio if powered else q

    return shares


@cache
def _fuzzy(powered: bool) -> Any:
    """Any m > 1: q = r^exponent with exponent = 1/(m-1)."""

    @compiled(part=True)
    def shares(tile: Tile, clusters: int, exponent: float) -> None:
        total, nearest, power = tile.total, tile.nearest, np.empty(ROWS)
        for k in range(ROWS):
            total[k] = 0.0
        for i in range(clusters):
            share = tile.shares[i]
            for k in range(ROWS):  # two loops: one would need more registers than there are
                share[k] = nearest[k] / share[k]
                power[k] = exponent * log2(max(share[k], _SMALLEST_RATIO))
            for k in range(ROWS):
                q = exp2(power[k])
                total[k] += q
                share[k] = q * share[k] if powered else q

    return shares


@compiled(part=True)
def _entropy(tile: Tile, clusters: int, entropy: float) -> None:
    """Eq. 3 of Torra 2020 as a softmax that cannot overflow: q = exp(-lambda (d - min d))."""
    total, nearest, slope = tile.total, tile.nearest, -entropy / _LN2
    for k in range(ROWS):
        total[k] = 0.0
    for i in range(clusters):
        share = tile.shares[i]
        for k in range(ROWS):
            share[k] = exp2(slope * (share[k] - nearest[k]))
            total[k] += share[k]


@cache
def _extreme_shares(model: Model, partial: bool, powered: bool) -> Any:
    """The part for one record on a centre, or so near or so far that squares fail: shares from distances |x - v|."""
    crisp, entropic, safe_distance = model.kind == CRISP, model.kind == ENTROPY, _safe_distance(partial)

    @compiled(part=True, reassociate=False)
    def shares(tile: Tile, records: Floats, centers: Floats, clusters: int, exponent: float, k: int) -> None:
        smallest = np.inf
        for i in range(clusters):
            tile.shares[i, k] = safe_distance(tile, records, centers[i], k)
            smallest = min(smallest, tile.shares[i, k])
        total = 0.0
        for i in range(clusters):
            distance = tile.shares[i, k]
            ratio = q = 1.0  # for the nearest: records on several centres share themselves among these
            if crisp:
                ratio = q = 1.0 if distance == smallest and total == 0.0 else 0.0
            elif distance > smallest and entropic:
                q = math.exp(-exponent * (distance - smallest) * (distance + smallest))
            elif distance > smallest:
                ratio = (smallest / distance) ** 2
                q = ratio**exponent
            total += q
            tile.shares[i, k] = q * ratio if powered else q
        tile.total[k] = total
        tile.nearest[k] = smallest**2

    return shares


@cache
def _safe_distance(partial: bool) -> Any:
    """The part for the (partial) distance of record k, not squared, from differences divided by the largest."""

    @compiled(part=True, reassociate=False)
    def distance(tile: Tile, records: Floats, center: Floats, k: int) -> float:
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

    return distance


def finish(model: Model) -> Any:
    """The part that finds scale_k, which turns shares into u_ik^m, and objective_k, the record's part of J.

    FCM: min d (sum q)^(1-m). EFCM: min d - log(sum q) / lambda. Both equal the sums over clusters (eq. 2) at these u.
    """
    special = {1: _finish_2, 2: _finish_1_5}.get(model.whole)
    return special or {CRISP: _finish_crisp, ENTROPY: _finish_entropy}.get(model.kind, _finish_fuzzy)


@compiled(part=True)
def _finish_crisp(tile: Tile, exponent: float) -> None:
    for k in range(ROWS):
        tile.scale[k] = 1.0
        tile.objective[k] = tile.nearest[k]


@compiled(part=True)
def _finish_2(tile: Tile, exponent: float) -> None:
    total, nearest, scale, objective = tile.total, tile.nearest, tile.scale, tile.objective
    for k in range(ROWS):
        scale[k] = 1.0 / (total[k] * total[k])
        objective[k] = nearest[k] / total[k]


@compiled(part=True)
def _finish_1_5(tile: Tile, exponent: float) -> None:
    total, nearest, scale, objective = tile.total, tile.nearest, tile.scale, tile.objective
    for k in range(ROWS):
        root = math.sqrt(total[k])
        scale[k] = 1.0 / (total[k] * root)
        objective[k] = nearest[k] / root


@compiled(part=True)
def _finish_fuzzy(tile: Tile, exponent: float) -> None:
    total, nearest, scale, objective = tile.total, tile.nearest, tile.scale, tile.objective
    fuzziness = 1.0 + 1.0 / exponent
    for k in range(ROWS):
        scale[k] = exp2(-fuzziness * log2(total[k]))
        objective[k] = nearest[k] * total[k] * scale[k]


@compiled(part=True)
def _finish_entropy(tile: Tile, entropy: float) -> None:
    total, nearest, scale, objective = tile.total, tile.nearest, tile.scale, tile.objective
    for k in range(ROWS):
        scale[k] = 1.0 / total[k]
        objective[k] = nearest[k] - log2(total[k]) * (_LN2 / entropy)
