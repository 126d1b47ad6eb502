"""Groups that are dropped because they are too small, and the sizes of those that remain.

A group of fewer than k records is dropped. Its records are in groups of other quasi-identifiers, too, which shrink and
may become too small themselves, and so on. What remains in the end is the largest set of records in which all groups
are large enough: it depends on the masked values alone, not on the order in which groups were dropped, and only shrinks
when values are refined, as groups of finer values that are large enough lie in groups of coarser ones that are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.keys import RowKeys, counted
from dpmask.kernels.refinement.cells import NOBODY, Counts, Grouped, node_keys

Flags = NDArray[np.bool_]


class Drops(NamedTuple):
    """What is dropped: for each quasi-identifier the keys of groups, sorted, all records of which are; and how many."""

    keys: tuple[RowKeys, ...] = ()
    records: int = 0


class GroupSizes(NamedTuple):
    """The number of records in each group."""

    keys: RowKeys
    counts: Counts


class GroupSummary(NamedTuple):
    """All groups of a quasi-identifier: their records, the smallest of k or more, and the groups below k."""

    records: int
    smallest: int
    small: RowKeys
    lost: int


def contains(keys: RowKeys, others: RowKeys) -> Flags:
    """Which of these keys are among the others, which are sorted: a search for each, no pass over the others."""
    found = np.zeros(len(keys.first), np.bool_)
    places = np.searchsorted(others.first, keys.first)
    maybe = np.flatnonzero(places < len(others.first))
    while len(maybe):  # once, and once more for every other key that shares a first lane
        maybe = maybe[others.first[places[maybe]] == keys.first[maybe]]
        found[maybe] |= others.second[places[maybe]] == keys.second[maybe]
        places[maybe] += 1
        maybe = maybe[places[maybe] < len(others.first)]
    return found


def sorted_keys(*parts: RowKeys) -> RowKeys:
    """All keys of these, in the order of their first lane."""
    keys = _joined(*parts)
    return keys.at(np.argsort(keys.first))


def _joined(*parts: RowKeys) -> RowKeys:
    return RowKeys(*(np.concatenate(lanes) for lanes in zip(*parts, strict=True)))


def group_sizes(groups: Grouped) -> GroupSizes:
    """The sizes of a block's groups that have any records."""
    occupied = np.flatnonzero(groups.sizes > 0)
    return GroupSizes(node_keys(groups.nodes[occupied]), groups.sizes[occupied])


def merge_sizes(left: GroupSizes, right: GroupSizes) -> GroupSizes:
    """Counts of equal groups add up."""
    first, second, counts = counted(_joined(left.keys, right.keys), np.concatenate([left.counts, right.counts]))
    return GroupSizes(RowKeys(first, second), counts)


def summarised(sizes: GroupSizes, k: int) -> GroupSummary:
    """The summary of groups that are complete."""
    keys, counts = sizes
    small = counts < k
    return GroupSummary(
        int(counts.sum()), int(counts[~small].min(initial=NOBODY)), keys.at(small), int(counts[small].sum())
    )


def merge_summaries(left: GroupSummary, right: GroupSummary) -> GroupSummary:
    """The summary of different groups."""
    return GroupSummary(
        left.records + right.records,
        min(left.smallest, right.smallest),
        _joined(left.small, right.small),
        left.lost + right.lost,
    )


def only(groups: Grouped, remaining: Flags) -> Grouped:
    """The groups with only those of their rows that remain, which may be none."""
    flags = remaining[groups.order]
    by_place = np.argsort(groups.starts)
    counts = np.add.reduceat(flags, groups.starts[by_place], dtype=np.int64)
    starts, sizes = np.empty_like(groups.starts), np.empty_like(groups.sizes)
    starts[by_place], sizes[by_place] = np.cumsum(counts) - counts, counts
    return Grouped(np.where(remaining, groups.rows, -1), groups.order[flags], starts, sizes, groups.nodes)
