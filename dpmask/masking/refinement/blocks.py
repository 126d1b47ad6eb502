"""A table as blocks of small codes, and the passes that count groups and cells over them.

A request carries the masked values as they are now, never groups: a block numbers its groups for itself, caches them
beside its codes while these are in a worker's memory, and computes them again from the codes wherever they are not. So
a lost worker costs time, and nothing grows from round to round.

Where the cells or groups of a quasi-identifier outgrow their limit, its rows are exchanged by group, once; then every
group is complete in one shard, and only effects and summaries travel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.limits import Limits, current_limits
from dpmask.kernels.arrays import Counts
from dpmask.kernels.models import Condition
from dpmask.kernels.refinement.cells import (
    Cells,
    Grouped,
    Sensitive,
    Values,
    cell_starts,
    count_cells,
    group_rows,
    merge_cells,
    node_keys,
    split_groups,
)
from dpmask.kernels.refinement.dropped import (
    Drops,
    GroupSummary,
    KeyedSizes,
    contains,
    group_sizes,
    merge_sizes,
    merge_summaries,
    only,
    summarised,
)
from dpmask.kernels.refinement.effects import Effects, candidate_effects, merge_effects
from dpmask.kernels.refinement.joint import JointRows
from dpmask.lake.reading import Rows
from dpmask.masking.refinement.attributes import Refined
from dpmask.masking.refinement.guide import Labels
from dpmask.masking.refinement.households import CodedHouseholds
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.table import Table

Codes = NDArray[np.uint16]

_OTHER_BYTES = 16  # a row's class and its groups
_VERSIONS = 1 << 32  # more than a search has refinements


class CodedBlock:
    """A block's codes (attributes x rows) and classes; the groups of its rows are cached here, but never travel."""

    def __init__(self, codes: Codes, classes: NDArray[np.uint16] | None = None) -> None:
        self.codes, self.classes = codes, classes
        self.groups: dict[int, tuple[int, Grouped]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"codes": self.codes, "classes": self.classes, "groups": {}}

    def __repr__(self) -> str:
        return f"<CodedBlock: {self.codes.shape[1]} rows>"

    def __sizeof__(self) -> int:
        return self.codes.nbytes + 4 * self.codes.shape[1] + (0 if self.classes is None else self.classes.nbytes)


class Request(NamedTuple):
    """What to count of one quasi-identifier; ``version`` is how often it was refined, ``refined`` the last time."""

    number: int
    k: int
    sensitive: Sensitive
    conditions: tuple[Condition, ...]
    version: int
    columns: tuple[int, ...]
    values: tuple[Values, ...]
    place: int
    refined: Refined | None
    many: bool = False
    """One of many sets of the same columns: counted without groups, but in shards."""

    def effects(self, cells: Cells) -> Effects:
        """The effects of all candidates on groups that are complete."""
        return candidate_effects(cells, self.values, self.k, self.conditions)

    def among(self, columns: Sequence[int]) -> Request:
        """The same for codes of these columns alone."""
        places = tuple(map(columns.index, self.sensitive.columns))
        return self._replace(
            columns=tuple(map(columns.index, self.columns)),
            sensitive=self.sensitive._replace(columns=places),
            many=False,  # in shards every set is by itself
        )


_Merge = Callable[[Request, Any, Any], Any]


def _merge_cells(request: Request, left: Cells, right: Cells) -> Cells:
    return merge_cells(left, right, request.values)


def _merge_sizes(request: Request, left: KeyedSizes, right: KeyedSizes) -> KeyedSizes:
    return merge_sizes(left, right)


class _BlockTask(NamedTuple):
    """What a pass does with each block: the requests, what is dropped, and the quasi-identifiers to count.

    ``keep``: cache the groups, which are not those of a trial. ``changed``: count only groups that the last refinement
    changed.
    """

    requests: tuple[Request, ...]
    drops: Drops
    counted: frozenset[int]
    limits: Limits
    keep: bool
    changed: bool

    def groups(self, block: CodedBlock) -> Iterator[tuple[Request, Grouped]]:
        """The groups to count, with only the records that remain."""
        many = {one.number for one in self._many}
        needed = [one for one in self.requests if self.drops.records or one.number in self.counted - many]
        groups = [self._current(block, one) for one in needed]
        remaining = np.ones(block.codes.shape[1], np.bool_)
        if self.drops.records:
            for request, one in zip(needed, groups, strict=True):
                remaining &= ~contains(node_keys(one.nodes), self.drops.keys[request.number])[one.rows]
        for request, one in zip(needed, groups, strict=True):
            if request.number in self.counted - many:
                yield request, one if remaining.all() else only(one, remaining)

    def _current(self, block: CodedBlock, request: Request) -> Grouped:
        """The groups of a block: those cached, or one refinement further, or computed again."""
        version, groups = block.groups.get(request.number, (-1, None))
        if groups is not None and version == request.version:
            return groups
        if groups is not None and version == request.version - 1 and request.refined is not None:
            column, place = block.codes[request.columns[request.place]], request.place
            groups = split_groups(groups, column, place, *request.refined, request.values[place])
        else:
            groups = group_rows(block.codes, request.columns, request.values)
        if self.keep and not request.many:
            block.groups[request.number] = request.version, groups
        return groups

    def _wanted(self, request: Request, groups: Grouped) -> tuple[NDArray[np.intp], int]:
        """The groups whose cells are counted, and how many cells these are."""
        wanted = groups.sizes > 0
        if self.changed and request.refined is not None:
            wanted &= np.isin(groups.nodes[:, request.place], request.refined.children)
        found = np.flatnonzero(wanted)
        return found, cell_starts(groups.nodes[found], request.values)[1] * request.sensitive.counts

    def cells(self, block: CodedBlock) -> dict[int, Cells | None]:
        """The cells by quasi-identifier; None where they are more than the limit."""
        found: dict[int, Cells | None] = dict(self._jointly(block))
        for request, groups in self.groups(block):
            wanted, size = self._wanted(request, groups)
            fits = size <= self.limits.refinement_cells
            found[request.number] = self._count(block, request, groups, wanted) if fits else None
        return found

    def _jointly(self, block: CodedBlock) -> Iterator[tuple[int, Cells]]:
        """The cells of quasi-identifiers that are many, by the rows that the last refinement changed."""
        rows: dict[tuple[int, ...], JointRows] = {}
        for one in self._many:
            key = (one.columns[one.place], *one.refined.children) if self.changed and one.refined else ()
            if key and key not in rows:
                changed = np.isin(one.values[one.place].nodes, key[1:])[block.codes[key[0]]]
                rows[key] = JointRows(block.codes, np.flatnonzero(changed))
            elif key not in rows:
                rows[key] = JointRows(block.codes)
            yield one.number, rows[key].cells(one.columns, one.values, one.sensitive)

    @property
    def _many(self) -> list[Request]:
        """The requests that are counted without groups: records that are dropped need groups."""
        return [one for one in self.requests if one.many and one.number in self.counted and not self.drops.records]

    def _count(self, block: CodedBlock, request: Request, groups: Grouped, wanted: NDArray[np.intp]) -> Cells:
        sparse = self.limits.refinement_sparse
        return count_cells(block.codes, request.columns, groups, wanted, request.values, sparse, request.sensitive)

    def sizes(self, block: CodedBlock) -> dict[int, KeyedSizes | None]:
        """The sizes of groups by quasi-identifier; None where they are more than the limit."""
        found = {
            one.number: self._within(group_sizes(groups, block.codes, one.sensitive))
            for one, groups in self.groups(block)
        }
        rows = JointRows(block.codes)
        return found | {
            one.number: self._within(rows.sizes(one.columns, one.values, one.sensitive)) for one in self._many
        }

    def _within(self, found: Any) -> Any:
        return found if found.counts.size <= self.limits.refinement_cells else None

    def merged(self, merge: _Merge, left: dict[int, Any], right: dict[int, Any]) -> dict[int, Any]:
        """The cells or sizes of both blocks."""
        pairs = [(one, left[one.number], right[one.number]) for one in self.requests if one.number in left]
        return {
            one.number: None if mine is None or other is None else self._within(merge(one, mine, other))
            for one, mine, other in pairs
        }

    def shard_effects(self, block: CodedBlock) -> Effects:
        """The effects on groups that are complete, some groups at a time."""
        ((request, groups),) = self.groups(block)
        wanted, size = self._wanted(request, groups)
        parts = max(1, min(-(-size // self.limits.refinement_cells), len(wanted)))
        cells = (self._count(block, request, groups, part) for part in np.array_split(wanted, parts))
        return reduce(merge_effects, (request.effects(one) for one in cells))

    def shard_summary(self, block: CodedBlock) -> GroupSummary:
        """The summary of groups that are complete."""
        ((request, groups),) = self.groups(block)
        return summarised(group_sizes(groups, block.codes, request.sensitive), request.k, request.conditions)


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
    _shards: dict[int, Collection[CodedBlock]] = field(default_factory=dict)
    _searches: Iterator[int] = field(default_factory=count)

    def without_drops(self) -> CodedTable:
        """The same blocks for a search that drops nothing."""
        return replace(self, dropping=False, _taken={}, _shards={})

    def first_version(self) -> int:
        """The version that a search begins with: blocks cache groups by it, and must not take those of another."""
        self._taken, self._shards = {}, {}
        return _VERSIONS * next(self._searches)

    def effects(self, requests: Sequence[Request], drops: Drops) -> dict[int, Effects]:
        """The effects of all candidates, by quasi-identifier; without drops only those on groups that changed."""
        self._taken |= {one.number: one for one in requests}
        task = self._task(requests, drops, keep=True)
        found = self._reduced(task, task.cells, _merge_cells, "refinement: count")
        return {
            one.number: self._from_shards(task, one.number, _BlockTask.shard_effects, merge_effects)
            if (cells := found.get(one.number)) is None
            else one.effects(cells)
            for one in requests
        }

    def summaries(self, requests: Sequence[Request], drops: Drops, *, keep: bool = False) -> list[GroupSummary]:
        """The sizes of all groups in the order of the requests; ``keep`` the groups, which are not those of a trial."""
        self._taken = {one.number: one for one in requests} | self._taken
        task = self._task(requests, drops, keep=keep)
        found = self._reduced(task, task.sizes, _merge_sizes, "refinement: drop")
        return [
            self._from_shards(task, one.number, _BlockTask.shard_summary, merge_summaries)
            if (sizes := found.get(one.number)) is None
            else summarised(sizes, one.k, one.conditions)
            for one in requests
        ]

    def ending(self, requests: Sequence[Request], drops: Drops) -> tuple[dict[int, Cells | None], list[Effects]]:
        """The cells of all groups, where they are few enough, and the effects of all candidates on them."""
        self._taken = {one.number: one for one in requests} | self._taken
        requests = [one._replace(version=self._taken[one.number].version) for one in requests]
        task = self._task(requests, drops, keep=False)
        found = self._reduced(task, task.cells, _merge_cells, "refinement: stops")
        effects = [
            self._from_shards(task, one.number, _BlockTask.shard_effects, merge_effects)
            if (cells := found.get(one.number)) is None
            else one.effects(cells)
            for one in requests
        ]
        return found, effects

    def _task(self, requests: Sequence[Request], drops: Drops, *, keep: bool) -> _BlockTask:
        counted = frozenset(one.number for one in requests if one.number not in self._shards)
        return _BlockTask(tuple(requests), drops, counted, current_limits(), keep, not self.dropping)

    def _reduced(self, task: _BlockTask, count: Callable[..., Any], merge: _Merge, label: str) -> dict[int, Any]:
        return self.records.reduce(count, partial(task.merged, merge), label) if task.counted else {}

    def _from_shards(self, task: _BlockTask, number: int, count: Callable[..., Any], merge: Callable[..., Any]) -> Any:
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


def coded_table(source: Table, columns: Sequence[CodeEncoder], labels: Labels, *, dropping: bool) -> CodedTable:
    """The table as codes, persisted where they fit in memory and otherwise computed again in every round."""
    names = tuple(dict.fromkeys([*(one.column for one in columns), *labels.inputs]))
    size = source.rows * (2 * len(columns) + _OTHER_BYTES)
    code = partial(_code, tuple(columns), labels)
    records = source.select(names).persist(code, "refinement: codes", size=size)
    return CodedTable(records, source.rows, len(columns), dropping)


def _code(columns: tuple[CodeEncoder, ...], labels: Labels, rows: Rows) -> CodedBlock:
    codes = np.empty((len(columns), rows.num_rows), np.uint16)
    for place, one in enumerate(columns):
        codes[place] = one.encode(rows)
    return CodedBlock(codes, labels.of(rows))


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
