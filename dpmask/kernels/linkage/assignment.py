"""Linkage one to one: every known record gets a masked record of its own, so that all distances together are least.

Who cannot link a record to the nearest one, as that is another's, learns from it. The assignment is optimal
(Jonker and Volgenant 1987, as in scipy); it needs all distances at once, so it is for few records.
"""

from __future__ import annotations

import numpy as np

from dpmask.kernels.arrays import Flags, Floats, Integers
from dpmask.kernels.compile import compiled, read_only
from dpmask.kernels.linkage.nearest import Metric
from dpmask.kernels.scipy_parts import assign

_FAR = 1e6
_DIGITS = 6


def assigned(metric: Metric, known: Floats, low: Floats, high: Floats) -> float:
    """The share of records assigned to their own masked record, which stands in the same place; among equals 1/q."""
    places = assigned_places(metric, known, low, high)
    _, kinds, sizes = np.unique(np.concatenate([low, high]), axis=1, return_inverse=True, return_counts=True)
    own = kinds.reshape(-1)
    return float(np.where(own[places] == own, 1.0 / sizes[own], 0.0).mean())


def assigned_places(metric: Metric, known: Floats, low: Floats, high: Floats) -> Integers:
    """The place of the masked record that each known one is assigned, both given as columns x rows in the metric."""
    squares = _squares(metric, known, low, high)
    return assign(np.round(np.minimum(squares, _FAR), _DIGITS))[1]


def _squares(metric: Metric, known: Floats, low: Floats, high: Floats) -> Floats:
    """The squared distances of all pairs, known x masked."""
    squares = np.zeros((known.shape[1], low.shape[1]))
    rulers = read_only(metric.scale), read_only(metric.least), read_only(metric.cap)
    _add_squares(read_only(known), read_only(low), read_only(high), *rulers, squares)
    return squares


@compiled()
def _add_squares(
    known: Floats, low: Floats, high: Floats, scale: Floats, least: Floats, cap: Floats, squares: Floats
) -> None:
    points = len(low) - len(high)
    for query in range(len(squares)):
        for column in range(points):
            for row in range(low.shape[1]):
                gap = low[column, row] - known[column, query]
                squares[query, row] += gap * gap
        for at in range(len(high)):
            value = known[points + at, query]
            for row in range(low.shape[1]):
                gap = max(low[points + at, row] - value, value - high[at, row])
                gap = min(max(gap * scale[at], least[at]), cap[at]) if gap > 0.0 else 0.0
                squares[query, row] += gap * gap


def equal_rows(low: Floats, high: Floats, row: int) -> Flags:
    """Which masked records are equal to one of them."""
    return (low == low[:, [row]]).all(axis=0) & (high == high[:, [row]]).all(axis=0)
