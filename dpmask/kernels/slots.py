"""Where values lie among sorted edges, found by a grid over the edges instead of a sort of the values.

Edges e_0 < e_1 < ... make slots: 2 i + 1 is the value e_i itself, 2 i what lies between e_(i-1) and e_i; a missing
value gets one slot more, the last. The grid's cells are even between the edges' 1 % and 99 % quantiles, so that most
cells hold no edge; inside a cell that does it is found by halving, as for values beyond the grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.vector_math import compiled

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Starts = NDArray[np.int32]

_CELLS_PER_EDGE = 16
_FEWEST_CELLS, _MOST_CELLS = 1 << 12, 1 << 15  # the largest grid takes 128 KB
_TILE = 1 << 14  # rows whose slots stay in the cache
_TAIL = 100  # one edge in so many lies beyond the grid on either side


class Grid(NamedTuple):
    """Edges, the grid's start, its cells to a unit, and how many edges lie before each cell."""

    edges: Floats
    low: float
    scale: float
    starts: Starts

    @property
    def crowding(self) -> float:
        """How many edges share the cell of an edge, on average."""
        held = np.diff(self.starts).astype(np.float64)
        return float((held**2).sum() / max(held.sum(), 1.0))


def grid_over(edges: Floats) -> Grid:
    """A grid over different doubles, sorted."""
    cells = min(max(_CELLS_PER_EDGE * len(edges), _FEWEST_CELLS), _MOST_CELLS)
    low, scale = _even(edges, cells)
    place = np.empty(len(edges), np.int64)
    _cells(edges, low, scale, cells, place)
    return Grid(edges, low, scale, np.searchsorted(place, np.arange(cells + 3)).astype(np.int32))


def _even(edges: Floats, cells: int) -> tuple[float, float]:
    """Where the grid starts, and how many cells there are to a unit; none where it would be no use."""
    if not len(edges):
        return 0.0, 0.0
    low, high = edges[len(edges) // _TAIL], edges[-1 - len(edges) // _TAIL]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scale = cells / (high - low)
    return (float(low), float(scale)) if 0.0 < scale < np.inf else (float(edges[0]), 0.0)


def slot_counts(values: Floats, grid: Grid) -> Counts:
    """How many values each slot holds."""
    counts = np.zeros(2 * len(grid.edges) + 2, np.int64)
    for _, slots in _slots(values, grid):
        counts += np.bincount(slots, minlength=len(counts))
    return counts


def rows_in_slots(values: Floats, grid: Grid, wanted: NDArray[np.bool_]) -> tuple[Counts, Counts]:
    """The rows whose slots are wanted, and their slots."""
    rows, found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start, slots in _slots(values, grid):
        inside = np.flatnonzero(wanted[slots])
        rows.append(start + inside)
        found.append(slots[inside])
    return np.concatenate(rows), np.concatenate(found)


def _slots(values: Floats, grid: Grid) -> Iterator[tuple[int, Counts]]:
    """The slots of each tile of values, with the tile's first row. The next tile's take their place."""
    found = np.empty(_TILE, np.int64)
    for start in range(0, len(values), _TILE):
        tile = values[start : start + _TILE]
        _fill(tile, *grid, found)
        yield start, found[: len(tile)]


@compiled(part=True, reassociate=False, contract=False)
def _cell(value: float, low: float, scale: float, cells: int) -> int:
    """The number of a value's cell, which does not fall as values grow: 0 below the grid, the last above."""
    if value < low:
        return 0
    place = (value - low) * scale
    return int(place) + 1 if place < cells else cells + 1


@compiled(reassociate=False, contract=False)
def _cells(values: Floats, low: float, scale: float, cells: int, found: Counts) -> None:
    for row in range(len(values)):
        found[row] = _cell(values[row], low, scale, cells)


@compiled(reassociate=False, contract=False)
def _fill(values: Floats, edges: Floats, low: float, scale: float, starts: Starts, found: Counts) -> None:
    missing, cells = 2 * len(edges) + 1, len(starts) - 3
    for row in range(len(values)):
        value = values[row]
        if value != value:  # noqa: PLR0124 - NaN
            found[row] = missing
            continue
        cell = _cell(value, low, scale, cells)
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
