"""Where values lie among a few sorted edges, found by a grid over the edges instead of a sort of the values.

Edges e_0 < e_1 < ... make slots: 2 i + 1 is the value e_i itself, 2 i what lies between e_(i-1) and e_i; a missing value
gets one slot more, the last. The grid's cells are even between the edges' 1 % and 99 % quantiles, so that most cells
hold no edge; inside a cell that does it is found by halving, as for values beyond the grid.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.vector_math import compiled

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]

_CELLS = 1 << 12
_TILE = 1 << 14  # rows whose slots stay in the cache
_TAIL = 100  # one edge in so many lies beyond the grid on either side


def slot_tiles(values: Floats, edges: Floats) -> Iterator[tuple[int, Slots]]:
    """The slots of each tile of values, with the tile's first row. The next tile's take their place."""
    low, scale = _grid(edges)
    place = np.empty(len(edges), np.int64)
    _cells(edges, low, scale, place)
    starts = np.searchsorted(place, np.arange(_CELLS + 3)).astype(np.int32)
    found = np.empty(_TILE, np.int64)
    for start in range(0, len(values), _TILE):
        tile = values[start : start + _TILE]
        _fill(tile, edges, low, scale, starts, found)
        yield start, found[: len(tile)]


def slot_counts(values: Floats, edges: Floats) -> Slots:
    """How many values each slot holds."""
    counts = np.zeros(2 * len(edges) + 2, np.int64)
    for _, found in slot_tiles(values, edges):
        counts += np.bincount(found, minlength=len(counts))
    return counts


def _grid(edges: Floats) -> tuple[float, float]:
    """Where the grid starts, and how many cells there are to a unit; none where it would be no use."""
    if not len(edges):
        return 0.0, 0.0
    low, high = edges[len(edges) // _TAIL], edges[-1 - len(edges) // _TAIL]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scale = _CELLS / (high - low)
    return (float(low), float(scale)) if 0.0 < scale < np.inf else (float(edges[0]), 0.0)


@compiled(reassociate=False, contract=False)
def _cell(value: float, low: float, scale: float) -> int:
    """The number of a value's cell, which does not fall as values grow: 0 below the grid, the last above."""
    if value < low:
        return 0
    place = (value - low) * scale
    return int(place) + 1 if place < _CELLS else _CELLS + 1


@compiled(reassociate=False, contract=False)
def _cells(values: Floats, low: float, scale: float, found: Slots) -> None:
    for row in range(len(values)):
        found[row] = _cell(values[row], low, scale)


@compiled(reassociate=False, contract=False)
def _fill(values: Floats, edges: Floats, low: float, scale: float, starts: NDArray[np.int32], found: Slots) -> None:
    missing = 2 * len(edges) + 1
    for row in range(len(values)):
        value = values[row]
        if value != value:  # noqa: PLR0124 - NaN
            found[row] = missing
            continue
        cell = _cell(value, low, scale)
        first, last = starts[cell], starts[cell + 1]
        if first == last:  # no edge in its cell, so it is none
            found[row] = 2 * first
            continue
        while first < last:  # the first edge above the value
            middle = (first + last) // 2
            if edges[middle] <= value:
                first = middle + 1
            else:
                last = middle
        found[row] = 2 * first - 1 if first > 0 and edges[first - 1] == value else 2 * first
