"""Starting centres that lie apart: k-means++ (Arthur and Vassilvitskii 2007, "The advantages of careful seeding")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.compile import compiled, read_only

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def spread_out(values: Floats, weight: Floats, draws: Floats) -> Integers:
    """For each draw a record of the block (columns x rows).

    Its probability is proportional to its weight times its squared distance to the nearest record chosen before.
    """
    chosen = np.empty(len(draws), np.int64)
    _choose(read_only(values), read_only(weight), read_only(draws), chosen)
    return chosen


@compiled(reassociate=False, contract=False)
def _choose(values: Floats, weight: Floats, draws: Floats, chosen: Integers) -> None:
    rows = values.shape[1]
    nearest, mass, distance = np.ones(rows), np.empty(rows), np.empty(rows)
    for number in range(len(draws)):
        if not _cumulate(nearest, weight, mass) > 0.0:  # fewer different records than centres
            _cumulate(np.ones(rows), weight, mass)
        goal = draws[number] * mass[-1]
        chosen[number] = min(np.searchsorted(mass, goal, side="right"), rows - 1)
        distance[:] = 0.0
        for s in range(len(values)):
            center = values[s, chosen[number]]
            for k in range(rows):
                distance[k] += (values[s, k] - center) ** 2
        for k in range(rows):
            nearest[k] = distance[k] if number == 0 else min(nearest[k], distance[k])


@compiled(part=True, reassociate=False, contract=False)
def _cumulate(nearest: Floats, weight: Floats, mass: Floats) -> float:
    total = 0.0
    for k in range(len(mass)):
        total += nearest[k] * weight[k]
        mass[k] = total
    return total
