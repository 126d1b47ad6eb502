"""Additive noise, drawn for each column by itself or correlated as the columns are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROUNDING = 1e-10


def add_noise(values: Floats, normals: Floats, deviation: float) -> Floats:
    """Each value plus its normal draw times the deviation. A missing value (NaN) stays missing. Uses up the draws."""
    normals *= deviation
    normals += values
    return normals


def mixing_matrix(correlations: Floats) -> Floats:
    """The lower triangular L with L L' = correlations: L z is correlated so where z is not.

    Columns that follow from earlier ones get no draw of their own: what is left of such a pivot is rounding, whose root
    would be noise.
    """
    size = len(correlations)
    lower = np.zeros((size, size))
    for j in range(size):
        rest = correlations[j:, j] - lower[j:, :j] @ lower[j, :j]
        if rest[0] > _ROUNDING:
            lower[j:, j] = rest / np.sqrt(rest[0])
    return lower


def mixed(normals: list[Floats], weights: Floats) -> Floats:
    """The sum of draws times their weights."""
    total = weights[0] * normals[0]
    for draws, weight in zip(normals[1:], weights[1:], strict=True):
        if weight != 0.0:
            total += weight * draws
    return total
