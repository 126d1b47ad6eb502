"""Original and masked records side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from dask.delayed import Delayed

from dpmask.engine.tasks import Position, content_of, ready
from dpmask.errors import JobError
from dpmask.lake.reading import Rows
from dpmask.table.arrow_frames import is_arrow_frame, table_of_arrow
from dpmask.table.columns import require_known, require_numeric
from dpmask.table.dropping import POSITION, PRESENT, with_gaps
from dpmask.table.table import Reader, Table

__all__ = ["POSITION", "PRESENT", "masked_name", "pair", "pair_numbers"]

_MASKED = " (masked)"


def masked_name(column: str) -> str:
    """What a masked column is called in a table of pairs."""
    return column + _MASKED


def pair(
    original: Any, masked: Any, columns: Sequence[str], who: str, *, marks: bool = False, beside: Sequence[str] = ()
) -> Table:
    """One table with each column twice, as it was and masked. Frames pair by index, lakes by position.

    So do frames without an index. A record that masking dropped has no masked values. With ``marks`` there are two
    columns more: the record's POSITION in the original, whatever order a join left, and PRESENT, which is null where
    the masked table has no such record. ``beside`` are further columns of the original, which the masked table need not
    have.
    """
    original, masked = (table_of_arrow(one, who) if is_arrow_frame(one) else one for one in (original, masked))
    if isinstance(original, Table) and isinstance(masked, Table):
        return _by_position(original, masked, columns, who, marks, beside)
    from dpmask.table.frames import join

    marked = (POSITION, PRESENT) if marks else ()
    return join([original, masked], columns, lambda name, _: masked_name(name), who, marked, beside)


def pair_numbers(
    original: Any, masked: Any, columns: Sequence[str], who: str, *, marks: bool = False
) -> tuple[Table, list[str]]:
    """The same of columns that must be numeric in both, and their names there: as they were, then masked."""
    pairs = pair(original, masked, columns, who, marks=marks)
    names = [*columns, *map(masked_name, columns)]
    require_numeric(pairs.masked_schema, names, who)
    return pairs, names


def _by_position(
    original: Table, masked: Table, columns: Sequence[str], who: str, marks: bool, beside: Sequence[str]
) -> Table:
    own = [*columns, *beside]
    for table, names in ((original, own), (masked, columns)):
        require_known(table.masked_schema, names, who)
    if masked.origins:
        masked = with_gaps(masked)
    if original.rows != masked.rows:
        raise JobError(
            f"{who}: records pair by position, so both tables must have as many; got {original.rows:,} and "
            f"{masked.rows:,}. Pair them by a column: dpmask evaluate --paired-by COLUMN, or frames with an index."
        )
    if [block[:2] for block in original.blocks] != [block[:2] for block in masked.blocks]:
        masked = _recut(masked, original, who)
    gaps = [PRESENT] if PRESENT in masked.schema.names else []
    left, right = original.reader(own), masked.reader([*columns, *gaps])
    blocks = original.blocks_with(
        content_of(partial(_Pair, left, right, position), one.content, two.content)
        for position, one, two in zip(original.positions, original.blocks, masked.blocks, strict=True)
    )
    fields = [original.masked_schema.field(name) for name in own]
    fields += [pa.field(masked_name(name), masked.masked_schema.field(name).type) for name in columns]
    if marks:
        fields += [pa.field(POSITION, pa.int64()), pa.field(PRESENT, pa.int64())]
    return Table(pa.schema(fields), blocks, original.nullable)


def _recut(masked: Table, original: Table, who: str) -> Table:
    from dpmask.table.alignment import recut

    if any(isinstance(ready(block.content), Delayed) for block in masked.blocks):
        raise JobError(f"{who}: a table that is persisted must be cut into the same blocks to be paired.")
    return recut(masked, original.blocks)


@dataclass(frozen=True)
class _Pair:
    """One block of both tables."""

    left: Reader
    right: Reader
    position: Position
    original: Any
    masked: Any

    def read(self, columns: Sequence[str]) -> Rows:
        rows, others = self.left(self.original, self.position), self.right(self.masked, self.position)
        numbers = self.position.first + np.arange(rows.num_rows)
        positions = pa.Array.from_buffers(pa.int64(), rows.num_rows, [None, pa.py_buffer(numbers)])  # without pandas
        there = dict(zip(rows.column_names, rows.columns, strict=True))
        after = dict(zip(others.column_names, others.columns, strict=True))
        marks = {POSITION: positions, PRESENT: after.get(PRESENT, positions)}
        there |= {masked_name(name): values for name, values in after.items()} | marks
        return pa.table([there[name] for name in columns], list(columns))
