"""Interval disclosure: whether an original value lies in an interval around its masked value.

Ranks need no sorted column at hand. With s the n masked values in order, L and R the first and the last place of x' in
s, and x above ``below`` and at or above ``through`` of them,

    s[max(0, L - w)] <= x <= s[min(n - 1, R + w)]   iff   through > max(0, L - w) and below <= min(n - 1, R + w)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.order.float_order import order_keys, positions_in

PERCENTS = np.arange(1, 11)
JOINT = 0.05


class Inside(NamedTuple):
    """For each column and percentage the originals inside, of how many pairs; and the records inside in all columns.

    ``joint`` goes by the standard deviation of the original columns, ``joint_masked`` by that of the masked ones.
    ``complete`` are the originals that miss no value, whatever their masked values.
    """

    inside: Counts  # columns x percentages
    pairs: Counts
    joint: int = 0
    joint_masked: int = 0
    complete: int = 0


def inside_by_sd(sd: Floats, masked_sd: Floats, columns: Sequence[Floats]) -> Inside:
    """One block's originals within each percentage of the original standard deviation of their masked value."""
    half = len(columns) // 2
    inside = np.zeros((half, len(PERCENTS)), np.int64)
    pairs = np.zeros(half, np.int64)
    joint = joint_masked = complete = np.ones(len(columns[0]), np.bool_)
    for number, (x, y, one, other) in enumerate(zip(columns[:half], columns[half:], sd, masked_sd, strict=True)):
        gap = np.abs(x - y)
        present = ~np.isnan(gap)
        pairs[number] = present.sum()
        inside[number] = [(gap <= one * percent / 100).sum() for percent in PERCENTS]
        joint, joint_masked = joint & (gap <= one * JOINT), joint_masked & (gap <= other * JOINT)
        complete = complete & ~np.isnan(x)
    return Inside(inside, pairs, int(joint.sum()), int(joint_masked.sum()), int(complete.sum()))


def merge_inside(left: Inside, right: Inside) -> Inside:
    """Both parts together."""
    return Inside(
        left.inside + right.inside,
        left.pairs + right.pairs,
        left.joint + right.joint,
        left.joint_masked + right.joint_masked,
        left.complete + right.complete,
    )


class Ranked(NamedTuple):
    """Records with values of one kind, and how many masked values lie below, and at or below, each."""

    records: Counts
    below: Counts
    through: Counts


class RankedShard(NamedTuple):
    """One range of values: the masked values in it, how many there are, and the originals in it."""

    masked: Ranked
    original: Ranked
    size: int


class PlacedValues(NamedTuple):
    """Values with the positions of their records."""

    records: Counts
    values: Floats


def split_values(values: Floats, first: int, cuts: Floats) -> list[PlacedValues]:
    """A block's present values, by the range they fall in."""
    present = np.flatnonzero(~np.isnan(values))
    place = np.searchsorted(cuts, values[present], "right")
    rows = [present[place == number] for number in range(len(cuts) + 1)]
    return [PlacedValues(some + first, values[some]) for some in rows]


def rank_shard(original: Sequence[PlacedValues], masked: Sequence[PlacedValues]) -> RankedShard:
    """The values of one range, each with its place among the masked ones."""
    x, y = _joined(original), _joined(masked)
    keys = np.sort(order_keys(y.values))
    return RankedShard(
        Ranked(y.records, *positions_in(keys, order_keys(y.values))),
        Ranked(x.records, *positions_in(keys, order_keys(x.values))),
        len(keys),
    )


def _joined(parts: Sequence[PlacedValues]) -> PlacedValues:
    return PlacedValues(*(np.concatenate(one) for one in zip(*parts, strict=True)))


def split_ranks(found: RankedShard, offset: int, shard_rows: int, shards: int) -> list[tuple[Ranked, Ranked]]:
    """Ranks in the whole column, by the shard of records they belong to."""
    parts = []
    for one in (found.masked, found.original):
        place = one.records // shard_rows
        rows = [np.flatnonzero(place == number) for number in range(shards)]
        parts.append([Ranked(one.records[r], one.below[r] + offset, one.through[r] + offset) for r in rows])
    return list(zip(*parts, strict=True))


def inside_by_rank(parts: Sequence[tuple[Ranked, Ranked]], size: int, shard_rows: int) -> Inside:
    """Originals inside the rank interval of their masked value, for one column and a shard of records."""
    masked, original = (_filled(ranks, shard_rows) for ranks in zip(*parts, strict=True))
    pairs = (masked[1] > 0) & (original[0] >= 0)
    low, high = masked[0][pairs], masked[1][pairs] - 1  # L and R
    below, through = original[0][pairs], original[1][pairs]
    inside = [
        ((through > np.maximum(low - w, 0)) & (below <= np.minimum(high + w, size - 1))).sum()
        for w in PERCENTS * size // 100
    ]
    count = int(pairs.sum())
    return Inside(np.array([inside], np.int64), np.array([count]))


def _filled(ranks: Sequence[Ranked], rows: int) -> tuple[Counts, Counts]:
    """Below and through by record; -1 where a record has no value."""
    below, through = np.full(rows, -1), np.full(rows, -1)
    for one in ranks:
        below[one.records % rows] = one.below
        through[one.records % rows] = one.through
    return below, through
