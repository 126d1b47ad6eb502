"""A balanced k-d tree over one block's masked records: equal rows collapsed, leaves of 64, tight boxes.

A masked record is a box: a point where the value is a number, a range where it was generalised. Leaves keep each column
contiguous, so that a distance to all of a leaf's rows is one vector loop a column. Splits are at the median of the
column with the largest spread, told from a few rows; boxes are then taken from the leaves upwards, as tight as they
can be. Built in O(n log n), about 0.5 CPU seconds for a million rows of 5 columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.compile import bits_of, compiled, plain

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAF = 64
DEPTH = 64  # more than any tree has levels
_LOOK = 128  # rows that tell which column spreads most

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


class RecordTree(NamedTuple):
    """Distinct rows in leaves, and the nodes in preorder: the left child of node i is i + 1, the right one right[i]."""

    low: Floats  # leaves x columns x LEAF; nothing is in reach of what fills the last one
    high: Floats  # leaves x ranges x LEAF: where a range ends; the other columns are points
    counts: Integers  # leaves x LEAF, how many records a row stands for
    box_low: Floats  # nodes x columns
    box_high: Floats
    right: Integers  # nodes; for a leaf -1 - its number


def build_tree(low: Floats, high: Floats, scale: Floats, cap: Floats, *, collapse: bool = True) -> RecordTree:
    """The tree of records given as columns x rows; the last ``len(high)`` columns are ranges from low to high.

    What a range's unit is worth, and at most, is told by ``scale`` and ``cap``: splits are made where distances are.
    """
    columns, rows = low.shape
    points = columns - len(high)
    low, high = plain(low), plain(high)
    firsts, counts = _distinct(low, high) if collapse else _each(rows)
    order = firsts.copy()
    leaves = max(1, -(-len(order) // LEAF))
    worth = np.concatenate([np.ones(points), scale]), np.concatenate([np.full(points, np.inf), cap])
    right = _split(low, *worth, order, leaves)
    times = np.zeros(rows, np.int64)
    times[firsts] = counts
    weights = np.zeros(leaves * LEAF, np.int64)
    weights[: len(order)] = times[order]
    starts, ends = _tiles(low, order, leaves, np.inf), _tiles(high, order, leaves, -np.inf)
    boxes = _boxes(starts, ends, weights.reshape(leaves, LEAF), right, points)
    return RecordTree(starts, ends, weights.reshape(leaves, LEAF), *boxes, right)


def _each(rows: int) -> tuple[Integers, Integers]:
    return np.arange(rows), np.ones(rows, np.int64)


@compiled(part=True, reassociate=False)
def _mix(hashes: NDArray[np.uint64], columns: Floats) -> None:
    for column in range(len(columns)):
        values = columns[column]
        for row in range(len(hashes)):
            mixed = (hashes[row] ^ bits_of(values[row])) * _MIX
            hashes[row] = mixed ^ (mixed >> _SHIFT)


@compiled(reassociate=False)
def _distinct(low: Floats, high: Floats) -> tuple[Integers, Integers]:
    """The first of each set of equal rows, and how many they are."""
    rows = low.shape[1]
    hashes = np.zeros(rows, np.uint64)
    _mix(hashes, low)
    _mix(hashes, high)
    bits = 4
    while 1 << bits < 2 * rows:
        bits += 1
    size = 1 << bits
    mask, above = np.uint64(size - 1), np.uint64(64 - bits)
    table = np.full(size, -1, np.int64)
    firsts = np.empty(rows, np.int64)
    counts = np.zeros(rows, np.int64)
    found = 0
    for row in range(rows):
        slot = (hashes[row] * _MIX) >> above  # the upper bits: a round number has no lower ones
        while True:
            other = table[slot]
            if other < 0:
                table[slot] = found
                firsts[found] = row
                counts[found] = 1
                found += 1
                break
            first = firsts[other]
            if hashes[first] == hashes[row] and _equal(low, first, row) and _equal(high, first, row):
                counts[other] += 1
                break
            slot = (slot + np.uint64(1)) & mask
    return firsts[:found].copy(), counts[:found].copy()


@compiled(part=True, reassociate=False)
def _equal(columns: Floats, one: int, other: int) -> bool:
    for column in range(columns.shape[0]):  # noqa: SIM110 - numba knows no all()
        if columns[column, one] != columns[column, other]:
            return False
    return True


@compiled(reassociate=False)
def _split(columns: Floats, scale: Floats, cap: Floats, order: Integers, leaves: int) -> Integers:
    """Put ``order`` in leaf order; where each node's right child is, leaves as -1 - their number."""
    right = np.empty(2 * leaves - 1, np.int64)
    keys = np.empty(len(order))
    nodes, firsts, ends = np.empty(DEPTH, np.int64), np.empty(DEPTH, np.int64), np.empty(DEPTH, np.int64)
    nodes[0], firsts[0], ends[0] = 0, 0, leaves
    waiting = 1
    while waiting:
        waiting -= 1
        node, first, end = nodes[waiting], firsts[waiting], ends[waiting]
        if end - first == 1:
            right[node] = -1 - first
            continue
        middle = (first + end) // 2
        start, stop = first * LEAF, min(end * LEAF, len(order))
        column = _widest(columns, scale, cap, order[start:stop])
        for at in range(start, stop):
            keys[at] = columns[column, order[at]]
        _select(keys[start:stop], order[start:stop], middle * LEAF - start)
        right[node] = node + 2 * (middle - first)
        nodes[waiting], firsts[waiting], ends[waiting] = node + 1, first, middle
        waiting += 1
        nodes[waiting], firsts[waiting], ends[waiting] = right[node], middle, end
        waiting += 1
    return right


@compiled(part=True, reassociate=False)
def _widest(columns: Floats, scale: Floats, cap: Floats, order: Integers) -> int:
    """The column with the largest variance among a few rows spread over these, as far as it counts in a distance."""
    step = max(1, len(order) // _LOOK)
    seen = (len(order) + step - 1) // step
    best, widest = 0, -1.0
    for column in range(len(columns)):
        total = squares = 0.0
        center = columns[column, order[0]]
        for at in range(0, len(order), step):
            value = (columns[column, order[at]] - center) * scale[column]
            value = max(min(value, cap[column]), -cap[column])
            total += value
            squares += value * value
        variance = squares - total * total / seen
        if variance > widest:
            best, widest = column, variance
    return best


@compiled(part=True, reassociate=False)
def _select(keys: Floats, order: Integers, middle: int) -> None:
    """Quickselect (Hoare): afterwards no key before ``middle`` is larger than any from there on."""
    low, high = 0, len(keys) - 1
    while low < high:
        a, b, c = keys[low], keys[(low + high) // 2], keys[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


def _tiles(columns: Floats, order: Integers, leaves: int, filling: float) -> Floats:
    """The columns as leaves x columns x LEAF."""
    tiles = np.empty((leaves, len(columns), LEAF))
    ordered = np.full(leaves * LEAF, filling)
    for number, column in enumerate(columns):
        ordered[: len(order)] = column[order]
        tiles[:, number] = ordered.reshape(leaves, LEAF)
    return tiles


@compiled(reassociate=False)
def _boxes(low: Floats, high: Floats, counts: Integers, right: Integers, points: int) -> tuple[Floats, Floats]:
    """The box around the records of each node: children come after their parent, so from the last node to the first."""
    nodes, width = len(right), low.shape[1]
    box_low = np.full((nodes, width), np.inf)
    box_high = np.full((nodes, width), -np.inf)
    for node in range(nodes - 1, -1, -1):
        if right[node] >= 0:
            for column in range(width):
                for child in (node + 1, right[node]):
                    box_low[node, column] = min(box_low[node, column], box_low[child, column])
                    box_high[node, column] = max(box_high[node, column], box_high[child, column])
            continue
        leaf = -1 - right[node]
        for column in range(width):
            for row in range(LEAF):
                if counts[leaf, row]:
                    end = low[leaf, column, row] if column < points else high[leaf, column - points, row]
                    box_low[node, column] = min(box_low[node, column], low[leaf, column, row])
                    box_high[node, column] = max(box_high[node, column], end)
    return box_low, box_high
