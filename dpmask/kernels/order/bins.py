"""Codes of numeric values: by quantile bins, or by the values themselves where they are few."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats

Codes = NDArray[np.int64]


def binned(values: Floats, edges: Floats) -> Codes:
    """The number of edges at or below each value; a missing value gets one bin more, the last."""
    return np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values, "right"))


def bin_count(edges: Floats) -> int:
    """How many bins there are, that of missing values among them."""
    return len(edges) + 2
