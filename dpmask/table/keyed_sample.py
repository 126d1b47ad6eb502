"""A keyed sample of a table, held in memory: the same records for any partitioning, and nobody's choice.

Each record has a word of its own, drawn under a key for its position, or for its household, so that these stay whole.
Records with small words are the sample, in the order of their words: any run of them is a sample again. One pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from dpmask.engine.draws import Subkey, record_words
from dpmask.engine.tasks import Block, Position
from dpmask.kernels.arrays import Floats, Words
from dpmask.lake.reading import Rows
from dpmask.table.content import record_digests
from dpmask.table.table import Table

PARTS = 5
"""Disjoint parts of a sample, to see by how far another sample might differ."""
_WORD = " (word)"
_RANGE = 1 << 64


@dataclass(frozen=True, repr=False)
class StoredRows:
    """Rows in memory as a block's content. Its repr shows none of them."""

    rows: Rows

    def read(self, columns: Sequence[str]) -> Rows:
        """These columns of the block, in this order."""
        return self.rows.select(list(columns))


def keyed_sample(table: Table, most: int, key: Subkey, *, household: str | None = None) -> Table:
    """About ``most`` records of a table in one block, whole households if any; or all of it, in its order."""
    pick = partial(_picked, key, min(1.0, most / table.rows), household)
    parts = table.select(table.schema.names).with_positions().map(pick, "sample")
    rows = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
    rows = rows if rows.num_rows == table.rows else rows.sort_by(_WORD)
    return _of_rows(rows.drop_columns(_WORD), table)


def part_of(table: Table, number: int) -> Table:
    """One of the parts of a table that is stored in one block."""
    (block,) = table.blocks
    low, high = (block.rows * at // PARTS for at in (number, number + 1))
    return _of_rows(block.content.rows.slice(low, high - low), table)


def _of_rows(rows: Rows, like: Table) -> Table:
    block = Block(0, rows.num_rows, StoredRows(rows))
    return Table(rows.schema, (block,), like.nullable, replaced=like.changed)


def stored(table: Table) -> Table:
    """A small table as it is after all its steps, held in memory block by block; where records come from is kept."""
    schema = table.masked_schema
    parts = table.select(schema.names).map(StoredRows, "mask")
    return Table(schema, table.blocks_with(parts), table.nullable, (), {}, table.changed, table.origins)


def stored_numbers(names: Sequence[str], columns: Sequence[Floats]) -> Table:
    """Some columns of numbers, none missing, as a table in one block."""
    rows = pa.table(list(columns), names=list(names))
    return Table(rows.schema, (Block(0, rows.num_rows, StoredRows(rows)),), frozenset())


def rows_digest(table: Table, columns: Sequence[str]) -> bytes:
    """A digest of some columns of a table in memory, as they are after all its steps, and of the records dropped."""
    read, digest = table.reader(columns), hashlib.sha256(repr([tuple(columns), table.rows]).encode())
    for block, position in zip(table.blocks, table.positions, strict=True):
        rows, sink = read(block.content, position), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        digest.update(sink.getvalue())
    for one in table.origins:
        digest.update(np.ascontiguousarray(one.dropped).tobytes())
    return digest.digest()


def _picked(key: Subkey, share: float, household: str | None, rows: Rows, position: Position) -> Rows:
    words = _words(key, household, rows, position)
    kept = words < np.uint64(int(share * _RANGE)) if share < 1.0 else np.ones(len(words), np.bool_)
    return rows.append_column(_WORD, pa.array(words)).filter(pa.array(kept))


def _words(key: Subkey, household: str | None, rows: Rows, position: Position) -> Words:
    if household is None:
        return record_words(key, position.first, rows.num_rows)
    return record_digests(key, rows, [household])[:, 0]
