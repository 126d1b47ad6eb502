"""Fuzzy membership functions of one column, as Ahmad, Haque and Tauhid (2014) mask by them, and the way back.

Each takes values to [0, 1]; a missing value (NaN) stays missing. Z is 1 - S, computed by itself, so that it keeps its
digits near 0 as S does.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.vector_math import compiled

Floats = NDArray[np.float64]

_HALF = 0.5


def s_shape(values: Floats, low: float, high: float) -> Floats:
    """0 up to ``low`` (the paper's a), 2 t^2 to the middle, 1 - 2 (1 - t)^2 to ``high`` (b), then 1."""
    shares = values.copy()
    _rise(shares, low, high)
    return shares


def z_shape(values: Floats, low: float, high: float) -> Floats:
    """1 - S: what S is of the distance from the upper end."""
    shares = values.copy()
    _rise(shares, high, low)
    return shares


def triangular(values: Floats, low: float, peak: float, high: float) -> Floats:
    """0 at both ends and beyond, 1 at the peak, straight between."""
    shares = values.copy()
    _rise_and_fall(shares, low, peak, high)
    return shares


def gaussian(values: Floats, mean: float, sd: float) -> Floats:
    """exp(-(x - mean)^2 / (2 sd^2))."""
    shares = values.copy()
    _bell(shares, mean, sd)
    return shares


def s_shape_undone(shares: Floats) -> Floats:
    """From S back to (x - a) / (b - a): all an intruder must know besides is a and b. Shares are held to [0, 1]."""
    held = np.clip(shares, 0.0, 1.0)
    return np.where(held <= _HALF, np.sqrt(held / 2.0), 1.0 - np.sqrt((1.0 - held) / 2.0))


@compiled(reassociate=False, contract=False)
def _rise(values: Floats, start: float, end: float) -> None:
    for k in range(len(values)):
        t = (values[k] - start) / (end - start)
        rest = 1.0 - t
        share = 2.0 * t * t if t <= _HALF else 1.0 - 2.0 * rest * rest
        share = 0.0 if t < 0.0 else share
        values[k] = 1.0 if t > 1.0 else share


@compiled(reassociate=False, contract=False)
def _rise_and_fall(values: Floats, low: float, peak: float, high: float) -> None:
    for k in range(len(values)):
        up, down = (values[k] - low) / (peak - low), (high - values[k]) / (high - peak)
        share = up if values[k] <= peak else down
        values[k] = 0.0 if share < 0.0 else share


@compiled(reassociate=False, contract=False)
def _bell(values: Floats, mean: float, sd: float) -> None:
    for k in range(len(values)):
        z = (values[k] - mean) / sd
        values[k] = math.exp(-_HALF * z * z)
