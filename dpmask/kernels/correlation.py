"""Correlations of all pairs of columns in one pass, each over the records that have both values.

Sums are taken of deviations from the means of a block's first rows, and moved to the first block's centre when two are
merged, so the distance of the values from zero does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_TILE = 1 << 12  # rows whose temporaries stay in the cache


class PairSums(NamedTuple):
    """For columns i, j: over records that have both, how many, and the sums of z_i, z_i squared and z_i z_j."""

    center: Floats
    records: Floats
    sums: Floats
    squares: Floats
    products: Floats


def pair_sums(columns: Sequence[Floats]) -> PairSums:
    """The sums of one block, given as its columns; NaN and infinities are missing values."""
    tiles = range(0, max(len(columns[0]), 1), _TILE)
    total = _tile_sums([values[:_TILE] for values in columns], None)
    for start in tiles[1:]:
        more = _tile_sums([values[start : start + _TILE] for values in columns], total.center)
        total = PairSums(total.center, *(one + two for one, two in zip(total[1:], more[1:], strict=True)))
    return total


def _tile_sums(columns: Sequence[Floats], center: Floats | None) -> PairSums:
    """The sums of some rows, around their own means where no centre is given."""
    values = np.array(columns)
    absent = ~np.isfinite(values)
    values[absent] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # values near the largest double have no correlation
        if center is None:
            center = values.sum(axis=1) / np.maximum((~absent).sum(axis=1), 1)
        values -= center[:, None]
        values[absent] = 0.0
        return _sums(center, values, (~absent).astype(np.float64) if absent.any() else None)


def _sums(center: Floats, values: Floats, there: Floats | None) -> PairSums:
    """The sums of centred values, 0 where there is none; where all are there, most of them are the same for all j."""
    products = values @ values.T
    if there is not None:
        return PairSums(center, there @ there.T, values @ there.T, np.square(values) @ there.T, products)
    same = np.ones(len(values))
    records = np.full(products.shape, float(values.shape[1]))
    return PairSums(
        center, records, np.outer(values.sum(axis=1), same), np.outer(np.diagonal(products), same), products
    )


def merge_pair_sums(left: PairSums, right: PairSums) -> PairSums:
    """The sums of both parts together, as deviations from the left one's centre."""
    nothing = np.diagonal(left.records) == 0
    center = np.where(nothing, right.center, left.center)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = _around(right, center)
        return PairSums(center, *(one + two for one, two in zip(left[1:], moved[1:], strict=True)))


def _around(part: PairSums, center: Floats) -> PairSums:
    """The same sums of deviations from another centre."""
    step = (part.center - center)[:, None]
    sums = part.sums + step * part.records
    squares = part.squares + 2 * step * part.sums + step**2 * part.records
    products = part.products + step * part.sums.T + step.T * part.sums + step * step.T * part.records
    return PairSums(center, part.records, sums, squares, products)


def correlations(total: PairSums) -> Floats:
    """Pearson's r of each pair; NaN where fewer than two records have both values, or one of them does not vary."""
    records = np.where(total.records > 1, total.records, np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = total.sums / records
        variance = total.squares / records - mean**2
        variance[~(variance > 1e-14 * total.squares / records)] = np.nan
        found: Floats = (total.products / records - mean * mean.T) / np.sqrt(variance * variance.T)
    return np.clip(found, -1.0, 1.0)
