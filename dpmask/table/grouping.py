"""How many records share each row, over a whole table: rows are counted block by block, then meet by their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.exchange import Piece
from dpmask.engine.limits import current_limits
from dpmask.kernels.keys import RowKeys, counted
from dpmask.lake.reading import Rows
from dpmask.table.routing import rows_by_target
from dpmask.table.row_keys import require_groupable, row_keys
from dpmask.table.table import Table

_MOST_TARGETS = 256
_KEY_BYTES = 24


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
    """The groups of records that are equal in these columns."""
    require_groupable(table.masked_schema, columns, label)
    return merged_sizes(table.select(columns).transform(_counted), table.rows, label)


def _counted(rows: Rows) -> Piece:
    return counted(row_keys(rows, rows.schema.names))


def merged_sizes(counts: Collection[Piece], rows: int, label: str) -> GroupSizes:
    """The groups of counted rows: a block has both lanes of different keys, and how often each is there."""
    targets = targets_for(rows)
    shares = counts.exchange(partial(split_counts, targets), _join, targets, label, size=_KEY_BYTES * rows)
    return shares.reduce(_sizes, GroupSizes.plus, label)


def targets_for(rows: int) -> int:
    """How many tasks so many rows are counted in."""
    return min(_MOST_TARGETS, 1 + rows // current_limits().group_target_rows)


def split_counts(targets: int, piece: Piece) -> list[Piece]:
    """The lanes of different keys, and what is counted of them, by the task that counts each."""
    parts = rows_by_target(piece[0] % np.uint64(targets), targets)
    return [tuple(part[rows] for part in piece) for rows in parts]


def _join(pieces: list[Piece]) -> tuple[NDArray[np.int64]]:
    """How often each key is there: the keys themselves are not needed any more."""
    first, second, counts = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return (counted(RowKeys(first, second), counts)[2],)


def _sizes(content: Piece) -> GroupSizes:
    return sizes_in(content[0])


def sizes_in(counts: NDArray[np.int64]) -> GroupSizes:
    """From how often each row is there to how many rows are there so often."""
    sizes, groups = np.unique(counts, return_counts=True)
    return GroupSizes(dict(zip(sizes.tolist(), groups.tolist(), strict=True)))
