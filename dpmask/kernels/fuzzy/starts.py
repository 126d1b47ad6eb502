"""Starting centres that lie apart: greedy k-means++.

Arthur and Vassilvitskii (2007), "The advantages of careful seeding": each centre is a record drawn with a probability
proportional to its squared distance to the centres before it. Greedy: of several records drawn, the one that leaves the
smallest sum of squared distances, as the paper proposes and scikit-learn does, with 2 + log(clusters) of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.compile import compiled, read_only

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    _choose(read_only(values), read_only(weight), read_only(draws), *seeds)
    return seeds


@compiled(reassociate=False, contract=False)
def _choose(values: Floats, weight: Floats, draws: Floats, taken: Integers, left: Floats) -> None:
    rows = values.shape[1]
    nearest, mass = np.ones(rows), np.empty(rows)
    trial, best = np.empty(rows), np.empty(rows)
    for number in range(len(draws)):
        if not _cumulate(nearest, weight, mass) > 0.0:  # fewer different records than centres
            _cumulate(np.ones(rows), weight, mass)
        lowest = np.inf
        for at in range(1 if number == 0 else draws.shape[1]):
            record = min(np.searchsorted(mass, draws[number, at] * mass[-1], side="right"), rows - 1)
            _distances(values, record, trial)
            total = 0.0
            for k in range(rows):
                trial[k] = trial[k] if number == 0 else min(nearest[k], trial[k])
                total += trial[k] * weight[k]
            if at == 0 or total < lowest:
                lowest, taken[number] = total, record
                trial, best = best, trial
        left[number] = lowest
        nearest, best = best, nearest


@compiled(part=True, reassociate=False, contract=False)
def _distances(values: Floats, record: int, distance: Floats) -> None:
    """Squared distances of all records to one of them."""
    distance[:] = 0.0
    for s in range(len(values)):
        center = values[s, record]
        for k in range(len(distance)):
            distance[k] += (values[s, k] - center) ** 2


@compiled(part=True, reassociate=False, contract=False)
def _cumulate(nearest: Floats, weight: Floats, mass: Floats) -> float:
    total = 0.0
    for k in range(len(mass)):
        total += nearest[k] * weight[k]
        mass[k] = total
    return total
