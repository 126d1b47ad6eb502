"""Groups that are dropped because they are too small, or because a model does not hold, and those that remain.

A group of fewer than k records is dropped. Its records are in groups of other quasi-identifiers, too, which shrink and
may become too small themselves, and so on. What remains in the end is the largest set of records in which all groups
are large enough: it depends on the masked values alone, not on the order in which groups were dropped, and only shrinks
when values are refined, as groups of finer values that are large enough lie in groups of coarser ones that are. Models
make no such promise: a group that holds with some records may not without them. All that is broken is dropped, again
and again, which ends with groups that hold, but others may end with more records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Flags, Floats
from dpmask.kernels.keys import RowKeys, counted
from dpmask.kernels.models import Condition, judged
from dpmask.kernels.refinement.cells import NOBODY, Sensitive
from dpmask.kernels.refinement.grouping import Codes, Grouped, node_keys

_ROOM, _MOST_BITS = 16, 22
"""Places for each key, by its highest bits, in the table that a first look goes to; and how many bits, at most."""


class Drops(NamedTuple):
    """What is dropped: for each quasi-identifier the keys of groups, sorted, all records of which are; and how many."""

    keys: tuple[RowKeys, ...] = ()
    records: int = 0


class KeyedSizes(NamedTuple):
    """The number of records in each group; with sensitive columns, those with each of their codes."""

    keys: RowKeys
    counts: Counts

    @property
    def size(self) -> int:
        """Numbers in all."""
        return self.counts.size


class GroupSummary(NamedTuple):
    """All groups of a quasi-identifier: their records, the smallest that is not broken, and those that are.

    ``worst``: the worst figure of each condition in groups that are not broken, ``found`` in all; larger is worse.
    """

    records: int
    smallest: int
    small: RowKeys
    lost: int
    worst: Floats = np.empty(0)
    found: Floats = np.empty(0)


def contains(keys: RowKeys, others: RowKeys) -> Flags:
    """Which of these keys are among the others, which are sorted: a search for each that one look does not exclude."""
    bits = min(max((_ROOM * len(others.first)).bit_length(), 1), _MOST_BITS)
    shift = np.uint64(64 - bits)
    taken = np.zeros(1 << bits, np.bool_)
    taken[others.first >> shift] = True
    maybe = np.flatnonzero(taken[keys.first >> shift])
    found = np.zeros(len(keys.first), np.bool_)
    found[maybe] = places_among(keys.at(maybe), others) >= 0
    return found


def places_among(keys: RowKeys, others: RowKeys) -> Counts:
    """Where each key stands among the others, which are sorted by their first lane; -1 for one that does not."""
    found = np.full(len(keys.first), -1, np.int64)
    places = np.searchsorted(others.first, keys.first)
    maybe = np.flatnonzero(places < len(others.first))
    while len(maybe):  # once, and once more for every other key that shares a first lane
        maybe = maybe[others.first[places[maybe]] == keys.first[maybe]]
        same = maybe[others.second[places[maybe]] == keys.second[maybe]]
        found[same] = places[same]
        places[maybe] += 1
        maybe = maybe[places[maybe] < len(others.first)]
    return found


def sorted_keys(*parts: RowKeys) -> RowKeys:
    """All keys of these, in the order of their first lane."""
    keys = _joined(*parts)
    return keys.at(np.argsort(keys.first))


def _joined(*parts: RowKeys) -> RowKeys:
    return RowKeys(*(np.concatenate(lanes) for lanes in zip(*parts, strict=True)))


def group_sizes(groups: Grouped, codes: Codes, sensitive: Sensitive) -> KeyedSizes:
    """The sizes of a block's groups."""
    first = (groups.rows + np.int64(1)) * sensitive.counts  # of each row's counts, after those of rows in no group
    size = (len(groups.nodes) + 1) * sensitive.counts
    beside = zip(sensitive.columns, sensitive.offsets, strict=True)
    places = [first + (codes[column] + offset) for column, offset in beside] if sensitive.width else [first]
    counts = np.sum([np.bincount(one, minlength=size) for one in places], axis=0)
    counts = counts.reshape(-1, sensitive.counts)[1:]
    return KeyedSizes(node_keys(groups.nodes), counts if sensitive.width else counts[:, 0])


def merge_sizes(left: KeyedSizes, right: KeyedSizes) -> KeyedSizes:
    """Counts of equal groups add up."""
    first, second, counts = counted(_joined(left.keys, right.keys), np.concatenate([left.counts, right.counts]))
    return KeyedSizes(RowKeys(first, second), counts)


def summarised(sizes: KeyedSizes, k: int, conditions: Sequence[Condition] = ()) -> GroupSummary:
    """The summary of groups that are complete."""
    size, broken, figures = judged(sizes.counts, k, conditions)
    return GroupSummary(
        int(size.sum()),
        int(size[~broken].min(initial=NOBODY)),
        sizes.keys.at(broken),
        int(size[broken].sum()),
        np.array([one[~broken].max(initial=-np.inf) for one in figures]),
        np.array([one.max(initial=-np.inf) for one in figures]),
    )


def merge_summaries(left: GroupSummary, right: GroupSummary) -> GroupSummary:
    """The summary of different groups."""
    return GroupSummary(
        left.records + right.records,
        min(left.smallest, right.smallest),
        _joined(left.small, right.small),
        left.lost + right.lost,
        np.maximum(left.worst, right.worst),
        np.maximum(left.found, right.found),
    )


def only(groups: Grouped, remaining: Flags) -> Grouped:
    """The groups with only those of their rows that remain, without those that have none."""
    rows = np.where(remaining, groups.rows, -1)
    there = np.zeros(len(groups.nodes) + 1, np.bool_)
    there[rows] = True  # the last one's where a row is in no group
    there[-1] = False
    numbers = np.where(there, np.cumsum(there) - 1, -1).astype(np.int32)
    return Grouped(numbers[rows], groups.nodes[there[:-1]])
