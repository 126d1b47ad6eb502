"""A table as blocks of small codes, and the passes that count groups and cells over them.

Where the cells or groups of a quasi-identifier outgrow their limit, its rows are exchanged by group, once; then every
group is complete in one shard, and only effects and summaries travel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from dpmask.engine.collection import Collection
from dpmask.engine.limits import current_limits
from dpmask.kernels.arrays import Counts
from dpmask.kernels.refinement.cells import Cells
from dpmask.kernels.refinement.derived import KnownCells, Refinement, largest_child, with_derived
from dpmask.kernels.refinement.dropped import Drops, GroupSummary, merge_summaries, summarised
from dpmask.kernels.refinement.effects import Effects, merge_effects
from dpmask.kernels.refinement.grouping import Codes, group_rows, node_keys
from dpmask.lake.reading import Rows
from dpmask.masking.refinement.columns import WHO
from dpmask.masking.refinement.guide import Labels
from dpmask.masking.refinement.households import CodedHouseholds, coded_households
from dpmask.masking.refinement.requests import (
    BlockTask,
    CellParts,
    CodedBlock,
    Merge,
    Request,
    merge_keyed,
    merge_parts,
)
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.households import Members, household_keys
from dpmask.table.table import Table

_OTHER_BYTES = 16  # a row's class and its groups
_KEY_BYTES = 16  # of a row's household
_FEW = 1 / 16  # of all records, below which a child is counted like others
_VERSIONS = 1 << 32  # more than a search has refinements


@dataclass
class CodedTable:
    """A table as codes, block by block.

    ``dropping``: records may be dropped, so that the groups of one quasi-identifier depend on all others.
    """

    records: Collection[CodedBlock]
    rows: int
    columns: int
    dropping: bool
    households: CodedHouseholds | None = None
    """Whole households, if a requirement counts them."""
    _taken: dict[int, Request] = field(default_factory=dict)
    _known: dict[int, tuple[int, KnownCells]] = field(default_factory=dict)
    """The cells of all groups, by quasi-identifier, and the version that they are of."""
    _shards: dict[int, Collection[CodedBlock]] = field(default_factory=dict)
    _searches: Iterator[int] = field(default_factory=count)

    def without_drops(self) -> CodedTable:
        """The same blocks for a search that drops nothing."""
        return replace(self, dropping=False, _taken={}, _known={}, _shards={})

    def first_version(self) -> int:
        """The version that a search begins with: blocks cache groups by it, and must not take those of another."""
        self._taken, self._known, self._shards = {}, {}, {}
        return _VERSIONS * next(self._searches)

    def effects(self, requests: Sequence[Request], drops: Drops) -> dict[int, Effects]:
        """The effects of all candidates, by quasi-identifier; without drops only those on groups that changed."""
        self._taken |= {one.number: one for one in requests}
        requests = [one if self.dropping or one.many else self._with_derived(one) for one in requests]
        task = self._task(requests, drops, keep=True)
        found = self._reduced(task, task.cells, merge_parts, "refinement: count")
        return {
            one.number: self._from_shards(task, one.number, BlockTask.shard_effects, merge_effects)
            if (parts := found.get(one.number)) is None
            else one.effects(self._changed(one, parts))
            for one in requests
        }

    def _with_derived(self, request: Request) -> Request:
        """The request without what the cells before show, if they are known and save counting many records.

        Once a refinement is of few, others will be, and to keep what is known would cost more than it saves.
        """
        version, known = self._known.get(request.number, (-1, None))
        if request.refined is None or known is None or version != request.version - 1:
            return request
        last = Refinement(request.place, *request.refined)
        child, counted = largest_child(known, last, request.values[request.place])
        if counted < _FEW * self.rows * max(len(request.sensitive.columns), 1):
            del self._known[request.number]
            return request
        return request._replace(derived=child)

    def _changed(self, request: Request, parts: CellParts) -> Cells:
        """The cells of all groups that changed; those of all groups are kept where they are few enough."""
        _, known = self._known.pop(request.number, (-1, None))
        if request.derived is not None and request.refined is not None and known is not None:
            last = Refinement(request.place, *request.refined)
            changed, known = with_derived(known, last, request.derived, request.values, *parts)
        else:
            (changed,) = parts
            whole = request.refined is None and not request.many and not self.dropping
            known = KnownCells(request.values, changed) if whole else None
        if known is not None and known.cells.counts.size <= current_limits().refinement_cells:
            self._known[request.number] = request.version, known
        return changed

    def summaries(self, requests: Sequence[Request], drops: Drops, *, keep: bool = False) -> list[GroupSummary]:
        """The sizes of all groups in the order of the requests; ``keep`` the groups, which are not those of a trial."""
        self._taken = {one.number: one for one in requests} | self._taken
        task = self._task(requests, drops, keep=keep)
        found = self._reduced(task, task.sizes, merge_keyed, "refinement: drop")
        return [
            self._from_shards(task, one.number, BlockTask.shard_summary, merge_summaries)
            if (sizes := found.get(one.number)) is None
            else summarised(sizes, one.k, one.conditions)
            for one in requests
        ]

    def ending(self, requests: Sequence[Request], drops: Drops) -> tuple[dict[int, Cells | None], list[Effects]]:
        """The cells of all groups, where they are few enough, and the effects of all candidates on them."""
        self._taken = {one.number: one for one in requests} | self._taken
        requests = [one._replace(version=self._taken[one.number].version) for one in requests]
        task = self._task(requests, drops, keep=False)
        found = self._reduced(task, task.cells, merge_parts, "refinement: stops")
        cells = {number: None if parts is None else parts[0] for number, parts in found.items()}
        effects = [
            self._from_shards(task, one.number, BlockTask.shard_effects, merge_effects)
            if (counted := cells.get(one.number)) is None
            else one.effects(counted)
            for one in requests
        ]
        return cells, effects

    def _task(self, requests: Sequence[Request], drops: Drops, *, keep: bool) -> BlockTask:
        counted = frozenset(one.number for one in requests if one.number not in self._shards)
        return BlockTask(tuple(requests), drops, counted, current_limits(), keep, not self.dropping)

    def _reduced(self, task: BlockTask, count: Callable[..., Any], merge: Merge, label: str) -> dict[int, Any]:
        return self.records.reduce(count, partial(task.merged, merge), label) if task.counted else {}

    def _from_shards(self, task: BlockTask, number: int, count: Callable[..., Any], merge: Callable[..., Any]) -> Any:
        """The result of one quasi-identifier; in its shards every group is complete."""
        taken = self._taken[number]
        columns = tuple(range(self.columns)) if self.dropping else (*taken.columns, *taken.sensitive.columns)
        if number not in self._shards:
            self._shards[number] = self._exchanged(number, columns)
        requests = tuple(one.among(columns) for one in task.requests if self.dropping or one.number == number)
        task = task._replace(requests=requests, counted=frozenset([number]))
        return self._shards[number].reduce(partial(count, task), merge, "refinement: count")

    def _exchanged(self, number: int, columns: tuple[int, ...]) -> Collection[CodedBlock]:
        """All records of a group in one place: by the refinements that were taken, as one on trial may be undone."""
        shards = max(2, -(-self.rows // current_limits().refinement_shard_rows))
        split = partial(_split_rows, self._taken[number], columns, shards)
        return self.records.exchange(split, _joined, shards, "refinement: exchange", size=2 * self.rows * len(columns))

    def gather_households(self, household: str, attributes: int, allowed: int) -> None:
        """Let the members of each household meet, as codes of the first attributes; so many records may be dropped."""
        members = self.records.transform(partial(_members, attributes))
        self.households = coded_households(members, self.rows, household, attributes, allowed)

    def class_counts(self, sizes: Sequence[int], classes: int) -> list[Counts]:
        """For every attribute how often each code occurs with each class."""
        return self.records.reduce(partial(_histograms, tuple(sizes), classes), _added, "refinement: classes")


def _split_rows(request: Request, columns: tuple[int, ...], shards: int, block: CodedBlock) -> list[tuple[Codes]]:
    """A block's rows by the shard of their group."""
    groups = group_rows(block.codes, request.columns, request.values)
    shard = (node_keys(groups.nodes).first % np.uint64(shards)).astype(np.int64)[groups.rows]
    codes = block.codes[list(columns)]
    return [(codes[:, shard == number],) for number in range(shards)]


def _joined(parts: list[tuple[Codes]]) -> CodedBlock:
    return CodedBlock(np.concatenate([codes for (codes,) in parts], axis=1))


def coded_table(
    source: Table, columns: Sequence[CodeEncoder], labels: Labels, *, dropping: bool, household: str | None = None
) -> CodedTable:
    """The table as codes, persisted where they fit in memory and otherwise computed again in every round."""
    homes = [] if household is None else [household]
    names = tuple(dict.fromkeys([*(one.column for one in columns), *labels.inputs, *homes]))
    size = source.rows * (2 * len(columns) + _OTHER_BYTES + _KEY_BYTES * len(homes))
    code = partial(_code, tuple(columns), labels, household)
    records = source.select(names).persist(code, "refinement: codes", size=size)
    return CodedTable(records, source.rows, len(columns), dropping)


def _code(columns: tuple[CodeEncoder, ...], labels: Labels, household: str | None, rows: Rows) -> CodedBlock:
    codes = np.empty((len(columns), rows.num_rows), np.uint16)
    for place, one in enumerate(columns):
        codes[place] = one.encode(rows)
    return CodedBlock(codes, labels.of(rows), None if household is None else household_keys(rows, household, WHO))


def _members(attributes: int, block: CodedBlock) -> Members:
    assert block.households is not None
    return block.households, (block.codes[:attributes],)


def _histograms(sizes: tuple[int, ...], classes: int, block: CodedBlock) -> list[Counts]:
    assert block.classes is not None
    return [
        np.bincount(block.codes[place].astype(np.int64) * classes + block.classes, minlength=size * classes).reshape(
            size, classes
        )
        for place, size in enumerate(sizes)
    ]


def _added(left: list[Counts], right: list[Counts]) -> list[Counts]:
    return [one + other for one, other in zip(left, right, strict=True)]
