"""Counts of positive values on a grid of round numbers that grow by ten equal ratios in each decade.

Edges are 1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3 and 8 times powers of ten (Renard's series R10), compared as they are:
no logarithm is taken, whose last digit may differ between machines. Zeros are counted apart, as a bar of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.order.histogram import Bars, bars_between, core

_RENARD = ("1", "1.25", "1.6", "2", "2.5", "3.2", "4", "5", "6.3", "8")
_COARSER = (range(10), (0, 2, 4, 6, 8), (0, 3, 7), (0,))
"""The edges of a decade that are kept: all, every second, 1 2 5, powers of ten."""
_OF_WHOLE_NUMBERS = 2
"""Whole numbers begin with 1 2 5: between 1 and 1.25 there is none."""
_SMALLEST, _LARGEST = -300, 300


def log_edges(low: float, high: float) -> list[float]:
    """The edges of all decades that a range of positive numbers touches, and one decade more at either end."""
    first = max(math.floor(math.log10(low)) - 1, _SMALLEST)
    last = min(math.ceil(math.log10(high)) + 1, _LARGEST)
    return [float(f"{digits}e{power}") for power in range(first, last) for digits in _RENARD] + [float(f"1e{last}")]


def log_counts(values: Floats, edges: Sequence[float]) -> Counts:
    """How many values lie between neighbouring edges; before them those below, after them those above and missing ones.

    Zeros are left out.
    """
    present = values[~np.isnan(values)]
    places = np.searchsorted(np.asarray(edges), present[present != 0.0], side="right")
    return np.append(np.bincount(places, minlength=len(edges) + 1), len(values) - len(present))


def log_bars(edges: Sequence[float], counted: Sequence[Counts], most: int, tail: float, *, whole: bool) -> Bars:
    """At most this many bars; at each end the share ``tail`` of every table's values may lie outside.

    Powers of ten are the coarsest bars there are, however many.
    """
    low, high = core(counted, tail)
    cuts: list[int] = []
    for kept in _COARSER[_OF_WHOLE_NUMBERS if whole else 0 :]:
        cuts = [place for place in range(len(edges)) if place % len(_RENARD) in kept]
        first = max(place for place in cuts if place <= low)
        last = min(place for place in cuts if place > high)
        cuts = [place for place in cuts if first <= place <= last]
        if len(cuts) - 1 <= most:
            break
    return bars_between(np.array(cuts), [edges[cut] for cut in cuts], counted)
