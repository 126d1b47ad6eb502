"""How a task reads one block of a lake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpmask.errors import DpmaskError, InputError
from dpmask.lake import csv
from dpmask.lake.block_plan import Piece
from dpmask.lake.filters import RowFilter
from dpmask.lake.storage import Place, read_ranges
from dpmask.lake.storage_errors import storage_errors

Rows = Any
"""The rows of one block: an Arrow table."""
Schema = Any
"""The names and types of columns: an Arrow schema."""
_BATCH = 1 << 16
_SMALL, _AT_ONCE = 1 << 20, 64
"""Bytes of a file that is fetched whole from a store, as asking takes longer than sending; how many at once."""
_BUFFER = 1 << 20
"""Bytes of a local column to read at a time: fresh memory for all of it would cost more than decoding it."""


@dataclass(frozen=True)
class FilePart:
    """What a block takes from one file."""

    url: str
    size: int
    hive: dict[str, str | None]
    pieces: tuple[Piece, ...]
    groups: tuple[int, ...]
    dialect: csv.Dialect | None = None
    stored: dict[str, str] = field(default_factory=dict)
    """The names of columns in the file, where a table's log says them; others it has not."""


@dataclass(frozen=True)
class LakeBlock:
    """A block: parts of files, the schema and categories they must have, and the codes that mean missing."""

    parts: tuple[FilePart, ...]
    schema: Any
    categories: dict[str, Any]
    missing: dict[str, Any] = field(default_factory=dict)

    def read(self, columns: Sequence[str]) -> Rows:
        """These columns of the block, in this order."""
        read = any(column not in self.parts[0].hive for column in columns)
        parts = _fetched(self.parts) if read else ((part, None) for part in self.parts)
        tables = [self._read_part(part, columns, data) for part, data in parts]
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)

    def cut(self, start: int, rows: int) -> LakeBlock:
        """The same for some of the block's rows."""
        parts = []
        for part in self.parts:
            pieces = []
            for piece in part.pieces:
                low, high = max(start, 0), min(start + rows, piece.rows)
                if low < high:
                    pieces.append(piece._replace(start=piece.start + low, rows=high - low))
                start -= piece.rows
            if pieces:
                parts.append(replace(part, pieces=tuple(pieces)))
        return replace(self, parts=tuple(parts))

    def _read_part(self, part: FilePart, columns: Sequence[str], data: bytes | None) -> Rows:
        stored = [column for column in columns if column not in part.hive]
        rows: Any = self._read_stored(part, stored, data) if stored else None
        count = sum(piece.rows for piece in part.pieces)
        there = {} if rows is None else dict(zip(rows.column_names, rows.columns, strict=True))
        arrays = []
        for column in columns:
            field = self.schema.field(column)
            if column in part.hive:
                arrays.append(pa.repeat(pa.scalar(part.hive[column], pa.string()).cast(field.type), count))
            elif column in there:
                arrays.append(self._checked(there[column], column, part.url))
            else:
                arrays.append(pa.nulls(count, field.type))  # a file without it, of a lake that is a union
        return pa.table(arrays, schema=pa.schema([self.schema.field(column) for column in columns]))

    def _checked(self, values: Any, column: str, url: str) -> Any:
        expected = self.categories.get(column)
        if expected is not None and not all(chunk.dictionary.equals(expected) for chunk in values.chunks):
            raise InputError(
                f"{url}: column '{column}' has other categories than the lake's first file. "
                "Write every file with the same categories in the same order, or as string."
            )
        kind = self.schema.field(column).type
        values = values if values.type == kind else values.cast(kind)  # a view, an extension type, or one of a union
        codes = self.missing.get(column)
        return values if codes is None else pa.chunked_array([_decoded(one, codes) for one in values.chunks], kind)

    def _read_stored(self, part: FilePart, columns: list[str], data: bytes | None) -> Rows:
        if part.dialect is not None:
            typed = pa.schema([field for field in self.schema if field.name not in part.hive])
            (piece,) = part.pieces
            found = csv.read(Place(part.url), typed, part.dialect)
            return found.select([name for name in columns if name in found.column_names]).slice(piece.start, piece.rows)
        if part.stored:
            named = {part.stored[name]: name for name in columns if name in part.stored}
            found = self._read_groups(part, list(named), data)
            return found.rename_columns([named[name] for name in found.column_names])
        return self._read_groups(part, columns, data)

    def _read_groups(self, part: FilePart, columns: list[str], data: bytes | None) -> Rows:
        tables = []
        with open_parquet(part.url, data) as file:
            for whole, run in groupby(part.pieces, lambda piece: piece.rows == part.groups[piece.group]):
                if whole:
                    groups = [piece.group for piece in run]
                    tables.append(file.read_row_groups(groups, columns=columns, use_threads=False))
                else:
                    tables += [_slice(file, piece, columns) for piece in run]
        return pa.concat_tables(tables) if len(tables) > 1 else tables[0]


@dataclass(frozen=True, repr=False)
class FilteredBlock:
    """A block without rows that a filter leaves out, or that are deleted: at these places of the block."""

    block: LakeBlock
    where: RowFilter | None
    deleted: Any

    def read(self, columns: Sequence[str]) -> Rows:
        """These columns of the rows that are left, in this order."""
        wanted = [*columns, *(self.where.columns if self.where else ())]
        rows = self.block.read(list(dict.fromkeys(wanted)) or self.block.schema.names[:1])
        kept = np.ones(rows.num_rows, np.bool_)
        kept[self.deleted] = False
        if self.where:
            kept &= self.where.holds(rows).to_numpy(zero_copy_only=False)
        return rows.filter(pa.array(kept)).select(list(columns))


def _fetched(parts: Sequence[FilePart]) -> Iterator[tuple[FilePart, bytes | None]]:
    """Each part, with its file's bytes if that is a small one in a store: many are fetched at once, each whole."""
    local = Place(parts[0].url).local  # as all files of a lake are
    for start in range(0, len(parts), _AT_ONCE):
        some = parts[start : start + _AT_ONCE]
        small = [] if local else [part for part in some if part.size <= _SMALL and part.dialect is None]
        fetched = read_ranges([Place(part.url) for part in small], [0] * len(small), [part.size for part in small])
        data = {part.url: one for part, one in zip(small, fetched, strict=True)}
        yield from ((part, data.get(part.url)) for part in some)


def _decoded(values: Any, codes: Any) -> Any:
    """An array with nulls in the place of codes."""
    if not pa.types.is_dictionary(values.type):
        return pc.if_else(pc.is_in(values, value_set=codes), pa.nulls(1, values.type)[0], values)
    coded = pc.is_in(values.dictionary, value_set=codes).take(values.indices)
    indices = pc.if_else(coded, pa.nulls(1, values.indices.type)[0], values.indices)
    return pa.DictionaryArray.from_arrays(indices, values.dictionary, ordered=values.type.ordered)


def _slice(file: Any, piece: Piece, columns: list[str]) -> Rows:
    """Some rows of a row group that is larger than a block, without holding all of it decoded."""
    end = piece.start + piece.rows
    seen, kept = 0, []
    for batch in file.iter_batches(min(_BATCH, end), row_groups=[piece.group], columns=columns, use_threads=False):
        low, high = max(piece.start - seen, 0), min(end - seen, batch.num_rows)
        if low < high:
            kept.append(batch.slice(low, high - low))
        seen += batch.num_rows
        if seen >= end:
            break
    return pa.Table.from_batches(kept)


@contextmanager
def open_parquet(url: str, data: bytes | None = None) -> Iterator[Any]:
    """A Parquet file, open, or its bytes if they are known; what fails while it is read is an error of ours.

    From a store, neighbouring columns and row groups are read in one request.
    """
    place = Place(url)
    remote = data is None and not place.local
    with _reading(place, "Write it again, or take it out of the lake."):
        with storage_errors(place):
            source = place.fs.open(place.path, cache_type="none") if remote else place.path
        given = source if data is None else pa.BufferReader(data)
        with pq.ParquetFile(given, pre_buffer=remote, buffer_size=_BUFFER * place.local) as file:
            yield file


def read_pieces(url: str, columns: Sequence[str]) -> Rows:
    """These columns of a file of pieces (``write_pieces``), piece after piece."""
    with _open_whole(url) as source:
        names = pa.ipc.open_file(source).schema.names
        wanted = sorted(names.index(name) for name in columns)
        options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=wanted)
        return pa.ipc.open_file(source, options=options).read_all().select(list(columns))


def join_pieces(urls: Sequence[str], number: int) -> Rows:
    """The piece of this number of each file, one after the other, with all columns."""
    return pa.Table.from_batches([_read_piece(url, number) for url in urls])


def _read_piece(url: str, number: int) -> Any:
    with _open_pieces(url) as source:
        return pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(use_threads=False)).get_batch(number)


def _open_whole(url: str) -> Any:
    """A file of pieces to read most of: from a store in one request, as each column of each piece would be another."""
    place = Place(url)
    return _open_pieces(url) if place.local else pa.BufferReader(place.read())


@contextmanager
def _open_pieces(url: str) -> Iterator[Any]:
    place = Place(url)
    with _reading(place, "Run the job again."):
        with storage_errors(place):
            remote = None if place.local else place.fs.open(place.path, cache_type="readahead", block_size=_BUFFER)
        with pa.memory_map(place.path) if remote is None else pa.PythonFile(remote, "r") as file:
            yield file


@contextmanager
def _reading(place: Place, remedy: str) -> Iterator[None]:
    """What fails while a file is read is raised as an error of ours."""
    try:
        yield
    except (DpmaskError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, pa.ArrowException) or (isinstance(error, OSError) and not error.errno):
            raise InputError(f"{place.url}: is damaged. {remedy}") from None
        with storage_errors(place):
            raise


class RememberedColumns:
    """A block whose columns stay in memory once they were read; another process reads them itself."""

    def __init__(self, block: LakeBlock | FilteredBlock) -> None:
        self._block = block
        self._columns: dict[str, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """As it was before anything was read."""
        return type(self), (self._block,)

    def read(self, columns: Sequence[str]) -> Rows:
        """These columns of the block, in this order."""
        new = [column for column in columns if column not in self._columns]
        if new or not columns:
            rows = self._block.read(new)
            if not columns:
                return rows
            self._columns |= {field.name: (field, rows.column(field.name)) for field in rows.schema}
        found = [self._columns[column] for column in columns]
        return pa.table([values for _, values in found], schema=pa.schema([field for field, _ in found]))
