"""Fuzzy clustering with tolerance: each record may move by up to kappa_k towards the centres it belongs to.

Steps 2 and 3 of Algorithm 2 of Torra, Endo, Miyamoto (2009), alternated for each record by itself inside a pass. With
p_k = sum_i u_ik^m v_i / sum_i u_ik^m the paper's displacement is e_k = (p_k - x_k) min(1, kappa_k / |p_k - x_k|): the
record goes to p_k, or kappa_k of the way.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.compile import compiled
from dpmask.kernels.fuzzy.memberships import Model, find_shares
from dpmask.kernels.fuzzy.tiles import ROWS, Tile, copy

Floats = NDArray[np.float64]

ROUNDS = 30  # a record that still moves then stays where it is
_STILL = 1e-26  # a squared step, relative to the squared size of record and target, that is only rounding


class Movement(NamedTuple):
    """Room for the displaced records of a tile."""

    moved: Floats  # columns x ROWS: x_k + e_k
    target: Floats  # columns x ROWS: p_k
    reach: Floats  # min(1, kappa / |p - x|)
    size: Floats  # |x|^2 + |p|^2
    moving: Floats  # 1, or 0 once the record stands still


@compiled(part=True)
def new_movement(columns: int) -> Movement:
    """Room for one tile."""
    return Movement(
        np.zeros((columns, ROWS)), np.zeros((columns, ROWS)), np.zeros(ROWS), np.zeros(ROWS), np.zeros(ROWS)
    )


@cache
def settle(model: Model, partial: bool) -> Any:
    """The part that lets each record move until it stands still, and returns where they are: x_k + e_k.

    The tile's shares are those of u_ik^m at the returned records.
    """
    shares, find_targets = find_shares(model, partial, powered=True), _find_targets(partial)

    @compiled(part=True)
    def move(tile: Tile, movement: Movement, centers: Floats, clusters: int, exponent: float) -> Floats:
        records, rounds, going = movement.moved, ROUNDS, 1
        _stand_at(movement, tile.records)
        shares(tile, records, centers, clusters, exponent)
        while going > 0 and rounds > 0:
            find_targets(tile, movement, centers, clusters)
            _find_reach(tile, movement)
            going = _step(tile, movement)
            rounds -= 1
            shares(tile, records, centers, clusters, exponent)
        return records

    return move


@compiled(part=True)
def load_tolerance(tile: Tile, tolerances: Floats, first: int) -> None:
    """The tolerance of each record of a tile; one tolerance is everybody's."""
    if tolerances.size > 1:
        copy(tolerances, first, min(ROWS, tolerances.size - first), tile.tolerance)
    else:
        for k in range(ROWS):
            tile.tolerance[k] = tolerances[0]


@compiled(part=True)
def _stand_at(movement: Movement, records: Floats) -> None:
    for k in range(ROWS):
        movement.moving[k] = 1.0
    for s in range(len(records)):
        for k in range(ROWS):
            movement.moved[s, k] = records[s, k]


@cache
def _find_targets(partial: bool) -> Any:
    """The part for p_k: the normalisation of u_ik^m cancels, so shares are enough; the nearest centre has share 1."""

    @compiled(part=True)
    def find(tile: Tile, movement: Movement, centers: Floats, clusters: int) -> None:
        mass = np.zeros(ROWS)
        for i in range(clusters):
            for k in range(ROWS):
                mass[k] += tile.shares[i, k]
        for s in range(len(movement.target)):
            target = movement.target[s]
            for k in range(ROWS):
                target[k] = 0.0
            for i in range(clusters):
                share, v = tile.shares[i], centers[i, s]
                for k in range(ROWS):
                    target[k] += share[k] * v
            for k in range(ROWS):
                target[k] /= mass[k]
            if partial:  # what is missing does not move
                for k in range(ROWS):
                    target[k] *= tile.seen[s, k]

    return find


@compiled(part=True)
def _find_reach(tile: Tile, movement: Movement) -> None:
    gap = np.zeros(ROWS)
    for k in range(ROWS):
        movement.size[k] = 0.0
    for s in range(len(movement.target)):
        x, p = tile.records[s], movement.target[s]
        for k in range(ROWS):
            gap[k] += (p[k] - x[k]) ** 2
            movement.size[k] += p[k] * p[k] + x[k] * x[k]
    for k in range(ROWS):
        distance = math.sqrt(gap[k])
        movement.reach[k] = 1.0 if distance <= tile.tolerance[k] else tile.tolerance[k] / distance


@compiled(part=True)
def _step(tile: Tile, movement: Movement) -> int:
    """Move the records that still move. Returns how many will go on."""
    change, reach, moving = np.zeros(ROWS), movement.reach, movement.moving
    for s in range(len(movement.moved)):
        x, p, y = tile.records[s], movement.target[s], movement.moved[s]
        for k in range(ROWS):
            new = p[k] if reach[k] == 1.0 else x[k] + reach[k] * (p[k] - x[k])
            new = new if moving[k] > 0.0 else y[k]
            change[k] += (new - y[k]) ** 2
            y[k] = new
    going = 0
    for k in range(ROWS):
        goes = change[k] > _STILL * movement.size[k]
        moving[k] = 1.0 if goes else 0.0
        going += goes
    return going
