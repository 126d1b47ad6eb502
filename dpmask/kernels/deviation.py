"""How far masked values lie from the original ones, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats

_TILE = 1 << 13  # rows whose differences stay in the cache


class Gaps(NamedTuple):
    """For each column: pairs with both values present, and the sum of |x - x'| over them."""

    pairs: NDArray[np.int64]
    absolute: Floats


def gaps(columns: Sequence[Floats]) -> Gaps:
    """The gaps in one block, given as its original columns and then the masked ones, in the same order."""
    half = len(columns) // 2
    with np.errstate(invalid="ignore"):  # infinities, which are refused by their number
        sums = [_gap(x, y) for x, y in zip(columns[:half], columns[half:], strict=True)]
    return Gaps(np.array([count for count, _ in sums]), np.array([total for _, total in sums]))


def _gap(x: Floats, y: Floats) -> tuple[int, float]:
    count, total, tile = 0, 0.0, np.empty(_TILE)
    for start in range(0, len(x), _TILE):
        gap = tile[: len(x) - start]
        np.subtract(x[start : start + _TILE], y[start : start + _TILE], out=gap)
        part = np.abs(gap, out=gap).sum()
        if np.isnan(part):
            gap = gap[~np.isnan(gap)]
            part = gap.sum()
        count, total = count + len(gap), total + float(part)
    return count, total


def merge_gaps(left: Gaps, right: Gaps) -> Gaps:
    """The gaps of both parts together."""
    return Gaps(left.pairs + right.pairs, left.absolute + right.absolute)
