"""Additive noise, drawn for each column by itself or correlated as the columns are."""

from __future__ import annotations

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.kernels.elementary import exp

FEWEST_VALUES = 10
"""A third of the values that a stratum must have for a deviation of its own, which fewer would show."""
_ROUNDING = 1e-10


def add_noise(values: Floats, normals: Floats, deviation: float | Floats) -> Floats:
    """Each value plus its normal draw times the deviation, one for all or each its own. Uses up the draws.

    A missing value (NaN) stays missing.
    """
    normals *= deviation
    normals += values
    return normals


def reflected(values: Floats, low: float, high: float) -> Floats:
    """Values beyond a bound as far on its other side: no mass piles up at it. Bounds may be infinite."""
    if np.isfinite(low) and np.isfinite(high):
        away = np.mod(values - low, 2.0 * (high - low))
        return np.minimum(low + np.minimum(away, 2.0 * (high - low) - away), high)
    if np.isfinite(low):
        return low + np.abs(values - low)
    return high - np.abs(high - values) if np.isfinite(high) else values


def apart_from_zero(noisy: Floats, values: Floats, step: float, low: float, high: float) -> Floats:
    """Noisy values of a type of this step and these ends, but a step from zero where they would be rounded to it.

    On the side where the noisy value is, or, where that is none or has no room, the original one. Zeros stay zero.
    """
    clipped = np.clip(noisy, low, high)
    lost = np.flatnonzero((values != 0.0) & (np.abs(clipped) <= 0.5 * step))
    side = np.sign(noisy[lost]) * step
    fits = (side != 0.0) & (side >= low) & (side <= high)
    noisy[lost] = np.where(fits, side, np.sign(values[lost]) * step)
    return noisy


def reflection_bias(values: Floats, deviation: float | Floats, low: float, high: float) -> Floats:
    """How far reflection moves each value in expectation: 2 (s phi(d / s) - d Phi(-d / s)) for a bound d away.

    Exact for one bound; for two where these are many deviations apart.
    """
    from scipy.special import ndtr  # a fifth of a second to import, for bounds only

    bias = np.zeros(len(values))
    for bound, sign in ((low, 1.0), (high, -1.0)):
        if np.isfinite(bound):
            away = np.abs(values - bound)
            at = away / deviation
            density = exp(-0.5 * at**2) / np.sqrt(2.0 * np.pi)
            bias += sign * 2.0 * (deviation * density - away * ndtr(-at))
    return bias


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
