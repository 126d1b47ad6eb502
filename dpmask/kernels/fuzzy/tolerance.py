"""Fuzzy clustering with tolerance: each record may move by up to kappa_k towards the centres it belongs to.

Steps 2 and 3 of Algorithm 2 of Torra, Endo, Miyamoto (2009), alternated for each record by itself inside a pass. With
p_k = sum_i u_ik^m v_i / sum_i u_ik^m the paper's displacement is e_k = (p_k - x_k) min(1, kappa_k / |p_k - x_k|): the
record goes to p_k, or kappa_k of the way. Most records stand still after five to ten rounds, and few need all of them:
each round takes those that still move, so that nobody waits for the slowest of a tile.
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
    MOVING,
    REACH,
    ROWS,
    SIZE,
    TOLERANCE,
    Tile,
    find_distances,
    new_tile,
    nothing_missing,
    separate_missing,
)

ROUNDS = 30  # a record that still moves then stays where it is
_STILL = 1e-26  # a squared step, relative to the squared size of record and target, that is only rounding


def settled(
    model: str, partial: bool, block: Floats, centers: Floats, clusters: int, tolerances: Floats, exponent: float
) -> Floats:
    """Where the records of a block (columns x rows) stand when they have moved: x_k + e_k; missing values stay.

    ``centers`` (clusters x columns, an even number) and ``tolerances`` (one, or one for each record) are as a pass has
    them.
    """
    tile, moved = new_tile(len(block), clusters, partial=partial, tolerant=True), plain(block).copy()
    moving = np.arange(block.shape[1])
    _settle(model, partial)(plain(block), centers, clusters, tolerances, exponent, True, tile, moving, moved)
    return moved


@cache
def _settle(model: str, partial: bool) -> Any:
    distances, shares_of, find_targets = find_distances(partial), find_shares(model, partial), _find_targets(partial)
    separate = separate_missing if partial else nothing_missing

    @compiled(variant=(model, partial))
    def settle(
        block: Floats,
        centers: Floats,
        clusters: int,
        tolerances: Floats,
        exponent: float,
        powered: bool,
        tile: Tile,
        moving: Integers,
        result: Floats,
    ) -> None:
        records, seen, lines, shares, moved, target = tile
        going, rounds = len(moving), 0
        while going > 0 and rounds < ROUNDS:
            still = 0
            for first in range(0, going, ROWS):
                count = _gather(block, result, tolerances, moving, first, going, records, moved, lines)
                separate(records, seen, lines, count)
                distances(moved, seen, lines, centers, shares)
                shares_of(moved, seen, lines, shares, centers, clusters, exponent, powered)
                find_targets(shares, seen, lines, target, centers, clusters)
                _find_reach(records, target, lines)
                _step(records, target, moved, lines)
                for k in range(count):
                    record = moving[first + k]
                    for s in range(len(block)):
                        result[s, record] = block[s, record] if math.isnan(block[s, record]) else moved[s, k]
                    if lines[MOVING, k] > 0.0:
                        moving[still] = record
                        still += 1
            going, rounds = still, rounds + 1

    return settle


@compiled(part=True)
def _gather(
    block: Floats,
    result: Floats,
    tolerances: Floats,
    moving: Integers,
    first: int,
    going: int,
    records: Floats,
    moved: Floats,
    lines: Floats,
) -> int:
    """Records that still move, where they began and where they stand; how many. One tolerance is everybody's."""
    count = going - first if going - first < ROWS else ROWS
    for s in range(len(block)):
        for k in range(count):
            records[s, k] = block[s, moving[first + k]]
            value = result[s, moving[first + k]]
            moved[s, k] = 0.0 if math.isnan(value) else value
        for k in range(count, ROWS):
            records[s, k] = 0.0
            moved[s, k] = 0.0
    for k in range(ROWS):
        own = k < count and len(tolerances) > 1
        lines[TOLERANCE, k] = tolerances[moving[first + k]] if own else tolerances[0]
    return count


@cache
def _find_targets(partial: bool) -> Any:
    """The part for p_k: the normalisation of u_ik^m cancels, so shares are enough; the nearest centre has share 1."""

    @compiled(part=True)
    def find(shares: Floats, seen: Floats, lines: Floats, target: Floats, centers: Floats, clusters: int) -> None:
        for k in range(ROWS):
            lines[CHANGE, k] = 0.0
        for i in range(clusters):
            for k in range(ROWS):
                lines[CHANGE, k] += shares[i, k]
        for s in range(target.shape[0]):
            for k in range(ROWS):
                target[s, k] = 0.0
            for i in range(clusters):
                v = centers[i, s]
                for k in range(ROWS):
                    target[s, k] += shares[i, k] * v
            for k in range(ROWS):
                target[s, k] /= lines[CHANGE, k]
                if partial:  # what is missing does not move
                    target[s, k] *= seen[s, k]

    return find


@compiled(part=True)
def _find_reach(records: Floats, target: Floats, lines: Floats) -> None:
    for k in range(ROWS):
        lines[SIZE, k] = 0.0
        lines[CHANGE, k] = 0.0
    for s in range(target.shape[0]):
        for k in range(ROWS):
            x, p = records[s, k], target[s, k]
            lines[CHANGE, k] += (p - x) * (p - x)
            lines[SIZE, k] += p * p + x * x
    for k in range(ROWS):
        distance, tolerance = math.sqrt(lines[CHANGE, k]), lines[TOLERANCE, k]
        lines[REACH, k] = 1.0 if distance <= tolerance else tolerance / distance


@compiled(part=True)
def _step(records: Floats, target: Floats, moved: Floats, lines: Floats) -> None:
    """Move the records, and find which of them will go on."""
    for k in range(ROWS):
        lines[CHANGE, k] = 0.0
    for s in range(moved.shape[0]):
        for k in range(ROWS):
            x, p, y, reach = records[s, k], target[s, k], moved[s, k], lines[REACH, k]
            new = p if reach == 1.0 else x + reach * (p - x)
            lines[CHANGE, k] += (new - y) * (new - y)
            moved[s, k] = new
    for k in range(ROWS):
        lines[MOVING, k] = 1.0 if lines[CHANGE, k] > _STILL * lines[SIZE, k] else 0.0
