"""How far masked values lie from the original ones, column by column."""

from __future__ import annotations

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


def deviations(block: Floats) -> Deviations:
    """The deviations in one block whose upper half of columns is original, the lower half masked, in the same order."""
    original, masked = np.split(block, 2)
    gaps = [np.abs(x - y) for x, y in zip(original, masked, strict=True)]
    present = [gap[~np.isnan(gap)] for gap in gaps]
    return Deviations(
        np.array([len(gap) for gap in present]), np.array([gap.sum() for gap in present]), column_moments(original)
    )


def merge_deviations(left: Deviations, right: Deviations) -> Deviations:
    """The deviations of both parts together."""
    return Deviations(
        left.pairs + right.pairs, left.absolute + right.absolute, merge_moments(left.original, right.original)
    )
