"""Fuzzy clustering with tolerance: each record may move by up to kappa_k towards the centres it belongs to.

Steps 2 and 3 of Algorithm 2 of Torra, Endo, Miyamoto (2009), alternated for each record by itself inside a pass. With
p_k = sum_i u_ik^m v_i / sum_i u_ik^m the paper's displacement is e_k = (p_k - x_k) min(1, kappa_k / |p_k - x_k|): the
record goes to p_k, or kappa_k of the way. Most records stand still after five to ten rounds, and few need all of them:
where one of a tile stands still the next one takes its place, so that nobody waits for the slowest of a tile.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.compile import compiled, plain
from dpmask.kernels.fuzzy.memberships import find_shares
from dpmask.kernels.fuzzy.tiles import (
    CHANGE,
    FACTOR,
    MOVING,
    RATE,
    REACH,
    ROUND,
    ROWS,
    SIZE,
    STEP,
    TOLERANCE,
    WEIGHT,
    Tile,
    find_distances,
    new_tile,
)

ROUNDS = 300  # a record that still moves then stays where it is
_QUARTER = 0.25
_STILL = 1e-26  # a squared step, relative to the squared size of record and target, that is only rounding


def settled(
    model: str, partial: bool, block: Floats, centers: Floats, clusters: int, tolerances: Floats, exponent: float
) -> Floats:
    """Where the records of a block (columns x rows) stand when they have moved: x_k + e_k; missing values stay.

    ``centers`` (clusters x columns, an even number) and ``tolerances`` (one, or one for each record) are as a pass has
    them.
    """
    tile, result = new_tile(len(block), clusters, partial=partial, tolerant=True), np.empty(block.shape)
    places = np.empty(ROWS, np.int64)
    _settle(model, partial)(plain(block), centers, clusters, tolerances, exponent, True, tile, places, result)
    return result


@cache
def _settle(model: str, partial: bool) -> Any:
    distances, shares_of, find_targets = find_distances(partial), find_shares(model, partial), _find_targets(partial)
    take, give = _take(partial), _give(partial)

    @compiled(variant=(model, partial))
    def settle(
        block: Floats,
        centers: Floats,
        clusters: int,
        tolerances: Floats,
        exponent: float,
        powered: bool,
        tile: Tile,
        places: Integers,
        result: Floats,
    ) -> None:
        records, seen, lines, shares, moved, target = tile
        rows = block.shape[1]
        coming, going = 0, rows
        for k in range(ROWS):
            coming = take(block, tolerances, coming, records, seen, moved, lines, places, k)
        while going > 0:
            distances(moved, seen, lines, centers, shares)
            shares_of(moved, seen, lines, shares, centers, clusters, exponent, powered)
            find_targets(records, shares, seen, lines, target, centers, clusters)
            _step(records, target, moved, lines)
            for k in range(ROWS):
                if lines[MOVING, k] == 0.0 and places[k] < rows:
                    give(moved, seen, places, k, result)
                    coming = take(block, tolerances, coming, records, seen, moved, lines, places, k)
                    going -= 1

    return settle


@cache
def _take(partial: bool) -> Any:
    """The part that lets the next record, if there is one, begin in a place of the tile."""

    @compiled(part=True)
    def take(
        block: Floats,
        tolerances: Floats,
        record: int,
        records: Floats,
        seen: Floats,
        moved: Floats,
        lines: Floats,
        places: Integers,
        k: int,
    ) -> int:
        places[k] = record
        lines[ROUND, k] = 0.0
        lines[STEP, k] = lines[RATE, k] = np.inf
        if record == block.shape[1]:
            return record
        lines[TOLERANCE, k] = tolerances[record if len(tolerances) > 1 else 0]
        for s in range(len(block)):
            value = block[s, record]
            if partial:
                seen[s, k] = 0.0 if math.isnan(value) else 1.0
                value = value if seen[s, k] > 0.0 else 0.0
            records[s, k] = value
            moved[s, k] = value
        if partial:
            observed = 0.0
            for s in range(len(block)):
                observed += seen[s, k]
            lines[FACTOR, k] = len(block) / observed if observed > 0.0 else 0.0
        return record + 1

    return take


@cache
def _give(partial: bool) -> Any:
    """The part that notes where the record in a place has come to."""

    @compiled(part=True)
    def give(moved: Floats, seen: Floats, places: Integers, k: int, result: Floats) -> None:
        for s in range(len(result)):
            result[s, places[k]] = math.nan if partial and seen[s, k] == 0.0 else moved[s, k]

    return give


@compiled(part=True)
def _add_centers(shares: Floats, target: Floats, centers: Floats, clusters: int) -> None:
    """sum_i u_ik^m v_i."""
    even, whole = target.shape[0] // 2 * 2, clusters // 4 * 4
    for s in range(target.shape[0]):
        for k in range(ROWS):
            target[s, k] = 0.0
    for s in range(0, even, 2):  # two columns and four centres at a time: a share is loaded once for two products
        t = s + 1
        for i in range(0, whole, 4):
            a0, a1, a2, a3 = centers[i, s], centers[i + 1, s], centers[i + 2, s], centers[i + 3, s]
            b0, b1, b2, b3 = centers[i, t], centers[i + 1, t], centers[i + 2, t], centers[i + 3, t]
            for k in range(ROWS):
                u0, u1, u2, u3 = shares[i, k], shares[i + 1, k], shares[i + 2, k], shares[i + 3, k]
                target[s, k] += u0 * a0 + u1 * a1 + u2 * a2 + u3 * a3
                target[t, k] += u0 * b0 + u1 * b1 + u2 * b2 + u3 * b3
        for i in range(whole, clusters):
            a, b = centers[i, s], centers[i, t]
            for k in range(ROWS):
                share = shares[i, k]
                target[s, k] += share * a
                target[t, k] += share * b
    for s in range(even, target.shape[0]):
        for i in range(clusters):
            v = centers[i, s]
            for k in range(ROWS):
                target[s, k] += shares[i, k] * v


@compiled(part=True)
def _normalise(shares: Floats, lines: Floats, clusters: int) -> None:
    """1 / sum_i u_ik^m: what normalises memberships cancels, so shares are enough."""
    for k in range(ROWS):
        lines[WEIGHT, k] = 0.0
    for i in range(clusters):
        for k in range(ROWS):
            lines[WEIGHT, k] += shares[i, k]
    for k in range(ROWS):
        lines[WEIGHT, k] = 1.0 / lines[WEIGHT, k]


@cache
def _find_targets(partial: bool) -> Any:
    """The part for p_k and how much of the way to it a record goes."""

    @compiled(part=True)
    def find(
        records: Floats, shares: Floats, seen: Floats, lines: Floats, target: Floats, centers: Floats, clusters: int
    ) -> None:
        _normalise(shares, lines, clusters)
        _add_centers(shares, target, centers, clusters)
        for k in range(ROWS):
            lines[SIZE, k] = 0.0
            lines[CHANGE, k] = 0.0
        for s in range(target.shape[0]):
            for k in range(ROWS):
                x, p = records[s, k], target[s, k] * lines[WEIGHT, k]
                if partial:  # what is missing does not move
                    p *= seen[s, k]
                target[s, k] = p
                lines[CHANGE, k] += (p - x) * (p - x)
                lines[SIZE, k] += p * p + x * x
        for k in range(ROWS):
            distance, tolerance = math.sqrt(lines[CHANGE, k]), lines[TOLERANCE, k]
            lines[REACH, k] = 1.0 if distance <= tolerance else tolerance / distance

    return find


@compiled(part=True)
def _step(records: Floats, target: Floats, moved: Floats, lines: Floats) -> None:
    """Move the records, and find which of them will go on.

    What is left of the way is estimated by how much shorter steps become: by the less of the last two times, and by a
    half at most.
    """
    for k in range(ROWS):
        lines[CHANGE, k] = 0.0
    for s in range(moved.shape[0]):
        for k in range(ROWS):
            x, p, y, reach = records[s, k], target[s, k], moved[s, k], lines[REACH, k]
            new = p if reach == 1.0 else x + reach * (p - x)
            lines[CHANGE, k] += (new - y) * (new - y)
            moved[s, k] = new
    for k in range(ROWS):
        change, rounding = lines[CHANGE, k], _STILL * lines[SIZE, k]
        rate, before = change / lines[STEP, k], lines[RATE, k]  # of squares
        slowest = rate if rate > before else before
        lines[ROUND, k] += 1.0
        still = (change <= rounding) | ((slowest < _QUARTER) & (change * slowest <= _QUARTER * rounding))
        lines[MOVING, k] = 0.0 if still | (lines[ROUND, k] >= ROUNDS) else 1.0
        lines[STEP, k] = change
        lines[RATE, k] = rate
