"""Keys bound to the content of a table: one changed value anywhere, and all draws are others.

Two releases of nearly the same table must not share draws, or what differs between them shows the originals. So each
record's position and values go through AES-256 under a subkey (CBC-MAC: a keyed digest of 128 bits), and the digests
are added up modulo 2^128: the sum is the same for any partitioning, and nobody without the key can aim at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey, chained
from dpmask.engine.tasks import Position
from dpmask.kernels.arrays import Words
from dpmask.lake.reading import Rows
from dpmask.table.columns import is_numeric
from dpmask.table.row_keys import column_words
from dpmask.table.table import Table

_MODULUS = 1 << 128
_TILE = 1 << 14
_MISSING = np.array([0x2545F4914F6CDD1D, 0x5851F42D4C957F2D], np.uint64)
"""No number has these two words: the second is 0 for all but decimals, and this is more than 38 digits hold."""


class Content(NamedTuple):
    """What a table held, by keyed digests: whether another holds the same can be seen by them, what it is cannot."""

    columns: tuple[str, ...]
    rows: int
    digests: tuple[int, ...]
    """Of the first column, of the first two, and so on."""
    key: Subkey

    def bound(self, key: Subkey) -> Subkey:
        """The key of draws for this content alone."""
        total = self.digests[-1] if self.digests else 0
        return Subkey(key.subkey(f"bound to {self.rows} rows of {self.columns!r}: {total:032x}").secret, bound=True)

    def other(self, table: Table) -> str | None:
        """What a table's draws are to be bound to if it holds anything else; None if it is the same. One pass.

        Columns at the end that the table lacks make no difference: they were read to learn, not to mask.
        """
        names = set(table.masked_schema.names)
        there = tuple(name for name in self.columns if name in names)
        found = content_digests(table, there, self.key) if there else (0,)
        if there and (there, table.rows, found) == (self.columns[: len(there)], self.rows, self.digests[: len(there)]):
            return None
        return f"{table.rows} rows of {there!r}: {found[-1]:032x}"


def content_of(key: Subkey, table: Table, columns: Sequence[str]) -> Content:
    """What these columns of a table hold, in one pass.

    Columns that masking has changed are left out: they are exact only to rounding.
    """
    read = tuple(name for name in dict.fromkeys(columns) if name not in table.changed)
    digests = digest_key(key, read)
    return Content(read, table.rows, content_digests(table, read, digests) if read else (), digests)


def digest_key(key: Subkey, columns: tuple[str, ...]) -> Subkey:
    """The key that the content of columns is digested by."""
    return key.subkey(f"content of {columns!r}")


def bound_key(key: Subkey, table: Table, columns: Sequence[str]) -> Subkey:
    """The key of draws for this table alone, by the content of these columns. One pass over them."""
    return content_of(key, table, columns).bound(key)


def content_digests(table: Table, columns: Sequence[str], key: Subkey) -> tuple[int, ...]:
    """The sums of all records' digests, of the first column, of the first two, and so on."""
    rows = table.select(columns).with_positions()
    return rows.reduce(partial(block_digests, key, tuple(columns)), _sums, "content")


def _sums(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return tuple((one + other) % _MODULUS for one, other in zip(left, right, strict=True))


def block_digests(
    key: Subkey, columns: tuple[str, ...], rows: Rows, position: Position, *, tile: int = _TILE
) -> tuple[int, ...]:
    """The sums of the digests of a block's records.

    Numbers are read a tile at a time, which stays in the cache; texts at once, as each different one is hashed once.
    """
    numbers = all(is_numeric(rows.schema.field(column).type) for column in columns)
    totals, tile = (0,) * len(columns), tile if numbers else max(rows.num_rows, 1)
    for start in range(0, rows.num_rows, tile):
        totals = _sums(totals, _tile_digests(key, columns, rows.slice(start, tile), position.first + start))
    return totals


def _tile_digests(key: Subkey, columns: tuple[str, ...], rows: Rows, first: int) -> tuple[int, ...]:
    block = np.zeros((rows.num_rows, 2), np.uint64)
    block[:, 0] = np.arange(first, first + rows.num_rows)
    state, found = chained(key.secret, np.zeros_like(block), block), []
    for column in columns:
        state = record_digests(key, rows, [column], state)
        found.append(_total(state))
    return tuple(found)


def record_digests(
    key: Subkey, rows: Rows, columns: Sequence[str], state: NDArray[np.uint64] | None = None
) -> NDArray[np.uint64]:
    """A keyed digest of each record's values in these columns (records x 2 words), going on from a state."""
    state = np.zeros((rows.num_rows, 2), np.uint64) if state is None else state
    for column in columns:
        words, absent = column_words(rows, column)
        for at in range(0, len(words), 2):
            state = chained(key.secret, state, _pair(words[at : at + 2], absent))
    return state


def _pair(words: Sequence[Words], absent: NDArray[np.bool_] | None) -> NDArray[np.uint64]:
    """One or two words of each record as one block."""
    block = np.zeros((len(words[0]), 2), np.uint64)
    for lane, word in enumerate(words):
        block[:, lane] = word
    if absent is not None:
        block[absent] = _MISSING
    return block


def _total(state: NDArray[np.uint64]) -> int:
    """The sum of numbers of 128 bits, the low word first; halves of a word, each a column, add up without a carry."""
    halves = state.view(np.uint32)
    return sum(int(halves[:, at].sum(dtype=np.uint64)) << (32 * at) for at in range(halves.shape[1])) % _MODULUS
