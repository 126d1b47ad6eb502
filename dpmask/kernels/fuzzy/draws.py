"""A centre for each record, drawn with its memberships, and what the centres owe to single records.

Steps 2 and 3 of Algorithm 1 in Torra (2020). As in center_sums.py nothing of size rows x clusters is made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.compile import plain
from dpmask.kernels.fuzzy.center_sums import POWERED, even, membership_model, memberships, sum_block
from dpmask.kernels.fuzzy.tiles import ROWS, new_tile

_MEMBERSHIPS = 1 << 17
"""How many are computed at a time: a megabyte."""


class Closeness(NamedTuple):
    """For each centre: squared distance to the nearest record, and the largest and the sum of the records' weights."""

    nearest: Floats
    largest: Floats
    total: Floats

    @property
    def share(self) -> Floats:
        """The part of each centre that its most important record makes up."""
        return self.largest / np.where(self.total > 0.0, self.total, 1.0)


def merge_closeness(left: Closeness, right: Closeness) -> Closeness:
    """Both parts together."""
    return Closeness(
        np.minimum(left.nearest, right.nearest), np.maximum(left.largest, right.largest), left.total + right.total
    )


def draw_centers(
    block: Floats, centers: Floats, uniforms: Floats, *, fuzziness: float | None = None, entropy: float | None = None
) -> Integers:
    """For each record the centre that its uniform draw falls to, when each has its membership for a share."""
    if len(uniforms) != block.shape[1]:
        raise ValueError(f"{len(uniforms)} draws for {block.shape[1]} records")
    result = np.empty(block.shape[1], np.int64)
    step = max(ROWS, _MEMBERSHIPS // len(centers) // ROWS * ROWS)
    for first in range(0, len(result), step):
        rows = slice(first, first + step)
        shares = memberships(block[:, rows], centers, fuzziness=fuzziness, entropy=entropy)
        result[rows] = _drawn(shares, uniforms[rows])
    return result


def _drawn(shares: Floats, uniforms: Floats) -> Integers:
    """For each record (columns) the first centre at which the sum of shares is above its draw.

    Where rounding leaves the whole sum below the draw, the last centre that has a share.
    """
    drawn: Integers = (np.cumsum(shares, axis=0) <= uniforms).sum(axis=0)
    beyond = np.flatnonzero(drawn == len(shares))
    drawn[beyond] = len(shares) - 1 - np.argmax(shares[::-1, beyond] > 0.0, axis=0)
    return drawn


def closeness(
    block: Floats, centers: Floats, *, fuzziness: float | None = None, entropy: float | None = None
) -> Closeness:
    """How near the block's records are to the centres, and how much they weigh on them."""
    clusters, columns = centers.shape
    model, exponent = membership_model(clusters, fuzziness=fuzziness, entropy=entropy)
    padded, tile, none = even(block, centers[None]), new_tile(columns, clusters, partial=False), np.empty(0)
    weighted, weight, objective = np.zeros(padded.shape), np.zeros((*padded.shape[:2], 1)), np.zeros(1)
    nearest, largest = np.full(clusters, np.inf), np.zeros(clusters)
    sums = (weighted, weight, objective, nearest, largest)
    sum_block(model, False, False)(plain(block), padded, clusters, none, none, exponent, POWERED, tile, *sums)
    return Closeness(nearest, largest, weight[0, :clusters, 0])
