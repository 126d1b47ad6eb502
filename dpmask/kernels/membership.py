"""Fuzzy membership functions of one column, as Ahmad, Haque and Tauhid (2014) mask by them, and the way back.

Each takes values to [0, 1]; a missing value (NaN) stays missing. Z is 1 - S, computed by itself, so that it keeps its
digits near 0 as S does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_HALF = 0.5


def s_shape(values: Floats, low: float, high: float) -> Floats:
    """0 up to ``low`` (the paper's a), 2 t^2 to the middle, 1 - 2 (1 - t)^2 to ``high`` (b), then 1."""
    return _rising(_share(values, low, high))


def z_shape(values: Floats, low: float, high: float) -> Floats:
    """1 - S: what S is of the distance from the upper end."""
    return _rising(_share(values, high, low))


def triangular(values: Floats, low: float, peak: float, high: float) -> Floats:
    """0 at both ends and beyond, 1 at the peak, straight between."""
    rising = (values - low) / (peak - low)
    np.minimum(rising, (high - values) / (high - peak), out=rising)
    return np.maximum(rising, 0.0, out=rising)


def gaussian(values: Floats, mean: float, sd: float) -> Floats:
    """exp(-(x - mean)^2 / (2 sd^2))."""
    share = (values - mean) / sd
    np.square(share, out=share)
    share *= -_HALF
    return np.exp(share, out=share)


def s_shape_undone(shares: Floats) -> Floats:
    """From S back to (x - a) / (b - a): all an intruder must know besides is a and b. Shares are held to [0, 1]."""
    held = np.clip(shares, 0.0, 1.0)
    return np.where(held <= _HALF, np.sqrt(held / 2.0), 1.0 - np.sqrt((1.0 - held) / 2.0))


def _share(values: Floats, start: float, end: float) -> Floats:
    """How far values are on the way from start to end, held to [0, 1]."""
    share = (values - start) / (end - start)
    return np.clip(share, 0.0, 1.0, out=share)


def _rising(share: Floats) -> Floats:
    rest = 1.0 - share
    return np.where(share <= _HALF, 2.0 * share * share, 1.0 - 2.0 * rest * rest)
