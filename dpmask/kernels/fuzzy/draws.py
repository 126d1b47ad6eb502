"""A centre for each record, drawn with its memberships, and what the centres owe to single records.

Steps 2 and 3 of Algorithm 1 in Torra (2020). As in center_sums.py nothing of size rows x clusters is made.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.compile import compiled, plain
from dpmask.kernels.fuzzy.center_sums import POWERED, even, membership_model, sum_block
from dpmask.kernels.fuzzy.memberships import find_shares
from dpmask.kernels.fuzzy.tiles import CHANGE, POWER, ROWS, TOTAL, Tile, find_distances, load, new_tile


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
    """For each record the centre that its uniform draw falls to, when each has its membership for a share.

    Where rounding leaves the sum of all shares below the draw, the last centre that has a share.
    """
    if len(uniforms) != block.shape[1]:
        raise ValueError(f"{len(uniforms)} draws for {block.shape[1]} records")
    model, exponent = membership_model(len(centers), fuzziness=fuzziness, entropy=entropy)
    tile, result = new_tile(len(block), len(centers), partial=False), np.empty(block.shape[1], np.int64)
    padded, draws = even(block, centers[None])[0], plain(uniforms)
    _draw(model)(plain(block), padded, len(centers), draws, exponent, not POWERED, tile, result)
    return result


@cache
def _draw(model: str) -> Any:
    distances, shares_of = find_distances(False), find_shares(model, False)

    @compiled(variant=(model,))
    def draw(
        block: Floats,
        centers: Floats,
        clusters: int,
        uniforms: Floats,
        exponent: float,
        powered: bool,
        tile: Tile,
        result: Integers,
    ) -> None:
        records, seen, lines, shares, _, _ = tile
        for first in range(0, block.shape[1], ROWS):
            count = load(block, first, uniforms[:0], records, lines)
            distances(records, seen, lines, centers, shares)
            shares_of(records, seen, lines, shares, centers, clusters, exponent, powered)
            for k in range(ROWS):
                lines[POWER, k] = lines[TOTAL, k] * (uniforms[first + k] if k < count else 0.0)
            _find_drawn(shares, clusters, lines)
            for k in range(count):
                result[first + k] = int(lines[CHANGE, k])

    return draw


@compiled(part=True, reassociate=False)
def _find_drawn(shares: Floats, clusters: int, lines: Floats) -> None:
    """The first centre at which the sum of shares is above the draw, which is a part of their total."""
    for k in range(ROWS):
        lines[TOTAL, k] = 0.0
        lines[CHANGE, k] = -1.0
    for i in range(clusters):
        for k in range(ROWS):
            still = lines[TOTAL, k] <= lines[POWER, k] and shares[i, k] > 0.0
            lines[CHANGE, k] = float(i) if still else lines[CHANGE, k]
            lines[TOTAL, k] += shares[i, k]


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
    sum_block(model, False)(plain(block), padded, clusters, none, exponent, POWERED, tile, *sums)
    return Closeness(nearest, largest, weight[0, :clusters, 0])
