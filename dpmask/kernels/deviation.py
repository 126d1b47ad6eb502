"""How far masked values lie from the original ones, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.moments import Moments, column_moments, merge_moments

Floats = NDArray[np.float64]


class Deviations(NamedTuple):
    """For each column: pairs with both values present, the sum of |x - x'| over them, and the original's moments."""

    pairs: NDArray[np.int64]
    absolute: Floats
    original: Moments


def deviations(columns: Sequence[Floats]) -> Deviations:
    """The deviations in one block, given as its original columns and then the masked ones, in the same order."""
    half = len(columns) // 2
    gaps = [np.abs(x - y) for x, y in zip(columns[:half], columns[half:], strict=True)]
    present = [gap[~np.isnan(gap)] for gap in gaps]
    return Deviations(
        np.array([len(gap) for gap in present]),
        np.array([gap.sum() for gap in present]),
        column_moments(columns[:half]),
    )


def merge_deviations(left: Deviations, right: Deviations) -> Deviations:
    """The deviations of both parts together."""
    return Deviations(
        left.pairs + right.pairs, left.absolute + right.absolute, merge_moments(left.original, right.original)
    )
