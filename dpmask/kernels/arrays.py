"""The kinds of arrays, named once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]
