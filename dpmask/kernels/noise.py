"""Additive noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def add_noise(values: Floats, normals: Floats, deviation: float) -> Floats:
    """Each value plus its normal draw times the deviation. A missing value (NaN) stays missing. Uses up the draws."""
    normals *= deviation
    normals += values
    return normals
