"""Where values lie among sorted edges, found by a table over the edges instead of a sort of the values.

Edges e_0 < e_1 < ... make slots: 2 i + 1 is the value e_i itself, 2 i what lies between e_(i-1) and e_i; a missing
value gets one slot more, the last. The table has coarse cells, even between the edges' 1 % and 99 % quantiles, and in
each of them fine ones, even between its first and its last edge and as many as its edges deserve: so most fine cells
hold one edge at most, also where values are skewed or in clumps. A value is compared with that one edge; where a cell
has several its place is found by halving. Cells are worked out a strip at a time, in a loop of its own that becomes
vector instructions.

The lookup enters compiled functions, so its fields are arrays and floats alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.compile import compiled, read_only

Starts = NDArray[np.uint32]

_COARSE = 1 << 10
_PER_EDGE, _FINE = 16, 1 << 15  # fine cells to an edge, and all of them, about: they take 128 KB
_STRIP = 1 << 10  # rows whose cells stay in the cache
_TAIL = 100  # one edge in so many lies beyond the even coarse cells on either side


class EdgeLookup(NamedTuple):
    """Edges and a NaN after them; coarse and fine cells; and how many edges lie before each fine cell."""

    edges: Floats
    low: float  # where the even coarse cells start
    scale: float  # how many there are to a unit
    left: Floats  # for each coarse cell: where its fine ones start
    slope: Floats  # how many there are to a unit
    last: Floats  # how many there are but one
    base: Starts  # the number of the first
    starts: Starts

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return 2 * len(self.edges)

    @property
    def crowding(self) -> float:
        """How many edges share the cell of an edge, on average."""
        held = np.diff(self.starts).astype(np.float64)
        return float((held**2).sum() / max(held.sum(), 1.0))


def edge_lookup(edges: Floats) -> EdgeLookup:
    """The lookup of different doubles, sorted."""
    per_edge = min(_PER_EDGE, max(_FINE // max(len(edges), 1), 1))
    left, slope, last = np.zeros((3, _COARSE + 3))
    base, starts = np.empty(_COARSE + 3, np.uint32), np.zeros(len(edges) * per_edge + _COARSE + 4, np.uint32)
    lookup = EdgeLookup(np.append(edges, np.nan), *_even(edges), left, slope, last, base, starts)
    _lay_out(lookup, per_edge)
    return lookup


def _even(edges: Floats) -> tuple[float, float]:
    """Where the coarse cells start, and how many there are to a unit; none where they would be no use."""
    if not len(edges):
        return 0.0, 0.0
    low, high = edges[len(edges) // _TAIL], edges[-1 - len(edges) // _TAIL]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scale = _COARSE / (high - low)
    return (float(low), float(scale)) if 0.0 < scale < np.inf else (float(edges[0]), 0.0)


def edge_counts(values: Floats, lookup: EdgeLookup) -> Counts:
    """How many values each slot holds."""
    counts = np.zeros(lookup.slots, np.int64)
    _count(read_only(values), lookup, read_only(np.empty(0, np.bool_)), counts, np.empty(0, np.int64))
    return counts


def edge_counts_and_rows(values: Floats, lookup: EdgeLookup, wanted: NDArray[np.bool_]) -> tuple[Counts, Counts]:
    """How many values each slot holds, and the rows whose slots are wanted."""
    counts, rows = np.zeros(lookup.slots, np.int64), np.empty(len(values) + 1, np.int64)
    return counts, rows[: _count(read_only(values), lookup, read_only(wanted), counts, rows)]


# Indices are unsigned, so that no code is made for those that count from the end.


@compiled(part=True, reassociate=False, contract=False)
def _coarse(value: float, low: float, scale: float) -> np.uint32:
    """The number of a value's coarse cell, which does not fall as values grow: 0 before the even ones."""
    place = (value - low) * scale
    place = place if place < _COARSE else float(_COARSE)
    place = -1.0 if value < low else place
    cell = np.uint32(np.int32(place) + np.int32(1))
    return cell if value == value else np.uint32(_COARSE + 2)  # noqa: PLR0124 - NaN is not


@compiled(part=True, reassociate=False, contract=False)
def _cell(value: float, lookup: EdgeLookup) -> np.uint32:
    """The number of a value's fine cell, which does not fall as values grow; the last for what is missing."""
    coarse = _coarse(value, lookup.low, lookup.scale)
    place = (value - lookup.left[coarse]) * lookup.slope[coarse]
    place = place if place > 0.0 else 0.0
    place = place if place < lookup.last[coarse] else lookup.last[coarse]
    return np.uint32(lookup.base[coarse] + np.uint32(place))


@compiled(part=True, reassociate=False, contract=False)
def _slot(value: float, cell: np.uint32, lookup: EdgeLookup) -> np.uint64:
    first, last = np.int64(lookup.starts[cell]), np.int64(lookup.starts[cell + np.uint32(1)])
    if last - first > 1:
        while first < last:  # the first edge that is not below the value
            middle = (first + last) >> 1
            if lookup.edges[np.uint64(middle)] < value:
                first = middle + 1
            else:
                last = middle
    edge = lookup.edges[np.uint64(first)]  # the only one in the cell, or one above all of it
    return np.uint64(2 * first + int(value >= edge) + int(value > edge) + int(value != value))  # noqa: PLR0124 - NaN


@compiled(allocates=True, reassociate=False, contract=False)
def _lay_out(lookup: EdgeLookup, per_edge: int) -> None:
    """Give each coarse cell its fine ones, and count the edges before each of these."""
    edges = lookup.edges[: len(lookup.edges) - 1]
    held = np.zeros(len(lookup.base), np.int64)
    for edge in edges:
        held[_coarse(edge, lookup.low, lookup.scale)] += 1
    first = cells = 0
    for coarse in range(len(held)):
        fine = max(held[coarse] * per_edge, 1)
        lookup.base[coarse], lookup.last[coarse] = cells, fine - 1.0
        if held[coarse] > 1:
            slope = (fine - 1) / (edges[first + held[coarse] - 1] - edges[first])
            if 0.0 < slope < np.inf:
                lookup.left[coarse], lookup.slope[coarse] = edges[first], slope
        first += held[coarse]
        cells += fine
    for edge in edges:
        lookup.starts[_cell(edge, lookup) + np.uint32(1)] += np.uint32(1)
    for cell in range(1, len(lookup.starts)):
        lookup.starts[cell] += lookup.starts[cell - 1]


@compiled(allocates=True, reassociate=False, contract=False)
def _count(values: Floats, lookup: EdgeLookup, wanted: NDArray[np.bool_], counts: Counts, rows: Counts) -> int:
    """Add to the counts; if there is room, put rows in wanted slots one after the other and say how many there are."""
    cells, slots, picked = np.empty(_STRIP, np.uint32), np.empty(_STRIP, np.uint64), 0
    for start in range(0, len(values), _STRIP):
        strip = values[start : start + _STRIP]
        for row in range(len(strip)):
            cells[row] = _cell(strip[row], lookup)
        for row in range(len(strip)):
            slots[row] = _slot(strip[row], cells[row], lookup)
            counts[slots[row]] += 1
        if len(rows):
            for row in range(len(strip)):
                rows[picked] = start + row
                picked += wanted[slots[row]]
    return picked
