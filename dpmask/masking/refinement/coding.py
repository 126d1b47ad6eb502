"""A table as the coded blocks that a refinement runs over, and how often each code occurs with each class."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.passes import Span, fits_in_memory, hold_blocks, reduce_blocks
from dpmask.lake.reading import Rows
from dpmask.masking.refinement.blocks import Coded, CodedBlock, as_held
from dpmask.masking.refinement.guide import Labels
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.table import Table

Counts = NDArray[np.int64]

_OTHER_BYTES = 16  # a row's class and its groups


def coded_blocks(source: Table, columns: Sequence[CodeEncoder], labels: Labels) -> Coded:
    """The table as codes, held where they fit in memory and otherwise made anew in every round."""
    names = tuple(dict.fromkeys([*(one.column for one in columns), *labels.inputs]))
    read = source.on_rows(names, partial(_code, tuple(columns), labels))
    if not fits_in_memory(source.rows * (2 * len(columns) + _OTHER_BYTES)):
        return Coded(source.blocks, read)
    return Coded(hold_blocks(read, source.blocks, "refinement: codes"), as_held)


def _code(coded: tuple[CodeEncoder, ...], labels: Labels, rows: Rows, span: Span) -> CodedBlock:
    codes = np.empty((len(coded), rows.num_rows), np.uint16)
    for place, one in enumerate(coded):
        codes[place] = one.encode(rows)
    return CodedBlock(codes, labels.of(rows))


def class_counts(coded: Sequence[CodeEncoder], classes: int, blocks: Coded) -> list[Counts]:
    """For every attribute how often each code occurs with each class; one pass over codes."""
    count = partial(_histograms, tuple(one.size for one in coded), classes, blocks.read)
    return reduce_blocks(count, _added, blocks.blocks, "refinement: classes")


def _histograms(sizes: tuple[int, ...], classes: int, read: Any, content: Any, span: Span) -> list[Counts]:
    block: CodedBlock = read(content, span)
    assert block.classes is not None
    return [
        np.bincount(block.codes[place].astype(np.int64) * classes + block.classes, minlength=size * classes).reshape(
            size, classes
        )
        for place, size in enumerate(sizes)
    ]


def _added(left: list[Counts], right: list[Counts]) -> list[Counts]:
    return [one + other for one, other in zip(left, right, strict=True)]
