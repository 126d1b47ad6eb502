"""Blocks as Parquet bytes: one row group, one chunk per column, nothing of the source but its columns."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dpmask.errors import InputError
from dpmask.lake.arrow import array_of
from dpmask.lake.reading import Rows
from dpmask.lake.storage import OWNER_ONLY, Place

_PAGE_ROWS = 1 << 17


def bare_schema(schema: Any, columns: Sequence[str] | None = None) -> Any:
    """Names and types of these columns, or of all: no metadata of the source, at any depth."""
    return pa.schema([pa.field(name, _bare_type(schema.field(name).type)) for name in columns or schema.names])


def _bare_type(kind: Any) -> Any:
    """A nested type without the metadata of the fields in it."""

    def bare(field: Any) -> Any:
        return pa.field(field.name, _bare_type(field.type), field.nullable)

    if pa.types.is_struct(kind):
        return pa.struct([bare(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(bare(kind.key_field), bare(kind.item_field), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(bare(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(bare(kind.value_field))
    return pa.list_(bare(kind.value_field)) if pa.types.is_list(kind) else kind


def reordered(rows: Rows, order: NDArray[np.int64]) -> Rows:
    """The block with row i what was row order[i]: a column at a time, so that it is never there a third time."""
    indices = array_of(order.astype(np.int32))
    if not rows.num_columns:
        return rows.take(indices)
    return pa.table([column.combine_chunks().take(indices) for column in rows.columns], schema=rows.schema)


class Written(NamedTuple):
    """What was written: how many bytes, and their SHA-256, or of pieces their ``DamageCheck``."""

    bytes: int
    digest: str


class DamageCheck:
    """Shows whether bytes are still the same: GMAC, a fifteenth of the time of SHA-256.

    Its key is no secret, so it finds damage, not forgery: that is enough for files which nobody but their owner sees.
    """

    def __init__(self) -> None:
        self._cipher = Cipher(algorithms.AES(b"dpmask pieces 16"), modes.GCM(bytes(12))).encryptor()

    def update(self, data: Any) -> None:
        """Take up some bytes."""
        self._cipher.authenticate_additional_data(memoryview(data).cast("B"))

    def hexdigest(self) -> str:
        """What other bytes have not, but once in 2^64 or so; nothing can be taken up after it."""
        self._cipher.finalize()
        return self._cipher.tag.hex()


class _Hashing:
    """A file that takes the digest of what passes through to the real one. Arrow needs no more of a file."""

    closed = False

    def __init__(self, file: Any, digest: Any) -> None:
        self.file, self.digest, self.size = file, digest, 0

    def write(self, data: Any) -> int:
        self.digest.update(data)
        self.size += len(data)
        self.file.write(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Nothing is held back here."""

    def close(self) -> None:
        """The real file is closed by who opened it."""


def write_rows(rows: Rows, place: Place) -> Written:
    """Write a block as a Parquet file, whole or not at all.

    Doubles are split by byte: zstd packs them better so, and in pages of a megabyte faster, too, than in Arrow's own.
    """
    schema = bare_schema(rows.schema)
    floating = [field.name for field in schema if field.type in {pa.float32(), pa.float64()}]
    packing = {
        "compression": "zstd",
        "use_byte_stream_split": floating,
        "use_dictionary": [name for name in schema.names if name not in floating],
        "max_rows_per_page": _PAGE_ROWS,
    }
    with place.replaced() as file:
        sink = _Hashing(file, hashlib.sha256())
        with pq.ParquetWriter(pa.PythonFile(sink, "w"), schema, **packing) as writer:
            writer.write_table(_fitted(rows, schema), row_group_size=max(rows.num_rows, 1))
    return Written(sink.size, sink.digest.hexdigest())


def _fitted(rows: Rows, schema: Any) -> Rows:
    """The same columns under a schema without metadata; nested ones are rebuilt, as their fields carry it too."""
    arrays = [
        column.cast(field.type) if pa.types.is_nested(field.type) else column
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_pieces(rows: Rows, sizes: Sequence[int], place: Place) -> Written:
    """Write a block as an Arrow file, cut into consecutive pieces that can be read one by one (``join_pieces``).

    Texts and codes are packed; doubles, which hardly get smaller so, are not where they are most of the block. It need
    not outlive the machine: a run that is resumed checks it, and most are deleted before they would reach the disk.
    """
    schema = bare_schema(rows.schema)
    columns = [column.combine_chunks() for column in _fitted(rows, schema).columns]
    batch, start = pa.record_batch(columns, schema=schema), 0
    doubles = sum(column.nbytes for column in columns if pa.types.is_floating(column.type))
    options = pa.ipc.IpcWriteOptions(compression=None if 2 * doubles > batch.nbytes else "lz4", use_threads=False)
    with place.replaced(settled=False) as file:
        sink = _Hashing(file, DamageCheck())
        with pa.ipc.new_file(pa.PythonFile(sink, "w"), schema, options=options) as writer:
            for size in sizes:
                writer.write_batch(batch.slice(start, size))
                start += size
    return Written(sink.size, sink.digest.hexdigest())


def write_positions(positions: NDArray[np.int64], place: Place) -> None:
    """Write which record each row of a released file was."""
    array = pa.Array.from_buffers(pa.int64(), len(positions), [None, pa.py_buffer(positions)])
    with place.replaced(OWNER_ONLY) as file:
        table = pa.Table.from_arrays([array], names=["position"])
        pq.write_table(table, pa.PythonFile(file, "w"), compression="none", use_dictionary=False)


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
        kept = np.array(sorted(used), np.int64)
        kind = rows.schema.field(place).type
        chunks = []
        for chunk in rows.column(place).chunks:
            new, unused = np.zeros(len(chunk.dictionary), np.int64), np.ones(len(chunk.dictionary), np.bool_)
            new[kept], unused[kept] = np.arange(len(kept)), False
            indices = array_of(new, unused).cast(kind.index_type).take(chunk.indices)
            chunks.append(
                pa.DictionaryArray.from_arrays(indices, chunk.dictionary.take(array_of(kept)), ordered=kind.ordered)
            )
        rows = rows.set_column(place, rows.schema.field(place), pa.chunked_array(chunks, kind))
    return rows


def decode(data: Any, most: int) -> Rows:
    """The rows of a Parquet file's bytes; a file that is none, or has more than ``most`` rows, is refused unread."""
    try:
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            if file.metadata.num_rows > most:
                raise InputError("has another number of rows than the manifest claims")
            return file.read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError):
        raise InputError("is damaged or not a Parquet file") from None
