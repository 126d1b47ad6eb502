"""The regions of a level of the tree, and their records: what refining regions asks of them, wherever they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Flags, Floats
from dpmask.kernels.refinement.cells import Sensitive
from dpmask.kernels.refinement.region_cuts import Proposals, propose
from dpmask.kernels.refinement.regions import (
    Boxes,
    Codes,
    RegionParts,
    RegionTree,
    Trees,
    divide,
)


class Level(NamedTuple):
    """Regions that may be cut: their place in the tree, where their rows begin and how many they are, their boxes.

    ``open``: which attributes may still be cut. ``figures``: of each model's condition, the larger the worse.
    """

    ids: Counts
    begins: Counts
    sizes: Counts
    boxes: Boxes
    open: Flags
    figures: Floats

    def at(self, places: Counts | Flags) -> Level:
        """Some of them."""
        ids, begins, sizes, boxes, open_, figures = self
        chosen = np.arange(len(ids))[places]
        return Level(ids[chosen], begins[chosen], sizes[chosen], boxes.at(chosen), open_[chosen], figures[chosen])


def joined(levels: list[Level]) -> Level:
    """All regions of these."""
    ids, begins, sizes, boxes, open_, figures = zip(*levels, strict=True)
    box = Boxes(*(np.concatenate(one) for one in zip(*boxes, strict=True)))
    sums = np.concatenate(ids), np.concatenate(begins), np.concatenate(sizes)
    return Level(*sums, box, np.concatenate(open_), np.concatenate(figures))


class RegionRecords(Protocol):
    """The records of the regions of a level, wherever they lie."""

    trees: Trees
    many: int
    """How many classes there are."""

    def propose(self, level: Level, attributes: Counts, k: int) -> Proposals:
        """What would become of each region by one attribute."""

    def divide(self, level: Level, attributes: Counts, parts: RegionParts) -> Counts:
        """How many records each part of the regions has."""

    def counts(self, sensitive: Sensitive, level: Level, sizes: Counts) -> Counts:
        """How many records with each sensitive code the parts of these regions have, which were divided last."""

    def begin(self, level: Level, tree: Callable[[], RegionTree]) -> None:
        """These regions of the tree are judged next."""


class RowRecords(RegionRecords):
    """Records that lie in one place: codes (attributes and sensitive columns x rows), classes, and rows by region."""

    def __init__(
        self, codes: Codes, classes: NDArray[np.uint16], many: int, regions: NDArray[np.int32], trees: Trees
    ) -> None:
        self.codes, self.classes, self.many, self.trees = codes, classes, many, trees
        self.order = np.argsort(regions, kind="stable").astype(np.int32)

    def propose(self, level: Level, attributes: Counts, k: int) -> Proposals:
        """By the rows of each region."""
        where = self.order, level.begins, level.sizes
        return propose(self.codes, self.classes, self.many, *where, attributes, level.boxes, self.trees, k)

    def divide(self, level: Level, attributes: Counts, parts: RegionParts) -> Counts:
        """Rows of each part are put together; if that is not taken, they only lie in another order."""
        return divide(self.codes, self.order, level.begins, level.sizes, attributes, parts)

    def counts(self, sensitive: Sensitive, level: Level, sizes: Counts) -> Counts:
        """Parts lie one after another, from where their region begins."""
        rows = self.order[np.repeat(level.begins, level.sizes) + _within(level.sizes)]
        found = np.zeros(len(sizes) * sensitive.width, np.int64)
        part = np.repeat(np.arange(len(sizes)), sizes) * sensitive.width
        for column, offset in zip(sensitive.columns, sensitive.offsets, strict=True):
            found += np.bincount(part + offset + self.codes[column, rows], minlength=len(found))
        return found.reshape(len(sizes), sensitive.width)

    def begin(self, level: Level, tree: Callable[[], RegionTree]) -> None:
        """Rows lie by region already."""


def _within(sizes: Counts) -> Counts:
    """0, 1, ... in each of some runs."""
    return np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
