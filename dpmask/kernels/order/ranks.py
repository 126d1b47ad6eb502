"""Ranks of values in a column that is nowhere in one place, by exact counts at some of its values, the knots.

At a knot a value's ranks are exact, and equal values share an interval of them; between two knots the rank follows
the value in a straight line, so it errs by less than the values between them. Up to as many values as there are knots
every rank is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats


class RankKnots(NamedTuple):
    """How many values a column has, some of them in rising order, and their places in the column."""

    size: int
    values: Floats
    below: NDArray[np.int64]  # how many values lie below each
    through: NDArray[np.int64]  # and how many at or below


def rank_intervals(values: Floats, knots: RankKnots) -> tuple[Floats, Floats]:
    """The first and the last rank of each value as shares of the column, 0 to 1; NaN where it is missing.

    A value that occurs once at a knot has an interval of one rank, one between two knots has a point.
    """
    low, high = np.full(len(values), np.nan), np.full(len(values), np.nan)
    if not knots.size:
        return low, high
    known = np.flatnonzero(~np.isnan(values))
    some = values[known] + 0.0
    place = np.searchsorted(knots.values, some)
    at = np.minimum(place, len(knots.values) - 1)
    exact = knots.values[at] == some
    between = _between(some, place, knots)
    low[known] = np.where(exact, knots.below[at], between) / knots.size
    high[known] = np.where(exact, knots.through[at], between) / knots.size
    return low, high


def _between(values: Floats, place: NDArray[np.intp], knots: RankKnots) -> Floats:
    """Ranks in a straight line from the knot before to the knot after; a value beyond all knots is at the end."""
    before, after = np.maximum(place - 1, 0), np.minimum(place, len(knots.values) - 1)
    first = np.where(place > 0, knots.through[before], 0).astype(np.float64)
    last = np.where(place < len(knots.values), knots.below[after], knots.size)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        part = (values - knots.values[before]) / (knots.values[after] - knots.values[before])
    part = np.where(np.isfinite(part), np.clip(part, 0.0, 1.0), 0.5)
    return first + part * (last - first)
