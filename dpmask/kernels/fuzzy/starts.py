"""Starting centres that lie apart: greedy k-means++.

Arthur and Vassilvitskii (2007), "The advantages of careful seeding": each centre is a record drawn with a probability
proportional to its squared distance to the centres before it. Greedy: of several records drawn, the one that leaves the
smallest sum of squared distances, as the paper proposes and scikit-learn does, with 2 + log(clusters) of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.compile import compiled, read_only


def candidates(clusters: int) -> int:
    """How many records are drawn for each centre."""
    return 2 + int(math.log(clusters))


class Seeds(NamedTuple):
    """Records to start from, and the weighted sum of squared distances that the first 1, 2, ... of them leave."""

    records: Integers
    left: Floats


def spread_out(values: Floats, weight: Floats, draws: Floats) -> Seeds:
    """For each row of draws (centres x candidates) a record of the block (columns x rows).

    A candidate's probability is proportional to its weight times its squared distance to the nearest record taken
    before; of the candidates the one with the smallest weighted sum of squared distances is taken, the first of
    several. Of the first row only the first draw counts.
    """
    seeds = Seeds(np.empty(len(draws), np.int64), np.empty(len(draws)))
    ones, nearest, trial, best, sums = np.ones((5, values.shape[1]))
    lines = (nearest, trial, best, sums)
    _choose(read_only(values), read_only(weight), read_only(draws), ones, *lines, *seeds)
    return seeds


@compiled(reassociate=False, contract=False)
def _choose(
    values: Floats,
    weight: Floats,
    draws: Floats,
    ones: Floats,
    nearest: Floats,
    trial: Floats,
    best: Floats,
    sums: Floats,
    taken: Integers,
    left: Floats,
) -> None:
    """Squared distances to the nearest record taken, to it or a candidate, to it or the best one, and room for sums."""
    rows = len(nearest)
    for number in range(len(draws)):
        if not _cumulate(nearest, weight, sums) > 0.0:  # fewer different records than centres
            _cumulate(ones, weight, sums)
        lowest = np.inf
        for at in range(1 if number == 0 else draws.shape[1]):
            record = _first_above(sums, draws[number, at])
            _distances(values, record, trial)
            total = 0.0
            for k in range(rows):
                nearer = number > 0 and nearest[k] < trial[k]
                trial[k] = nearest[k] if nearer else trial[k]
                total += trial[k] * weight[k]
            if at == 0 or total < lowest:
                lowest, taken[number] = total, record
                trial, best = best, trial
        left[number] = lowest
        nearest, best = best, nearest


@compiled(part=True, reassociate=False, contract=False)
def _distances(values: Floats, record: int, distance: Floats) -> None:
    """Squared distances of all records to one of them."""
    for k in range(len(distance)):
        distance[k] = 0.0
    for s in range(len(values)):
        center = values[s, record]
        for k in range(len(distance)):
            away = values[s, k] - center
            distance[k] += away * away


@compiled(part=True, reassociate=False, contract=False)
def _cumulate(nearest: Floats, weight: Floats, sums: Floats) -> float:
    total = 0.0
    for k in range(len(sums)):
        total += nearest[k] * weight[k]
        sums[k] = total
    return total


@compiled(part=True, reassociate=False, contract=False)
def _first_above(sums: Floats, draw: float) -> int:
    """The first record up to which the sum is more than this share of the whole; the last, if rounding leaves none."""
    low, high = 0, len(sums) - 1
    goal = draw * sums[high]
    while low < high:
        middle = (low + high) >> 1
        if sums[middle] > goal:
            high = middle
        else:
            low = middle + 1
    return low
