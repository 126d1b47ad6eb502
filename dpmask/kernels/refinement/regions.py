"""Regions of Mondrian: boxes of codes, the parts that they are cut into, and which one a row lies in.

Codes of an attribute are in the order of its tree, so that each node is a range of them; numbers have a node that may
be cut in two at any code. A region is a box: for each attribute a node and a range.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Flags
from dpmask.kernels.compile import compiled, read_only

Codes = NDArray[np.uint16]
Integers = NDArray[np.int32]

LEAF, NOBODY_THERE = -1, -2
"""What stands for the attribute of a region that is not cut, and of a part of one that has no record."""


class Trees(NamedTuple):
    """The trees of all attributes, a node after its parent: its codes, children, and whether it may be cut anywhere."""

    roots: Counts
    low: Counts
    high: Counts
    first: Counts
    children: Counts
    cut: Flags


class Boxes(NamedTuple):
    """Some regions: for each attribute its node, and the range of its codes (regions x attributes)."""

    nodes: Counts
    low: Counts
    high: Counts

    def at(self, places: Counts) -> Boxes:
        """Some of them, also several times."""
        return Boxes(*(one[places] for one in self))


class RegionTree(NamedTuple):
    """Regions and those they were cut into: the attribute, the first part, and the code that a part ends before.

    Parts of a region follow each other. A region that was not cut has no attribute (LEAF).
    """

    attribute: NDArray[np.int16]
    first: Integers
    until: Integers


class RegionParts(NamedTuple):
    """What regions are cut into: where the parts of each begin among all, the last end; and the codes they end before.

    ``nodes``: the node of each part.
    """

    starts: Counts
    ends: Counts
    nodes: Counts


def parts_of(boxes: Boxes, attributes: Counts, cuts: Counts, trees: Trees) -> RegionParts:
    """The parts of regions that are cut by one attribute each."""
    pairs = np.arange(len(cuts))
    nodes, high = boxes.nodes[pairs, attributes], boxes.high[pairs, attributes]
    in_two = trees.cut[nodes]
    widths = np.where(in_two, 2, trees.children[nodes])
    starts = np.concatenate([[0], np.cumsum(widths)])
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], widths)
    two = np.repeat(in_two, widths)
    below = np.where(two, np.repeat(nodes, widths), np.repeat(trees.first[nodes], widths) + within)
    ends = np.where(two, np.where(within == 0, np.repeat(cuts, widths), np.repeat(high, widths)), trees.high[below])
    return RegionParts(starts, ends, below)


def boxes_of_parts(boxes: Boxes, attributes: Counts, parts: RegionParts, trees: Trees) -> Boxes:
    """The boxes of all parts of these regions."""
    owners = np.repeat(np.arange(len(attributes)), np.diff(parts.starts))
    found = boxes.at(owners)
    rows, changed = np.arange(len(owners)), attributes[owners]
    begins = np.concatenate([[0], parts.ends[:-1]])
    begins[parts.starts[:-1]] = boxes.low[np.arange(len(attributes)), attributes]
    found.nodes[rows, changed] = parts.nodes
    found.low[rows, changed] = np.where(trees.cut[parts.nodes], begins, trees.low[parts.nodes])
    found.high[rows, changed] = parts.ends
    return found


@compiled(allocates=True, reassociate=False, contract=False)
def _divide(
    codes: Codes,
    order: Integers,
    begins: Counts,
    sizes: Counts,
    attributes: Counts,
    starts: Counts,
    ends: Counts,
    kept: Integers,
    slots: Integers,
    counts: Counts,
) -> None:
    for g in range(len(begins)):
        column, begin, low = codes[attributes[g]], begins[g], starts[g]
        for i in range(sizes[g]):
            code, at, after = column[order[begin + i]], low, starts[g + 1]
            while after - at > 1:  # the first part that ends after the code
                middle = (at + after) // 2
                if ends[middle - 1] <= code:
                    at = middle
                else:
                    after = middle
            slots[i] = at - low
            counts[at] += 1
            kept[i] = order[begin + i]
        place = begin
        nexts = np.empty(starts[g + 1] - low, np.int64)
        for at in range(low, starts[g + 1]):
            nexts[at - low] = place
            place += counts[at]
        for i in range(sizes[g]):
            order[nexts[slots[i]]] = kept[i]
            nexts[slots[i]] += 1


def divide(
    codes: Codes, order: Integers, begins: Counts, sizes: Counts, attributes: Counts, parts: RegionParts
) -> Counts:
    """Put the rows of each part of some regions together in ``order``, which changes; and how many these are."""
    most = int(sizes.max(initial=0))
    counts = np.zeros(len(parts.ends), np.int64)
    scratch = np.empty(most, np.int32), np.empty(most, np.int32)
    _divide(read_only(codes), order, begins, sizes, attributes, parts.starts, parts.ends, *scratch, counts)
    return counts


_LANES = 16  # rows that walk down the tree side by side: one waits for memory while others go on


@compiled(reassociate=False, contract=False)
def _regions_of(codes: Codes, tree: Integers, at: Integers, regions: Integers) -> None:
    """``at`` is room for where each lane is."""
    for begin in range(0, len(regions), _LANES):
        lanes = min(_LANES, len(regions) - begin)
        at[:] = 0
        walking = lanes
        while walking > 0:
            walking = 0
            for lane in range(lanes):
                attribute = tree[at[lane], 0]
                if attribute >= 0:
                    code, node = codes[attribute, begin + lane], tree[at[lane], 1]
                    while tree[node, 2] <= code:
                        node += 1
                    at[lane] = node
                    walking += 1
        for lane in range(lanes):
            regions[begin + lane] = at[lane]


def regions_of(codes: Codes, tree: RegionTree) -> Integers:
    """The region of the tree that each row lies in."""
    regions = np.empty(codes.shape[1], np.int32)
    together = np.stack(tree, axis=1).astype(np.int32)  # what is asked of a region lies in one place
    _regions_of(read_only(codes), read_only(together), np.empty(_LANES, np.int64), regions)
    return regions


@compiled(reassociate=False, contract=False)
def _boxes_in(
    number: int,
    attribute: NDArray[np.int16],
    until: Integers,
    parents: Integers,
    places: Integers,
    below: Counts,
    cut: Flags,
    nodes: Integers,
    low: Integers,
    high: Integers,
) -> None:
    for region in range(1, len(parents)):
        parent = parents[region]
        nodes[region], low[region], high[region] = nodes[parent], low[parent], high[parent]
        if attribute[parent] == number:
            if not cut[nodes[parent]]:
                nodes[region] = below[nodes[parent]] + places[region]
            if places[region] > 0:
                low[region] = until[region - 1]
            high[region] = until[region]


class LeafBoxes:
    """The boxes of all regions that were not cut, one attribute at a time."""

    def __init__(self, tree: RegionTree, trees: Trees) -> None:
        self.tree, self.trees = tree, trees
        cut = np.flatnonzero(tree.attribute >= 0)
        cut = cut[np.argsort(tree.first[cut])]
        starts = tree.first[cut]  # parts of a region follow each other, so that all regions but the first are in order
        counts = np.diff(starts, append=len(tree.first)) if len(cut) else np.empty(0, np.int64)
        self.parents, self.places = np.zeros(len(tree.first), np.int32), np.zeros(len(tree.first), np.int32)
        self.parents[1:] = np.repeat(cut, counts)
        self.places[1:] = np.arange(1, len(tree.first)) - np.repeat(starts, counts)
        self.leaves = np.flatnonzero(tree.attribute == LEAF)

    def of(self, attribute: int) -> tuple[Integers, Integers, Integers]:
        """The node of each, and the range of its codes."""
        root = self.trees.roots[attribute]
        found = [np.full(len(self.parents), one[root], np.int32) for one in (self.trees.low, self.trees.high)]
        nodes = np.full(len(self.parents), root, np.int32)
        tree = read_only(self.tree.attribute), read_only(self.tree.until)
        _boxes_in(
            attribute,
            *tree,
            read_only(self.parents),
            read_only(self.places),
            read_only(self.trees.first),
            read_only(self.trees.cut),
            nodes,
            *found,
        )
        low, high = found
        return nodes[self.leaves], low[self.leaves], high[self.leaves]


def top(trees: Trees) -> Boxes:
    """The box of all codes."""
    return Boxes(trees.roots[None], trees.low[trees.roots][None], trees.high[trees.roots][None])
