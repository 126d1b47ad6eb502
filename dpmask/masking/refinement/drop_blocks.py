"""What a block of coded records does in a round of a refinement that may drop records: counts those that are left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dpmask.engine.passes import Span
from dpmask.kernels.keys import RowKeys
from dpmask.kernels.refinement.cells import Cells, Grouped, cell_starts, count_cells, node_keys
from dpmask.kernels.refinement.dropped import Flags, Sizes, among, merge_sizes, only, sizes
from dpmask.masking.refinement.blocks import CodedBlock, Order, Read, groups_of


class Drops(NamedTuple):
    """What is dropped: for each quasi-identifier the keys of groups, sorted, all records of which are; and how many."""

    keys: tuple[RowKeys, ...]
    records: int


class Part(NamedTuple):
    """Some of all groups, by their keys."""

    number: int
    of: int

    def has(self, keys: RowKeys) -> Flags:
        """Which of these groups it has."""
        found: Flags = keys.second % np.uint64(self.of) == np.uint64(self.number)
        return found


class _Left(NamedTuple):
    """A block's groups by quasi-identifier, with the rows left; their keys, which are dropped, and those rows."""

    groups: list[Grouped]
    keys: list[RowKeys]
    dropped: list[Flags]
    rows: Flags


def _left(block: CodedBlock, orders: Sequence[Order], drops: Drops, *, keep: bool) -> _Left:
    groups = [groups_of(block, order.columns, order, keep=keep) for order in orders]
    keys = [node_keys(one.nodes) for one in groups]
    dropped = [among(one, gone) for one, gone in zip(keys, drops.keys, strict=True)]
    left = np.ones(block.codes.shape[1], np.bool_)
    for one, flags in zip(groups, dropped, strict=True):
        if flags.any():
            left &= ~flags[one.rows]
    return _Left([only(one, left) for one in groups], keys, dropped, left)


def group_sizes(
    drops: Drops, orders: Sequence[Order], part: Part, read: Read, content: Any, span: Span
) -> dict[int, Sizes | None]:
    """The sizes of groups that are tried: these are not kept."""
    left = _left(read(content, span), orders, drops, keep=False)
    found = {
        order.number: sizes(keys, groups, part.has(keys))
        for order, keys, groups in zip(orders, left.keys, left.groups, strict=True)
    }
    return {order.number: _within(order, found[order.number]) for order in orders}


def _within(order: Order, found: Sizes) -> Sizes | None:
    return found if len(found.counts) <= order.budget else None


def merge_group_sizes(
    orders: Sequence[Order], left: dict[int, Sizes | None], right: dict[int, Sizes | None]
) -> dict[int, Sizes | None]:
    """The sizes of both, by quasi-identifier."""
    found: dict[int, Sizes | None] = {}
    for order in orders:
        one, other = left[order.number], right[order.number]
        found[order.number] = None if one is None or other is None else _within(order, merge_sizes(one, other))
    return found


def group_cells(
    drops: Drops, orders: Sequence[Order], part: Part, read: Read, content: Any, span: Span
) -> dict[int, Cells | None]:
    """The cells of groups that are not dropped, of records that are left."""
    block = read(content, span)
    left = _left(block, orders, drops, keep=True)
    found: dict[int, Cells | None] = {}
    for order, groups, keys, dropped in zip(orders, left.groups, left.keys, left.dropped, strict=True):
        counted = np.flatnonzero(part.has(keys) & ~dropped)
        _, size = cell_starts(groups.nodes[counted], order.values)
        found[order.number] = (
            None if size > order.budget else count_cells(block.codes, order.columns, groups, counted, order.values)
        )
    return found
