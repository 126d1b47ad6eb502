"""What a block of coded records does in a round of a refinement: groups its rows, and counts their cells.

What travels to a block is the masked values of now, never groups: a block numbers its groups for itself, keeps them
beside its codes while these stay in a worker's memory, and makes them anew from the codes wherever they are not at
hand. So a lost worker costs time, and nothing grows from round to round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.passes import Blocks, Span
from dpmask.kernels.refinement.cells import (
    Cells,
    Grouped,
    Minima,
    Values,
    cell_starts,
    count_cells,
    group_rows,
    merge_cells,
    merge_minima,
    node_keys,
    smallest_cells,
    split_groups,
)
from dpmask.masking.refinement.attributes import Refined

Codes = NDArray[np.uint16]


class CodedBlock:
    """A block's codes (attributes x rows) and classes; the groups of its rows are kept here, but never travel."""

    def __init__(self, codes: Codes, classes: NDArray[np.uint16] | None = None) -> None:
        self.codes, self.classes = codes, classes
        self.groups: dict[int, tuple[int, Grouped]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"codes": self.codes, "classes": self.classes, "groups": {}}

    def __repr__(self) -> str:
        return f"<CodedBlock: {self.codes.shape[1]} rows>"

    def __sizeof__(self) -> int:
        return self.codes.nbytes + 4 * self.codes.shape[1] + (0 if self.classes is None else self.classes.nbytes)


Read = Callable[[Any, Span], CodedBlock]


class Coded(NamedTuple):
    """A table as codes: blocks, and what makes a CodedBlock of each: nothing, where that is what they hold."""

    blocks: Blocks
    read: Read


def as_held(content: CodedBlock, span: Span) -> CodedBlock:
    """A block that is coded already."""
    return content


class Order(NamedTuple):
    """What a block is told of one quasi-identifier: its version is how often it was refined."""

    number: int
    version: int
    columns: tuple[int, ...]
    values: tuple[Values, ...]
    place: int
    refined: Refined | None
    budget: int


def groups_of(block: CodedBlock, columns: Sequence[int], order: Order, *, keep: bool = True) -> Grouped:
    """The groups of a block: those kept, or one refinement further, or made anew."""
    version, groups = block.groups.get(order.number, (-1, None))
    if groups is not None and version == order.version:
        return groups
    if groups is not None and version == order.version - 1 and order.refined is not None:
        column = block.codes[columns[order.place]]
        groups = split_groups(groups, column, order.place, *order.refined, order.values[order.place])
    else:
        groups = group_rows(block.codes, columns, order.values)
    if keep:
        block.groups[order.number] = order.version, groups
    return groups


def _changed(groups: Grouped, order: Order) -> NDArray[np.intp]:
    """The groups to count: those that hold what a refined value became."""
    if order.refined is None:
        return np.arange(len(groups.nodes))
    return np.flatnonzero(np.isin(groups.nodes[:, order.place], order.refined.children))


def count(orders: Sequence[Order], read: Read, content: Any, span: Span) -> dict[int, Cells | None]:
    """The cells that changed, by quasi-identifier; none where they are more than the budget allows."""
    block = read(content, span)
    found: dict[int, Cells | None] = {}
    for order in orders:
        groups = groups_of(block, order.columns, order)
        changed = _changed(groups, order)
        _, size = cell_starts(groups.nodes[changed], order.values)
        found[order.number] = (
            None if size > order.budget else count_cells(block.codes, order.columns, groups, changed, order.values)
        )
    return found


def merge(
    orders: Sequence[Order], left: dict[int, Cells | None], right: dict[int, Cells | None]
) -> dict[int, Cells | None]:
    """The cells of both, by quasi-identifier."""
    return {order.number: _merged(order, left[order.number], right[order.number]) for order in orders}


def _merged(order: Order, left: Cells | None, right: Cells | None) -> Cells | None:
    if left is None or right is None:
        return None
    both = merge_cells(left, right, order.values)
    return both if len(both.counts) <= order.budget else None


def split_rows(order: Order, shards: int, read: Read, content: Any, span: Span) -> list[tuple[Codes]]:
    """A block's rows by the owner of their group."""
    block = read(content, span)
    groups = group_rows(block.codes, order.columns, order.values)
    owner = (node_keys(groups.nodes).first % np.uint64(shards)).astype(np.int64)[groups.rows]
    codes = block.codes[list(order.columns)]
    return [(codes[:, owner == shard],) for shard in range(shards)]


def joined(parts: list[tuple[Codes]]) -> CodedBlock:
    """All rows of an owner."""
    return CodedBlock(np.concatenate([codes for (codes,) in parts], axis=1))


def count_owned(order: Order, block: CodedBlock, span: Span) -> Minima:
    """The smallest cells of groups that are all here, some groups at a time."""
    columns = range(len(order.columns))
    groups = groups_of(block, columns, order)
    changed = _changed(groups, order)
    _, size = cell_starts(groups.nodes[changed], order.values)
    parts = max(1, min(-(-size // order.budget), len(changed)))
    found: Minima = {}
    for part in np.array_split(changed, parts):
        cells = count_cells(block.codes, columns, groups, part, order.values)
        found = merge_minima(found, smallest_cells(cells, order.values))
    return found
