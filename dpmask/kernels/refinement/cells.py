"""The cells that a finer value would cut groups of records (grouping.py) into.

For every attribute and code there is the node it is masked to now and its slot: which child of that node it would fall
to. A cell is (group, attribute, slot); its count is how many records the group would have there, or, with sensitive
columns, how many with each of their codes. Counts add over blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Flags
from dpmask.kernels.compile import compiled, read_only
from dpmask.kernels.keys import RowKeys, grouped
from dpmask.kernels.refinement.grouping import Codes, Grouped, Integers, Values, node_keys

NOBODY = np.iinfo(np.int64).max
"""The smallest of no cells."""

_TILE = 1 << 11  # rows whose numbers stay in the processor's cache from attribute to attribute
_FEW = 1 << 16  # counts that are in the cache also if they are there twice


class Sensitive(NamedTuple):
    """Sensitive columns of a block's codes, where the counts of each begin, and how many counts a cell has."""

    columns: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()
    width: int = 0

    @property
    def counts(self) -> int:
        """Numbers that a cell has."""
        return max(self.width, 1)


NOTHING_SENSITIVE = Sensitive()


class Cells(NamedTuple):
    """Counts of the cells of some groups, one group after another; attributes follow each other inside a group.

    With sensitive columns a cell has a row of counts, one for each code.
    """

    keys: RowKeys
    nodes: Integers
    counts: Counts


def cell_starts(nodes: Integers, values: Sequence[Values]) -> tuple[Counts, int]:
    """Where the cells of each group's attributes begin (groups x attributes), -1 for none; and their number."""
    widths = np.empty(nodes.shape, np.int64)
    for place, one in enumerate(values):
        widths[:, place] = one.widths[nodes[:, place]]
    ends = np.cumsum(widths.ravel()).reshape(nodes.shape)
    return np.where(widths > 0, ends - widths, -1), int(widths.sum())


class CellGroups(NamedTuple):
    """Groups of a block whose cells are counted, by number, and the masked values that these are of."""

    groups: NDArray[np.intp]
    values: Sequence[Values]


def count_cells(
    codes: Codes,
    columns: Sequence[int],
    groups: Grouped,
    counted: CellGroups,
    sensitive: Sensitive = NOTHING_SENSITIVE,
    own: CellGroups | None = None,
) -> list[Cells]:
    """The cells of some groups of a block; and, in the same pass, of ``own`` groups, of which one attribute has any."""
    parts = [counted] if own is None else [counted, own]
    taken, nodes, keys = zip(*(_by_key(groups, one.groups) for one in parts), strict=True)
    found = [cell_starts(of, one.values) for of, one in zip(nodes, parts, strict=True)]
    sizes = [size for _, size in found]
    starts = np.concatenate(
        [np.where(each < 0, sum(sizes), each + sum(sizes[:n])) for n, (each, _) in enumerate(found)]
    )
    there: list[Flags] = [np.any(each >= 0, axis=0) for each, _ in found]
    live: list[int] = np.flatnonzero(np.any(there, axis=0)).tolist()
    slots = [counted.values[number].slots for number in live]
    widest = max((int(one.max(initial=0)) + 1 for one in slots), default=0)
    width, behind = sensitive.counts, sum(sizes) + widest  # what is no cell is counted behind the others
    copies = 2 if behind * width <= _FEW else 1
    counts = np.zeros((copies, behind, width), np.int32)
    if live:
        room = np.empty((3, _TILE + 1), np.int32)
        place = np.full(1 + len(groups.nodes), -1, np.int32)  # the first one is that of rows in no group
        place[1 + np.concatenate(taken)] = np.arange(len(starts))
        _count(
            read_only(codes),
            read_only(groups.rows),
            place,
            len(counted.groups),
            np.ascontiguousarray(starts[:, live].T * width),
            np.array([columns[number] for number in live], np.int64),
            np.array([there[-1][number] for number in live]),
            np.cumsum([0, *map(len, slots)]),
            np.concatenate(slots) * np.int64(width),
            np.array(sensitive.columns, np.int64),
            np.array(sensitive.offsets or (0,), np.int64),
            room[0],
            room[1],
            room[2],
            copies,
            counts.reshape(-1),
        )
    sums = counts.sum(axis=0, dtype=np.int64) if sensitive.width else counts.sum(axis=0, dtype=np.int64)[:, 0]
    ends = np.cumsum([0, *sizes]).tolist()
    places = zip(keys, nodes, pairwise(ends), strict=True)
    return [Cells(key, of, sums[low:high]) for key, of, (low, high) in places]


def _by_key(groups: Grouped, some: NDArray[np.intp]) -> tuple[NDArray[np.intp], Integers, RowKeys]:
    """Some groups in the order of their keys, which is the same in any block; their nodes, and the keys."""
    keys = node_keys(groups.nodes[some])
    order = np.argsort(keys.first, kind="stable")
    return some[order], groups.nodes[some[order]], keys.at(order)


@compiled(reassociate=False, contract=False)
def _count(
    codes: Codes,
    rows: Integers,
    place: Integers,
    whole: int,
    starts: Counts,
    columns: Counts,
    own: Flags,
    ends: Counts,
    slots: Counts,
    sensitive: Counts,
    offsets: Counts,
    noted: Integers,
    group: Integers,
    beside: Integers,
    copies: int,
    counts: Integers,
) -> None:
    """Count rows by tiles: what is known of a row stays in the cache from attribute to attribute.

    Rows of the first groups, the ``whole`` ones, are noted from the front, those of others from the back: they are
    counted in their ``own`` attribute only. Rows are counted in several places in turn: many neighbours are of one
    cell, and one need not wait for the other.
    """
    size, tile = len(counts) // copies, len(noted) - 1
    for low in range(0, len(rows), tile):
        front, back = 0, tile
        for k in range(low, min(low + tile, len(rows))):
            found = place[np.uint64(1 + rows[k])]
            noted[np.uint64(front)], group[np.uint64(front)] = k, found
            noted[np.uint64(back)], group[np.uint64(back)] = k, found
            front += (found >= 0) & (found < whole)
            back -= found >= whole
        for s in range(len(offsets)):
            for first, last in ((0, front), (back + 1, tile + 1)):
                for i in range(first, last):
                    beside[i] = (i & (copies - 1)) * size + offsets[s]
                if len(sensitive) > 0:
                    column = codes[sensitive[s]]
                    for i in range(first, last):
                        beside[i] += column[np.uint64(noted[i])]
            for a in range(len(columns)):
                tables = starts[a], slots[ends[a] : ends[a + 1]], codes[columns[a]], noted, group, beside
                _add(*tables, 0, front, counts)
                if own[a]:
                    _add(*tables, back + 1, tile + 1, counts)


@compiled(part=True, reassociate=False, contract=False)
def _add(
    starts: Counts,
    slots: Counts,
    column: Codes,
    noted: Integers,
    group: Integers,
    beside: Integers,
    first: int,
    last: int,
    counts: Integers,
) -> None:
    """Count some rows of a tile in one attribute; no number is negative, and no index need be checked for it."""
    for i in range(first, last):
        code = column[np.uint64(noted[i])]
        cell = starts[np.uint64(group[i])] + slots[np.uint64(code)] + beside[i]
        counts[np.uint64(cell)] += 1


def merge_cells(left: Cells, right: Cells, values: Sequence[Values]) -> Cells:
    """Both together: counts of equal groups add up. Mostly all blocks have the same groups, in the order of keys."""
    if len(left.nodes) == len(right.nodes) and all(map(np.array_equal, left.keys, right.keys)):
        return left._replace(counts=left.counts + right.counts)
    keys = RowKeys(*(np.concatenate(pair) for pair in zip(left.keys, right.keys, strict=True)))
    nodes = np.concatenate([left.nodes, right.nodes])
    found = grouped(keys)
    firsts = found.order[found.starts]
    starts, size = cell_starts(nodes[firsts], values)
    old, _ = cell_starts(nodes, values)
    lengths = sum(one.widths[nodes[:, place]] for place, one in enumerate(values))
    at, given = _first_cell(starts)[found.numbers()], _first_cell(old)
    places = np.repeat(at - given, lengths) + np.arange(lengths.sum())
    counts = np.zeros((size, *left.counts.shape[1:]), np.int64)
    for part, here in ((left.counts, places[: len(left.counts)]), (right.counts, places[len(left.counts) :])):
        counts[here] += part  # a group is there once in each
    return Cells(keys.at(firsts), nodes[firsts], counts)


def without_place(cells: Cells, values: Sequence[Values], place: int) -> Cells:
    """The cells without one attribute: counts of groups that differ in nothing else add up."""
    starts, _ = cell_starts(cells.nodes, values)
    widths = values[place].widths[cells.nodes[:, place]]
    first = np.where(starts[:, place] < 0, 0, starts[:, place])
    gone = np.zeros(len(cells.counts) + 1, np.int64)
    np.add.at(gone, first[widths > 0], 1)
    np.add.at(gone, (first + widths)[widths > 0], -1)
    nodes = np.delete(cells.nodes, place, axis=1)
    left = [one for number, one in enumerate(values) if number != place]
    groups = grouped(node_keys(nodes))
    firsts = groups.order[groups.starts]
    at, size = cell_starts(nodes[firsts], left)
    old, _ = cell_starts(nodes, left)
    lengths = np.sum([one.widths[nodes[:, number]] for number, one in enumerate(left)], axis=0)
    places = np.repeat(_first_cell(at)[groups.numbers()] - _first_cell(old), lengths) + np.arange(lengths.sum())
    counts = np.zeros((size, *cells.counts.shape[1:]), np.int64)
    np.add.at(counts, places, cells.counts[np.cumsum(gone[:-1]) == 0])
    return Cells(node_keys(nodes[firsts]), nodes[firsts], counts)


def _first_cell(starts: Counts) -> Counts:
    """Where each group's cells begin; anything for a group that has none."""
    return np.where(starts < 0, NOBODY, starts).min(axis=1, initial=NOBODY)


def node_cells(cells: Cells, values: Sequence[Values]) -> Iterator[tuple[tuple[int, int], bool, Counts]]:
    """For every (attribute, node) whether it is apart, and its cells (groups x slots x codes), some groups at a time.

    Without sensitive columns there is no third axis.
    """
    starts, _ = cell_starts(cells.nodes, values)
    for place, one in enumerate(values):
        for node in np.unique(cells.nodes[starts[:, place] >= 0, place]).tolist():
            first = starts[cells.nodes[:, place] == node, place]
            width = int(one.widths[node])
            step = max(1, (1 << 22) // (width * (cells.counts.size // max(len(cells.counts), 1) or 1)))
            for low in range(0, len(first), step):
                yield (place, node), one.apart, cells.counts[first[low : low + step, None] + np.arange(width)]
