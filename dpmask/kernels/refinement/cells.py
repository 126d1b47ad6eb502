"""Groups of records that share their masked values, and the cells that a finer value would cut them into.

A block is small codes, attributes x rows. A masked value is a node of its attribute's tree, a group the rows with equal
nodes in all attributes of one quasi-identifier. For every attribute and code there is the node it is masked to now and
its slot: which child of that node it would fall to. A cell is (group, attribute, slot); its count is how many records
the group would have there, or, with sensitive columns, how many with each of their codes. Counts add over blocks, and
groups of different blocks are the same when their keys are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts
from dpmask.kernels.compile import compiled, read_only
from dpmask.kernels.keys import RowKeys, grouped, new_keys, with_word

Codes = NDArray[np.uint16]
Integers = NDArray[np.int32]

NOBODY = np.iinfo(np.int64).max
"""The smallest of no cells."""


class Values(NamedTuple):
    """One attribute as it is masked now: for each code its node and slot, for each node how many slots it has.

    A node that cannot be refined has none. An ``apart`` attribute (suppression) has one candidate for each slot of a
    node, which takes that slot from all others; otherwise a node has one candidate, all slots.
    """

    nodes: NDArray[np.int32]
    slots: NDArray[np.int32]
    widths: NDArray[np.int64]
    apart: bool


class Grouped(NamedTuple):
    """The groups of one block: the number of each row's, -1 for none, and rows in an order that keeps groups together.

    ``starts`` and ``sizes`` say where each group's rows begin in it and how many they are, ``nodes`` (groups x
    attributes) what they are masked to.
    """

    rows: Integers
    order: Integers
    starts: Counts
    sizes: Counts
    nodes: Integers


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


def group_rows(codes: Codes, columns: Sequence[int], values: Sequence[Values]) -> Grouped:
    """The groups of a block, from nothing but codes and the nodes they are masked to."""
    nodes = [one.nodes[codes[column]] for column, one in zip(columns, values, strict=True)]
    found = grouped(keys_of(nodes, codes.shape[1]))
    firsts = found.order[found.starts]
    table = np.empty((len(firsts), len(nodes)), np.int32)
    for place, each in enumerate(nodes):
        table[:, place] = each[firsts]
    order = np.empty(codes.shape[1], np.int32)
    starts = found.starts.astype(np.int64)
    numbers = found.numbers().astype(np.int32)
    _sort_by_group(numbers, starts.copy(), order)
    return Grouped(numbers, order, starts, np.diff(starts, append=codes.shape[1]), table)


@compiled(reassociate=False, contract=False)
def _sort_by_group(numbers: Integers, nexts: Counts, order: Integers) -> None:
    for k in range(len(numbers)):
        group = numbers[k]
        order[nexts[group]] = k
        nexts[group] += 1


def split_groups(
    groups: Grouped, column: Codes, place: int, node: int, children: Sequence[int], now: Values
) -> Grouped:
    """The groups after one attribute's ``node`` was refined to its children; ``column`` has the attribute's codes.

    Only rows of groups with the node are read. One child of a group gets its number, the others new ones.
    """
    affected = np.flatnonzero(groups.nodes[:, place] == node)
    if not len(affected):
        return groups
    child = np.zeros(len(now.widths), np.int64)
    child[list(children)] = np.arange(len(children))
    order, counts = groups.order.copy(), np.zeros((len(affected), len(children)), np.int64)
    sizes = groups.sizes[affected]
    kept, nexts = np.empty(sizes.max(), np.int32), np.empty(len(children), np.int64)
    _split(order, groups.starts[affected], sizes, read_only(column), child[now.nodes], counts, kept, nexts)
    begins = groups.starts[affected][:, None] + np.cumsum(counts, axis=1) - counts
    new = counts > 0
    first = new.argmax(axis=1)
    new[np.arange(len(affected)), first] = False
    parents, kinds = np.nonzero(new)
    starts, sizes, nodes = groups.starts.copy(), groups.sizes.copy(), groups.nodes.copy()
    starts[affected], sizes[affected] = begins[np.arange(len(affected)), first], counts[np.arange(len(affected)), first]
    nodes[affected, place] = np.asarray(children)[first]
    below = groups.nodes[affected[parents]]
    below[:, place] = np.asarray(children)[kinds]
    rows, (begins, counts) = groups.rows.copy(), (begins[parents, kinds], counts[parents, kinds])
    _number(order, begins, counts, len(starts), rows)
    return Grouped(
        rows,
        order,
        np.concatenate([starts, begins]),
        np.concatenate([sizes, counts]),
        np.concatenate([nodes, below]),
    )


@compiled(reassociate=False, contract=False)
def _split(
    order: Integers,
    starts: Counts,
    sizes: Counts,
    column: Codes,
    child: Counts,
    counts: Counts,
    kept: Integers,
    nexts: Counts,
) -> None:
    """Put the rows of each child of some groups together, in their order; the last two are room for it."""
    for group in range(len(starts)):
        begin, size = starts[group], sizes[group]
        for k in range(size):
            counts[group, child[column[order[begin + k]]]] += 1
        nexts[0] = 0
        for kind in range(1, len(nexts)):
            nexts[kind] = nexts[kind - 1] + counts[group, kind - 1]
        for k in range(size):
            row = order[begin + k]
            kind = child[column[row]]
            kept[nexts[kind]] = row
            nexts[kind] += 1
        for k in range(size):
            order[begin + k] = kept[k]


@compiled(reassociate=False, contract=False)
def _number(order: Integers, starts: Counts, sizes: Counts, first: int, rows: Integers) -> None:
    """Give the rows of new groups their numbers."""
    for group in range(len(starts)):
        for k in range(starts[group], starts[group] + sizes[group]):
            rows[order[k]] = first + group


def cell_starts(nodes: Integers, values: Sequence[Values]) -> tuple[Counts, int]:
    """Where the cells of each group's attributes begin (groups x attributes), -1 for none; and their number."""
    widths = np.empty(nodes.shape, np.int64)
    for place, one in enumerate(values):
        widths[:, place] = one.widths[nodes[:, place]]
    ends = np.cumsum(widths.ravel()).reshape(nodes.shape)
    return np.where(widths > 0, ends - widths, -1), int(widths.sum())


def count_cells(
    codes: Codes,
    columns: Sequence[int],
    groups: Grouped,
    counted: NDArray[np.intp],
    values: Sequence[Values],
    sparse: float,
    sensitive: Sensitive = NOTHING_SENSITIVE,
) -> Cells:
    """The cells of some groups of a block; group by group where they have less than this share of its rows."""
    nodes = groups.nodes[counted]
    starts, size = cell_starts(nodes, values)
    counts = np.zeros((size, sensitive.width) if sensitive.width else size, np.int64)
    live: list[int] = np.flatnonzero((starts >= 0).any(axis=0)).tolist()
    ends = np.cumsum([0, *(len(values[number].slots) for number in live)])
    slots = np.concatenate([values[number].slots for number in live]) if len(live) else np.empty(0, np.int32)
    taken = np.array([columns[number] for number in live], np.int64)
    cells = np.ascontiguousarray(starts[:, live]), taken, ends, slots
    begins, sizes = groups.starts[counted], groups.sizes[counted]
    beside = np.array(sensitive.columns, np.int64), np.array(sensitive.offsets, np.int64)
    if sizes.sum() < sparse * codes.shape[1]:
        some = read_only(codes), read_only(groups.order), begins, sizes, *cells
        _count_codes(*some, *beside, counts) if sensitive.width else _count(*some, counts)
    else:
        place = np.full(len(groups.nodes) + 1, -1)
        place[counted] = np.arange(len(counted))
        every = read_only(codes), read_only(groups.rows), place, *cells
        _count_all_codes(*every, *beside, counts) if sensitive.width else _count_all(*every, counts)
    return Cells(node_keys(nodes), nodes, counts)


@compiled(reassociate=False, contract=False)
def _count(
    codes: Codes,
    order: Integers,
    begins: Counts,
    sizes: Counts,
    starts: Counts,
    columns: Counts,
    ends: Counts,
    slots: Integers,
    counts: Counts,
) -> None:
    """Count some groups, each by itself."""
    for group in range(len(begins)):
        for k in range(begins[group], begins[group] + sizes[group]):
            row = order[k]
            for a in range(len(columns)):
                start = starts[group, a]
                if start >= 0:
                    counts[start + slots[ends[a] + codes[columns[a], row]]] += 1


@compiled(reassociate=False, contract=False)
def _count_all(
    codes: Codes,
    rows: Integers,
    place: Counts,
    starts: Counts,
    columns: Counts,
    ends: Counts,
    slots: Integers,
    counts: Counts,
) -> None:
    """The same from row to row: quicker where it is most of them, as memory is read in its order."""
    for k in range(len(rows)):
        group = place[rows[k]]
        if group < 0:
            continue
        for a in range(len(columns)):
            start = starts[group, a]
            if start >= 0:
                counts[start + slots[ends[a] + codes[columns[a], k]]] += 1


@compiled(reassociate=False, contract=False)
def _count_codes(
    codes: Codes,
    order: Integers,
    begins: Counts,
    sizes: Counts,
    starts: Counts,
    columns: Counts,
    ends: Counts,
    slots: Integers,
    sensitive: Counts,
    offsets: Counts,
    counts: Counts,
) -> None:
    """``_count`` with sensitive columns: a row of counts for each cell."""
    for group in range(len(begins)):
        for k in range(begins[group], begins[group] + sizes[group]):
            row = order[k]
            for a in range(len(columns)):
                start = starts[group, a]
                if start >= 0:
                    cell = start + slots[ends[a] + codes[columns[a], row]]
                    for s in range(len(sensitive)):
                        counts[cell, offsets[s] + codes[sensitive[s], row]] += 1


@compiled(reassociate=False, contract=False)
def _count_all_codes(
    codes: Codes,
    rows: Integers,
    place: Counts,
    starts: Counts,
    columns: Counts,
    ends: Counts,
    slots: Integers,
    sensitive: Counts,
    offsets: Counts,
    counts: Counts,
) -> None:
    """``_count_all`` with sensitive columns."""
    for k in range(len(rows)):
        group = place[rows[k]]
        if group < 0:
            continue
        for a in range(len(columns)):
            start = starts[group, a]
            if start >= 0:
                cell = start + slots[ends[a] + codes[columns[a], k]]
                for s in range(len(sensitive)):
                    counts[cell, offsets[s] + codes[sensitive[s], k]] += 1


def node_keys(nodes: Integers) -> RowKeys:
    """The keys of groups, the same in any block."""
    return keys_of(list(nodes.T), len(nodes))


def keys_of(nodes: Sequence[Integers], rows: int) -> RowKeys:
    """A key for each row of some attributes' nodes."""
    keys = new_keys(rows)
    for each in nodes:
        keys = with_word(keys, each.astype(np.uint64))
    return keys


def merge_cells(left: Cells, right: Cells, values: Sequence[Values]) -> Cells:
    """Both together: counts of equal groups add up."""
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
    first: Counts = np.where(starts < 0, NOBODY, starts).min(axis=1, initial=NOBODY)
    return first


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
