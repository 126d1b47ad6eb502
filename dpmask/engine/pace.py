"""How fast this machine computes, for plans: what they count was measured on one machine, and others differ by far."""

from __future__ import annotations

import time
from functools import lru_cache

import numpy as np

_REFERENCE = 2.9e-3
"""CPU seconds of the same on the machine where the constants of plans were measured: 2 cores of an AMD EPYC, 2026."""
_TIMES, _STEPS, _VALUES = 5, 30_000, 30_000


@lru_cache(maxsize=1)
def pace() -> float:
    """CPU seconds of a small computation over those that it took where constants were measured; below 1: faster here.

    The least of several times: others use the machine, too.
    """
    values = np.random.default_rng(0).random(_VALUES)
    return min(_seconds(values) for _ in range(_TIMES)) / _REFERENCE


def _seconds(values: np.ndarray) -> float:
    """The interpreter, then a sort that no processor has instructions of its own for."""
    begun, state = time.process_time(), 0
    for step in range(_STEPS):
        state = (5 * state + step) % 1_000_003
    np.argsort(values, kind="stable")
    return time.process_time() - begun
