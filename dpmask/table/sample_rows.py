"""A few records of a table, without reading more of it than that takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dpmask.engine.tasks import Block, content_of
from dpmask.lake.reading import LakeBlock, Rows
from dpmask.table.table import Table

_COUNT, _LENGTH = 5, 400


def sample_rows(table: Table) -> Table:
    """400 records from the middle of each fifth, the same however the table is cut into blocks; or all, if it has few.

    Positions are what they were, so every step masks these records as it masks the whole table. A lake's row groups are
    read only as far as the last record that is needed; other blocks, and CSV, whole.
    """
    fifth = table.rows // _COUNT
    if fifth < _LENGTH:
        return replace(table, origins=())
    starts = [number * table.rows // _COUNT + min(fifth // 2, fifth - _LENGTH) for number in range(_COUNT)]
    blocks = []
    for block in table.blocks:
        for start in starts:
            low, high = max(start, block.first), min(start + _LENGTH, block.first + block.rows)
            if low < high:
                blocks.append(Block(low, high - low, _cut(block.content, low - block.first, high - low)))
    return replace(table, blocks=tuple(blocks), origins=())


def _cut(content: Any, start: int, rows: int) -> Any:
    return (
        content.cut(start, rows)
        if isinstance(content, LakeBlock)
        else content_of(partial(_BlockRows, start, rows), content)
    )


@dataclass(frozen=True, repr=False)
class _BlockRows:
    """Some rows of a block. Its repr shows none of them."""

    start: int
    rows: int
    content: Any

    def read(self, columns: Sequence[str]) -> Rows:
        return self.content.read(columns).slice(self.start, self.rows)
