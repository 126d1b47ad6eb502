"""How many records of a table match each record, where a missing cell of some columns matches every value.

Local suppression sets cells to missing, so a record is then counted among all records that it may be: those that agree
with it wherever both have a value (sdcMicro's rule, too). In other columns missing is a value of its own. What models
ask of a group is asked of the records that match a row: their sensitive values are those of the group.

Passes: one for the rows with such cells, whose different ones come to the driver, one for what these match, and one
over all rows, in which complete ones meet by their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from dpmask.engine.collection import Collection
from dpmask.engine.exchange import Piece
from dpmask.engine.limits import current_limits
from dpmask.kernels.arrays import Counts
from dpmask.kernels.keys import new_keys, with_word
from dpmask.kernels.matching import (
    PartialRows,
    concatenated_rows,
    different_rows,
    joined_rows,
    matches,
    whole_keys,
    without_codes,
)
from dpmask.lake.reading import Rows
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.routing import rows_by_target
from dpmask.table.row_keys import column_words, require_groupable
from dpmask.table.table import Table

_DENSE = 1 << 22  # counts that are looked at together
Summary = TypeVar("Summary")
Summarise = Callable[[PartialRows, Counts], Summary]
"""Of some different rows, and the records that match each, by their sensitive values (rows x codes)."""


class RowSource(NamedTuple):
    """The rows of some blocks that are matched: ``blocks`` gives the different ones of each, ``width`` their codes."""

    blocks: Collection[PartialRows]
    records: int
    width: int = 1


def matched_rows(
    source: RowSource, summarise: Summarise[Summary], merge: Callable[[Summary, Summary], Summary], label: str
) -> tuple[Summary, Summary]:
    """Summaries of all rows with suppressed cells, and of all others."""
    blocks, width = source.blocks, source.width
    some = blocks.reduce(_partial, joined_rows, label)
    rows, step = without_codes(some), max(1, _DENSE // width)
    found = []
    for first in range(0, max(len(rows.times), 1), step):
        part = rows.at(slice(first, first + step))
        beside = blocks.reduce(partial(_matched, width, part), np.add, label) if len(part.times) else 0
        found.append(summarise(part, matches(part, some, width) + beside))
    mine = found[0]
    for one in found[1:]:
        mine = merge(mine, one)
    targets = 1 + source.records // current_limits().group_target_rows
    size = source.records * 8 * (some.words.shape[1] + some.codes.shape[1] + 1)
    shares = blocks.exchange(partial(_split, targets), _join, targets, label, size=size)
    return mine, shares.reduce(partial(_complete, width, some, summarise, merge), merge, label)


def _partial(rows: PartialRows) -> PartialRows:
    return rows.at(rows.partly)


def _matched(width: int, some: PartialRows, rows: PartialRows) -> Counts:
    """How many complete rows of a block match each row with missing cells."""
    return matches(some, rows.at(~rows.partly), width)


def _split(targets: int, rows: PartialRows) -> list[Piece]:
    """The complete rows of a block, by the target where equal ones meet."""
    whole = rows.at(~rows.partly)
    return [tuple(whole.at(part)) for part in rows_by_target(whole_keys(whole).first % np.uint64(targets), targets)]


def _join(pieces: list[Piece]) -> PartialRows:
    return concatenated_rows([PartialRows(*one) for one in pieces])


def _complete(
    width: int,
    some: PartialRows,
    summarise: Summarise[Summary],
    merge: Callable[[Summary, Summary], Summary],
    cells: PartialRows,
) -> Summary:
    """The rows of one target, some at a time."""
    rows, step = without_codes(cells), max(1, _DENSE // width)
    found = None
    for first in range(0, max(len(rows.times), 1), step):
        part = rows.at(slice(first, first + step))
        one = summarise(part, matches(part, cells, width) + matches(part, some, width))
        found = one if found is None else merge(found, one)
    assert found is not None
    return found


def row_source(
    table: Table, columns: Sequence[str], suppressed: Sequence[str], encoders: Sequence[CodeEncoder], label: str
) -> RowSource:
    """A table's rows by these columns; missing cells of ``suppressed`` ones match every value."""
    require_groupable(table.masked_schema, columns, label)
    names = list(dict.fromkeys([*columns, *(one.column for one in encoders)]))
    wild = tuple(column in set(suppressed) for column in columns)
    blocks = table.select(names).transform(partial(_rows, tuple(columns), wild, tuple(encoders)))
    return RowSource(blocks, table.rows, max(sum(one.size for one in encoders), 1))


def _rows(
    columns: tuple[str, ...], wild: tuple[bool, ...], encoders: tuple[CodeEncoder, ...], rows: Rows
) -> PartialRows:
    """The different rows of a block."""
    words = np.empty((rows.num_rows, len(columns)), np.uint64)
    missing = np.zeros((rows.num_rows, len(columns)), np.bool_)
    for place, (column, free) in enumerate(zip(columns, wild, strict=True)):
        found, absent = column_words(rows, column)
        keys = new_keys(rows.num_rows)
        for one in found:
            keys = with_word(keys, one, absent)
        words[:, place] = keys.first
        if free and absent is not None:
            missing[:, place] = absent
    codes = np.zeros((rows.num_rows, max(len(encoders), 1)), np.int64)
    for place, encoder in enumerate(encoders):
        codes[:, place] = encoder.encode(rows) + sum(one.size for one in encoders[:place])
    return different_rows(PartialRows(words, missing, np.ones(rows.num_rows, np.int64), codes))


@dataclass(frozen=True)
class MatchedRecords:
    """How many records have how many matches, and the same of those with suppressed cells alone."""

    records: Mapping[int, int]
    suppressed: Mapping[int, int]

    @property
    def smallest(self) -> int:
        """The fewest matches of a record."""
        return min(self.records, default=0)

    @property
    def chance(self) -> float:
        """The sum over all records of one in as many as match."""
        return sum(count / size for size, count in self.records.items())

    @property
    def suppressed_chance(self) -> float:
        """The same over records with suppressed cells."""
        return sum(count / size for size, count in self.suppressed.items())

    def below(self, k: int) -> int:
        """Records with fewer than k matches."""
        return sum(count for size, count in self.records.items() if size < k)


def matched_records(table: Table, columns: Sequence[str], suppressed: Sequence[str], label: str) -> MatchedRecords:
    """The matches of every record by these columns; missing cells of the ``suppressed`` ones match every value."""
    mine, others = matched_rows(row_source(table, columns, suppressed, (), label), _histogram, added, label)
    return MatchedRecords(added(mine, others), mine)


def _histogram(rows: PartialRows, found: Counts) -> dict[int, int]:
    return size_histogram(found[:, 0], rows.times)


def size_histogram(sizes: Counts, records: Counts) -> dict[int, int]:
    """How many records have each size."""
    values, which = np.unique(sizes, return_inverse=True)
    counts = np.bincount(which.ravel(), records, len(values)).astype(np.int64)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def added(left: Mapping[int, int], right: Mapping[int, int]) -> dict[int, int]:
    """The records of both."""
    return {size: left.get(size, 0) + right.get(size, 0) for size in sorted({*left, *right})}
