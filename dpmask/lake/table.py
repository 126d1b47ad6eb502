"""A table cut into blocks, whatever it came from: what every method and measure works on.

A pass reads only the columns it needs, applies the masking steps taken so far, and hands each block to a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import dask.dataframe as dd
import pandas as pd
import pyarrow as pa

from dpmask.engine.passes import Block, Span, map_blocks, reduce_blocks
from dpmask.errors import InputError, JobError
from dpmask.lake.columns import Floats, Rows, float_block, from_pandas, require_known, to_pandas
from dpmask.lake.footers import Facts

Summary = TypeVar("Summary")
_FRAME_ROWS = 1_000_000


class Step(Protocol):
    """A fitted method: what it reads, what it changes, and how."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it reads."""

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it changes or makes."""

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """The block that starts at position ``first``, masked; columns that are not inputs are left alone."""

    def masked_schema(self, schema: Any) -> Any:
        """The schema of what ``mask_rows`` makes of a table with this one."""


@dataclass(frozen=True)
class Table:
    """Blocks in position order, and the masking steps to apply when they are read."""

    schema: Any
    blocks: tuple[Block, ...]
    nullable: frozenset[str]
    steps: tuple[Step, ...] = ()
    facts: Mapping[str, Facts] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many records there are."""
        return self.blocks[-1].first + self.blocks[-1].rows if self.blocks else 0

    @property
    def masked_schema(self) -> Any:
        """The schema after all steps."""
        schema = self.schema
        for step in self.steps:
            schema = step.masked_schema(schema)
        return schema

    def masked_by(self, step: Step) -> Table:
        """The same table with one more step."""
        return replace(self, steps=(*self.steps, step))

    def map(self, columns: Sequence[str], function: Callable[[Rows, Span], Any], label: str) -> list[Any]:
        """``function(rows, span)`` of every block with these columns, in block order. Meant for small results."""
        return map_blocks(self._on(columns, function), self.blocks, label)

    def reduce(
        self,
        columns: Sequence[str],
        function: Callable[[Floats], Summary],
        merge: Callable[[Summary, Summary], Summary],
        label: str,
    ) -> Summary:
        """Summaries of these columns as floats (columns x rows, NaN where missing), merged over all blocks."""
        on_floats = partial(_with_floats, function, tuple(columns))
        return reduce_blocks(self._on(columns, on_floats), merge, self.blocks, label)

    def reader(self, columns: Sequence[str]) -> Callable[[Any, Span], Rows]:
        """What makes these columns out of a block's content."""
        return self._on(columns, _rows_only)

    def to_dask(self) -> Any:
        """A Dask DataFrame with the blocks as partitions and the position as index."""
        schema = self.masked_schema
        read = partial(_frame, self.reader(schema.names), self.nullable)
        meta = to_pandas(schema.empty_table(), self.nullable)
        if any(pa.types.is_dictionary(field.type) for field in schema):
            meta = read(self.blocks[0]).iloc[:0]
        ends = [block.first for block in self.blocks] + [self.rows - 1]
        return dd.from_map(read, self.blocks, meta=meta, divisions=tuple(ends), enforce_metadata=False)

    def is_dictionary(self, column: str) -> bool:
        """Whether a column is stored as categories and codes."""
        return bool(pa.types.is_dictionary(self.masked_schema.field(column).type))

    def _on(self, columns: Sequence[str], function: Callable[[Rows, Span], Any]) -> Callable[[Any, Span], Any]:
        """A task that makes these columns from the stored ones it needs, through the steps that concern them."""
        wanted = set(columns)
        steps: list[Step] = []
        for step in reversed(self.steps):
            if wanted.intersection(step.changes):
                wanted.update(step.inputs)
                steps.insert(0, step)
        needed = tuple(name for name in self.schema.names if name in wanted)
        return partial(_on_rows, function, tuple(columns), needed, tuple(steps))


def _on_rows(
    function: Callable[[Rows, Span], Any],
    columns: tuple[str, ...],
    needed: tuple[str, ...],
    steps: tuple[Step, ...],
    content: Any,
    span: Span,
) -> Any:
    rows = from_pandas(content, needed) if isinstance(content, pd.DataFrame) else content.read(needed)
    for step in steps:
        rows = step.mask_rows(rows, span.first)
    return function(rows.select(columns), span)


def _with_floats(function: Callable[[Floats], Any], columns: tuple[str, ...], rows: Rows, span: Span) -> Any:
    return function(float_block(rows, columns))


def _rows_only(rows: Rows, span: Span) -> Rows:
    return rows


def _frame(read: Callable[[Any, Span], Rows], nullable: frozenset[str], block: Block) -> pd.DataFrame:
    frame = to_pandas(read(block.content, Span(0, block.first)), nullable)
    frame.index = pd.RangeIndex(block.first, block.first + len(frame))
    return frame


def as_table(table: Any, who: str) -> Table:
    """A table from a lake, a pandas or a Dask DataFrame. A Dask frame's partitions are counted in one pass."""
    if isinstance(table, Table):
        return table
    if not isinstance(table, pd.DataFrame | dd.DataFrame):
        raise JobError(f"{who}: the table must be a lake, a pandas or a Dask DataFrame; got {type(table).__name__}.")
    names = list(table.columns)
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{who}: the table has more than one column '{twice[0]}'. Give each column its own name.")
    return _of_pandas(table) if isinstance(table, pd.DataFrame) else _of_dask(table)


def _of_pandas(frame: pd.DataFrame) -> Table:
    starts = range(0, max(len(frame), 1), _FRAME_ROWS)
    slices = [frame.iloc[start : start + _FRAME_ROWS] for start in starts]
    blocks = tuple(Block(start, len(part), part) for start, part in zip(starts, slices, strict=True))
    return Table(_frame_schema(frame), blocks, frozenset(frame.columns))


def _of_dask(frame: Any) -> Table:
    parts = frame.to_delayed()
    blocks, first = [], 0
    for part, rows in zip(parts, partition_rows(frame), strict=True):
        blocks.append(Block(first, rows, part))
        first += rows
    return Table(_frame_schema(frame._meta_nonempty), tuple(blocks), frozenset(frame.columns))


def partition_rows(frame: Any) -> list[int]:
    """How many rows each partition of a Dask frame has."""
    parts = [Block(0, 0, part) for part in frame.index.to_delayed()]
    return map_blocks(_count, parts, "count")


def _count(index: pd.Index, span: Span) -> int:
    return len(index)


def _frame_schema(frame: pd.DataFrame) -> Any:
    """Column types as Arrow sees them; a column Arrow has no type for gets none, and numeric methods refuse it."""
    fields = []
    for name in frame.columns:
        try:
            kind = pa.Schema.from_pandas(frame[[name]].head(1), preserve_index=False).field(0).type
        except (pa.ArrowException, TypeError):
            kind = pa.null()
        fields.append(pa.field(str(name), kind))
    return pa.schema(fields)


def mask(step: Step, table: Any, who: str) -> Any:
    """The table masked by a step: pandas in, pandas out; a Dask frame or a lake gives a Dask frame, lazily."""
    if isinstance(table, Table):
        require_known(table.schema, step.inputs, who)
        return table.masked_by(step).to_dask()
    as_given = as_table(table, who)
    require_known(as_given.schema, step.inputs, who)
    if isinstance(table, pd.DataFrame):
        return _mask_frame(table, step, [0], {"number": 0})
    firsts = [block.first for block in as_given.blocks]
    return table.map_partitions(_mask_frame, step, firsts, meta=_mask_frame(table._meta, step, [0], None))


def _mask_frame(
    frame: pd.DataFrame, step: Step, firsts: list[int], partition_info: dict[str, Any] | None = None
) -> pd.DataFrame:
    """A pandas frame with the masked columns in their place, index and other columns as they were."""
    masked = step.mask_rows(from_pandas(frame, step.inputs), firsts[partition_info["number"]] if partition_info else 0)
    columns = to_pandas(masked, frozenset(masked.schema.names)).set_axis(frame.index)
    kept = masked.schema.equals(step.masked_schema(masked.schema))
    return frame.assign(
        **{name: columns[name].astype(frame[name].dtype) if kept else columns[name] for name in columns}
    )
