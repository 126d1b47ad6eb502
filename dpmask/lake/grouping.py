"""How many records share each row, over a whole table: rows are counted block by block, then meet by their hash."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.exchange import Piece, hold_exchanged
from dpmask.engine.passes import Blocks, Span, reduce_blocks
from dpmask.kernels.rows import distinct_rows, row_hashes
from dpmask.lake.columns import Rows, bits, is_numeric
from dpmask.lake.keys import row_keys
from dpmask.lake.table import Table

_ROWS_PER_TARGET = 200_000
_MOST_TARGETS = 256


@dataclass(frozen=True)
class GroupSizes:
    """How many groups of equal rows there are of each size."""

    groups: Mapping[int, int] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """Records in all groups."""
        return sum(size * count for size, count in self.groups.items())

    @property
    def distinct(self) -> int:
        """How many different rows there are."""
        return sum(self.groups.values())

    @property
    def smallest(self) -> int:
        """The size of the smallest group."""
        return min(self.groups, default=0)

    def below(self, k: float) -> int:
        """Records in groups of fewer than k."""
        return sum(size * count for size, count in self.groups.items() if size < k)

    def plus(self, other: GroupSizes) -> GroupSizes:
        """Both together; no row may be in both."""
        sizes = sorted({*self.groups, *other.groups})
        return GroupSizes({size: self.groups.get(size, 0) + other.groups.get(size, 0) for size in sizes})


def group_sizes(table: Table, columns: Sequence[str], label: str) -> GroupSizes:
    """The groups of records that are equal in these columns: numbers by their bits, others by a key of the row."""
    numeric = all(is_numeric(table.masked_schema.field(column).type) for column in columns)
    counted = _counted if numeric else _counted_by_key
    return sizes_of(table.on_rows(columns, counted), table.blocks, table.rows, len(columns) if numeric else 2, label)


def _counted(rows: Rows, span: Span) -> Piece:
    found, counts = distinct_rows([bits(rows, column) for column in rows.schema.names])
    return (*found, counts)


def _counted_by_key(rows: Rows, span: Span) -> Piece:
    found, counts = distinct_rows(list(row_keys(rows, rows.schema.names)))
    return (*found, counts)


def sizes_of(counted: Callable[[Any, Span], Piece], blocks: Blocks, rows: int, columns: int, label: str) -> GroupSizes:
    """The groups of rows that ``counted(content, span)`` finds in each block, as columns of bits and then counts."""
    targets = min(_MOST_TARGETS, 1 + rows // _ROWS_PER_TARGET)
    spans = [Span(number, 0) for number in range(targets)]
    split, size = partial(_split, counted, targets), 8 * rows * (columns + 1)
    shares = hold_exchanged(split, _join, blocks, spans, label, size=size)
    return reduce_blocks(_sizes, GroupSizes.plus, shares, label)


def _split(counted: Callable[[Any, Span], Piece], targets: int, content: Any, span: Span) -> list[Piece]:
    piece = counted(content, span)
    owner = row_hashes(piece[:-1]) % np.uint64(targets)
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(targets + 1, dtype=np.uint64))
    return [tuple(part[order[low:high]] for part in piece) for low, high in pairwise(ends)]


def _join(pieces: list[Piece], span: Span) -> tuple[NDArray[np.int64]]:
    """How often each row is there: the rows themselves are not needed any more."""
    *columns, counts = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return (distinct_rows(columns, counts)[1],)


def _sizes(content: Piece, span: Span) -> GroupSizes:
    sizes, groups = np.unique(content[0], return_counts=True)
    return GroupSizes(dict(zip(sizes.tolist(), groups.tolist(), strict=True)))
