"""Fuzzy clustering with tolerance: each record may move by up to kappa_k towards the centres it belongs to.

Steps 2 and 3 of Algorithm 2 of Torra, Endo, Miyamoto (2009), alternated for each record by itself inside a pass. With
p_k = sum_i u_ik^m v_i / sum_i u_ik^m the paper's displacement is e_k = (p_k - x_k) min(1, kappa_k / |p_k - x_k|): the
record goes to p_k, or kappa_k of the way.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from dpmask.kernels.arrays import Floats
from dpmask.kernels.compile import compiled
from dpmask.kernels.fuzzy.memberships import find_shares
from dpmask.kernels.fuzzy.tiles import CHANGE, MOVING, REACH, ROWS, SIZE, TOLERANCE, find_distances

ROUNDS = 30  # a record that still moves then stays where it is
_STILL = 1e-26  # a squared step, relative to the squared size of record and target, that is only rounding


@cache
def settle(model: str, partial: bool) -> Any:
    """The part that lets each record move until it stands still: `moved` then has x_k + e_k.

    The tile's shares are those of u_ik^m there.
    """
    distances, shares_of, find_targets = find_distances(partial), find_shares(model, partial), _find_targets(partial)

    @compiled(part=True)
    def move(
        records: Floats,
        seen: Floats,
        lines: Floats,
        shares: Floats,
        moved: Floats,
        target: Floats,
        centers: Floats,
        clusters: int,
        exponent: float,
    ) -> None:
        _stand_at(moved, records, lines)
        rounds = ROUNDS
        while rounds >= 0:
            distances(moved, seen, lines, centers, shares)
            shares_of(moved, seen, lines, shares, centers, clusters, exponent, True)
            rounds -= 1
            if rounds >= 0:
                find_targets(shares, seen, lines, target, centers, clusters)
                _find_reach(records, target, lines)
                if _step(records, target, moved, lines) == 0:
                    rounds = 0  # but for the shares of where they stand

    return move


@compiled(part=True)
def load_tolerance(tolerances: Floats, first: int, lines: Floats) -> None:
    """The tolerance of each record of a tile; one tolerance is everybody's."""
    last = tolerances.size - 1
    for k in range(ROWS):
        lines[TOLERANCE, k] = tolerances[first + k if first + k < last else last] if last > 0 else tolerances[0]


@compiled(part=True)
def _stand_at(moved: Floats, records: Floats, lines: Floats) -> None:
    for k in range(ROWS):
        lines[MOVING, k] = 1.0
    for s in range(records.shape[0]):
        for k in range(ROWS):
            moved[s, k] = records[s, k]


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
def _step(records: Floats, target: Floats, moved: Floats, lines: Floats) -> int:
    """Move the records that still move. Returns how many will go on."""
    for k in range(ROWS):
        lines[CHANGE, k] = 0.0
    for s in range(moved.shape[0]):
        for k in range(ROWS):
            x, p, y, reach = records[s, k], target[s, k], moved[s, k], lines[REACH, k]
            new = p if reach == 1.0 else x + reach * (p - x)
            new = new if lines[MOVING, k] > 0.0 else y
            lines[CHANGE, k] += (new - y) * (new - y)
            moved[s, k] = new
    going = 0
    for k in range(ROWS):
        goes = lines[CHANGE, k] > _STILL * lines[SIZE, k]
        lines[MOVING, k] = 1.0 if goes else 0.0
        going += goes
    return going
