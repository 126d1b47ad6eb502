"""Original and masked records side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dpmask.engine.passes import Block, Span
from dpmask.errors import JobError
from dpmask.lake.columns import Rows, require_known
from dpmask.lake.table import Table

_MASKED = " (masked)"
POSITION = " (position)"
PRESENT = " (present)"


def masked_name(column: str) -> str:
    """What a masked column is called in a table of pairs."""
    return column + _MASKED


def pair(original: Any, masked: Any, columns: Sequence[str], who: str, *, marks: bool = False) -> Table:
    """One table with each column twice, as it was and masked. Frames pair by index, lakes by position.

    With ``marks`` there are two columns more: the record's POSITION in the original, whatever order a join left, and
    PRESENT, which is null where the masked table has no such record.
    """
    if isinstance(original, Table) and isinstance(masked, Table):
        return _by_position(original, masked, columns, who, marks)
    from dpmask.lake.frames import join

    return join(original, masked, columns, masked_name, who, (POSITION, PRESENT) if marks else ())


def _by_position(original: Table, masked: Table, columns: Sequence[str], who: str, marks: bool) -> Table:
    for table in (original, masked):
        require_known(table.masked_schema, columns, who)
    if [block[:2] for block in original.blocks] != [block[:2] for block in masked.blocks]:
        raise JobError(f"{who}: the two tables must be cut into the same blocks to be paired by position.")
    left, right = original.reader(columns), masked.reader(columns)
    blocks = tuple(
        Block(one.first, one.rows, _Pair(left, right, one.content, two.content, Span(number, one.first)))
        for number, (one, two) in enumerate(zip(original.blocks, masked.blocks, strict=True))
    )
    fields = [original.masked_schema.field(name) for name in columns]
    fields += [pa.field(masked_name(name), masked.masked_schema.field(name).type) for name in columns]
    if marks:
        fields += [pa.field(POSITION, pa.int64()), pa.field(PRESENT, pa.int64())]
    return Table(pa.schema(fields), blocks, original.nullable)


@dataclass(frozen=True)
class _Pair:
    """One block of both tables."""

    left: Callable[[Any, Span], Rows]
    right: Callable[[Any, Span], Rows]
    original: Any
    masked: Any
    span: Span

    def read(self, columns: Sequence[str]) -> Rows:
        rows, others = self.left(self.original, self.span), self.right(self.masked, self.span)
        for field in others.schema:
            rows = rows.append_column(pa.field(masked_name(field.name), field.type), others.column(field.name))
        if POSITION in columns:
            positions = np.arange(self.span.first, self.span.first + rows.num_rows)
            rows = rows.append_column(POSITION, pa.array(positions)).append_column(PRESENT, pa.array(positions))
        return rows.select(list(columns))
