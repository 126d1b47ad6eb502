"""Groups of records that share one released row: merged where they are too small, or made by MDAV."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.compile import compiled, plain


class Merged(NamedTuple):
    """Which group each former group is in now, and the groups' rows and sizes."""

    place: Integers  # former groups: the group now, -1 for one that nobody is in
    rows: Floats  # groups x columns
    sizes: Integers  # groups


def merge_small(rows: Floats, sizes: Integers, scale: Floats, minimum: int) -> Merged:
    """While a group has fewer than ``minimum`` records, merge the smallest (ties: the first) with the nearest one.

    The row of two merged groups is their mean, weighted by their sizes: it keeps every equality and bound that both
    keep, and all column totals. Distances are in units of ``scale``. Groups of no records vanish; the number of all
    records must not be below ``minimum``.
    """
    place = np.arange(len(rows))
    merged, counts = rows.copy(), sizes.copy()
    _merge(merged, counts, merged / scale, plain(scale), minimum, place)
    kept = np.flatnonzero(counts > 0)
    number = np.full(len(rows), -1)
    number[kept] = np.arange(len(kept))
    now = number[_ends(place)]
    now[sizes == 0] = -1
    return Merged(now, merged[kept], counts[kept])


def _ends(place: Integers) -> Integers:
    """Follow every group to the one it ended in."""
    while True:
        further = place[place]
        if np.array_equal(further, place):
            return place
        place = further


@compiled()
def _merge(rows: Floats, sizes: Integers, units: Floats, scale: Floats, minimum: int, place: Integers) -> None:
    while True:
        smallest = -1
        for i in range(len(sizes)):
            if 0 < sizes[i] < minimum and (smallest < 0 or sizes[i] < sizes[smallest]):
                smallest = i
        if smallest < 0:
            return
        partner = _nearest_group(units, sizes, int(smallest))
        if partner < 0:
            return
        keep, gone = (smallest, partner) if smallest < partner else (partner, smallest)
        share = sizes[gone] / (sizes[keep] + sizes[gone])
        for s in range(rows.shape[1]):
            rows[keep, s] += share * (rows[gone, s] - rows[keep, s])
            units[keep, s] = rows[keep, s] / scale[s]
        sizes[keep] += sizes[gone]
        sizes[gone] = 0
        place[gone] = keep


@compiled(part=True)
def _nearest_group(units: Floats, sizes: Integers, one: int) -> int:
    nearest, best = np.inf, -1
    for i in range(len(sizes)):
        if i != one and sizes[i] > 0:
            distance = 0.0
            for s in range(units.shape[1]):
                away = units[i, s] - units[one, s]
                distance += away * away
            if best < 0 or distance < nearest:
                nearest, best = distance, i
    return best


def mdav(block: Floats, k: int) -> Integers:
    """Maximum distance to average vector: groups of k to 2k - 1 records (columns x rows); the group of each record.

    Domingo-Ferrer and Torra 2005, "Ordinal, continuous and heterogeneous k-anonymity through microaggregation". Of
    records equally far the first is taken. One block of fewer than 2k records is one group.
    """
    groups = np.zeros(block.shape[1], np.int64)
    if block.shape[1] >= 2 * k:
        records = plain(block.T)
        left, distances = np.arange(len(records)), np.empty(len(records))
        _mdav(records, k, groups, left, distances, np.empty(k), np.empty(records.shape[1]))
    return groups


@compiled()
def _mdav(
    records: Floats, k: int, groups: Integers, left: Integers, distances: Floats, near: Floats, mean: Floats
) -> None:
    """Records that are left, in their order, and room for distances, for the k smallest of them, and for a mean."""
    number, remaining, far, second = 0, len(records), -1, False
    while second or remaining >= 2 * k:  # one call of each part for both groups: it is compiled once
        if not second:
            _find_mean(records, left, remaining, mean)
        point = records[far] if second else mean
        farthest = left[_farthest(records, left, remaining, point)]
        second, far = not second and remaining >= 3 * k, farthest
        remaining = _take_group(records, left, remaining, records[farthest], distances, near, groups, int(number))
        number += 1
    for place in range(remaining):
        groups[left[place]] = number


@compiled(part=True)
def _find_mean(records: Floats, left: Integers, remaining: int, mean: Floats) -> None:
    for s in range(len(mean)):
        mean[s] = 0.0
    for place in range(remaining):
        for s in range(len(mean)):
            mean[s] += records[left[place], s]
    for s in range(len(mean)):
        mean[s] /= remaining


@compiled(part=True)
def _distance(record: Floats, point: Floats) -> float:
    total = 0.0
    for s in range(len(point)):
        total += (record[s] - point[s]) * (record[s] - point[s])
    return total


@compiled(part=True)
def _farthest(records: Floats, left: Integers, remaining: int, point: Floats) -> int:
    best, largest = 0, -1.0
    for place in range(remaining):
        distance = _distance(records[left[place]], point)
        if distance > largest:
            best, largest = place, distance
    return best


@compiled(part=True)
def _take_group(
    records: Floats,
    left: Integers,
    remaining: int,
    point: Floats,
    distances: Floats,
    near: Floats,
    groups: Integers,
    number: int,
) -> int:
    """Give the k records nearest to a point their group and take them off the list, whose order stays."""
    k = len(near)  # the k smallest distances so far, in order
    for at in range(k):
        near[at] = np.inf
    for place in range(remaining):
        distances[place] = _distance(records[left[place]], point)
        if distances[place] < near[k - 1]:
            at = k - 1
            while at > 0 and near[at - 1] > distances[place]:
                near[at] = near[at - 1]
                at -= 1
            near[at] = distances[place]
    ties = k  # how many of those at the k-th distance belong to the group: the first ones
    for place in range(remaining):
        ties -= distances[place] < near[k - 1]
    kept = 0
    for place in range(remaining):
        taken = distances[place] < near[k - 1]
        if distances[place] == near[k - 1] and ties > 0:
            taken, ties = True, ties - 1
        if taken:
            groups[left[place]] = number
        else:
            left[kept] = left[place]
            kept += 1
    return kept
