"""Linkage one to one: every known record gets a masked record of its own, so that all distances together are least.

Who cannot link a record to the nearest one, as that is another's, learns from it. The assignment is optimal
(Jonker and Volgenant 1987, as in scipy); it needs all distances at once, so it is for few records.
"""

from __future__ import annotations

import numpy as np

from dpmask.kernels.arrays import Flags, Floats, Integers
from dpmask.kernels.compile import compiled, plain
from dpmask.kernels.linkage.nearest import Metric, to_rows
from dpmask.kernels.linkage.record_tree import LEAF, tiles
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
    rows = low.shape[1]
    leaves, order = -(-rows // LEAF), np.arange(rows)
    squares = np.empty((known.shape[1], leaves, LEAF))
    rulers = plain(metric.scale), plain(metric.least), plain(metric.cap)
    _fill(plain(known.T), tiles(low, order, leaves, np.inf), tiles(high, order, leaves, -np.inf), *rulers, squares)
    return squares.reshape(len(squares), -1)[:, :rows]


@compiled()
def _fill(
    queries: Floats, low: Floats, high: Floats, scale: Floats, least: Floats, cap: Floats, squares: Floats
) -> None:
    points = low.shape[1] - high.shape[1]
    for number in range(len(queries)):
        for leaf in range(len(low)):
            to_rows(queries[number], low[leaf], high[leaf], points, scale, least, cap, squares[number, leaf])


def equal_rows(low: Floats, high: Floats, row: int) -> Flags:
    """Which masked records are equal to one of them."""
    return (low == low[:, [row]]).all(axis=0) & (high == high[:, [row]]).all(axis=0)
