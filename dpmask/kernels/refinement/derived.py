"""Cells of groups that need not be counted: a group is its children together, so one child is what the others leave.

After a refinement, the groups of all children of the node but the one with the most records are counted; the cells of
that one are those of the groups before, less those of the others. Only the refined attribute has new cells there, and
is counted for it alone. Counts are whole numbers: nothing depends on what was counted and what was derived.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts
from dpmask.kernels.keys import RowKeys
from dpmask.kernels.refinement.cells import Cells, cell_starts
from dpmask.kernels.refinement.dropped import places_among
from dpmask.kernels.refinement.grouping import Integers, Values, node_keys


class KnownCells(NamedTuple):
    """The cells of all groups, and the masked values that they were counted with."""

    values: tuple[Values, ...]
    cells: Cells


class Refinement(NamedTuple):
    """The last refinement: the place of its attribute, the node and its children."""

    place: int
    node: int
    children: tuple[int, ...]


def largest_child(known: KnownCells, last: Refinement, now: Values) -> tuple[int, int]:
    """The child with the most records, by the cells before, and how often these are counted.

    ``now`` are the attribute's values after the refinement.
    """
    before, nodes = known.values[last.place], known.cells.nodes[:, last.place]
    first = cell_starts(known.cells.nodes, known.values)[0][nodes == last.node, last.place]
    cells = known.cells.counts[first[:, None] + np.arange(before.widths[last.node])]
    sizes = cells.sum(axis=(0, *range(2, cells.ndim)))
    below = before.nodes == last.node
    slots = [np.unique(before.slots[below & (now.nodes == child)]) for child in last.children]
    counts = [int(sizes[some].sum()) for some in slots]
    most = int(np.argmax(counts))
    return last.children[most], counts[most]


def only_place(values: Sequence[Values], place: int) -> tuple[Values, ...]:
    """The values where nothing but one attribute can be refined."""
    return tuple(
        one if number == place else one._replace(widths=np.zeros_like(one.widths)) for number, one in enumerate(values)
    )


def with_derived(
    known: KnownCells,
    last: Refinement,
    derived: int,
    values: tuple[Values, ...],
    counted: Cells,
    own: Cells | None = None,
) -> tuple[Cells, KnownCells]:
    """The cells of all groups that changed, and of all groups.

    ``counted``: the groups of all children but the ``derived`` one. ``own``: the refined attribute's cells of that one,
    if it has any.
    """
    before = cell_starts(known.cells.nodes, known.values)[0]
    parent = known.cells.nodes[:, last.place] == last.node
    child = _of_child(known, before, last, derived, values[last.place])
    rest = _moved(known, before, np.flatnonzero(~parent), None, values)
    largest = _moved(known, before, np.flatnonzero(child > 0), (last.place, derived), values)
    starts, _ = cell_starts(largest.nodes, values)
    widths = _widths(largest.nodes, values)
    _take_off(largest, starts, widths, last, values, counted)
    if own is not None:
        to = starts[_places(own.keys, largest.keys), last.place]
        width = values[last.place].widths[derived]
        largest.counts[to[:, None] + np.arange(width)] = own.counts.reshape(len(to), width, *own.counts.shape[1:])
    changed = _together(counted, largest)
    return changed, KnownCells(values, _together(rest, changed))


def _of_child(known: KnownCells, before: Counts, last: Refinement, derived: int, now: Values) -> Counts:
    """How often the records of each group are counted that are in the child now."""
    old = known.values[last.place]
    slots = np.unique(old.slots[(old.nodes == last.node) & (now.nodes == derived)])
    found = np.zeros(len(before), np.int64)
    parents = np.flatnonzero(known.cells.nodes[:, last.place] == last.node)
    cells = known.cells.counts[before[parents, last.place, None] + slots]
    found[parents] = cells.sum(axis=tuple(range(1, cells.ndim)))
    return found


def _moved(
    known: KnownCells,
    before: Counts,
    groups: NDArray[np.intp],
    to: tuple[int, int] | None,
    values: Sequence[Values],
) -> Cells:
    """Some groups by the values that they have now; where an attribute has another node, ``to``, its cells are 0."""
    nodes, keys = known.cells.nodes[groups], known.cells.keys.at(groups)
    if to is not None:
        nodes[:, to[0]] = to[1]
        keys = node_keys(nodes)
    starts, size = cell_starts(nodes, values)
    widths = _widths(nodes, values)
    if to is not None:
        widths[:, to[0]] = 0
    counts = np.zeros((size, *known.cells.counts.shape[1:]), np.int64)
    counts[_cells(starts, widths)] = known.cells.counts[_cells(before[groups], widths)]
    return Cells(keys, nodes, counts)


def _take_off(
    largest: Cells, starts: Counts, widths: Counts, last: Refinement, values: Sequence[Values], counted: Cells
) -> None:
    """Less the cells of the other children; those of the refined attribute are no cells of the groups before."""
    theirs, _ = cell_starts(counted.nodes, values)
    for child in last.children:
        groups = np.flatnonzero(counted.nodes[:, last.place] == child)
        nodes = counted.nodes[groups]
        if not len(groups) or not len(largest.nodes):
            continue
        nodes[:, last.place] = largest.nodes[0, last.place]
        to = _places(node_keys(nodes), largest.keys)
        groups, to = groups[to >= 0], to[to >= 0]
        some = widths[to]
        some[:, last.place] = 0
        largest.counts[_cells(starts[to], some)] -= counted.counts[_cells(theirs[groups], some)]


def _widths(nodes: Integers, values: Sequence[Values]) -> Counts:
    """How many cells each attribute of each group has."""
    found = np.empty(nodes.shape, np.int64)
    for place, one in enumerate(values):
        found[:, place] = one.widths[nodes[:, place]]
    return found


def _cells(starts: Counts, widths: Counts) -> Counts:
    """The numbers of all cells that begin so, each as many as wide."""
    starts, widths = starts.ravel(), widths.ravel()
    within = np.arange(widths.sum()) - np.repeat(np.cumsum(widths) - widths, widths)
    return np.repeat(starts, widths) + within


def _places(keys: RowKeys, others: RowKeys) -> Counts:
    """Where each key stands among others, -1 for one that does not."""
    order = np.argsort(others.first)
    found = places_among(keys, others.at(order))
    return np.where(found < 0, -1, order[found] if len(order) else -1)


def _together(left: Cells, right: Cells) -> Cells:
    """The cells of different groups."""
    return Cells(
        RowKeys(*(np.concatenate(pair) for pair in zip(left.keys, right.keys, strict=True))),
        np.concatenate([left.nodes, right.nodes]),
        np.concatenate([left.counts, right.counts]),
    )
