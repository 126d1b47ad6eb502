"""Mondrian: regions are cut in two, or into the children of a node, while every part meets all requirements.

LeFevre, DeWitt and Ramakrishnan 2006 and 2008 (Mondrian, InfoGain Mondrian), strict: regions are boxes that do not
overlap. Each attribute has one candidate in a region (regions.py). With classes the one with the largest information
gain is taken, times the importance of its attribute; without any gain, and without classes, that of the attribute that
has lost most in the region, times its importance. Ties go to the first attribute. Where all records of a region are in
one child of a node, that is refined at once. A candidate that breaks a model gives way to the next. All regions of a
level are judged together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Flags, Floats
from dpmask.kernels.models import Condition, is_broken, judged
from dpmask.kernels.refinement.cells import Sensitive
from dpmask.kernels.refinement.information import TIE
from dpmask.kernels.refinement.region_cuts import INVALID
from dpmask.kernels.refinement.region_records import Level, RegionRecords, joined
from dpmask.kernels.refinement.regions import (
    LEAF,
    NOBODY_THERE,
    Boxes,
    RegionParts,
    RegionTree,
    Trees,
    boxes_of_parts,
    parts_of,
)

_COUNTED = 1 << 22  # counts of sensitive codes at a time


class Check(NamedTuple):
    """What models ask of the sensitive columns of every region."""

    sensitive: Sensitive
    conditions: tuple[Condition, ...]


class Rules(NamedTuple):
    """What a region must meet, and what its attributes are worth.

    ``lost``: what each node has lost, from 0 to 1; of one that may be cut, ``points`` has the place of each code, in
    those of its attribute, which begin at ``offsets``. ``kept``: attributes that are released as they are.
    """

    k: int
    checks: tuple[Check, ...]
    importance: Floats
    lost: Floats
    points: Floats
    offsets: Counts
    kept: tuple[int, ...] = ()

    def lost_in(self, boxes: Boxes, trees: Trees) -> Floats:
        """What each attribute has lost in each region."""
        inside = self.points[self.offsets + boxes.high] - self.points[self.offsets + boxes.low]
        return np.where(trees.cut[boxes.nodes], inside, self.lost[boxes.nodes])


class Leaves(NamedTuple):
    """What regions that are not cut further add up to; ``squares``: of their sizes; ``lost``: records x what each lost.

    ``broken``: the records of those that do not meet the requirements.
    """

    regions: int
    smallest: int
    squares: int
    lost: Floats
    worst: Floats
    broken: int

    def plus(self, other: Leaves) -> Leaves:
        """Those of both."""
        return Leaves(
            self.regions + other.regions,
            min(self.smallest, other.smallest),
            self.squares + other.squares,
            self.lost + other.lost,
            np.maximum(self.worst, other.worst),
            self.broken + other.broken,
        )


class Grown(NamedTuple):
    """Regions, what those are that were not cut, and those that wait to be."""

    tree: RegionTree
    leaves: Leaves
    waiting: Level


def grow(records: RegionRecords, start: Level, rules: Rules, until: int = 0) -> Grown:
    """Cut regions until nothing is valid; those of at most ``until`` records are left to wait."""
    growth = _Growth(records, rules, start)
    level = growth.cut_by_kept(start)
    waiting = [level.at(level.sizes <= until)]
    level = level.at(level.sizes > until)
    while len(level.ids):
        level = growth.next_level(level)
        waiting.append(level.at(level.sizes <= until))
        level = level.at(level.sizes > until)
    return Grown(growth.tree(), growth.leaves, joined(waiting))


class _Growth:
    """The tree as it grows: each round takes the best candidate of each region, if its parts meet what models ask."""

    def __init__(self, records: RegionRecords, rules: Rules, start: Level) -> None:
        self.records, self.rules = records, rules
        self.until = [np.zeros(len(start.ids), np.int32)]
        self.cuts: list[tuple[Counts, Counts, Counts]] = []
        self.empty: list[Counts] = []
        self.size = len(start.ids)
        nothing = np.zeros(start.boxes.nodes.shape[1]), np.full(start.figures.shape[1], -np.inf)
        self.leaves = Leaves(0, np.iinfo(np.int64).max, 0, *nothing, 0)

    def tree(self) -> RegionTree:
        """All regions so far."""
        found = RegionTree(
            np.full(self.size, LEAF, np.int16), np.zeros(self.size, np.int32), np.concatenate(self.until)
        )
        for ids, attributes, firsts in self.cuts:
            found.attribute[ids], found.first[ids] = attributes, firsts
        for ids in self.empty:
            found.attribute[ids] = NOBODY_THERE
        return found

    def cut_by_kept(self, level: Level) -> Level:
        """The regions of each value of the attributes that are kept, whether they meet the requirements or not."""
        for number in self.rules.kept:
            self.records.begin(level, self.tree)
            attributes, cuts = np.full(len(level.ids), number), np.zeros(len(level.ids), np.int64)
            level, _ = self._cut(level, attributes, cuts, forced=True)
        return level

    def next_level(self, level: Level) -> Level:
        """What the regions of a level are cut into; those that cannot be are done."""
        self.records.begin(level, self.tree)
        trees, boxes = self.records.trees, level.boxes
        in_two = trees.cut[boxes.nodes]
        live = np.where(in_two, level.open & (boxes.high - boxes.low > 1), trees.children[boxes.nodes] > 0)
        candidates = _LevelCandidates(self.records, self.rules, level, live)
        todo, found = np.arange(len(level.ids)), []
        while len(todo):
            attributes, cuts = candidates.best(todo)
            self._finish(level.at(todo[attributes == INVALID]))
            some = attributes != INVALID
            todo, attributes, cuts = todo[some], attributes[some], cuts[some]
            below, taken = self._cut(level.at(todo), attributes, cuts)
            found.append(below)
            candidates.live[todo[~taken], attributes[~taken]] = False
            todo = todo[~taken]
        return joined(found)

    def _cut(self, level: Level, attributes: Counts, cuts: Counts, *, forced: bool = False) -> tuple[Level, Flags]:
        """The parts of regions whose parts all meet what models ask, and which regions these are."""
        trees = self.records.trees
        parts = parts_of(level.boxes, attributes, cuts, trees)
        sizes = self.records.divide(level, attributes, parts)
        figures, broken = self._judged(level, parts, sizes)
        owners = np.repeat(np.arange(len(attributes)), np.diff(parts.starts))
        taken = np.ones(len(attributes), np.bool_)
        if not forced:
            taken[owners[broken]] = False
        kept = taken[owners]
        ids = self.size + np.cumsum(kept) - 1
        self.cuts.append((level.ids[taken], attributes[taken], ids[parts.starts[:-1][taken]]))
        self.until.append(parts.ends[kept].astype(np.int32))
        self.size += int(kept.sum())
        self.empty.append(ids[kept & (sizes == 0)])
        begins = np.repeat(level.begins, np.diff(parts.starts)) + _before(sizes, parts.starts)
        below = Level(
            ids,
            begins,
            sizes,
            boxes_of_parts(level.boxes, attributes, parts, trees),
            level.open[owners],
            figures,
        )
        return below.at(kept & (sizes > 0)), taken

    def _judged(self, level: Level, parts: RegionParts, sizes: Counts) -> tuple[Floats, Flags]:
        """The figures of each condition of all parts, and which of them are broken."""
        figures, broken = np.full((len(sizes), level.figures.shape[1]), -np.inf), np.zeros(len(sizes), np.bool_)
        at = 0
        for sensitive, conditions in self.rules.checks:
            step = max(1, _COUNTED // (sensitive.width * max(int(np.diff(parts.starts).max(initial=1)), 1)))
            for low in range(0, len(level.ids), step):
                some = slice(parts.starts[low], parts.starts[min(low + step, len(level.ids))])
                counted = self.records.counts(
                    sensitive, level.at(np.arange(low, min(low + step, len(level.ids)))), sizes[some]
                )
                found = judged(counted, 1, conditions)
                broken[some] |= found.broken
                figures[some, at : at + len(conditions)] = np.array(found.figures).T
            at += len(conditions)
        return figures, broken

    def _finish(self, level: Level) -> None:
        if not len(level.ids):
            return
        broken, at = level.sizes < self.rules.k, 0
        for _, conditions in self.rules.checks:
            for one in conditions:
                broken |= is_broken(one.sign * level.figures[:, at], one)
                at += 1
        lost = self.rules.lost_in(level.boxes, self.records.trees)
        self.leaves = self.leaves.plus(
            Leaves(
                len(level.ids),
                int(level.sizes.min()),
                int((level.sizes**2).sum()),
                level.sizes @ lost,
                level.figures.max(axis=0),
                int(level.sizes[broken].sum()),
            )
        )


def _before(sizes: Counts, starts: Counts) -> Counts:
    """How many records the parts of the same region have that come before each."""
    ends = np.cumsum(sizes)
    firsts = np.repeat(np.concatenate([[0], ends])[starts[:-1]], np.diff(starts))
    return ends - sizes - firsts


class _LevelCandidates:
    """The candidates of the regions of a level: one for each attribute, judged when it is needed."""

    def __init__(self, records: RegionRecords, rules: Rules, level: Level, live: Flags) -> None:
        self.records, self.rules, self.level, self.live = records, rules, level, live
        self.cuts = np.zeros(live.shape, np.int64)
        self.gains = np.zeros(live.shape)
        self.known = np.zeros(live.shape, np.bool_)
        self.lost = rules.lost_in(level.boxes, records.trees) * rules.importance
        if records.many > 1:
            for attribute in range(live.shape[1]):
                self._propose(np.flatnonzero(live[:, attribute]), attribute)

    def _propose(self, regions: Counts, attribute: int) -> None:
        """Judge one attribute in some regions; a range without a valid cut has none in any part of it either."""
        if not len(regions):
            return
        level = self.level.at(regions)
        found = self.records.propose(level, np.full(len(regions), attribute), self.rules.k)
        self.cuts[regions, attribute], self.gains[regions, attribute] = found
        self.known[regions, attribute] = True
        invalid = regions[found.cuts == INVALID]
        self.live[invalid, attribute] = False
        in_two = self.records.trees.cut[self.level.boxes.nodes[invalid, attribute]]
        self.level.open[invalid[in_two], attribute] = False

    def best(self, regions: Counts) -> tuple[Counts, Counts]:
        """The attribute of the best valid candidate of each region, INVALID where there is none, and its cut."""
        found = np.full(len(regions), INVALID)
        todo = np.arange(len(regions))
        while len(todo):
            rows = regions[todo]
            attributes = self._first_choice(rows)
            live = self.live[rows, attributes]
            todo, rows, attributes = todo[live], rows[live], attributes[live]
            for attribute in np.unique(attributes).tolist():
                here = rows[attributes == attribute]
                self._propose(here[~self.known[here, attribute]], attribute)
            valid = self.live[rows, attributes]
            found[todo[valid]] = attributes[valid]
            todo = todo[~valid]
        return found, self.cuts[regions, found]

    def _first_choice(self, rows: Counts) -> Counts:
        """By gain, where there is any, otherwise by what was lost."""
        live = self.live[rows]
        gains = np.where(live, self.gains[rows] * self.rules.importance, -np.inf)
        lost = np.where(live, self.lost[rows], -np.inf)
        some = gains.max(axis=1, initial=-np.inf) > TIE
        scores = np.where(some[:, None], gains, lost)
        with np.errstate(invalid="ignore"):
            best = scores >= scores.max(axis=1, keepdims=True) - TIE
        return best.argmax(axis=1)
