"""A table cut into blocks, whatever it came from: what every method and measure works on.

A pass reads only the columns it needs, applies the masking steps taken so far, and hands each block to a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmask.engine.exchange import beside
from dpmask.engine.passes import Block, Run, Span, map_blocks, reduce_blocks
from dpmask.lake.footers import Facts
from dpmask.lake.reading import Rows
from dpmask.table.columns import Floats, floats, of_type, require_known, require_numeric, with_stored

Summary = TypeVar("Summary")
Frame = Any
"""A pandas or a Dask DataFrame, or a lake: whatever ``as_table`` takes."""


class Masking(Protocol):
    """A fitted method: what it reads and what it changes."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it reads."""

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it changes or makes."""

    def check(self, table: Table) -> None:
        """Refuse a table that does not fit."""

    def masked_schema(self, schema: Any) -> Any:
        """The schema of what it makes of a table with this one."""


class Step(Masking, Protocol):
    """A method that masks each record by itself."""

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """The block that starts at position ``first``, masked; columns that are not inputs are left alone."""


@runtime_checkable
class Meeting(Masking, Protocol):
    """A method for which records must meet, wherever they lie."""

    def mask_table(self, table: Table) -> Table:
        """The whole table, masked."""


class Onlooker(Protocol):
    """Who looks at some columns of a block."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns it needs."""

    def __call__(self, rows: Rows, span: Span) -> Any:
        """What is seen."""


class Origin(NamedTuple):
    """What a block was before records were dropped from it: its first position, its rows, the places of those."""

    first: int
    rows: int
    dropped: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"<Origin: {self.left} of {self.rows} rows>"

    @property
    def left(self) -> int:
        """How many records there still are."""
        return self.rows - len(self.dropped)

    @property
    def kept(self) -> NDArray[np.int64]:
        """The places of those."""
        return np.delete(np.arange(self.rows), self.dropped)


@dataclass(frozen=True)
class Table:
    """Blocks in position order, and the masking steps to apply when they are read.

    Where records were dropped, ``origins`` says for each block which; otherwise there are none.
    """

    schema: Any
    blocks: tuple[Block, ...]
    nullable: frozenset[str]
    steps: tuple[Step, ...] = ()
    facts: Mapping[str, Facts] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    origins: tuple[Origin, ...] = ()

    def __repr__(self) -> str:
        return f"<Table: {self.rows:,} rows in {len(self.blocks)} blocks>"

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

    @property
    def changed(self) -> frozenset[str]:
        """Columns that masking has changed since the table was read."""
        return self.replaced.union(*(step.changes for step in self.steps))

    def masked_by(self, step: Step | Meeting) -> Table:
        """The same table with one more step; without the records that it drops, if it does (lake.dropping)."""
        if isinstance(step, Meeting):
            return step.mask_table(self)
        dropped = getattr(step, "dropped", None)
        if dropped is None:
            return replace(self, steps=(*self.steps, step))
        from dpmask.table.dropping import without

        return replace(without(self, dropped), steps=(step,))

    def with_columns(self, columns: Sequence[str], held: Sequence[Run]) -> Table:
        """The table with other values of numeric columns: a run for each block holds an array of columns x rows."""
        shell = Table(self.schema, (), self.nullable, self.steps)
        blocks = [
            Block(
                block.first,
                block.rows,
                beside(partial(_Replaced, shell, tuple(columns), Span(number, block.first)), block.content, run),
            )
            for number, (block, run) in enumerate(zip(self.blocks, held, strict=True))
        ]
        facts = {name: fact for name, fact in self.facts.items() if name not in columns}
        changed = self.changed.union(columns)
        return Table(self.masked_schema, tuple(blocks), self.nullable, (), facts, changed, self.origins)

    def with_values(self, column: str, held: Sequence[Run]) -> Table:
        """The table with some values of a column exchanged: a run for each block holds their places and the values."""
        shell = Table(self.schema, (), self.nullable, self.steps)
        blocks = [
            block._replace(
                content=beside(partial(_Exchanged, shell, column, Span(number, block.first)), block.content, run)
            )
            for number, (block, run) in enumerate(zip(self.blocks, held, strict=True))
        ]
        facts = {name: fact for name, fact in self.facts.items() if name != column}
        changed = self.changed.union([column])
        return Table(self.masked_schema, tuple(blocks), self.nullable, (), facts, changed, self.origins)

    def map(self, columns: Sequence[str], function: Callable[[Rows, Span], Any], label: str) -> list[Any]:
        """``function(rows, span)`` of every block with these columns, in block order. Meant for small results."""
        return map_blocks(self.on_rows(columns, function), self.blocks, label)

    def reduce_rows(
        self,
        columns: Sequence[str],
        function: Callable[[Rows, Span], Summary],
        merge: Callable[[Summary, Summary], Summary],
        label: str,
    ) -> Summary:
        """Summaries of blocks with these columns, merged over all blocks."""
        return reduce_blocks(self.on_rows(columns, function), merge, self.blocks, label)

    def reduce(
        self,
        columns: Sequence[str],
        function: Callable[[list[Floats]], Summary],
        merge: Callable[[Summary, Summary], Summary],
        label: str,
    ) -> Summary:
        """Summaries of these columns as floats, each contiguous, NaN where missing, merged over all blocks."""
        return reduce_blocks(self.on_floats(columns, partial(_alone, function)), merge, self.blocks, label)

    def on_floats(
        self, columns: Sequence[str], function: Callable[[list[Floats], Span], Any]
    ) -> Callable[[Any, Span], Any]:
        """A task that hands a block's columns to a function as floats, each contiguous, NaN where missing."""
        return self.on_rows(columns, partial(_with_floats, function, tuple(columns)))

    def reader(self, columns: Sequence[str]) -> Callable[[Any, Span], Rows]:
        """What makes these columns out of a block's content."""
        return self.on_rows(columns, _rows_only)

    def to_dask(self) -> Any:
        """A Dask DataFrame with the blocks as partitions and the position as index."""
        from dpmask.table.frames import to_dask

        return to_dask(self)

    def is_dictionary(self, column: str) -> bool:
        """Whether a column is stored as categories and codes."""
        return bool(pa.types.is_dictionary(self.masked_schema.field(column).type))

    def on_rows(
        self, columns: Sequence[str], function: Callable[[Rows, Span], Any], first: Onlooker | None = None
    ) -> Callable[[Any, Span], Any]:
        """A task that makes these columns from the stored ones it needs, through the steps that concern them.

        With ``first`` it looks at stored columns, too, before any step, and gives both results.
        """
        wanted = set(columns)
        steps: list[Step] = []
        for step in reversed(self.steps):
            if wanted.intersection(step.changes):
                wanted.update(step.inputs)
                steps.insert(0, step)
        if first is not None:
            wanted.update(first.columns)
        needed = tuple(name for name in self.schema.names if name in wanted)
        return partial(_on_rows, function, tuple(columns), needed, tuple(steps), first)


def _on_rows(
    function: Callable[[Rows, Span], Any],
    columns: tuple[str, ...],
    needed: tuple[str, ...],
    steps: tuple[Step, ...],
    first: Onlooker | None,
    content: Any,
    span: Span,
) -> Any:
    rows = content.read(needed)
    seen = None if first is None else first(rows.select(first.columns), span)
    for step in steps:
        rows = step.mask_rows(rows, span.first)
    result = function(rows.select(columns), span)
    return result if first is None else (seen, result)


@dataclass(frozen=True, repr=False)
class _Replaced:
    """A block some of whose columns have other values. Its repr shows none of them."""

    table: Table
    columns: tuple[str, ...]
    span: Span
    content: Any
    held: tuple[Floats]

    def read(self, columns: Sequence[str]) -> Rows:
        kept = [name for name in columns if name not in self.columns]
        rows: Rows = self.table.reader(kept)(self.content, self.span) if kept else None
        schema = self.table.masked_schema
        arrays = [
            of_type(self.held[0][self.columns.index(name)], schema.field(name).type)
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
    span: Span
    content: Any
    held: tuple[NDArray[np.int64], NDArray[Any]]

    def read(self, columns: Sequence[str]) -> Rows:
        rows = self.table.reader(columns)(self.content, self.span)
        return with_stored(rows, self.column, *self.held) if self.column in columns else rows


def _alone(function: Callable[[list[Floats]], Any], columns: list[Floats], span: Span) -> Any:
    return function(columns)


def _with_floats(
    function: Callable[[list[Floats], Span], Any], columns: tuple[str, ...], rows: Rows, span: Span
) -> Any:
    return function([floats(rows, column) for column in columns], span)


def _rows_only(rows: Rows, span: Span) -> Rows:
    return rows


def as_table(table: Any, who: str) -> Table:
    """A table from a lake, a pandas or a Dask DataFrame."""
    if isinstance(table, Table):
        return table
    from dpmask.table.frames import table_of

    return table_of(table, who)


def mask(step: Step | Meeting, table: Any, who: str) -> Any:
    """The table masked by a step: pandas in, pandas out; a Dask frame or a lake gives a Dask frame, lazily."""
    if isinstance(table, Table):
        require_known(table.masked_schema, step.inputs, who)
        step.check(table)
        return table.masked_by(step).to_dask()
    from dpmask.table.frames import mask_frame

    return mask_frame(step, table, who)


def derive(table: Any, columns: Sequence[str], function: Callable[[list[Floats]], dict[str, Any]], who: str) -> Any:
    """New columns computed from these, record by record: a frame of the same kind and index, lazy unless pandas."""
    return derive_rows(table, columns, partial(_from_floats, function, tuple(columns)), require_numeric, who)


def derive_rows(
    table: Any,
    columns: Sequence[str],
    function: Callable[[Rows], dict[str, Any]],
    require: Callable[[Any, Sequence[str], str], None],
    who: str,
) -> Any:
    """The same from columns of any type; ``require`` refuses a schema that does not fit."""
    from dpmask.table.frames import derive_frame

    return derive_frame(table, columns, function, require, who)


def _from_floats(
    function: Callable[[list[Floats]], dict[str, Any]], columns: tuple[str, ...], rows: Rows
) -> dict[str, Any]:
    return function([floats(rows, column) for column in columns])
