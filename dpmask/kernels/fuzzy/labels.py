"""The nearest centre of each record."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.compile import compiled, plain
from dpmask.kernels.fuzzy.center_sums import even
from dpmask.kernels.fuzzy.memberships import LARGEST_DISTANCE, SMALLEST_DISTANCE
from dpmask.kernels.fuzzy.tiles import (
    CHANGE,
    NEAREST,
    POWER,
    ROWS,
    Tile,
    find_distances,
    find_nearest,
    load,
    new_tile,
    nothing_missing,
    separate_missing,
)

_SLICE = 1 << 10


def labels(block: Floats, centers: Floats, *, partial: bool = False) -> Integers:
    """The nearest centre of each record, the first of several. Without tolerance it has the largest membership, too."""
    result = np.empty(block.shape[1], np.int64)
    tile = new_tile(block.shape[0], len(centers), partial=partial)
    _find_labels(partial)(plain(block), even(block, centers[None])[0], len(centers), np.empty(0), tile, result)
    open_ones = np.flatnonzero(result < 0)
    for start in range(0, len(open_ones), _SLICE):
        rows = open_ones[start : start + _SLICE]
        result[rows] = _labels_of_extremes(block[:, rows], centers)
    return result


def _labels_of_extremes(records: Floats, centers: Floats) -> Integers:
    """The same where squares overflow or lose digits: from differences divided by the largest, in plain numpy.

    Most of these records lie on several centres at once: the first of these is theirs.
    """
    largest = _largest_differences(records, centers)
    found: Integers = largest.argmin(axis=0)
    others = np.flatnonzero(largest[found, np.arange(len(found))] > 0.0)
    if len(others):
        found[others] = _labels_by_scaled(records[:, others], centers)
    return found


def _largest_differences(records: Floats, centers: Floats) -> Floats:
    """Of each centre and record the largest difference in a column, without an array for all columns at once."""
    largest = np.zeros((len(centers), records.shape[1]))
    for values, of_centers in zip(records, centers.T, strict=True):
        away = np.abs(values[None] - of_centers[:, None])
        np.fmax(largest, away, out=largest)  # a missing value is nowhere far away
    return largest


def _labels_by_scaled(records: Floats, centers: Floats) -> Integers:
    away = np.nan_to_num(np.abs(records[None] - centers[:, :, None]), nan=0.0, posinf=np.inf)
    largest = away.max(axis=1)
    scaled = away / np.where((largest > 0.0) & (largest < np.inf), largest, 1.0)[:, None]
    found: Integers = np.argmin(largest * np.sqrt(np.minimum((scaled**2).sum(axis=1), records.shape[0])), axis=0)
    return found


@cache
def _find_labels(partial: bool) -> Any:
    distances, separate = find_distances(partial), separate_missing if partial else nothing_missing

    @compiled(variant=(partial,))
    def find_labels(
        block: Floats, centers: Floats, clusters: int, weights: Floats, tile: Tile, result: Integers
    ) -> None:
        records, seen, lines, shares, _, _ = tile
        for first in range(0, block.shape[1], ROWS):
            count = load(block, first, weights, records, lines)
            separate(records, seen, lines, count)
            distances(records, seen, lines, centers, shares)
            find_nearest(shares, clusters, lines)
            _find_first(shares, clusters, lines)
            for k in range(count):
                plain_one = lines[CHANGE, k] < 2.0 and lines[NEAREST, k] <= LARGEST_DISTANCE  # noqa: PLR2004
                result[first + k] = int(lines[POWER, k]) if plain_one else -1

    return find_labels


@compiled(part=True)
def _find_first(shares: Floats, clusters: int, lines: Floats) -> None:
    """The first of the nearest centres, and how many are so near that their squares say nothing."""
    for k in range(ROWS):
        lines[POWER, k] = -1.0
        lines[CHANGE, k] = 0.0
    for j in range(clusters):
        i = clusters - 1 - j
        for k in range(ROWS):
            lines[POWER, k] = float(i) if shares[i, k] <= lines[NEAREST, k] else lines[POWER, k]
            lines[CHANGE, k] += 1.0 if shares[i, k] < SMALLEST_DISTANCE else 0.0
