"""Groups and cells where records may be dropped: what a refinement would cost in records, and who is left after it.

A group of fewer than k records is dropped. Its records are in groups of other quasi-identifiers, too, which shrink and
may become too small themselves, and so on. What is left in the end is the largest set of records in which all groups
are large enough: it depends on the masked values alone, not on the order in which groups were dropped, and only shrinks
when values are refined, as groups of finer values that are large enough lie in groups of coarser ones that are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.keys import RowKeys, counted, new_keys
from dpmask.kernels.refinement.cells import NOBODY, Cells, Counts, Grouped, Values, node_cells

Flags = NDArray[np.bool_]


class Sizes(NamedTuple):
    """How many records are left in each group."""

    keys: RowKeys
    counts: Counts


class Prospect(NamedTuple):
    """What refining a node would do, for each of its candidates: the smallest cell, and the records in cells below k.

    ``told`` says of each slot whether a cell of k records or more would tell it.
    """

    smallest: Counts
    lost: Counts
    told: Flags


Prospects = dict[tuple[int, int], Prospect]
"""By (attribute, node)."""


def among(keys: RowKeys, others: RowKeys) -> Flags:
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


def sorted_keys(keys: RowKeys) -> RowKeys:
    """The keys in the order of their first lane."""
    return keys.at(np.argsort(keys.first))


def joined_keys(left: RowKeys, right: RowKeys) -> RowKeys:
    """The keys of both, one after another."""
    return RowKeys(*(np.concatenate(lanes) for lanes in zip(left, right, strict=True)))


def no_keys() -> RowKeys:
    """No key at all."""
    return new_keys(0)


def sizes(keys: RowKeys, groups: Grouped, wanted: Flags) -> Sizes:
    """The sizes of the groups that are wanted; groups of nobody are not told."""
    told = np.flatnonzero(wanted & (groups.sizes > 0))
    return Sizes(keys.at(told), groups.sizes[told])


def merge_sizes(one: Sizes, other: Sizes) -> Sizes:
    """Counts of equal groups add up."""
    keys = joined_keys(one.keys, other.keys)
    first, second, counts = counted(keys, np.concatenate([one.counts, other.counts]))
    return Sizes(RowKeys(first, second), counts)


def only(groups: Grouped, left: Flags) -> Grouped:
    """The groups with only those of their rows that are left, which may be none."""
    if left.all():
        return groups
    flags = left[groups.order]
    by_place = np.argsort(groups.starts)
    counts = np.add.reduceat(flags, groups.starts[by_place], dtype=np.int64)
    starts, sizes = np.empty_like(groups.starts), np.empty_like(groups.sizes)
    starts[by_place], sizes[by_place] = np.cumsum(counts) - counts, counts
    return Grouped(np.where(left, groups.rows, -1), groups.order[flags], starts, sizes, groups.nodes)


def prospects(cells: Cells, values: Sequence[Values], k: int) -> Prospects:
    """What every candidate would do to these groups."""
    found: Prospects = {}
    for key, apart, table in node_cells(cells, values):
        prospect = (_told_apart if apart else _split)(table, k)
        found[key] = merge_prospect(found[key], prospect) if key in found else prospect
    return found


def _split(table: Counts, k: int) -> Prospect:
    """All slots of a node become cells of their own (groups x slots)."""
    small = (table > 0) & (table < k)
    smallest = np.where(table > 0, table, NOBODY).min(initial=NOBODY)
    return Prospect(np.array([smallest]), np.array([table[small].sum()]), np.any(table >= k, axis=0))


def _told_apart(table: Counts, k: int) -> Prospect:
    """Each slot is taken from all others, where there is anybody in it."""
    rest = np.where(table > 0, table.sum(axis=1, keepdims=True) - table, 0)
    smallest = np.minimum(np.where(table > 0, table, NOBODY), np.where(rest > 0, rest, NOBODY)).min(
        axis=0, initial=NOBODY
    )
    lost = np.where(table < k, table, 0).sum(axis=0) + np.where(rest < k, rest, 0).sum(axis=0)
    return Prospect(smallest, lost, np.any(table >= k, axis=0))


def merge_prospect(left: Prospect, right: Prospect) -> Prospect:
    """What a refinement would do to the groups of both."""
    return Prospect(
        np.minimum(left.smallest, right.smallest), left.lost + right.lost, np.logical_or(left.told, right.told)
    )


def merge_prospects(left: Prospects, right: Prospects) -> Prospects:
    """The same for all nodes."""
    both = left.keys() & right.keys()
    return {**left, **right, **{key: merge_prospect(left[key], right[key]) for key in both}}
