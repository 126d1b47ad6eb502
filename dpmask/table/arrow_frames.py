"""Frames that support Arrow's PyCapsule interface, such as those of polars, pyarrow and duckdb: as tables, and back.

They have no index: records are known by their places. All of a frame is computed at once, and so is what is masked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dpmask.engine.collection import itself
from dpmask.engine.guard import raising_safely
from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import Block
from dpmask.errors import InputError, JobError
from dpmask.lake.reading import Rows
from dpmask.table.steps import RowMasking, TableMasking
from dpmask.table.table import Table

_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


@dataclass(frozen=True, repr=False)
class _ArrowRows:
    """A block's rows. Its repr shows none of them."""

    rows: Rows

    def read(self, columns: Sequence[str]) -> Rows:
        return self.rows.select(list(columns))


def is_arrow_frame(frame: Any) -> bool:
    """Whether it is a frame that gives its rows as a stream of Arrow's, and is no frame of pandas'."""
    module = sys.modules.get("pandas")
    is_pandas = module is not None and isinstance(frame, module.DataFrame)
    return hasattr(frame, "__arrow_c_stream__") and not is_pandas


def no_frame(frame: Any, who: str) -> JobError:
    """The error where something is no table."""
    advice = " Compute it: frame.collect()." if hasattr(frame, "collect") else ""
    return JobError(
        f"{who}: the table must be a lake, a pandas or a Dask DataFrame, or a frame that supports Arrow, such as one "
        f"of polars, pyarrow or duckdb; got {type(frame).__name__}.{advice}"
    )


def table_of_arrow(frame: Any, who: str) -> Table:
    """A table of such a frame, cut into blocks."""
    rows = _plain(_given(frame, who))
    length = current_limits().frame_rows
    starts = range(0, max(rows.num_rows, 1), length)
    parts = [rows.slice(start, length) for start in starts]
    blocks = [Block(start, part.num_rows, _ArrowRows(part)) for start, part in zip(starts, parts, strict=True)]
    return Table(rows.schema, tuple(blocks), frozenset(rows.schema.names))


def mask_arrow(step: RowMasking | TableMasking, frame: Any, table: Table, who: str) -> Any:
    """A frame, of which this is the table, masked by a step: one of the same kind, computed at once."""
    masked, given = table.masked_by(step), _given(frame, who)
    names = masked.masked_schema.names
    found = pa.concat_tables(masked.select(names).map(itself, "mask"))
    columns = {}
    for name in names:
        column = found.column(name)
        if name in given.schema.names and masked.masked_schema.field(name) == table.schema.field(name):
            kept = name not in step.changes and not masked.origins
            column = given.column(name) if kept else _as_before(column, given.schema.field(name).type)
        columns[name] = column
    metadata = {field.name: field.metadata for field in given.schema}
    fields = [pa.field(name, column.type, metadata=metadata.get(name)) for name, column in columns.items()]
    return _same_kind(frame, pa.table(list(columns.values()), schema=pa.schema(fields)))


def derive_arrow(
    frame: Any,
    columns: Sequence[str],
    function: Callable[[Rows], dict[str, Any]],
    require: Callable[[Any, Sequence[str], str], None],
    who: str,
) -> Any:
    """New columns from these, record by record: a frame of the same kind."""
    table = table_of_arrow(frame, who)
    require(table.schema, columns, who)
    parts = [_derived(function, block.content.read(columns)) for block in table.blocks]
    return _same_kind(frame, pa.concat_tables(parts))


@raising_safely
def _derived(function: Callable[[Rows], dict[str, Any]], rows: Rows) -> Rows:
    return pa.table(function(rows))


def _given(frame: Any, who: str) -> Rows:
    if isinstance(frame, pa.RecordBatchReader):
        raise JobError(f"{who}: a stream can be read only once. Give the table: reader.read_all().")
    try:
        rows = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):  # the stream of a single column
        raise no_frame(frame, who) from None
    names = rows.schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{who}: the table has more than one column '{twice[0]}'. Give each column its own name.")
    return rows


def _plain(rows: Rows) -> Rows:
    """The rows with views as plain text, each column's categories as one list, and no metadata."""
    arrays = [_plain_column(rows.column(name)) for name in rows.schema.names]
    return pa.table(arrays, names=rows.schema.names).unify_dictionaries()


def _plain_column(column: Any) -> Any:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_column(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if pa.types.is_dictionary(kind):
        wanted = _VIEWS.get(kind.value_type, kind.value_type)
        parts = [(chunk.indices.cast(pa.int32()), chunk.dictionary.cast(wanted)) for chunk in column.chunks]
        chunks = [pa.DictionaryArray.from_arrays(*part, ordered=kind.ordered) for part in parts]
        return pa.chunked_array(chunks, pa.dictionary(pa.int32(), wanted, kind.ordered))
    return column.cast(_VIEWS[kind]) if kind in _VIEWS else column


def _as_before(column: Any, kind: Any) -> Any:
    """A masked column in the type of the frame's own."""
    if column.type == kind or pa.types.is_dictionary(kind) or isinstance(kind, pa.BaseExtensionType):
        return column
    return column.cast(kind)


def _same_kind(frame: Any, rows: Rows) -> Any:
    """Rows as the kind of frame that was given; as a pyarrow table, where there is no way back."""
    library = type(frame).__module__.split(".")[0]
    if library == "polars":
        return sys.modules["polars"].from_arrow(rows)
    if library == "duckdb":
        return sys.modules["duckdb"].from_arrow(rows)
    if library == "narwhals":
        return sys.modules["narwhals"].from_arrow(rows, backend=frame.implementation)
    return rows
