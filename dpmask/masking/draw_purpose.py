"""What draws are for: the text that binds a key to a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey
from dpmask.table.checks import ColumnSummary
from dpmask.table.columns import Floats
from dpmask.table.table import Table


def bound_key(key: Subkey, purpose: str, table: Table, columns: Sequence[str], found: ColumnSummary) -> Subkey:
    """The key of draws for this purpose and this table alone, by what a pass found of its columns."""
    return key.subkey(f"{purpose} {table_identity(table, columns, found.values, found.low, found.high)}")


def table_identity(table: Table, columns: Sequence[str], values: NDArray[np.int64], low: Floats, high: Floats) -> str:
    """A text that differs between tables: another one must draw anew, or two releases help each other.

    It is exact and the same for any partitioning: the rows, and the number and range of the values of each column that
    no step has changed before (after a step ranges are exact only to rounding).
    """
    ranges = [
        (column, int(values[n]), float(low[n] + 0.0).hex(), float(high[n] + 0.0).hex())  # of -0 and 0 either is least
        for n, column in enumerate(columns)
        if column not in table.changed
    ]
    return f"{table.rows} {ranges}"
