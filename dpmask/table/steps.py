"""What a table expects of masking steps, of what observes its blocks, and of records that a step dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmask.errors import DpmaskError
from dpmask.lake.reading import Rows

if TYPE_CHECKING:
    from dpmask.table.table import Table


class Masking(Protocol):
    """A fitted method: what it reads and what it changes."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it reads."""

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it changes or adds."""

    @property
    def dropped(self) -> Any:
        """Which records it leaves out (table.dropping), or None."""

    def check(self, table: Table) -> None:
        """Refuse a table that does not fit."""

    def masked_schema(self, schema: Any) -> Any:
        """The schema of a table with this one after masking."""


class RowMasking(Masking, Protocol):
    """A method that masks each record by itself."""

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """The block that starts at position ``first``, masked; columns that are not inputs are left alone."""


def masked_block(step: RowMasking, rows: Rows, first: int) -> Rows:
    """The block that starts at position ``first``, masked; refused where a method did not return as many rows."""
    masked = step.mask_rows(rows, first)
    if not isinstance(masked, pa.Table) or masked.num_rows != rows.num_rows:
        found = f"one of {masked.num_rows}" if isinstance(masked, pa.Table) else f"a {type(masked).__name__}"
        expected = f"must return an Arrow table of as many rows as it got, {rows.num_rows}"
        raise DpmaskError(f"{type(step).__name__}: mask_rows {expected}; it returned {found}. Mend the method.")
    return masked


@runtime_checkable
class TableMasking(Masking, Protocol):
    """A method that masks records together, wherever they lie."""

    def mask_table(self, table: Table) -> Table:
        """The whole table, masked."""


class BlockObserver(Protocol):
    """A summary of some columns of a block."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns it needs."""

    def __call__(self, rows: Rows, /) -> Any:
        """The summary."""


class DroppedRows(NamedTuple):
    """A block before records were dropped from it: its first position, its rows, the places of those dropped."""

    first: int
    rows: int
    dropped: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"<DroppedRows: {self.left} of {self.rows} rows>"

    @property
    def left(self) -> int:
        """How many records there still are."""
        return self.rows - len(self.dropped)

    @property
    def kept(self) -> NDArray[np.int64]:
        """The places of those."""
        return np.delete(np.arange(self.rows), self.dropped)
