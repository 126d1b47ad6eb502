"""Tables that some records were left out of: what is left is a table like any other, which knows where it came from.

Blocks stay blocks, only smaller, and positions count on without gaps. What was dropped is kept beside each block as
places, four bytes a record, so that whoever pairs the table with what it was finds every record's partner, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmask.engine.tasks import Block, Position, content_of
from dpmask.lake.arrow import array_of
from dpmask.lake.reading import Rows
from dpmask.lake.writing import reordered
from dpmask.table.steps import DroppedRows
from dpmask.table.table import Table

POSITION = " (position)"
"""The name of a column of the positions that records had before any was dropped."""
PRESENT = " (present)"
"""The name of a column of the positions that records have now, null for one that was dropped."""


class Dropped(Protocol):
    """Which records a step leaves out."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that decide."""

    def of(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each row is dropped."""


def without(table: Table, dropped: Dropped) -> Table:
    """The table without what is dropped; one pass."""
    assert not table.origins
    places = table.select(dropped.inputs).map(partial(_places, dropped), "drop records")
    origins = [DroppedRows(block.first, block.rows, gone) for block, gone in zip(table.blocks, places, strict=True)]
    firsts = [0, *accumulate(one.left for one in origins)]
    contents = _contents(table, origins, _Kept)
    blocks = [Block(*one) for one in zip(firsts, (one.left for one in origins), contents, strict=False)]
    return Table(table.masked_schema, tuple(blocks), table.nullable, (), {}, table.changed, tuple(origins))


def _places(dropped: Dropped, rows: Rows) -> NDArray[np.int32]:
    return np.flatnonzero(dropped.of(rows)).astype(np.int32)


def rows_with_positions(rows: Rows, positions: NDArray[np.int64]) -> Rows:
    """A block with a column POSITION more."""
    return rows.append_column(POSITION, array_of(positions))


def with_positions(table: Table) -> Table:
    """The table with a column POSITION more."""
    blocks = table.blocks_with(_contents(table, table.origins, _Positioned))
    return Table(_with_column(table, POSITION), blocks, table.nullable)


def with_gaps(table: Table) -> Table:
    """The table with all that was dropped in its place again, but with no values; and a column PRESENT more."""
    contents = _contents(table, table.origins, _Gapped)
    blocks = [Block(*one[:2], content) for one, content in zip(table.origins, contents, strict=True)]
    return Table(_with_column(table, PRESENT), tuple(blocks), frozenset(table.masked_schema.names))


def _with_column(table: Table, name: str) -> Any:
    return table.masked_schema.append(pa.field(name, pa.int64()))


def _contents(table: Table, origins: Sequence[DroppedRows], make: type[_Kept]) -> list[Any]:
    """The blocks' contents turned into others; lazy where they are."""
    return [
        content_of(partial(make, table.without_blocks(), position, origin), block.content)
        for block, position, origin in zip(table.blocks, table.positions, origins, strict=True)
    ]


@dataclass(frozen=True, repr=False)
class _Kept:
    """A block without the records that were dropped. Its repr shows none of them."""

    table: Table
    position: Position
    origin: DroppedRows
    content: Any

    def read(self, columns: Sequence[str]) -> Rows:
        return reordered(self._all(columns), self.origin.kept)

    def _all(self, columns: Sequence[str]) -> Rows:
        return self.table.reader(columns)(self.content, self.position)

    def _with(self, columns: Sequence[str], name: str, values: NDArray[np.int64]) -> Rows:
        """These columns of the block, one of them with these values."""
        rows = self._all([column for column in columns if column != name])
        return (rows.append_column(name, array_of(values)) if name in columns else rows).select(list(columns))


class _Positioned(_Kept):
    """A block with the positions that its records had."""

    def read(self, columns: Sequence[str]) -> Rows:
        return self._with(columns, POSITION, self.origin.kept + self.origin.first)


class _Gapped(_Kept):
    """A block with rows of nothing where records were dropped."""

    def read(self, columns: Sequence[str]) -> Rows:
        there = np.arange(self.origin.left)
        rows = self._with(columns, PRESENT, self.position.first + there)
        places, gone = np.zeros(self.origin.rows, np.int64), np.ones(self.origin.rows, np.bool_)
        places[self.origin.kept], gone[self.origin.kept] = there, False
        return rows.combine_chunks().take(array_of(places, gone))
