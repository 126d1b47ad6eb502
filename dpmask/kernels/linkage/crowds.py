"""Who stands around a record: the masked records nearest to it, and the known records that they belong to.

In such a crowd the nearest masked record is the same as in the whole table, so what an assignment one to one adds to it
there is about what it adds in the table: owners of those rows who would find a better partner outside are kept in the
crowd, which finds too much; a record whose own row is not near it is taken as not linked, which finds too little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Flags, Floats, Integers
from dpmask.kernels.compile import compiled, plain, read_only
from dpmask.kernels.keys import Grouping, float_keys
from dpmask.kernels.linkage.assignment import assigned_places, equal_rows
from dpmask.kernels.linkage.nearest import Metric, Radii, to_box, to_rows
from dpmask.kernels.linkage.record_tree import DEPTH, LEAF, build_tree

CROWD = 64
"""Masked records around each one; with 300 the same was found on census, utility and company data."""
_GROUP = CROWD // 8
"""Records that share a row: in crowds of such rows groups count."""
_NOBODY = np.iinfo(np.int64).max


class MetricPairs(NamedTuple):
    """Pairs in a metric, columns x rows: what is known, where masked points are or ranges begin, where these end."""

    positions: Integers
    known: Floats
    low: Floats
    high: Floats

    def at(self, rows: Integers | slice) -> MetricPairs:
        """Some of them."""
        return MetricPairs(self.positions[rows], self.known[:, rows], self.low[:, rows], self.high[:, rows])


def joined_pairs(parts: Sequence[MetricPairs]) -> MetricPairs:
    """All of them, one part after the other."""
    positions, *columns = zip(*parts, strict=True)
    return MetricPairs(np.concatenate(positions), *(np.concatenate(some, axis=1) for some in columns))


class Crowds(NamedTuple):
    """Of each of some records: the nearest pairs, by distance and then position, and how many rows equal its own."""

    distance: Floats  # records x CROWD
    places: Integers  # likewise, among the pairs
    pairs: MetricPairs  # each that is near anybody once, in the order of positions
    equal: Integers


def no_crowds(records: MetricPairs) -> Crowds:
    """Before anything was searched."""
    count = len(records.positions)
    distance, places = np.full((count, CROWD), np.inf), np.full((count, CROWD), _NOBODY)
    return Crowds(distance, places, records.at(slice(0)), np.zeros(count, np.int64))


def crowds(
    metric: Metric,
    records: MetricPairs,
    bound: Floats,
    low: Floats,
    high: Floats,
    members: Grouping,
    pairs_at: Callable[[Integers], MetricPairs],
) -> Crowds:
    """Those in one block, no farther than a bound for each record.

    The block's distinct masked records are given in the metric, in the order of their first ones; ``members`` are the
    pairs that have them, by their numbers in the order of positions, and ``pairs_at`` gives some of these.
    """
    near = no_crowds(records)
    if not low.shape[1]:
        return near
    tree = build_tree(low, high, metric.scale, metric.cap, numbers=np.arange(1, low.shape[1] + 1))
    rulers = plain(metric.scale), plain(metric.least), plain(metric.cap)
    room = np.empty(DEPTH, np.int64), np.empty(DEPTH), np.empty(LEAF)
    _nearest(*tree, plain(records.known.T), plain(bound), *rulers, *room, near.distance, near.places)
    if low.shape[1] < len(members.order):
        different, near = near, no_crowds(records)
        parts = read_only(members.order), read_only(members.starts), read_only(members.sizes)
        _to_members(different.distance, different.places, *parts, near.distance, near.places)
    rows, places = _near_rows(near.places, len(members.order))
    return Crowds(near.distance, places, pairs_at(rows), _equal(records, low, high, members.sizes))


def _equal(records: MetricPairs, low: Floats, high: Floats, sizes: Integers) -> Integers:
    """How many of a block's pairs have the same masked record as each of these."""
    same = np.flatnonzero(np.isin(low[0], records.low[0]))  # the others differ in the first column already
    blocks = (records.low, records.high), (low[:, same], high[:, same])
    own, keys = (float_keys(np.concatenate(one)).first for one in blocks)
    order = np.argsort(keys)
    ends = np.concatenate([[0], np.cumsum(sizes[same][order])])
    first, last = (ends[np.searchsorted(keys[order], own, side)] for side in ("left", "right"))
    equal: Integers = last - first
    return equal


def merge_crowds(left: Crowds, right: Crowds) -> Crowds:
    """The nearest of both."""
    pairs = joined_pairs([left.pairs, right.pairs])
    order = np.argsort(pairs.positions)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    ranks = rank[: len(left.pairs.positions)], rank[len(left.pairs.positions) :]
    places = np.concatenate([_moved(*one) for one in zip(ranks, (left.places, right.places), strict=True)], axis=1)
    distance = np.concatenate([left.distance, right.distance], axis=1)
    nearest = np.lexsort((places, distance))[:, :CROWD]
    distance, places = (np.take_along_axis(part, nearest, axis=1) for part in (distance, places))
    rows, places = _near_rows(places, len(order))
    return Crowds(distance, places, pairs.at(order[rows]), left.equal + right.equal)


def _moved(new: Integers, places: Integers) -> Integers:
    """Places where each of them has a new one."""
    there = places != _NOBODY
    moved = places.copy()
    moved[there] = new[places[there]]
    return moved


def _near_rows(places: Integers, rows: int) -> tuple[Integers, Integers]:
    """Which of so many rows are near anybody, and the places among these."""
    near = np.zeros(rows, np.bool_)
    near[places[places != _NOBODY]] = True
    return np.flatnonzero(near), _moved(np.cumsum(near) - 1, places)


def assignment_gains(metric: Metric, records: MetricPairs, radii: Radii, found: Crowds) -> Floats:
    """Of each record its chance to be linked by assignment in its crowd, less that by the nearest masked record."""
    gains = np.zeros(len(records.positions))
    found, own = _with_groups(records, radii, found)
    _, *parts = found.pairs
    rows, columns = np.ascontiguousarray(np.concatenate(parts).T), len(found.pairs.known)
    solved: dict[bytes, Integers] = {}  # records of one group have one crowd
    for number in np.flatnonzero(own.any(axis=1)):
        there, place = found.places[number] != _NOBODY, int(own[number].argmax())
        crowd = rows[found.places[number][there]].T
        known, low, high = crowd[:columns], crowd[columns : 2 * columns], crowd[2 * columns :]
        distance, equal = found.distance[number][there], int(found.equal[number])
        ties = max(int((distance <= radii.outer[number]).sum()), equal)
        nearest = not (distance < radii.inner[number]).any()
        same = equal_rows(low, high, place)
        name = found.places[number].tobytes()
        if name not in solved and not same.all():
            solved[name] = assigned_places(metric, known, low, high)
        right = same.all() or same[solved[name][place]]
        gains[number] = right / equal - nearest / ties
    return gains


def _with_groups(records: MetricPairs, radii: Radii, found: Crowds) -> tuple[Crowds, Flags]:
    """The crowds, and where in them the own pairs are.

    The own pair takes the place of the last one, where it is not among them and its row is a group's: few groups fill
    a crowd, so the own one may be next. A row that hardly any record shares is too far away.
    """
    positions = np.append(found.pairs.positions, _NOBODY)[np.where(found.places == _NOBODY, -1, found.places)]
    own = positions == records.positions[:, None]
    absent = ~own.any(axis=1) & (found.equal >= _GROUP)
    distance, places = found.distance.copy(), found.places.copy()
    distance[absent, -1], own[absent, -1] = radii.outer[absent], True
    places[absent, -1] = len(found.pairs.positions) + np.arange(absent.sum())
    pairs = joined_pairs([found.pairs, records.at(np.flatnonzero(absent))])
    return Crowds(distance, places, pairs, found.equal), own


@compiled()
def _nearest(
    low: Floats,
    high: Floats,
    numbers: Integers,
    box_low: Floats,
    box_high: Floats,
    right: Integers,
    queries: Floats,
    bound: Floats,
    scale: Floats,
    least: Floats,
    cap: Floats,
    stack: Integers,
    apart: Floats,
    squares: Floats,
    distance: Floats,
    places: Integers,
) -> None:
    """Depth first, the nearer child first; of equally near rows those with the smaller numbers.

    Room for the nodes that wait, how far they are, and for the distances to a leaf's rows is given.
    """
    points = low.shape[1] - high.shape[1]
    last = distance.shape[1] - 1
    for query_number in range(len(queries)):
        query, best, rows = queries[query_number], distance[query_number], places[query_number]
        stack[0], apart[0] = 0, 0.0
        waiting = 1
        while waiting:
            waiting -= 1
            node, reach = stack[waiting], min(bound[query_number], best[last])
            if apart[waiting] > reach:
                continue
            after = right[node]
            if after >= 0:
                one = to_box(query, box_low[node + 1], box_high[node + 1], points, scale, least, cap)
                two = to_box(query, box_low[after], box_high[after], points, scale, least, cap)
                near, far = (node + 1, after) if one <= two else (after, node + 1)
                stack[waiting], apart[waiting] = far, max(one, two)
                stack[waiting + 1], apart[waiting + 1] = near, min(one, two)
                waiting += 2
                continue
            leaf = -1 - after
            if to_rows(query, low[leaf], high[leaf], points, scale, least, cap, squares) > reach:
                continue
            for row in range(LEAF):
                number, square = numbers[leaf, row] - 1, squares[row]
                if number < 0 or square > bound[query_number]:
                    continue
                _insert(best, rows, square, number)


@compiled(part=True)
def _insert(best: Floats, rows: Integers, square: float, number: int) -> bool:
    """Put a row among the nearest ones, by distance and then number, in place of the last; False if it is none."""
    at = len(best) - 1
    if square > best[at] or (square == best[at] and number > rows[at]):
        return False
    while at > 0 and (best[at - 1] > square or (best[at - 1] == square and rows[at - 1] > number)):
        best[at], rows[at] = best[at - 1], rows[at - 1]
        at -= 1
    best[at], rows[at] = square, number
    return True


@compiled()
def _to_members(
    near: Floats, rows: Integers, order: Integers, starts: Integers, sizes: Integers, distance: Floats, places: Integers
) -> None:
    """The nearest pairs, by the nearest distinct rows, which have them in rising order."""
    for query in range(len(near)):
        for at in range(near.shape[1]):
            row = rows[query, at]
            if row == _NOBODY:
                break
            for member in range(starts[row], starts[row] + sizes[row]):
                if not _insert(distance[query], places[query], near[query, at], order[member]):
                    break
