"""Blocks as Parquet bytes: one row group, one chunk per column, nothing of the source but its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpmask.lake.columns import Rows


def bare_schema(schema: Any, columns: Sequence[str] | None = None) -> Any:
    """Names and types of these columns, or of all: no metadata of the source."""
    return pa.schema([pa.field(name, schema.field(name).type) for name in columns or schema.names])


def reordered(rows: Rows, order: NDArray[np.int64]) -> Rows:
    """The block with row i what was row order[i]."""
    return rows.take(pa.array(order))


def pairing_rows(positions: NDArray[np.int64]) -> Rows:
    """A table that says which record each row of a released file was."""
    return pa.table({"position": positions})


def encode(rows: Rows) -> Any:
    """The block as the bytes of a Parquet file."""
    schema = bare_schema(rows.schema)
    rows = pa.table(rows.columns, schema=schema)
    repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=repeated) as writer:
        writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
    return sink.getvalue()


def used_categories(rows: Rows) -> dict[str, Any]:
    """For each dictionary column, the codes that occur."""
    codes = {}
    for field in rows.schema:
        if pa.types.is_dictionary(field.type):
            chunks = rows.column(field.name).chunks
            seen = [pc.unique(chunk.indices.drop_null()).cast(pa.int64()).to_pylist() for chunk in chunks]
            codes[field.name] = frozenset(code for chunk in seen for code in chunk)
    return codes


def keep_categories(rows: Rows, codes: Mapping[str, frozenset[int]]) -> Rows:
    """The block with only these categories left in its dictionaries, in their old order."""
    for name, used in codes.items():
        place = rows.schema.get_field_index(name)
        kept = sorted(used)
        kind = rows.schema.field(place).type
        chunks = []
        for chunk in rows.column(place).chunks:
            new_code: list[int | None] = [None] * len(chunk.dictionary)
            for new, old in enumerate(kept):
                new_code[old] = new
            indices = pa.array(new_code, kind.index_type).take(chunk.indices)
            chunks.append(
                pa.DictionaryArray.from_arrays(
                    indices, chunk.dictionary.take(pa.array(kept, pa.int64())), ordered=kind.ordered
                )
            )
        rows = rows.set_column(place, rows.schema.field(place), pa.chunked_array(chunks, kind))
    return rows


def decode(data: bytes) -> Rows:
    """The rows of a Parquet file's bytes."""
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        return file.read(use_threads=False)
