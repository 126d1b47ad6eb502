"""Refinement beyond what valid groups allow: cells of the records in broken groups are set to missing.

The rule is that of kernels/refinement/local.py. First the search runs without; then it goes on as if
records in broken groups might be dropped, and the last of these solutions whose records can be repaired within the
limits, by halving, is taken. So no column ends coarser than without. What travels are the keys and nodes of broken
groups, and how many records agree with each of them, by their sensitive values.

Where there are models, all rows are counted once more with the missing cells, as ``verify`` will count them
(table/matching.py): a row that other records have joined may break a model then. Its group goes on to the next set of
cells, and all is counted again, until nothing is broken or the limits do not allow it.

Columns of requirements of households lose no cell, so that these hold as in any search: members whose rows have gaps
would be like nobody's for certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine import progress
from dpmask.engine.limits import current_limits
from dpmask.kernels.arrays import Counts, Flags
from dpmask.kernels.keys import RowKeys
from dpmask.kernels.models import judged
from dpmask.kernels.refinement.dropped import Drops, GroupSummary, group_sizes, places_among, sorted_keys
from dpmask.kernels.refinement.grouping import Integers, group_rows, node_keys
from dpmask.kernels.refinement.local import Columns, SmallGroups, agreeing, column_sets, merge_small, small_groups
from dpmask.masking.refinement.attributes import Attribute
from dpmask.masking.refinement.blocks import CodedTable
from dpmask.masking.refinement.recount import recounted
from dpmask.masking.refinement.requests import CodedBlock, Request
from dpmask.masking.refinement.search import refine, refine_onward
from dpmask.masking.refinement.solution import Quasi, RefinementSolution
from dpmask.masking.refinement.suppressed_cells import Suppression

_SETS = 64  # that are counted in one pass
_ROUNDS = 20  # of choosing cells and counting all rows again


class CellLimits(NamedTuple):
    """How many cells may be suppressed, in all and in each column, and what a cell of each column is worth."""

    cells: int
    columns: tuple[int, ...]
    worth: tuple[float, ...]


def refine_with_cells(
    table: CodedTable,
    attributes: Sequence[Attribute],
    missing: Sequence[bool],
    quasis: Sequence[Quasi],
    limits: CellLimits,
    *,
    guided: bool,
) -> tuple[RefinementSolution, Suppression]:
    """The finest solution found that needs no more cells than the limits allow, and what it suppresses.

    ``missing``: which attributes have missing values of their own, with the last code.
    """
    records = [one for one in quasis if not one.of_households]  # these come first
    without = refine(table.without_drops(), attributes, quasis, 0, guided=guided)
    onward = refine_onward(table, without, quasis, min(limits.cells, table.rows // 2), guided=guided)
    best, cells = without, Suppression()
    low, high = len(without.taken), len(onward.taken)
    while low < high:
        middle = (low + high + 1) // 2
        tried = _replayed(attributes, onward, middle)
        found = _suppression(table, tried, missing, records, limits)
        progress.step(f"refinement {middle}: cells {'suffice' if found else 'do not suffice'}")
        if found is None:
            high = middle - 1
        else:
            low, cells = middle, found
            best = onward._replace(taken=onward.taken[:middle], attributes=tried, drops=Drops())
    if cells.keys:
        homes = [_households_alike(table, one, best.attributes) for one in quasis[len(records) :]]
        figures = (*cells.worst, *onward.worst[len(records) :])
        best = best._replace(smallest=(*cells.smallest, *homes), worst=figures)
    table.first_version()  # what blocks cache is of the last trial
    return best, cells


def _households_alike(table: CodedTable, quasi: Quasi, attributes: Sequence[Attribute]) -> int:
    """The fewest households that are alike in the end."""
    assert table.households is not None
    return table.households.count(quasi.attributes, attributes, quasi.k).smallest


def _replayed(attributes: Sequence[Attribute], found: RefinementSolution, steps: int) -> list[Attribute]:
    """The attributes after the first steps of a solution."""
    again = [one.copied() for one in attributes]
    for choice, _ in found.taken[:steps]:
        again[choice.attribute].refine(choice.candidate)
    return again


def _suppression(
    table: CodedTable,
    attributes: Sequence[Attribute],
    missing: Sequence[bool],
    quasis: Sequence[Quasi],
    limits: CellLimits,
) -> Suppression | None:
    """The cells that make up for all broken groups; None where the limits do not allow that."""
    table.first_version()
    requests = [quasi.whole(number, attributes) for number, quasi in enumerate(quasis)]
    pairs = zip(requests, table.summaries(requests, Drops()), strict=True)
    repairs = [_Repair(table, request, summary, len(attributes)) for request, summary in pairs]
    for _ in range(_ROUNDS):
        for one in repairs:
            others = sum((other.used for other in repairs if other is not one), np.zeros(len(attributes), np.int64))
            if not one.choose(limits, others) or (one.used + others).sum() > limits.cells:
                return None
        found = Suppression(
            tuple(node_keys(one.nodes) for one in repairs),
            tuple(one.lost for one in repairs),
            tuple(one.smallest for one in repairs),
            tuple(one.summary.worst for one in repairs),
        )
        if not any(quasi.limits for quasi in quasis):
            return found
        counted = recounted(table, attributes, missing, requests, found)
        if not any(one.broken for one in counted):
            return found._replace(
                smallest=tuple(one.smallest for one in counted), worst=tuple(one.worst for one in counted)
            )
        if max(one.complete for one in counted) + sum(one.used.sum() for one in repairs) > limits.cells:
            return None  # each of these records must lose one at least
        for one, count in zip(repairs, counted, strict=True):
            one.add(count.groups)
    return None


class _Repair:
    """The broken groups of one quasi-identifier, in the order of their keys, and which columns they lose."""

    def __init__(self, table: CodedTable, request: Request, summary: GroupSummary, attributes: int) -> None:
        self.table, self.request, self.summary, self.attributes = table, request, summary, attributes
        self.numbers = np.array(request.columns)
        self.sets: list[Columns] | None = None
        width = len(request.columns)
        self.nodes, self.sizes = np.empty((0, width), np.int32), np.empty(0, np.int64)
        self.lost, self.banned = np.empty((0, width), np.bool_), np.empty((0, width), np.bool_)
        self.set, self.after, self.matched = (np.empty(0, np.int64) for _ in range(3))
        self.todo: NDArray[np.intp] = np.empty(0, np.intp)
        self.add(summary.small)

    def add(self, keys: RowKeys) -> None:
        """These groups are broken: they lose cells, or others than they do."""
        if not len(keys.first):
            return
        count = partial(_small_groups, self.request, sorted_keys(keys))
        found: SmallGroups = self.table.records.reduce(count, merge_small, "refinement: small groups")
        known = places_among(node_keys(found.nodes), node_keys(self.nodes))
        again, new = known[known >= 0], found.nodes[known < 0]
        self.after[again] = self.set[again]
        self.lost[again] = False
        none, flags = np.full(len(new), -1), np.zeros(new.shape, np.bool_)
        self.nodes, self.sizes = np.concatenate([self.nodes, new]), np.append(self.sizes, found.sizes[known < 0])
        self.lost, self.banned = np.concatenate([self.lost, flags]), np.concatenate([self.banned, flags])
        self.set, self.after, self.matched = (np.append(one, none) for one in (self.set, self.after, self.matched))
        order = np.argsort(node_keys(self.nodes).first)
        for name in ("nodes", "sizes", "lost", "banned", "set", "after", "matched"):
            setattr(self, name, getattr(self, name)[order])
        self.todo = np.flatnonzero(~self.lost.any(axis=1))

    @property
    def used(self) -> Counts:
        """The cells that are lost, of each attribute."""
        used = np.zeros(self.attributes, np.int64)
        used[self.numbers] = (self.lost * self.sizes[:, None]).sum(axis=0)
        return used

    @property
    def smallest(self) -> int:
        """The fewest records that share a row of it, or agree with one that loses cells."""
        return min(self.summary.smallest, int(self.matched.min(initial=self.summary.smallest)))

    def choose(self, limits: CellLimits, used: Counts) -> bool:
        """For each group the first set that leaves records that agree with it, and are enough; False without one.

        Where a column has too many of them, the groups after those that fit, in the order of their keys, must do
        without. ``used``: the cells that other quasi-identifiers take.
        """
        room = np.array(limits.columns)[self.numbers] - used[self.numbers]
        if self.sets is None:
            self.sets = column_sets(np.flatnonzero(room > 0).tolist(), [limits.worth[one] for one in self.numbers])
        while True:
            if len(self._settle(self.sets)):
                return False
            over = np.flatnonzero((self.lost * self.sizes[:, None]).sum(axis=0) > room)
            if not len(over):
                return True
            column = int(over[0])
            users = np.flatnonzero(self.lost[:, column])
            self.todo = users[np.cumsum(self.sizes[users]) > room[column]]
            self.banned[self.todo, column], self.lost[self.todo] = True, False

    def _settle(self, sets: Sequence[Columns]) -> NDArray[np.intp]:
        """Choose for the groups ``todo``; those that no set suffices for are left over."""
        todo, place = self.todo, 0
        while len(todo) and place < len(sets):
            fitting = current_limits().refinement_cells // (len(todo) * self.request.sensitive.counts)
            batch = sets[place : place + min(_SETS if place else self.nodes.shape[1], max(1, fitting))]
            sizes, broken, _ = judged(self._agreeing(todo, batch), self.request.k, self.request.conditions)
            left: Flags = np.ones(len(todo), np.bool_)
            for number, one in enumerate(batch, place):
                fits = left & ~broken[number - place] & (number > self.after[todo])
                fits &= ~self.banned[todo][:, one].any(axis=1)
                chosen = todo[fits]
                for column in one:
                    self.lost[chosen, column] = True
                self.set[chosen], self.matched[chosen] = number, sizes[number - place][fits]
                left &= ~fits
            todo, place = todo[left], place + len(batch)
        self.todo = todo
        return todo

    def _agreeing(self, groups: NDArray[np.intp], sets: Sequence[Columns]) -> Counts:
        count = partial(_agree, self.request, self.nodes[groups], sets)
        return self.table.records.reduce(count, np.add, "refinement: candidates")


def _small_groups(request: Request, small: RowKeys, block: CodedBlock) -> SmallGroups:
    return small_groups(group_rows(block.codes, request.columns, request.values), small)


def _agree(request: Request, nodes: Integers, sets: Sequence[Columns], block: CodedBlock) -> Counts:
    groups = group_rows(block.codes, request.columns, request.values)
    return agreeing(groups.nodes, group_sizes(groups, block.codes, request.sensitive).counts, nodes, sets)
