"""Frames as tables, and tables as Dask DataFrames. A job on a lake never comes here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from dask.delayed import Delayed, delayed

from dpmask.engine.collection import Collection, itself
from dpmask.engine.guard import raising_safely
from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import Block, Position
from dpmask.errors import InputError, JobError
from dpmask.lake.reading import Rows
from dpmask.table.arrow_frames import derive_arrow, is_arrow_frame, no_frame, table_of_arrow
from dpmask.table.columns import require_known
from dpmask.table.dropping import POSITION, with_positions
from dpmask.table.steps import RowMasking, TableMasking, masked_block
from dpmask.table.table import Reader, Table

_CELL_BYTES = 16
_TEXTS = pd.Series(["text"]).dtype  # what pandas makes of texts: of Arrow's at once, or of Python's one by one
_NULLABLE = {
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


@dataclass(frozen=True, repr=False)
class _Frame:
    """A block's rows as a pandas frame. Its repr shows none of them."""

    frame: pd.DataFrame

    def read(self, columns: Sequence[str]) -> Rows:
        return _from_pandas(self.frame, columns)


def _is_dask(frame: Any) -> bool:
    """Whether it is a Dask DataFrame; who has none need not import the module, which takes a second."""
    module = sys.modules.get("dask.dataframe")
    return module is not None and isinstance(frame, module.DataFrame)


def table_of(frame: Any, who: str) -> Table:
    """A table from a frame of pandas, Dask or Arrow; a Dask frame's partitions are counted in one pass."""
    if is_arrow_frame(frame):
        return table_of_arrow(frame, who)
    if not isinstance(frame, pd.DataFrame) and not _is_dask(frame):
        raise no_frame(frame, who)
    names = list(frame.columns)
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{who}: the table has more than one column '{twice[0]}'. Give each column its own name.")
    if _is_dask(frame):
        blocks, divisions = _partitions(frame)
        return _DaskTable(_schema(frame._meta_nonempty), tuple(blocks), frozenset(names), divisions=divisions)
    return Table(_schema(frame), tuple(_slices(frame)), frozenset(names))


def _slices(frame: pd.DataFrame) -> list[Block]:
    length = current_limits().frame_rows
    starts = range(0, max(len(frame), 1), length)
    slices = [frame.iloc[start : start + length] for start in starts]
    return [Block(start, len(part), _Frame(part)) for start, part in zip(starts, slices, strict=True)]


@dataclass(frozen=True)
class _DaskTable(Table):
    """The partitions of a Dask frame, and its divisions: what Dask says, if the partitions keep to it."""

    divisions: tuple[Any, ...] = ()


class _IndexedPart(NamedTuple):
    """The rows of a partition, and the least and the greatest value of its index, if it has any."""

    rows: int
    ends: tuple[Any, ...]


def _partitions(frame: Any) -> tuple[list[Block], tuple[Any, ...]]:
    frame = frame.simplify()  # Dask has no divisions of a frame that was joined with none of its partitions
    extents = Collection.of(_counted(frame)).map(partial(_extent, frame.known_divisions), "count")
    firsts = [0, *accumulate(one.rows for one in extents)]
    contents = [delayed(_Frame)(part) for part in _parts(frame)]
    blocks = [Block(first, one.rows, part) for first, one, part in zip(firsts, extents, contents, strict=False)]
    return blocks, _true_divisions(frame.divisions, extents)


def _extent(known: bool, part: Any) -> _IndexedPart:
    index = part.index if isinstance(part, pd.DataFrame) else part
    return _IndexedPart(len(index), (index.min(), index.max()) if known and len(index) else ())


def _true_divisions(divisions: tuple[Any, ...], extents: Sequence[_IndexedPart]) -> tuple[Any, ...]:
    """The divisions, unknown ones if a partition is not within them: Dask's ``set_index`` may guess wrong ones."""
    for number, one in enumerate(extents):
        if one.ends:
            low, high = divisions[number : number + 2]
            last = number == len(extents) - 1
            if not low <= one.ends[0] or not (one.ends[1] < high or (last and one.ends[1] <= high)):
                return (None,) * len(divisions)
    return divisions


def _parts(frame: Any) -> list[Delayed]:
    """The frame's partitions as they are: fully optimised, Dask joins small ones of Parquet files, which moves records.

    Columns that nobody asks for are still left out.
    """
    return list(frame.simplify().to_delayed(optimize_graph=False))


def _counted(frame: Any) -> list[Delayed]:
    """What is counted in place of the partitions: their indexes, where Dask can compute these alone."""
    try:
        return _parts(frame.index)
    except IndexError:  # Dask's optimiser fails at the bare index of a join with concatenated frames
        return _parts(frame)


def _schema(frame: pd.DataFrame) -> Any:
    """Column types as Arrow sees them; a column Arrow has no type for gets none, and numeric methods refuse it."""
    fields = []
    for name in frame.columns:
        try:
            kind = pa.Schema.from_pandas(frame[[name]].head(1), preserve_index=False).field(0).type
            if pa.types.is_decimal(kind) and frame[name].dtype == object:
                kind = pa.null()  # the digits are guessed from the values, block by block
        except (pa.ArrowException, TypeError):
            kind = pa.null()
        fields.append(pa.field(str(name), kind))
    return pa.schema(fields)


def to_dask(table: Table) -> Any:
    """A Dask DataFrame with the blocks as partitions and the position as index: the one before any was dropped."""
    import dask.dataframe as dd

    spans: Sequence[Any] = table.origins or table.blocks
    ends = (*(one.first for one in spans), spans[-1].first + spans[-1].rows - 1)
    if table.origins:
        table = with_positions(table)
    schema = table.masked_schema
    read = partial(_read_frame, table.reader(schema.names), table.nullable)
    meta = _at_positions(_to_pandas(schema.empty_table(), table.nullable), 0)
    if any(pa.types.is_dictionary(field.type) for field in schema):
        meta = read(table.blocks[0]).iloc[:0]
    if any(isinstance(block.content, Delayed) for block in table.blocks):
        parts = [
            delayed(partial(_read_content, read, block.first), pure=False)(block.content) for block in table.blocks
        ]
        return _from_parts(parts, meta, ends)
    return dd.from_map(read, table.blocks, meta=meta, divisions=ends, enforce_metadata=False)


def _read_content(read: Callable[[Block], pd.DataFrame], first: int, content: Any) -> pd.DataFrame:
    return read(Block(first, 0, content))


@raising_safely
def _read_frame(read: Reader, nullable: frozenset[str], block: Block) -> pd.DataFrame:
    return _at_positions(_to_pandas(read(block.content, Position(0, block.first)), nullable), block.first)


def _at_positions(frame: pd.DataFrame, first: int) -> pd.DataFrame:
    """The frame with positions as its index: those it brings, or the ones from ``first`` on."""
    if POSITION in frame:
        return frame.set_index(POSITION).rename_axis(None)
    return frame.set_axis(pd.RangeIndex(first, first + len(frame)))


def mask_frame(step: RowMasking | TableMasking, frame: Any, table: Table) -> Any:
    """A frame, of which this is the table, masked by a step: pandas in, pandas out; Dask in, Dask out, lazily."""
    if isinstance(step, TableMasking):
        return _with_masked(frame, step.mask_table(table), step.changes)
    if isinstance(frame, pd.DataFrame):
        parts = [_mask_part(block.content.frame, step, block.first) for block in table.blocks]
        return parts[0] if len(parts) == 1 else pd.concat(parts)
    masked = [delayed(_mask_part, pure=False)(part, step, block.first) for part, block in _with_blocks(frame, table)]
    return _from_parts(masked, _mask_part(frame._meta, step, 0), _divisions(frame, table))


def _with_blocks(frame: Any, table: Table) -> Any:
    """The frame's partitions, each with the block of the table that it is."""
    return zip(_parts(frame), table.blocks, strict=True)


def _divisions(frame: Any, table: Table) -> tuple[Any, ...]:
    return table.divisions if isinstance(table, _DaskTable) else frame.divisions


def _from_parts(parts: list[Delayed], meta: pd.DataFrame, divisions: Any) -> Any:
    """A Dask frame of these partitions."""
    import dask.dataframe as dd

    return dd.from_delayed(parts, meta=meta, divisions=divisions, verify_meta=False)


@raising_safely
def _mask_part(frame: pd.DataFrame, step: RowMasking, first: int) -> pd.DataFrame:
    given = _from_pandas(frame, step.inputs)
    dropped = step.dropped
    if dropped is not None:
        kept = ~dropped.of(given)
        frame, given = frame[kept], given.filter(pa.array(kept))
    return _put(frame, given, masked_block(step, given, first))


def _put(frame: pd.DataFrame, given: Rows, masked: Rows) -> pd.DataFrame:
    """A pandas frame with the masked columns in their place, index and other columns as they were."""
    columns = _to_pandas(masked, frozenset(masked.schema.names)).set_axis(frame.index)
    same = {field.name for field in masked.schema if field in list(given.schema)}
    gone = [name for name in given.schema.names if name not in columns]
    return frame.drop(columns=gone).assign(
        **{
            name: _as_before(columns[name], frame[name]) if name in same else columns[name]
            for name in masked.schema.names
        }
    )


def _as_before(masked: pd.Series, before: pd.Series) -> pd.Series:
    """A masked column in the type of the frame's own."""
    if masked.isna().any() and isinstance(before.dtype, np.dtype) and before.dtype.kind in "iu":
        raise InputError(
            f"Column '{before.name}' becomes missing in some records, which its type {before.dtype} cannot say. Give "
            "it a nullable type, such as Int64."
        )
    return masked.astype(before.dtype)


def _with_masked(frame: Any, table: Table, columns: Sequence[str]) -> Any:
    """A frame with these columns as a masked table has them; partitions are the table's blocks."""
    if isinstance(frame, pd.DataFrame):
        parts = table.select(columns).map(itself, "mask")
        return _put(frame, _from_pandas(frame, columns), pa.concat_tables(parts))
    read = partial(_read_into, table.reader(columns))
    parts = [
        delayed(read, pure=False)(part, block.content, position)
        for (part, block), position in zip(_with_blocks(frame, table), table.positions, strict=True)
    ]
    return _from_parts(parts, frame._meta, _divisions(frame, table))


@raising_safely
def _read_into(read: Reader, frame: pd.DataFrame, content: Any, position: Position) -> pd.DataFrame:
    masked = read(content, position)
    return _put(frame, _from_pandas(frame, masked.schema.names), masked)


def derive_frame(
    table: Any,
    columns: Sequence[str],
    function: Callable[[Rows], dict[str, Any]],
    require: Callable[[Any, Sequence[str], str], None],
    who: str,
) -> Any:
    """New columns from these, with the index of the frame they came from."""
    if is_arrow_frame(table):
        return derive_arrow(table, columns, function, require, who)
    frame = to_dask(table) if isinstance(table, Table) else table
    checked = frame.head(0, npartitions=-1) if _is_dask(frame) else frame
    require(table_of(checked, who).schema, columns, who)
    if isinstance(frame, pd.DataFrame):
        return _derive_part(frame, columns, function)
    return frame[list(columns)].map_partitions(
        _derive_part, columns, function, meta=_derive_part(frame._meta, columns, function)
    )


@raising_safely
def _derive_part(frame: pd.DataFrame, columns: Sequence[str], function: Callable[..., dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(function(_from_pandas(frame, columns)), index=frame.index)


def join(
    tables: Sequence[Any],
    columns: Sequence[str],
    rename: Callable[[str, int], str],
    who: str,
    marks: Sequence[str] = (),
    beside: Sequence[str] = (),
) -> Table:
    """The columns of frames side by side, ``rename(name, number)`` of each after the first, paired by a unique index.

    ``marks``, if any, names a column to add for each frame: the position of each record in it. ``beside`` are further
    columns of the first frame.
    """
    frames, rows = [], []
    for number, one in enumerate(tables):
        given = table_of_arrow(one, who) if is_arrow_frame(one) else one
        names = [*columns, *(() if number else beside)]
        frame = to_dask(given) if isinstance(given, Table) else given
        table = table_of(frame, who)
        require_known(table.schema, names, who)
        rows.append(table.rows)
        if isinstance(frame, pd.DataFrame) and not frame.index.is_unique:
            raise _ambiguous(who)
        if _is_dask(frame) and _divisions(frame, table) != frame.divisions:
            frame = frame.clear_divisions()
        frames.append(_with_positions(frame[names], marks[number], table) if marks else frame[names])
    if any(map(_is_dask, frames)):
        import dask.dataframe as dd

        frames = [dd.from_pandas(f, npartitions=1) if isinstance(f, pd.DataFrame) else f for f in frames]
    joined = frames[0]
    for number, frame in enumerate(frames[1:], 1):
        joined = joined.join(frame.rename(columns={name: rename(name, number) for name in columns}), how="left")
    pairs = table_of(joined, who)
    if pairs.rows != rows[0]:
        raise _ambiguous(who)
    return _persisted(pairs)


def _persisted(pairs: Table) -> Table:
    """The pairs kept in memory where they fit, as a join costs more than most passes over it."""
    if not all(isinstance(block.content, Delayed) for block in pairs.blocks):
        return pairs
    size = _CELL_BYTES * pairs.rows * len(pairs.schema.names)
    persisted = Collection(pairs.blocks).persist(itself, "pair", size=size)
    return replace(pairs, blocks=pairs.blocks_with(persisted.as_contents(itself)))


def _with_positions(frame: Any, name: str, table: Table) -> Any:
    """The frame with a column more: each record's position in it."""
    if isinstance(frame, pd.DataFrame):
        return _positioned(frame, name, 0)
    parts = [delayed(_positioned, pure=False)(part, name, block.first) for part, block in _with_blocks(frame, table)]
    return _from_parts(parts, _positioned(frame._meta, name, 0), _divisions(frame, table))


def _positioned(frame: pd.DataFrame, name: str, first: int) -> pd.DataFrame:
    return frame.assign(**{name: range(first, first + len(frame))})


def _ambiguous(who: str) -> JobError:
    return JobError(
        f"{who}: records pair by index, which must be unique in both tables. Set one that is; a Dask frame of several "
        "files has each file's own: dpmask.read_lake gives one over all."
    )


def _from_pandas(frame: pd.DataFrame, columns: Sequence[str]) -> Rows:
    """These columns of a pandas frame as a block."""
    try:
        return pa.Table.from_pandas(frame[list(columns)], preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise InputError(f"One of the columns {', '.join(columns)} mixes types. Give each column one type.") from None


def _to_pandas(rows: Rows, nullable: frozenset[str]) -> pd.DataFrame:
    """A block as a pandas frame. Integers and booleans that may be null become pandas' nullable types, never floats."""
    columns = {
        name: rows.column(name).to_pandas(types_mapper=partial(_pandas_type, name in nullable))
        for name in rows.schema.names
    }
    return pd.DataFrame(columns, columns=rows.schema.names)


def _pandas_type(nullable: bool, kind: Any) -> Any:
    """The pandas type that keeps an Arrow type's values exactly; None leaves the choice to Arrow."""
    if kind in _NULLABLE:
        return _NULLABLE[kind] if nullable else None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _TEXTS if isinstance(_TEXTS, pd.StringDtype) else None
    exact = (pa.types.is_date, pa.types.is_decimal, pa.types.is_time, pa.types.is_nested)
    return pd.ArrowDtype(kind) if any(is_such(kind) for is_such in exact) else None
