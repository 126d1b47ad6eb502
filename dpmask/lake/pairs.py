"""Original and masked records side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dask.dataframe as dd
import pandas as pd
import pyarrow as pa

from dpmask.engine.passes import Block, Span
from dpmask.errors import JobError
from dpmask.lake.columns import Rows, require_known
from dpmask.lake.table import Table, as_table

_MASKED = " (masked)"


def masked_name(column: str) -> str:
    """What a masked column is called in a table of pairs."""
    return column + _MASKED


def pair(original: Any, masked: Any, columns: Sequence[str], who: str) -> Table:
    """One table with each column twice, as it was and masked. Frames pair by index, lakes by position."""
    if isinstance(original, Table) and isinstance(masked, Table):
        return _by_position(original, masked, columns, who)
    frames = [frame.to_dask() if isinstance(frame, Table) else frame for frame in (original, masked)]
    for frame in frames:
        require_known(as_table(frame, who).schema, columns, who)
        if isinstance(frame, pd.DataFrame) and not frame.index.is_unique:
            raise _ambiguous(who)
    if any(isinstance(frame, dd.DataFrame) for frame in frames):
        frames = [
            dd.from_pandas(frame, npartitions=1) if isinstance(frame, pd.DataFrame) else frame for frame in frames
        ]
    names = list(columns)
    renamed = frames[1][names].rename(columns={name: masked_name(name) for name in names})
    pairs = as_table(frames[0][names].join(renamed, how="left"), who)
    if pairs.rows != as_table(frames[0], who).rows:
        raise _ambiguous(who)
    return pairs


def _ambiguous(who: str) -> JobError:
    return JobError(f"{who}: records pair by index, which must be unique in both tables. Set one that is.")


def _by_position(original: Table, masked: Table, columns: Sequence[str], who: str) -> Table:
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
        return rows.select(list(columns))
