"""Which rows of a lake are taken: what footers say of a filter, and one pass over what they leave open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from dpmask.engine.collection import Collection
from dpmask.engine.tasks import Block
from dpmask.lake.block_plan import Piece
from dpmask.lake.filters import Comparison, RowFilter
from dpmask.lake.footers import DataFile, Facts, all_null, is_empty_range
from dpmask.lake.reading import FilteredBlock, LakeBlock

Verdicts = dict[tuple[int, int], bool | None]
"""By file and row group: whether all of its rows are taken, or none; None if that is not known."""


def verdicts(files: Sequence[DataFile], where: RowFilter | None, schema: Any, coded: Mapping[str, Any]) -> Verdicts:
    """What is known of each row group without reading it; ``coded`` are columns with codes that mean missing."""
    comparisons = where.comparisons if where else ()
    return {
        (number, group): _all([_verdict(one, file, group, schema, coded) for one in comparisons])
        for number, file in enumerate(files)
        for group in range(len(file.groups))
    }


def _all(found: Sequence[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True


def _verdict(one: Comparison, file: DataFile, group: int, schema: Any, coded: Mapping[str, Any]) -> bool | None:
    kind = schema.field(one.column).type
    hive = dict(file.hive)
    if one.column in hive:
        return bool(one.holds(pa.array([hive[one.column]], pa.string()).cast(kind))[0].as_py())
    if one.column not in file.schema.names:
        facts = all_null(file.groups[group])
    else:
        facts = file.by_group[one.column][group] if one.column in file.by_group else Facts(None, None, None)
    if is_empty_range(facts.low):
        return False
    found = _by_range(one, facts, kind)
    certain = facts.nulls == 0 and one.column not in coded and not pa.types.is_floating(kind)  # NaN is in no range
    return found if found is not True or certain else None


def _by_range(one: Comparison, facts: Facts, kind: Any) -> bool | None:
    """What a column's range says; nanoseconds are rounded in it, and some writers put NaN there."""
    low, high = facts.low, facts.high
    if low is None or high is None or low != low or high != high or getattr(kind, "unit", "") == "ns":  # noqa: PLR0124
        return None
    try:
        return one.by_range(low, high, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def filtered_blocks(
    files: Sequence[DataFile],
    plan: Sequence[tuple[list[Piece], LakeBlock]],
    where: RowFilter | None,
    known: Verdicts,
) -> list[Block]:
    """The blocks without rows that are not taken; where footers do not decide, rows are counted in one pass."""
    starts = [[0, *accumulate(file.groups)] for file in files]
    gone = [np.empty(0, np.int64) if file.deleted is None else file.deleted for file in files]
    contents: list[Any] = []
    rows: list[int | None] = []
    for pieces, block in plan:
        sure = where is None or all(known[piece.file, piece.group] for piece in pieces)
        deleted = np.concatenate([*_places(pieces, starts, gone)])
        plain = sure and not len(deleted)
        contents.append(block if plain else FilteredBlock(block, None if sure else where, deleted))
        rows.append(sum(piece.rows for piece in pieces) - len(deleted) if sure else None)
    undecided = [number for number, one in enumerate(rows) if one is None]
    if undecided:
        counted = Collection.of(contents[number] for number in undecided).map(_count, "filter rows")
        for number, found in zip(undecided, counted, strict=True):
            rows[number] = found
    return list(_in_order(rows, contents))


def _in_order(rows: Sequence[int | None], contents: Sequence[Any]) -> Iterator[Block]:
    first = 0
    for count, content in zip(rows, contents, strict=True):
        if count:
            yield Block(first, count, content)
            first += count


def _places(pieces: Sequence[Piece], starts: Sequence[Sequence[int]], gone: Sequence[Any]) -> Iterator[Any]:
    """The places in a block of the rows that are deleted, piece by piece."""
    before = 0
    for piece in pieces:
        low = starts[piece.file][piece.group] + piece.start
        some = gone[piece.file]
        some = some[np.searchsorted(some, low) : np.searchsorted(some, low + piece.rows)]
        yield (some - low + before).astype(np.int32)
        before += piece.rows


def _count(content: FilteredBlock) -> int:
    return int(content.read(content.where.columns if content.where else ()).num_rows)
