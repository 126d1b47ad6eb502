"""Compact cells of equal size: a tree of cuts, each across the direction in which its records spread most.

A record goes left of a cut when its projection is smaller, or equal and its tie word is smaller: so records that do not
differ are divided, too, and every cut leaves on each side the share of records it was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats, Integers, Words
from dpmask.kernels.compile import compiled, read_only
from dpmask.kernels.vector_math import total_of

_OCTAVES, _CLASSES = 128, 16


class CellTree(NamedTuple):
    """The cuts, the root first. With no cut at all everything is one cell."""

    directions: Floats  # cuts x columns
    values: Floats  # cuts: the first projection on the right
    words: Words  # cuts: and its tie word
    children: Integers  # cuts x 2: another cut, or -1 - cell

    @property
    def cells(self) -> int:
        """How many cells there are, numbered from left to right."""
        return len(self.values) + 1


def grow_tree(block: Floats, words: Words, cells: int) -> CellTree:
    """Cut the records of a block (columns x rows) into cells whose sizes differ by a record or so.

    There must be at least as many records as cells.
    """
    directions: list[Floats] = []
    values: list[float] = []
    ties: list[np.uint64] = []
    children: list[list[int]] = []
    waiting = [(np.arange(block.shape[1]), cells, 0, -1, 0)]  # records, cells, first cell, parent, side
    while waiting:
        rows, parts, first, parent, side = waiting.pop()
        if parent >= 0:
            children[parent][side] = len(values) if parts > 1 else -1 - first
        if parts == 1:
            continue
        direction = principal_direction(block[:, rows])
        along = projections(block[:, rows], direction)
        order = np.lexsort((words[rows], along))
        left = parts // 2
        middle = round(len(rows) * left / parts)
        at = order[middle]
        directions.append(direction)
        values.append(along[at])
        ties.append(words[rows[at]])
        children.append([0, 0])
        here = len(values) - 1
        waiting.append((rows[np.sort(order[middle:])], parts - left, first + left, here, 1))
        waiting.append((rows[np.sort(order[:middle])], left, first, here, 0))
    return CellTree(
        np.array(directions).reshape(-1, len(block)),
        np.array(values),
        np.array(ties, np.uint64),
        np.array(children, np.int64).reshape(-1, 2),
    )


def share_out(gains: Sequence[Floats], centers: int) -> Integers:
    """How many of the centres each cell gets, at least one: so many that the squares they leave add up to the least.

    ``gains`` has for each cell what each further centre takes off its squares; it falls.
    """
    cells = np.repeat(np.arange(len(gains)), [len(gain) for gain in gains])
    best = np.argsort(-np.concatenate(gains), kind="stable")[: max(centers - len(gains), 0)]
    return 1 + np.bincount(cells[best], minlength=len(gains))


def count_gains(gains: Floats) -> Integers:
    """How many gains lie in each of the 2048 classes, from the largest down: sixteen to an octave, of exact bounds."""
    mantissa, exponent = np.frexp(gains)
    octave = np.clip(exponent.astype(np.int64) + _OCTAVES // 2, 0, _OCTAVES - 1)
    place = octave * _CLASSES + ((mantissa - 0.5) * 2 * _CLASSES).astype(np.int64).clip(0)
    place[gains <= 0.0] = 0
    return np.bincount(place, minlength=_OCTAVES * _CLASSES)[::-1]


def share_by_counts(counts: Integers, centers: int) -> Integers:
    """How many of the centres each row of ``count_gains`` gets: all of the largest classes, of the last its share."""
    totals = counts.sum(axis=0)
    last = int(np.searchsorted(np.cumsum(totals), centers))
    if last == len(totals):
        return counts.sum(axis=1)
    above = counts[:, :last].sum(axis=1)
    ends = np.cumsum(counts[:, last]) * (centers - above.sum()) // max(int(totals[last]), 1)
    return above + np.diff(ends, prepend=0)


def principal_direction(block: Floats) -> Floats:
    """The direction of the largest variance, of length 1; any direction where nothing varies."""
    covariance = np.zeros((len(block), len(block)))
    _add_products(read_only(block), np.empty(block.shape), covariance)
    return np.linalg.eigh(covariance)[1][:, -1]


@compiled()
def _add_products(block: Floats, centered: Floats, products: Floats) -> None:
    """The lower triangle of sum (x - mean)(x - mean)', which is the one that eigh reads."""
    columns, rows = block.shape
    for s in range(columns):
        mean = total_of(block[s], rows) / rows
        for k in range(rows):
            centered[s, k] = block[s, k] - mean
    for s in range(columns):
        for r in range(s + 1):
            total = 0.0
            for k in range(rows):
                total += centered[s, k] * centered[r, k]
            products[s, r] = total


@compiled(part=True, reassociate=False, contract=False)
def _along(block: Floats, direction: Floats, k: int) -> float:
    """One record's projection. Cutting and routing must agree to the last bit, so both come here."""
    total = 0.0
    for s in range(len(direction)):
        total += direction[s] * block[s, k]
    return total


@compiled(reassociate=False, contract=False)
def _project(block: Floats, direction: Floats, result: Floats) -> None:
    for k in range(block.shape[1]):
        result[k] = _along(block, direction, k)


def projections(block: Floats, direction: Floats) -> Floats:
    """Each record's place along a direction."""
    result = np.empty(block.shape[1])
    _project(read_only(block), read_only(direction), result)
    return result


def route(block: Floats, words: Words, tree: CellTree) -> Integers:
    """The cell of each record."""
    cells = np.zeros(block.shape[1], np.int64)
    if tree.cells > 1:
        directions, values = read_only(tree.directions), read_only(tree.values)
        ties, children = read_only(tree.words), read_only(tree.children)
        _route(read_only(block), read_only(words), directions, values, ties, children, cells)
    return cells


@compiled(reassociate=False, contract=False)
def _route(
    block: Floats, words: Words, directions: Floats, values: Floats, ties: Words, children: Integers, cells: Integers
) -> None:
    for k in range(block.shape[1]):
        at = 0
        while at >= 0:
            along = _along(block, directions[at], k)
            right = along > values[at] or (along == values[at] and words[k] >= ties[at])
            at = children[at, 1 if right else 0]
        cells[k] = -1 - at
