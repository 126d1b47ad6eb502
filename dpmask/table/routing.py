"""Rows sent to the tasks that own them, and back to the blocks they came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.exchange import Piece
from dpmask.table.table import Table

Result = TypeVar("Result")


def rows_by_target(owner: NDArray[Any], targets: int) -> list[NDArray[np.intp]]:
    """The rows that each of up to 65,535 targets owns, in their order."""
    small = owner.astype(np.uint16)  # so that sorting is a counting sort
    order = np.argsort(small, kind="stable")
    ends = np.searchsorted(small[order], np.arange(targets, dtype=np.uint16))
    return [order[low:high] for low, high in pairwise([*ends, len(order)])]


def joined_rows(pieces: Sequence[Piece]) -> Piece:
    """Pieces of positions and values (rows along the last axis) as one, in the order of the positions."""
    positions = np.concatenate([piece[0] for piece in pieces])
    values = np.concatenate([piece[1] for piece in pieces], axis=-1)
    order = np.argsort(positions, kind="stable")
    return positions[order], np.ascontiguousarray(values[..., order])


def sent_back(
    table: Table, moved: Collection[Piece], join: Callable[[list[Piece]], Result], label: str, *, size: int
) -> Collection[Result]:
    """Positions, rising in each shard, and their values: the pieces of each block of the table, joined."""
    firsts = np.array([*(position.first for position in table.positions), table.rows])
    return moved.exchange(partial(_by_block, firsts), join, table.positions, label, size=size)


def _by_block(firsts: NDArray[np.int64], content: Piece) -> list[Piece]:
    positions, values = content
    ends = np.searchsorted(positions, firsts)
    return [(positions[low:high], values[..., low:high]) for low, high in pairwise(ends)]
