"""Ward's hierarchy of records: which groups are merged, one after another, and how many squares each merge adds.

Ward (1963), "Hierarchical grouping to optimize an objective function", by chains of nearest neighbours (Murtagh 1983;
Müllner 2011): in a chain each group is the nearest of the one before, and the last two, each other's nearest, are
merged. Work grows with the square of the records; a block of more than 500 is first cut into patches, whose
cheapest merges bring it down to 500 groups, and then all of these are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.cells import grow_tree, route
from dpmask.kernels.compile import compiled, plain

_MOST = 500
_LANES = 16


class Merges(NamedTuple):
    """Merges by rising cost. Each joins the groups of two records; all of them join all records."""

    first: Integers
    second: Integers
    costs: Floats
    """What each adds to the weighted squares of records around the means of their groups."""

    @property
    def gains(self) -> Floats:
        """What each further group beyond the first takes off these squares; it falls."""
        return self.costs[::-1]

    def of(self, records: Integers) -> Merges:
        """The same of records that have these numbers."""
        return Merges(records[self.first], records[self.second], self.costs)

    def first_of(self, count: int) -> Merges:
        """So many of them."""
        return Merges(self.first[:count], self.second[:count], self.costs[:count])


def merge_all(block: Floats, weights: Floats, most: int = _MOST) -> Merges:
    """The merges of a block (columns x rows) of weighted records."""
    rows = block.shape[1]
    if rows <= most:
        return _sorted(_merged(block, weights))
    tree = grow_tree(block, np.arange(rows, dtype=np.uint64), -(-rows // most))
    patch_of = route(block, np.arange(rows, dtype=np.uint64), tree)
    patches = [np.flatnonzero(patch_of == number) for number in range(tree.cells)]
    merges = [_merged(np.ascontiguousarray(block[:, patch]), weights[patch]) for patch in patches]
    named = [one.of(patch) for patch, one in zip(patches, merges, strict=True)]
    cheap = _sorted(_joined(named)).first_of(rows - most)
    groups = cut(cheap, rows, most)
    records = np.unique(groups, return_index=True)[1]
    sizes = np.bincount(groups, weights).astype(np.float64)
    return _sorted(_joined([cheap, _merged(means(block, weights, groups), sizes).of(records)]))


def cut(merges: Merges, rows: int, groups: int) -> Integers:
    """The group of each of so many records when the cheapest merges leave this number of groups."""
    owner = np.arange(rows)
    _join(merges.first[: rows - groups], merges.second[: rows - groups], owner)
    return np.unique(owner, return_inverse=True)[1]


def means(block: Floats, weights: Floats, groups: Integers) -> Floats:
    """The weighted means of groups (columns x groups)."""
    sums = np.bincount(groups, weights)
    return np.array([np.bincount(groups, weights * column) / sums for column in block])


def _joined(parts: Sequence[Merges]) -> Merges:
    first, second, costs = zip(*parts, strict=True)
    return Merges(np.concatenate(first), np.concatenate(second), np.concatenate(costs))


def _sorted(merges: Merges) -> Merges:
    order = np.argsort(merges.costs, kind="stable")
    return Merges(merges.first[order], merges.second[order], merges.costs[order])


def _merged(block: Floats, weights: Floats) -> Merges:
    """The merges of one patch, as they come."""
    columns, rows = block.shape
    found = Merges(np.empty(rows - 1, np.int64), np.empty(rows - 1, np.int64), np.empty(rows - 1))
    room = -(-rows // _LANES) * _LANES
    centers, costs = np.zeros((columns, room)), np.empty(room)
    centers[:, :rows] = block
    _chain(centers, plain(weights).copy(), costs, np.empty(_LANES), np.arange(rows), np.empty(rows, np.int64), *found)
    return found


@compiled(reassociate=False, contract=False)
def _chain(
    centers: Floats,
    weights: Floats,
    costs: Floats,
    lanes: Floats,
    records: Integers,
    chain: Integers,
    first: Integers,
    second: Integers,
    merged: Floats,
) -> None:
    """Groups have the places 0, 1, ... without gaps: the last one moves to where one was merged away."""
    groups, length = len(weights), 0
    while groups > 1:
        if length == 0:
            chain[0], length = 0, 1
        here = chain[length - 1]
        _find_costs(centers, weights, costs, here, groups)
        there = _find_lowest(costs, lanes, groups)
        before = chain[length - 2] if length > 1 else here
        if costs[before] > costs[there]:  # that of a group with itself is infinite
            chain[length] = there
            length += 1
            continue
        keep, gone, last = min(here, before), max(here, before), groups - 1
        at = len(weights) - groups
        first[at], second[at], merged[at] = records[keep], records[gone], costs[before]
        share = weights[gone] / (weights[keep] + weights[gone])
        weights[keep] += weights[gone]
        weights[gone], records[gone] = weights[last], records[last]
        for s in range(len(centers)):
            centers[s, keep] += share * (centers[s, gone] - centers[s, keep])
            centers[s, gone] = centers[s, last]
        length -= 2
        for place in range(length):
            chain[place] = gone if chain[place] == last else chain[place]
        groups = last


@compiled(part=True, reassociate=False, contract=False)
def _find_costs(centers: Floats, weights: Floats, costs: Floats, here: int, groups: int) -> None:
    """What merging each group with one of them would add: squared distance times w w' / (w + w')."""
    for k in range(groups):
        costs[k] = 0.0
    for s in range(len(centers)):
        center = centers[s, here]
        for k in range(groups):
            away = centers[s, k] - center
            costs[k] += away * away
    weight = weights[here]
    for k in range(groups):
        costs[k] *= weight * weights[k] / (weight + weights[k])
    costs[here] = np.inf
    for k in range(groups, (groups + _LANES - 1) // _LANES * _LANES):
        costs[k] = np.inf


@compiled(part=True, reassociate=False, contract=False)
def _find_lowest(costs: Floats, lanes: Floats, groups: int) -> int:
    """The first place of the lowest cost."""
    for lane in range(_LANES):
        lanes[lane] = np.inf
    for start in range(0, groups, _LANES):
        for lane in range(_LANES):
            cost = costs[start + lane]
            lanes[lane] = cost if cost < lanes[lane] else lanes[lane]
    lowest, at = np.inf, 0
    for lane in range(_LANES):
        lowest = lanes[lane] if lanes[lane] < lowest else lowest
    while costs[at] > lowest:
        at += 1
    return at


@compiled()
def _join(first: Integers, second: Integers, owner: Integers) -> None:
    """Of each record the first one of its group."""
    for merge in range(len(first)):
        one, other = first[merge], second[merge]
        while owner[one] != one:
            one = owner[one]
        while owner[other] != other:
            other = owner[other]
        low, high = min(one, other), max(one, other)
        owner[high] = low
    for k in range(len(owner)):
        owner[k] = owner[owner[k]]
