"""Additive noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def add_noise(values: Floats, normals: Floats, deviation: float) -> Floats:
    """X + deviation * z. A missing value (NaN) stays missing. The draws are used up."""
    normals *= deviation
    normals += values
    return normals
