"""How a task reads one block of a lake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpmask.errors import DpmaskError, InputError
from dpmask.lake import csv
from dpmask.lake.block_plan import Piece
from dpmask.lake.storage import Place, storage_errors

Rows = Any
"""The rows of one block: an Arrow table."""
_BATCH = 1 << 16
_BUFFER = 1 << 20
"""Bytes of a local column to read at a time: fresh memory for all of it would cost more than decoding it."""


@dataclass(frozen=True)
class Part:
    """What a block takes from one file."""

    url: str
    hive: dict[str, str | None]
    pieces: tuple[Piece, ...]
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Recipe:
    """A block: parts of files, and the schema and categories they must have."""

    parts: tuple[Part, ...]
    schema: Any
    categories: dict[str, Any]

    def read(self, columns: Sequence[str]) -> Rows:
        """These columns of the block, in this order."""
        tables = [self._read_part(part, columns) for part in self.parts]
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)

    def cut(self, start: int, rows: int) -> Recipe:
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

    def _read_part(self, part: Part, columns: Sequence[str]) -> Rows:
        stored = [column for column in columns if column not in part.hive]
        rows: Any = self._read_stored(part, stored) if stored else None
        count = sum(piece.rows for piece in part.pieces)
        arrays = []
        for column in columns:
            field = self.schema.field(column)
            if column in part.hive:
                value = part.hive[column]
                typed = int(value) if value is not None and pa.types.is_integer(field.type) else value
                arrays.append(pa.repeat(pa.scalar(typed, field.type), count))
            else:
                arrays.append(self._checked(rows.column(column), column, part.url))
        return pa.table(arrays, schema=pa.schema([self.schema.field(column) for column in columns]))

    def _checked(self, values: Any, column: str, url: str) -> Any:
        expected = self.categories.get(column)
        if expected is not None and not all(chunk.dictionary.equals(expected) for chunk in values.chunks):
            raise InputError(
                f"{url}: column '{column}' has other categories than the lake's first file. "
                "Write every file with the same categories in the same order, or as string."
            )
        return values

    def _read_stored(self, part: Part, columns: list[str]) -> Rows:
        if part.url.endswith(".csv"):
            typed = pa.schema([field for field in self.schema if field.name not in part.hive])
            (piece,) = part.pieces
            return csv.read(Place(part.url), typed).select(columns).slice(piece.start, piece.rows)
        tables = []
        with open_parquet(part.url) as file:
            for whole, run in groupby(part.pieces, lambda piece: piece.rows == part.groups[piece.group]):
                if whole:
                    groups = [piece.group for piece in run]
                    tables.append(file.read_row_groups(groups, columns=columns, use_threads=False))
                else:
                    tables += [_slice(file, piece, columns) for piece in run]
        return pa.concat_tables(tables) if len(tables) > 1 else tables[0]


def _slice(file: Any, piece: Piece, columns: list[str]) -> Rows:
    """Some rows of a row group that is larger than a block, without holding all of it decoded."""
    end = piece.start + piece.rows
    seen, kept = 0, []
    for batch in file.iter_batches(_BATCH, row_groups=[piece.group], columns=columns, use_threads=False):
        low, high = max(piece.start - seen, 0), min(end - seen, batch.num_rows)
        if low < high:
            kept.append(batch.slice(low, high - low))
        seen += batch.num_rows
        if seen >= end:
            break
    return pa.Table.from_batches(kept)


@contextmanager
def open_parquet(url: str) -> Iterator[Any]:
    """A Parquet file, open; what fails while it is read is raised as an error of ours."""
    place = Place(url)
    try:
        with storage_errors(url):
            source = place.path if place.local else place.fs.open(place.path, cache_type="none")
        with pq.ParquetFile(source, pre_buffer=not place.local, buffer_size=_BUFFER * place.local) as file:
            yield file
    except (DpmaskError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, pa.ArrowException) or (isinstance(error, OSError) and not error.errno):
            raise InputError(f"{url}: is damaged. Write it again, or take it out of the lake.") from None
        with storage_errors(url):
            raise
