"""Local suppression: which cells of the records in broken groups are set to missing.

A record of a group of fewer than k records, or with a broken model, loses the cheapest set of cells such that at least
k records of the table, in which all models hold, agree with it in all other columns. Sets are tried from the cheapest
on, by what their columns are worth, then by fewest columns, then by the columns' order.

A missing cell matches every value, so that what one record loses makes no other's matches fewer: as to k every group is
judged by itself, and complete records stay in groups of k or more. Models make no such promise, as a record that
matches more rows brings its sensitive value to them: they are counted again once cells are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts
from dpmask.kernels.keys import RowKeys, grouped
from dpmask.kernels.refinement.dropped import places_among
from dpmask.kernels.refinement.grouping import Grouped, Integers, keys_of, node_keys

MOST_SETS = 4096
"""Sets of columns that are tried, at most, before all cells of a group are suppressed."""

Columns = tuple[int, ...]


class SmallGroups(NamedTuple):
    """Broken groups: what they are masked to (groups x columns), and their records, in the order of their keys."""

    nodes: Integers
    sizes: Counts


def column_sets(columns: Sequence[int], worth: Sequence[float], most: int = MOST_SETS) -> list[Columns]:
    """The sets of these columns, the cheapest first; of very many columns only small sets, and all."""
    found: list[Columns] = []
    for size in range(1, len(columns) + 1):
        sets = list(combinations(columns, size))
        if len(found) + len(sets) > most:
            found.append(tuple(columns))
            break
        found += sets
    return sorted(found, key=lambda one: (round(sum(worth[column] for column in one), 9), len(one), one))


def small_groups(groups: Grouped, small: RowKeys) -> SmallGroups:
    """Those groups of a block that are small in the whole table; ``small`` has their keys, sorted."""
    here = np.flatnonzero(places_among(node_keys(groups.nodes), small) >= 0)
    return SmallGroups(groups.nodes[here], np.bincount(groups.rows, minlength=len(groups.nodes))[here])


def merge_small(left: SmallGroups, right: SmallGroups) -> SmallGroups:
    """Sizes of equal groups add up."""
    nodes = np.concatenate([left.nodes, right.nodes])
    found = grouped(node_keys(nodes))
    return SmallGroups(nodes[found.order[found.starts]], found.sums(np.concatenate([left.sizes, right.sizes])))


def agreeing(nodes: Integers, counts: Counts, small: Integers, sets: Sequence[Columns]) -> Counts:
    """How many records of a block's groups agree with each small one in all columns but those of a set (sets x groups).

    With sensitive columns ``counts`` has those with each of their codes, and so has what is found.
    """
    found = np.empty((len(sets), len(small), *counts.shape[1:]), np.int64)
    sizes = np.concatenate([np.zeros((len(small), *counts.shape[1:]), np.int64), counts])
    nodes = np.concatenate([small, nodes])
    for number, one in enumerate(sets):
        rest = [nodes[:, column] for column in range(nodes.shape[1]) if column not in one]
        alike = grouped(keys_of(rest, len(nodes)))
        found[number] = alike.sums(sizes)[alike.numbers()[: len(small)]]
    return found
