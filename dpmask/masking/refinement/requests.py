"""What a pass of refinement does with one block of codes: it groups its rows, and counts cells or sizes of groups.

A request carries the masked values as they are now, never groups: a block numbers its groups for itself, caches them
beside its codes while these are in a worker's memory, and computes them again from the codes wherever they are not. So
a lost worker costs time, and nothing grows from round to round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.limits import Limits
from dpmask.kernels.keys import RowKeys
from dpmask.kernels.models import Condition
from dpmask.kernels.refinement.cells import CellGroups, Cells, Sensitive, cell_starts, count_cells, merge_cells
from dpmask.kernels.refinement.derived import only_place
from dpmask.kernels.refinement.dropped import (
    Drops,
    GroupSummary,
    KeyedSizes,
    contains,
    group_sizes,
    merge_sizes,
    only,
    summarised,
)
from dpmask.kernels.refinement.effects import Effects, candidate_effects, merge_effects
from dpmask.kernels.refinement.grouping import Codes, Grouped, Values, group_rows, node_keys, split_groups
from dpmask.kernels.refinement.joint import JointRows
from dpmask.masking.refinement.attributes import Refined


class CodedBlock:
    """A block's codes (attributes x rows), classes, and keys of households, where a requirement counts these.

    The groups of its rows are cached here, but never travel.
    """

    def __init__(
        self, codes: Codes, classes: NDArray[np.uint16] | None = None, households: RowKeys | None = None
    ) -> None:
        self.codes, self.classes, self.households = codes, classes, households
        self.groups: dict[int, tuple[int, Grouped]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"groups": {}}

    def __repr__(self) -> str:
        return f"<CodedBlock: {self.codes.shape[1]} rows>"

    def __sizeof__(self) -> int:
        arrays = [self.codes, *([] if self.classes is None else [self.classes]), *(self.households or ())]
        return sum(one.nbytes for one in arrays) + 4 * self.codes.shape[1]


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
    derived: int | None = None
    """The child whose groups are what the others leave: of them only the refined attribute is counted."""

    def effects(self, cells: Cells) -> Effects:
        """The effects of all candidates on groups that are complete."""
        return candidate_effects(cells, self.values, self.k, self.conditions)

    @property
    def parts(self) -> list[tuple[tuple[int, ...], tuple[Values, ...]]]:
        """The children whose groups are counted together, and by which values; without a refinement these are all."""
        children = () if self.refined is None else self.refined.children
        if self.derived is None:
            return [(children, self.values)]
        others = tuple(child for child in children if child != self.derived)
        refinable = self.values[self.place].widths[self.derived] > 0
        own = [((self.derived,), only_place(self.values, self.place))] if refinable else []
        return [(others, self.values), *own]

    def among(self, columns: Sequence[int]) -> Request:
        """The same for codes of these columns alone."""
        places = tuple(map(columns.index, self.sensitive.columns))
        return self._replace(
            columns=tuple(map(columns.index, self.columns)),
            sensitive=self.sensitive._replace(columns=places),
            many=False,  # in shards every set is by itself
            derived=None,
        )


class CellParts(tuple[Cells, ...]):
    """The cells of the parts of a request."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """Numbers in all."""
        return sum(one.counts.size for one in self)


Merge = Callable[[Request, Any, Any], Any]


def merge_parts(request: Request, left: CellParts, right: CellParts) -> CellParts:
    """The cells of both blocks."""
    both = zip(left, right, request.parts, strict=True)
    return CellParts(merge_cells(mine, other, values) for mine, other, (_, values) in both)


def merge_keyed(request: Request, left: KeyedSizes, right: KeyedSizes) -> KeyedSizes:
    """The sizes of both blocks' groups."""
    return merge_sizes(left, right)


class BlockTask(NamedTuple):
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

    def _wanted(self, request: Request, groups: Grouped) -> tuple[list[CellGroups], int]:
        """The groups whose cells are counted, and how many cells these are."""
        found, size = [], 0
        for children, values in request.parts:
            some = np.arange(len(groups.nodes))
            if self.changed and children:
                some = np.flatnonzero(np.isin(groups.nodes[:, request.place], children))
            found.append(CellGroups(some, values))
            size += cell_starts(groups.nodes[some], values)[1] * request.sensitive.counts
        return found, size

    def cells(self, block: CodedBlock) -> dict[int, CellParts | None]:
        """The cells by quasi-identifier; None where they are more than the limit."""
        found: dict[int, CellParts | None] = {number: CellParts([one]) for number, one in self._jointly(block)}
        for request, groups in self.groups(block):
            wanted, size = self._wanted(request, groups)
            fits = size <= self.limits.refinement_cells
            found[request.number] = self._count(block, request, groups, *wanted) if fits else None
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

    def _count(
        self, block: CodedBlock, request: Request, groups: Grouped, counted: CellGroups, own: CellGroups | None = None
    ) -> CellParts:
        return CellParts(count_cells(block.codes, request.columns, groups, counted, request.sensitive, own))

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
        return found if found.size <= self.limits.refinement_cells else None

    def merged(self, merge: Merge, left: dict[int, Any], right: dict[int, Any]) -> dict[int, Any]:
        """The cells or sizes of both blocks."""
        pairs = [(one, left[one.number], right[one.number]) for one in self.requests if one.number in left]
        return {
            one.number: None if mine is None or other is None else self._within(merge(one, mine, other))
            for one, mine, other in pairs
        }

    def shard_effects(self, block: CodedBlock) -> Effects:
        """The effects on groups that are complete, some groups at a time."""
        ((request, groups),) = self.groups(block)
        (wanted,), size = self._wanted(request, groups)
        parts = max(1, min(-(-size // self.limits.refinement_cells), len(wanted.groups)))
        some = (wanted._replace(groups=part) for part in np.array_split(wanted.groups, parts))
        cells = (self._count(block, request, groups, one) for one in some)
        return reduce(merge_effects, (request.effects(one) for (one,) in cells))

    def shard_summary(self, block: CodedBlock) -> GroupSummary:
        """The summary of groups that are complete."""
        ((request, groups),) = self.groups(block)
        return summarised(group_sizes(groups, block.codes, request.sensitive), request.k, request.conditions)
