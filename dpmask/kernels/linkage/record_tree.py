"""A balanced k-d tree over one block's masked records: equal rows collapsed, leaves of 64, tight boxes.

A masked record is a box: a point where the value is a number, a range where it was generalised. Leaves keep each column
contiguous, so that a distance to all of a leaf's rows is one vector loop a column. Splits are at the median of the
column with the largest spread, told from a few rows; boxes are then taken from the leaves upwards, as tight as they
can be. Built in O(n log n), about 0.5 CPU seconds for a million rows of 5 columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.compile import compiled, plain
from dpmask.kernels.keys import float_keys, grouped

LEAF = 64
DEPTH = 64  # more than any tree has levels
_LOOK = 128  # rows that tell which column spreads most


class RecordTree(NamedTuple):
    """Distinct rows in leaves, and the nodes in preorder: the left child of node i is i + 1, the right one right[i]."""

    low: Floats  # leaves x columns x LEAF; nothing is in reach of what fills the last one
    high: Floats  # leaves x ranges x LEAF: where a range ends; the other columns are points
    counts: Integers  # leaves x LEAF, how many records a row stands for, or its number; 0 for what fills the last one
    box_low: Floats  # nodes x columns
    box_high: Floats
    right: Integers  # nodes; for a leaf -1 - its number

    def of_first(self, points: int, ranges: int) -> RecordTree:
        """The same rows and nodes, of each only its first points and ranges."""
        if (points + ranges, ranges) == (self.low.shape[1], len(self.high[0])):
            return self
        first_range = self.low.shape[1] - self.high.shape[1]
        kept = np.concatenate([np.arange(points), np.arange(first_range, first_range + ranges)])
        columns = (plain(self.low[:, kept]), plain(self.high[:, :ranges]))
        boxes = (plain(self.box_low[:, kept]), plain(self.box_high[:, kept]))
        return RecordTree(*columns, self.counts, *boxes, self.right)


def build_tree(
    low: Floats,
    high: Floats,
    scale: Floats,
    cap: Floats,
    *,
    collapse: bool = True,
    counts: Integers | None = None,
    numbers: Integers | None = None,
) -> RecordTree:
    """The tree of records given as columns x rows; the last ``len(high)`` columns are ranges from low to high.

    What a range's unit is worth, and at most, is told by ``scale`` and ``cap``: splits are made where distances are.
    Each row stands for one record, or for so many as ``counts`` say. With ``numbers``, from 1 on, no rows are collapsed
    and each has its number in place of a count.
    """
    columns, rows = low.shape
    points = columns - len(high)
    low, high = plain(low), plain(high)
    order, times = np.arange(rows), np.ones(rows, np.int64) if counts is None else counts.copy()
    if numbers is not None:
        times = numbers
    elif collapse:
        equal = grouped(float_keys(np.concatenate([low, high])))
        order, times[equal.firsts] = np.sort(equal.firsts), equal.sums(times)
    leaves = max(1, -(-len(order) // LEAF))
    worth = np.concatenate([np.ones(points), scale]), np.concatenate([np.full(points, np.inf), cap])
    right = np.empty(2 * leaves - 1, np.int64)
    _split(low, *worth, order, leaves, np.empty(len(order)), np.empty((3, DEPTH), np.int64), right)
    weights = np.zeros(leaves * LEAF, np.int64)
    weights[: len(order)] = times[order]
    starts, ends = tiles(low, order, leaves, np.inf), tiles(high, order, leaves, -np.inf)
    boxes = np.full((len(right), columns), np.inf), np.full((len(right), columns), -np.inf)
    _find_boxes(starts, ends, weights.reshape(leaves, LEAF), right, points, *boxes)
    return RecordTree(starts, ends, weights.reshape(leaves, LEAF), *boxes, right)


@compiled(reassociate=False)
def _split(
    columns: Floats,
    scale: Floats,
    cap: Floats,
    order: Integers,
    leaves: int,
    keys: Floats,
    stack: Integers,
    right: Integers,
) -> None:
    """Put ``order`` in leaf order; find where each node's right child is, leaves as -1 - their number.

    ``keys`` and ``stack`` are room for values, and for nodes that wait with their first and last leaves.
    """
    stack[0, 0], stack[1, 0], stack[2, 0] = 0, 0, leaves
    waiting = 1
    while waiting:
        waiting -= 1
        node, first, end = stack[0, waiting], stack[1, waiting], stack[2, waiting]
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
        stack[0, waiting], stack[1, waiting], stack[2, waiting] = node + 1, first, middle
        waiting += 1
        stack[0, waiting], stack[1, waiting], stack[2, waiting] = right[node], middle, end
        waiting += 1


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


def tiles(columns: Floats, order: Integers, leaves: int, filling: float) -> Floats:
    """The columns as leaves x columns x LEAF."""
    tiles = np.empty((leaves, len(columns), LEAF))
    ordered = np.full(leaves * LEAF, filling)
    for number, column in enumerate(columns):
        ordered[: len(order)] = column[order]
        tiles[:, number] = ordered.reshape(leaves, LEAF)
    return tiles


@compiled(reassociate=False)
def _find_boxes(
    low: Floats, high: Floats, counts: Integers, right: Integers, points: int, box_low: Floats, box_high: Floats
) -> None:
    """The box around the records of each node: children come after their parent, so from the last node to the first."""
    width = low.shape[1]
    for node in range(len(right) - 1, -1, -1):
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
