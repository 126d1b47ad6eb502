"""The groups of one quasi-identifier, before and after masking: rows meet by a hash of it; a register is matched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from dpmask.engine.collection import Collection, exchange, itself
from dpmask.engine.limits import current_limits
from dpmask.kernels.arrays import Counts
from dpmask.kernels.groups import (
    Bounds,
    Diversity,
    GroupCells,
    Groups,
    SensitiveShares,
    cells,
    diversity_of_counts,
    join_cells,
    measure_groups,
    merge_diversities,
    merge_groups,
    split_cells,
)
from dpmask.kernels.matching import PartialRows
from dpmask.lake.reading import Rows
from dpmask.table.columns import is_category
from dpmask.table.distinct_rows import DistinctRows, distinct_rows
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.encoders.category import count_texts
from dpmask.table.encoders.interval import interval_parts, is_ordered
from dpmask.table.label_sets import AsReleased, LabelSets, is_informative, overlap
from dpmask.table.matching import MatchedRecords, added, matched_rows, row_source, size_histogram
from dpmask.table.row_keys import row_keys
from dpmask.table.table import Table

_CELL_BYTES = 24


class MatchedGroups(NamedTuple):
    """Rows of a table with suppressed cells: the records by how many match them, and what these give away."""

    records: MatchedRecords
    diversities: tuple[Diversity, ...]


def matched_groups(
    table: Table,
    quasi: Sequence[str],
    suppressed: Sequence[str],
    beside: Mapping[str, tuple[CodeEncoder, SensitiveShares]],
    bounds: Bounds,
    who: str,
) -> MatchedGroups:
    """The groups of one quasi-identifier, where missing cells of the ``suppressed`` columns match every value."""
    encoders = [encoder for encoder, _ in beside.values()]
    columns = tuple((encoder.size, one) for encoder, one in beside.values())
    source = row_source(table, quasi, suppressed, encoders, who)
    mine, others = matched_rows(source, partial(_summarised, columns, bounds), _both_matched, who)
    sizes, diversities = _both_matched(mine, others)
    return MatchedGroups(MatchedRecords(sizes, mine[0]), diversities)


_Matched = tuple[dict[int, int], tuple[Diversity, ...]]


def _summarised(
    columns: tuple[tuple[int, SensitiveShares], ...], bounds: Bounds, rows: PartialRows, counts: Counts
) -> _Matched:
    sizes = counts[:, : columns[0][0] if columns else 1].sum(axis=1)
    diversities, low = [], 0
    for width, one in columns:
        diversities.append(diversity_of_counts(counts[:, low : low + width], rows.times, one, bounds))
        low += width
    return size_histogram(sizes, rows.times), tuple(diversities)


def _both_matched(left: _Matched, right: _Matched) -> _Matched:
    diversities = tuple(merge_diversities(*pair) for pair in zip(left[1], right[1], strict=True))
    return added(left[0], right[0]), diversities


class BothGroups(NamedTuple):
    """The groups of the original and of the masked table."""

    before: Groups
    after: Groups


@dataclass(frozen=True, repr=False)
class GroupTask:
    """One quasi-identifier: its columns, and the sensitive ones beside it with their shares before and after.

    Where labels stand for sets of values, an original is matched under the label it would be released as; a column
    that shows nothing is left out. Where labels overlap (``register`` is False), as those of regions do, that is not
    known of a column by itself: then no person is taken to match a released group but its own, which is the worst.
    """

    quasi: tuple[str, ...]
    encoders: Mapping[str, CodeEncoder]
    k: int
    bounds: Bounds
    before: Mapping[str, SensitiveShares]
    after: Mapping[str, SensitiveShares]
    labels: tuple[AsReleased, ...]
    register: bool = True

    @property
    def matched_by(self) -> tuple[str, ...]:
        """The columns that released records are matched by."""
        silent = {one.column for one in self.labels if self.register and not is_informative(one.sets)}
        return tuple(name for name in self.quasi if name not in silent)

    def measured(self, original: Table, masked: Table) -> BothGroups:
        """All groups: rows meet in shards by the hash of their quasi-identifier."""
        columns = [*self.quasi, *self.encoders]
        rows = original.rows + masked.rows
        shards = -(-rows // current_limits().group_shard_rows)
        splits: list[Collection[Any]] = [
            original.select(columns).transform(partial(_split_original, self, shards)),
            masked.select(columns).transform(partial(_split_masked, self, shards)),
        ]
        size = rows * (_CELL_BYTES + 8 * len(self.encoders))
        found = exchange(splits, partial(_gather, self), shards, "groups: exchange", size=size)
        return found.reduce(itself, _merge, "groups")


def _split(task: GroupTask, columns: Sequence[str], shards: int, rows: Rows) -> list[GroupCells]:
    codes = [one.encode(rows) for one in task.encoders.values()]
    return split_cells(cells(row_keys(rows, columns), codes), shards)


def _split_distinct(columns: Sequence[str], shards: int, found: DistinctRows) -> list[GroupCells]:
    """The same of rows without anything beside them, each of which stands for several."""
    rows, members = found
    return split_cells(cells(row_keys(rows, columns), [], members.sizes), shards)


class _Register(NamedTuple):
    """Cells of originals as they are, and as they would be released, if that differs."""

    cells: GroupCells
    mapped: GroupCells | None


def _split_original(task: GroupTask, shards: int, rows: Rows) -> list[_Register]:
    distinct = distinct_rows(rows, task.quasi)
    found = _split(task, task.quasi, shards, rows) if task.encoders else _split_distinct(task.quasi, shards, distinct)
    if not (task.labels and task.register):
        return [_Register(one, None) for one in found]
    labelled = distinct.rows
    for label in task.labels:
        labelled = label.replaced(labelled)
    mapped = _split_distinct(task.matched_by, shards, distinct._replace(rows=labelled))
    return [_Register(*pair) for pair in zip(found, mapped, strict=True)]


def _split_masked(task: GroupTask, shards: int, rows: Rows) -> list[GroupCells]:
    if task.encoders:
        return _split(task, task.matched_by, shards, rows)
    return _split_distinct(task.matched_by, shards, distinct_rows(rows, task.quasi))


def _gather(task: GroupTask, before: list[_Register], after: list[GroupCells]) -> BothGroups:
    original, masked = join_cells([one.cells for one in before]), join_cells(after)
    mapped = [one.mapped for one in before if one.mapped is not None]
    register = join_cells(mapped) if mapped else original if task.register else masked
    return BothGroups(
        measure_groups(original, list(task.before.values()), task.k, task.bounds, original),
        measure_groups(masked, list(task.after.values()), task.k, task.bounds, register),
    )


def _merge(left: BothGroups, right: BothGroups) -> BothGroups:
    return BothGroups(merge_groups(left.before, right.before), merge_groups(left.after, right.after))


def released_labels(
    original: Table, masked: Table, columns: Sequence[str], sets: LabelSets, who: str
) -> dict[str, AsReleased]:
    """How originals of generalised columns are released: by their sets, or by the interval labels that are there."""
    before, after = original.masked_schema, masked.masked_schema
    kinds = {name: (before.field(name).type, after.field(name).type) for name in columns}
    labelled = [
        name
        for name, (first, second) in kinds.items()
        if name not in sets and is_ordered(first) and is_category(second)
    ]
    seen = count_texts(masked, labelled, who) if labelled else {}
    found = dict(sets) | {name: {text: [text] for text in one.texts} for name, one in seen.items() if _bands(one.texts)}
    return {name: AsReleased(name, found[name], kinds[name][1]) for name in columns if name in found}


def overlapping(masked: Table, labels: Mapping[str, AsReleased], who: str) -> set[str]:
    """The columns whose labels overlap: a value may be released under several of them."""
    texts = [name for name in labels if is_category(masked.masked_schema.field(name).type)]
    maybe = [name for name in texts if len(labels[name].sets) == 1 or overlap(labels[name].sets, labels[name].sets)]
    seen = count_texts(masked, maybe, who) if maybe else {}
    return {name for name, one in seen.items() if one.many or overlap(labels[name].sets, one.texts)}


def _bands(texts: Any) -> bool:
    return bool(texts) and all(interval_parts(text) for text in texts)
