"""A table cut into blocks, whatever it came from: what every method and measure works on.

A pass reads only the columns it needs, applies the masking steps taken so far, and hands each block to a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.tasks import Block, Position, spans_of
from dpmask.kernels.arrays import Floats
from dpmask.lake.footers import Facts
from dpmask.lake.reading import Rows, Schema
from dpmask.table.columns import floats, require_known, with_gaps, with_stored
from dpmask.table.steps import BlockObserver, DroppedRows, RowMasking, TableMasking, masked_block

Summary = TypeVar("Summary")
Reader = Callable[[Any, Position], Any]
Frame = Any
"""A pandas or a Dask DataFrame, a lake, or a frame that supports Arrow: whatever ``as_table`` takes."""


@dataclass(frozen=True)
class Table:
    """Blocks in position order, and the masking steps to apply when they are read.

    Where records were dropped, ``origins`` says for each block which; otherwise there are none.
    """

    schema: Schema
    blocks: tuple[Block, ...]
    nullable: frozenset[str]
    steps: tuple[RowMasking, ...] = ()
    facts: Mapping[str, Facts] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    origins: tuple[DroppedRows, ...] = ()

    def __repr__(self) -> str:
        return f"<Table: {self.rows:,} rows in {len(self.blocks)} blocks>"

    @property
    def rows(self) -> int:
        """How many records there are."""
        return self.blocks[-1].first + self.blocks[-1].rows if self.blocks else 0

    @property
    def masked_schema(self) -> Schema:
        """The schema after all steps."""
        schema = self.schema
        for step in self.steps:
            schema = step.masked_schema(schema)
        return schema

    @property
    def changed(self) -> frozenset[str]:
        """Columns that masking has changed since the table was read."""
        return self.replaced.union(*(step.changes for step in self.steps))

    def masked_by(self, step: RowMasking | TableMasking) -> Table:
        """The same table with one more step; without the records that it drops, if it does (table.dropping)."""
        if isinstance(step, TableMasking):
            return step.mask_table(self)
        dropped = step.dropped
        if dropped is None:
            return replace(self, steps=(*self.steps, step))
        from dpmask.table.dropping import without

        return replace(without(self, dropped), steps=(step,))

    @property
    def positions(self) -> list[Position]:
        """The number of each block, and the position of its first record."""
        return spans_of(self.blocks)

    def with_columns(self, columns: Sequence[str], values: Collection[tuple[Floats]]) -> Table:
        """The table with other values of numeric columns: for each block here, one with an array of columns x rows."""
        return self._with_values(columns, values, partial(_Replaced, self.without_blocks(), tuple(columns)))

    def with_values(self, column: str, values: Collection[Any]) -> Table:
        """The table with some values of a column exchanged: for each block here, one with their places and values."""
        return self._with_values([column], values, partial(_Exchanged, self.without_blocks(), column))

    def _with_values(self, columns: Sequence[str], values: Collection[Any], content: Callable[..., Any]) -> Table:
        assert values.positions == self.positions
        contents = values.with_positions().as_contents(content, (block.content for block in self.blocks))
        facts = {name: fact for name, fact in self.facts.items() if name not in columns}
        blocks, changed = self.blocks_with(contents), self.changed.union(columns)
        return Table(self.masked_schema, blocks, self.nullable, (), facts, changed, self.origins)

    def without_blocks(self) -> Table:
        """What is needed to read a block of this table."""
        return Table(self.schema, (), self.nullable, self.steps)

    def blocks_with(self, contents: Iterable[Any]) -> tuple[Block, ...]:
        """The blocks with other contents."""
        return tuple(block._replace(content=one) for block, one in zip(self.blocks, contents, strict=True))

    def select(self, columns: Sequence[str], before: BlockObserver | None = None) -> Collection[Any]:
        """The table's blocks as rows with these columns.

        With ``before``, which observes stored columns before any step, as a pair of what it returns and the rows.
        """
        return Collection(self.blocks, self.reader(columns, before))

    def floats(self, columns: Sequence[str]) -> Collection[list[Floats]]:
        """The table's blocks as a list of these columns as floats, each contiguous, NaN where missing."""
        return self.select(columns).transform(partial(_floats, tuple(columns)))

    def reduce(
        self,
        columns: Sequence[str],
        function: Callable[[list[Floats]], Summary],
        merge: Callable[[Summary, Summary], Summary],
        label: str,
    ) -> Summary:
        """Summaries of these columns as floats, merged over all blocks."""
        return self.floats(columns).reduce(function, merge, label)

    def reader(self, columns: Sequence[str], before: BlockObserver | None = None) -> Reader:
        """What reads these columns of a block from the stored ones it needs, through the steps that concern them."""
        wanted = set(columns)
        steps: list[RowMasking] = []
        for step in reversed(self.steps):
            if wanted.intersection(step.changes):
                wanted.update(step.inputs)
                steps.insert(0, step)
        if before is not None:
            wanted.update(before.columns)
        needed = tuple(name for name in self.schema.names if name in wanted)
        return partial(_read, tuple(columns), needed, tuple(steps), before)

    def to_dask(self) -> Frame:
        """A Dask DataFrame with the blocks as partitions and the position as index."""
        from dpmask.table.frames import to_dask

        return to_dask(self)

    def is_dictionary(self, column: str) -> bool:
        """Whether a column is stored as categories and codes."""
        return bool(pa.types.is_dictionary(self.masked_schema.field(column).type))


def _read(
    columns: tuple[str, ...],
    needed: tuple[str, ...],
    steps: tuple[RowMasking, ...],
    before: BlockObserver | None,
    content: Any,
    position: Position,
) -> Any:
    rows = content.read(needed)
    summary = None if before is None else before(rows.select(before.columns))
    for step in steps:
        rows = masked_block(step, rows, position.first)
    rows = rows.select(columns)
    return rows if before is None else (summary, rows)


def _floats(columns: tuple[str, ...], rows: Rows) -> list[Floats]:
    return [floats(rows, column) for column in columns]


@dataclass(frozen=True, repr=False)
class _Replaced:
    """A block some of whose columns have other values. Its repr shows none of them."""

    table: Table
    columns: tuple[str, ...]
    content: Any
    values: tuple[Floats]
    position: Position

    def read(self, columns: Sequence[str]) -> Rows:
        kept = [name for name in columns if name not in self.columns]
        rows: Rows = self.table.reader(kept)(self.content, self.position) if kept else None
        schema = self.table.masked_schema
        arrays = [
            with_gaps(self.values[0][self.columns.index(name)], schema.field(name).type)
            if name in self.columns
            else rows.column(name)
            for name in columns
        ]
        return pa.table(arrays, schema=pa.schema([schema.field(name) for name in columns]))


@dataclass(frozen=True, repr=False)
class _Exchanged:
    """A block some values of one column of which are other records'. Its repr shows none of them."""

    table: Table
    column: str
    content: Any
    values: tuple[NDArray[np.int64], NDArray[Any]]
    position: Position

    def read(self, columns: Sequence[str]) -> Rows:
        rows = self.table.reader(columns)(self.content, self.position)
        return with_stored(rows, self.column, *self.values) if self.column in columns else rows


def as_table(table: Frame, who: str) -> Table:
    """A table from a lake or any kind of frame."""
    if isinstance(table, Table):
        return table
    from dpmask.table.frames import table_of

    return table_of(table, who)


def mask(step: Any, table: Frame, who: str) -> Frame:
    """The table masked by a step: the kind of frame that it is; a Dask frame or a lake gives a Dask frame, lazily.

    The step is made ready for the table first: ``step.for_table``.
    """
    source = as_table(table, who)
    require_known(source.masked_schema, step.inputs, who)
    step.check(source)
    step = step.for_table(source)
    if isinstance(table, Table):
        return source.masked_by(step).to_dask()
    from dpmask.table.arrow_frames import is_arrow_frame, mask_arrow

    if is_arrow_frame(table):
        return mask_arrow(step, table, source, who)
    from dpmask.table.frames import mask_frame

    return mask_frame(step, table, source)


def derive_rows(
    table: Any,
    columns: Sequence[str],
    function: Callable[[Rows], dict[str, Any]],
    require: Callable[[Any, Sequence[str], str], None],
    who: str,
) -> Any:
    """New columns computed from these, record by record: a frame of the same kind and index, lazy unless pandas.

    ``require`` refuses a schema that does not fit.
    """
    from dpmask.table.frames import derive_frame

    return derive_frame(table, columns, function, require, who)
