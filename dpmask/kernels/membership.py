"""Fuzzy membership functions of one column, as Ahmad, Haque and Tauhid (2014) mask by them, and the way back.

Each takes values to [0, 1], in ``out`` if that is given; a missing value (NaN) stays missing. Z is 1 - S, computed by
itself, so that it keeps its digits near 0 as S does.
"""

from __future__ import annotations

import math

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.kernels.compile import compiled, read_only

_HALF = 0.5


def s_shape(values: Floats, low: float, high: float, out: Floats | None = None) -> Floats:
    """0 up to ``low`` (the paper's a), 2 t^2 to the middle, 1 - 2 (1 - t)^2 to ``high`` (b), then 1."""
    shares = np.empty(len(values)) if out is None else out
    _rise(read_only(values), low, high, shares)
    return shares


def z_shape(values: Floats, low: float, high: float, out: Floats | None = None) -> Floats:
    """1 - S: what S is of the distance from the upper end."""
    shares = np.empty(len(values)) if out is None else out
    _rise(read_only(values), high, low, shares)
    return shares


def triangular(values: Floats, low: float, peak: float, high: float, out: Floats | None = None) -> Floats:
    """0 at both ends and beyond, 1 at the peak, straight between."""
    shares = np.empty(len(values)) if out is None else out
    _rise_and_fall(read_only(values), low, peak, high, shares)
    return shares


def gaussian(values: Floats, mean: float, sd: float, out: Floats | None = None) -> Floats:
    """exp(-(x - mean)^2 / (2 sd^2))."""
    shares = np.empty(len(values)) if out is None else out
    _bell(read_only(values), mean, sd, shares)
    return shares


def s_shape_undone(shares: Floats) -> Floats:
    """From S back to (x - a) / (b - a): all an intruder must know besides is a and b. Shares are clipped to [0, 1]."""
    clipped = np.clip(shares, 0.0, 1.0)
    return np.where(clipped <= _HALF, np.sqrt(clipped / 2.0), 1.0 - np.sqrt((1.0 - clipped) / 2.0))


@compiled(reassociate=False, contract=False)
def _rise(values: Floats, start: float, end: float, shares: Floats) -> None:
    for k in range(len(values)):
        t = (values[k] - start) / (end - start)
        rest = 1.0 - t
        share = 2.0 * t * t if t <= _HALF else 1.0 - 2.0 * rest * rest
        share = 0.0 if t < 0.0 else share
        shares[k] = 1.0 if t > 1.0 else share


@compiled(reassociate=False, contract=False)
def _rise_and_fall(values: Floats, low: float, peak: float, high: float, shares: Floats) -> None:
    for k in range(len(values)):
        up, down = (values[k] - low) / (peak - low), (high - values[k]) / (high - peak)
        share = up if values[k] <= peak else down
        shares[k] = 0.0 if share < 0.0 else share


@compiled(reassociate=False, contract=False)
def _bell(values: Floats, mean: float, sd: float, shares: Floats) -> None:
    for k in range(len(values)):
        z = (values[k] - mean) / sd
        shares[k] = math.exp(-_HALF * z * z)
