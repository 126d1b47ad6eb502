"""Columns of Mondrian as trees of codes, and what a region's boxes are released as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.errors import InputError
from dpmask.kernels.arrays import Counts, Flags, Floats
from dpmask.kernels.refinement.growth import Check, Rules
from dpmask.kernels.refinement.regions import NOBODY_THERE, Integers, LeafBoxes, RegionTree, Trees, regions_of
from dpmask.lake.reading import Rows
from dpmask.masking.refinement.attributes import SUPPRESSED
from dpmask.masking.refinement.columns import WHO, MaskedColumn, require_inside
from dpmask.table.encoders.interval import interval_text
from dpmask.table.new_columns import NewColumn, text_column
from dpmask.table.taxonomy import Branch


class _TreeNode(NamedTuple):
    """A node: its label, None for missing values, its codes, its children, what it lost, whether it may be cut."""

    label: str | None
    low: int
    high: int
    children: tuple[_TreeNode, ...] = ()
    lost: float = 0.0
    cut: bool = False


def _root(column: MaskedColumn) -> _TreeNode:
    """The tree of a column; a missing value, if there is any, has the last code."""
    encoder = column.encoder
    values = encoder.size - encoder.missing
    missing = (_TreeNode(None, values, values + 1),) if encoder.missing else ()
    if column.domain is not None:
        numbers = _TreeNode(SUPPRESSED, 0, values, cut=True)
        return _TreeNode(SUPPRESSED, 0, encoder.size, (numbers, *missing), 1.0) if missing else numbers
    if column.tree is None:
        names = column.names
        each = [_TreeNode(None if code == values else names[code], code, code + 1) for code in range(encoder.size)]
        return _TreeNode(SUPPRESSED, 0, encoder.size, tuple(each), 1.0)
    whole = _of_branch(column.tree, 0, values)
    if not missing:
        return whole
    return _TreeNode(column.tree.value, 0, encoder.size, (*(whole.children or (whole,)), *missing), 1.0)


def _of_branch(branch: Branch, low: int, values: int) -> _TreeNode:
    below, begin = [], low
    for child in branch.children:
        below.append(_of_branch(child, begin, values))
        begin += child.leaves
    lost = branch.leaves / values if branch.leaves > 1 else 0.0
    return _TreeNode(branch.value, low, low + branch.leaves, tuple(below), lost)


class Labelled(NamedTuple):
    """The trees of some columns, with the label of each node and what it has lost."""

    trees: Trees
    labels: tuple[str | None, ...]
    lost: Floats


def trees_of(columns: Sequence[MaskedColumn]) -> Labelled:
    """The trees of columns: the roots first, then the children of each node one after another."""
    nodes = [_root(column) for column in columns]
    first: list[int] = []
    for node in nodes:  # which grows
        first.append(len(nodes))
        nodes.extend(node.children)
    low, high = (np.array([getattr(node, name) for node in nodes]) for name in ("low", "high"))
    children, cut = (np.array([len(node.children) for node in nodes]), np.array([node.cut for node in nodes]))
    trees = Trees(np.arange(len(columns)), low, high, np.array(first), children, cut)
    return Labelled(trees, tuple(node.label for node in nodes), np.array([node.lost for node in nodes]))


def rules_of(
    columns: Sequence[MaskedColumn], labelled: Labelled, importance: Sequence[float], k: int, checks: tuple[Check, ...]
) -> Rules:
    """What regions must meet, and what each column is worth in them."""
    points = [_points(column) for column in columns]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in points])])[:-1]
    kept = tuple(number for number, column in enumerate(columns) if column.kept)
    return Rules(k, checks, np.array(importance), labelled.lost, np.concatenate(points), offsets, kept)


def _points(column: MaskedColumn) -> Floats:
    """Where each code of a number begins in its domain, from 0 to 1; of other columns nothing is asked."""
    if column.domain is None:
        return np.zeros(column.encoder.size + 1)
    begins = column.begins
    return np.append((begins - begins[0]) / (begins[-1] - begins[0]), 1.0)


class RegionLabels(NamedTuple):
    """A column as regions show it: its labels, and which one each region has."""

    texts: list[str | None]
    places: NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, repr=False)
class ReleasedRegions:
    """Columns that are released as boxes: the label of each in the region that a row lies in.

    In the tree the first part of a region that was not cut is its number among those that were not, as in ``labels``.
    """

    masked: tuple[MaskedColumn, ...]
    tree: RegionTree
    labels: tuple[RegionLabels, ...]

    def columns(self, rows: Rows) -> dict[str, tuple[list[NewColumn], list[Any]]]:
        """The released columns of one block, but for those that are kept."""
        codes = np.array([self._codes(one, rows) for one in self.masked], np.uint16).reshape(len(self.masked), -1)
        regions = regions_of(codes, self.tree)
        unknown = int((self.tree.attribute[regions] == NOBODY_THERE).sum())
        if unknown:
            raise InputError(
                f"{WHO}: {unknown} records have values together that nobody has in the table it was fitted to. Fit to "
                "all of the data."
            )
        numbers = self.tree.first[regions]
        found = {}
        for one, labels in zip(self.masked, self.labels, strict=True):
            if not one.kept:
                new = text_column(one.encoder.column)
                found[new.name] = [new], [new.taken(labels.texts, labels.places[numbers])]
        return found

    def _codes(self, one: MaskedColumn, rows: Rows) -> Counts:
        codes = one.encoder.encode(rows)
        if one.domain is not None:
            require_inside(rows, one.encoder.column, one.domain)
        unknown = int((codes >= one.encoder.size).sum())
        if unknown:
            raise InputError(
                f"{WHO}: column '{one.encoder.column}' has a value in {unknown} records that the table it was "
                "fitted to has not. Fit to all of the data."
            )
        return codes


def released_regions(masked: tuple[MaskedColumn, ...], labelled: Labelled, tree: RegionTree) -> ReleasedRegions:
    """What every region shows, found once for all blocks: two bytes for each and column, or four."""
    boxes = LeafBoxes(tree, labelled.trees)
    first = tree.first.copy()
    first[boxes.leaves] = np.arange(len(boxes.leaves))
    labels = [_labels(one, labelled.labels, labelled.trees.cut, *boxes.of(number)) for number, one in enumerate(masked)]
    return ReleasedRegions(masked, tree._replace(first=first), tuple(labels))


def _labels(
    one: MaskedColumn, names: Sequence[str | None], cut: Flags, nodes: Integers, low: Integers, high: Integers
) -> RegionLabels:
    size = one.encoder.size + 1
    keys = np.where(cut[nodes], len(names) + low.astype(np.int64) * size + high, nodes)
    found, places = np.unique(keys, return_inverse=True)
    begins = one.begins.tolist() if one.domain is not None else []
    texts = [names[key] for key in found.tolist() if key < len(names)]
    for key in found[len(texts) :].tolist():
        start, end = divmod(key - len(names), size)
        texts.append(interval_text(begins[start], begins[end], one.date))
    return RegionLabels(texts, places.astype(np.uint16 if len(texts) <= 1 << 16 else np.uint32))
