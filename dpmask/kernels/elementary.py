"""Exponentials, logarithms and powers with the same last bits whatever instructions numpy was started with.

With AVX-512 numpy has its own, which differ in the last bit from those of the C library that it calls otherwise. A
program that imports numpy before dpmask has them, and then each number goes through the C library, one by one. All else
that results depend on rounds once, as IEEE 754 has it, or adds in one order, with any instructions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from dpmask.kernels.arrays import Floats

_SMALLEST, _LARGEST = float(np.finfo(np.float64).smallest_normal), 1e308
"""Beyond them the C library reports an error, which Python raises."""

_ROUNDED_ONCE = (-1, 0, 0.5, 1, 2)
"""Exponents that numpy has products and roots for."""


@cache
def own_instructions() -> bool:
    """Whether numpy has exponentials of its own."""
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    return any(there for name, there in features.items() if name.startswith("AVX512") or name == "X86_V4")


def exp(values: Any) -> Any:
    """E to the power of each value."""
    return _by_c_library(np.exp, math.exp, values)


def log(values: Any) -> Any:
    """The natural logarithm of each value."""
    return _by_c_library(np.log, math.log, values)


def log1p(values: Any) -> Any:
    """The natural logarithm of 1 + each value."""
    return _by_c_library(np.log1p, math.log1p, values)


def log2(values: Any) -> Any:
    """The logarithm of each value to the base of 2."""
    return _by_c_library(np.log2, math.log2, values)


def power(values: Any, exponents: Any) -> Any:
    """Each value to the power of its exponent."""
    if np.ndim(exponents) == 0 and exponents in _ROUNDED_ONCE:
        return values**exponents
    return _by_c_library(np.power, math.pow, values, exponents)


def log_where_positive(values: Floats, logarithm: Callable[[Any], Any] = log) -> Floats:
    """The logarithm of each value above 0, and 0 for the others: what p log p is computed by."""
    return logarithm(np.where(values > 0.0, values, 1.0))


def _by_c_library(function: Callable[..., Any], of_one: Callable[..., float], *given: Any) -> Any:
    """What numpy finds; where it does not ask the C library, numbers that are not at the edges are asked for again."""
    found = function(*given)
    if not own_instructions():
        return found
    shape, places = np.shape(found), np.broadcast_arrays(*(np.asarray(one, np.float64) for one in given))
    result = np.array(found, np.float64).ravel()
    inside = (np.abs(result) >= _SMALLEST) & (np.abs(result) <= _LARGEST)
    numbers = [one.ravel() for one in places]
    for one in numbers:
        inside &= np.isfinite(one)
    result[inside] = list(map(of_one, *(one[inside].tolist() for one in numbers)))
    return result.reshape(shape) if shape else result[0]
