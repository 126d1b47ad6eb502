"""The kinds of arrays, named once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]


def stacked(columns: Sequence[Floats], rows: int) -> Floats:
    """Columns x rows, also of no column."""
    return np.array(columns).reshape(len(columns), rows)
