"""A centre for each record, drawn with its memberships, and what the centres owe to single records.

Steps 2 and 3 of Algorithm 1 in Torra (2020). As in center_sums.py nothing of size rows x clusters is made.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.compile import compiled, plain
from dpmask.kernels.fuzzy.center_sums import even, membership_model
from dpmask.kernels.fuzzy.memberships import Model, find_shares, finish
from dpmask.kernels.fuzzy.tiles import ROWS, find_distances, load, new_tile

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    model, exponent = membership_model(len(centers), fuzziness=fuzziness, entropy=entropy)
    result = np.empty(block.shape[1], np.int64)
    _draw(model)(plain(block), even(block, centers[None])[0], len(centers), exponent, plain(uniforms), result)
    return result


def closeness(
    block: Floats, centers: Floats, *, fuzziness: float | None = None, entropy: float | None = None
) -> Closeness:
    """How near the block's records are to the centres, and how much they weigh on them."""
    model, exponent = membership_model(len(centers), fuzziness=fuzziness, entropy=entropy)
    count = len(centers)
    result = Closeness(np.full(count, np.inf), np.zeros(count), np.zeros(count))
    _find_closeness(model)(plain(block), even(block, centers[None])[0], count, exponent, *result)
    return result


@cache
def _draw(model: Model) -> Any:
    shares = find_shares(model, partial=False, powered=False)

    @compiled(variant=model)
    def draw(
        block: Floats, centers: Floats, clusters: int, exponent: float, uniforms: Floats, result: Integers
    ) -> None:
        columns, rows = block.shape
        tile = new_tile(columns, clusters, False)
        for first in range(0, rows, ROWS):
            count = load(tile, block, first, np.empty(0))
            shares(tile, tile.records, centers, clusters, exponent)
            for k in range(count):
                goal, passed, chosen = uniforms[first + k] * tile.total[k], 0.0, 0
                for i in range(clusters):
                    if tile.shares[i, k] > 0.0:
                        chosen = i
                        passed += tile.shares[i, k]
                        if passed > goal:
                            break
                result[first + k] = chosen

    return draw


@cache
def _find_closeness(model: Model) -> Any:
    distances, shares = find_distances(partial=False), find_shares(model, partial=False, powered=True)
    finish_shares = finish(model)

    @compiled(variant=model)
    def find_closeness(
        block: Floats,
        centers: Floats,
        clusters: int,
        exponent: float,
        nearest: Floats,
        largest: Floats,
        total: Floats,
    ) -> None:
        columns, rows = block.shape
        tile = new_tile(columns, clusters, False)
        for first in range(0, rows, ROWS):
            count = load(tile, block, first, np.empty(0))
            distances(tile, tile.records, centers)
            for i in range(clusters):
                for k in range(count):
                    nearest[i] = min(nearest[i], tile.shares[i, k])
            shares(tile, tile.records, centers, clusters, exponent)
            finish_shares(tile, exponent)
            for i in range(clusters):
                share, most, owed = tile.shares[i], 0.0, 0.0
                for k in range(count):
                    weight = share[k] * tile.scale[k]
                    most = max(most, weight)
                    owed += weight
                largest[i] = max(largest[i], most)
                total[i] += owed

    return find_closeness
