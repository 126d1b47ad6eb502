"""Cells of many small quasi-identifiers over the same attributes, as all sets of four of twelve: no groups are kept.

For each attribute a row's masked value and the child it would fall to are one small number, found once for all sets. A
row's numbers in the attributes of a set are one place; rows are counted by place, and places, which are few, make the
cells. What comes of it are the cells that ``count_cells`` finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts
from dpmask.kernels.compile import compiled, read_only
from dpmask.kernels.refinement.cells import Cells, Sensitive, cell_starts
from dpmask.kernels.refinement.dropped import KeyedSizes
from dpmask.kernels.refinement.grouping import Codes, Integers, Values, node_keys

_DENSE = 8  # entries of a table of places for each row, at most, before the places that occur are sorted


class _Fine(NamedTuple):
    """An attribute's values and children as numbers: for each code its number, for each number its node and slot."""

    codes: Codes
    nodes: Integers
    slots: Integers


def _fine(values: Values, codes: Codes) -> _Fine:
    """The numbers of these rows' codes; only those that occur get one."""
    slots = np.where(values.widths[values.nodes] > 0, values.slots, 0)
    pairs, inverse = np.unique(values.nodes.astype(np.int64) << 32 | slots, return_inverse=True)
    there = np.zeros(len(pairs), np.bool_)
    there[inverse[np.bincount(codes, minlength=len(inverse)) > 0]] = True
    numbers = (np.cumsum(there) - 1).astype(np.uint16)[inverse]
    found = pairs[there]
    return _Fine(numbers[codes], (found >> 32).astype(np.int32), (found & 0xFFFFFFFF).astype(np.int32))


class JointRows:
    """Some rows of a block, whose numbers are found once for each attribute."""

    def __init__(self, codes: Codes, rows: NDArray[np.intp] | None = None) -> None:
        self.codes = codes if rows is None else np.ascontiguousarray(codes[:, rows])
        self.found: dict[int, _Fine] = {}

    def sizes(self, columns: Sequence[int], values: Sequence[Values], sensitive: Sensitive) -> KeyedSizes:
        """The groups of one set of attributes."""
        fine = [self._of(column, one) for column, one in zip(columns, values, strict=True)]
        _, counts, groups, group = self._groups(fine, sensitive)
        sizes = np.zeros((len(groups), counts.shape[1]), np.int64)
        _add(read_only(counts), np.arange(len(counts)), group, sizes)
        return KeyedSizes(node_keys(groups), sizes if sensitive.width else sizes[:, 0])

    def cells(self, columns: Sequence[int], values: Sequence[Values], sensitive: Sensitive) -> Cells:
        """The cells of one set of attributes."""
        fine = [self._of(column, one) for column, one in zip(columns, values, strict=True)]
        numbers, counts, groups, group = self._groups(fine, sensitive)
        starts, size = cell_starts(groups, values)
        cells = np.zeros((size, counts.shape[1]), np.int64)
        for place, (one, each) in enumerate(zip(fine, numbers, strict=True)):
            live = np.flatnonzero(starts[group, place] >= 0)
            _add(read_only(counts), live, starts[group[live], place] + one.slots[each[live]], cells)
        return Cells(node_keys(groups), groups, cells if sensitive.width else cells[:, 0])

    def _groups(
        self, fine: Sequence[_Fine], sensitive: Sensitive
    ) -> tuple[Sequence[NDArray[np.intp]], Counts, Integers, Counts]:
        """The numbers of each place that occurs, its counts, the nodes of all groups, and the group of each place."""
        places, counts = self._counted(fine, sensitive)
        numbers = np.unravel_index(places, [len(one.nodes) for one in fine])
        nodes = np.array([one.nodes[each] for one, each in zip(fine, numbers, strict=True)], np.int32).T
        return numbers, counts, *_distinct(nodes)

    def _of(self, column: int, values: Values) -> _Fine:
        if column not in self.found:
            self.found[column] = _fine(values, self.codes[column])
        return self.found[column]

    def _counted(self, fine: Sequence[_Fine], sensitive: Sensitive) -> tuple[Counts, Counts]:
        """The places that occur, and the counts of each (places x codes)."""
        rows = self.codes.shape[1]
        at = np.zeros(rows, np.int64)
        size = 1
        for one in fine:
            _append(read_only(one.codes), len(one.nodes), at)
            size *= len(one.nodes)
        places = None
        if size * sensitive.counts > max(_DENSE * rows, 1 << 16):
            places, at = np.unique(at, return_inverse=True)
            size = len(places)
        counts = np.zeros((size, sensitive.counts), np.int64)
        beside = np.array(sensitive.columns, np.int64), np.array(sensitive.offsets, np.int64)
        _count_codes(read_only(self.codes), at, *beside, counts)
        if places is None:
            places = np.flatnonzero(counts.any(axis=1))
            counts = counts[places]
        return places, counts


def _distinct(nodes: Integers) -> tuple[Integers, Counts]:
    """The different rows of a table of nodes, and the number of each row's."""
    sizes = nodes.max(axis=0, initial=0).astype(np.int64) + 1
    place = np.zeros(len(nodes), np.int64)
    for column, size in zip(nodes.T, sizes, strict=True):
        _, place = np.unique(place * size + column, return_inverse=True)
    first = np.zeros(place.max(initial=-1) + 1, np.intp)
    first[place] = np.arange(len(place))
    return nodes[first], place


@compiled(reassociate=False, contract=False)
def _append(numbers: Codes, size: int, at: Counts) -> None:
    """One more attribute's number in each row's place."""
    for k in range(len(at)):
        at[k] = at[k] * size + numbers[k]


@compiled(reassociate=False, contract=False)
def _count_codes(codes: Codes, at: Counts, columns: Counts, offsets: Counts, counts: Counts) -> None:
    """Count the rows of each place, or those with each sensitive code."""
    for k in range(len(at)):
        if len(columns) == 0:
            counts[at[k], 0] += 1
        for s in range(len(columns)):
            counts[at[k], offsets[s] + codes[columns[s], k]] += 1


@compiled(reassociate=False, contract=False)
def _add(counts: Counts, rows: Counts, to: Counts, cells: Counts) -> None:
    """Add the counts of some places to a cell each."""
    for k in range(len(rows)):
        for s in range(counts.shape[1]):
            cells[to[k], s] += counts[rows[k], s]
