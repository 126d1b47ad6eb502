"""How alike two partitions of the same records are, from their contingency table n_ij: natural x query clusters.

Fung et al. 2009, section 4.3; the adjusted index of Hubert and Arabie 1985. All sums of counts are exact integers.
"""

from __future__ import annotations

import numpy as np

from dpmask.kernels.arrays import Counts


def f_measure(table: Counts) -> float:
    """Each natural cluster's best F = 2 n_ij / (|C_i| + |K_j|), weighted by its size (eqs. 6-9)."""
    natural, query = table.sum(axis=1), table.sum(axis=0)
    sizes = np.maximum(natural[:, None] + query[None], 1)
    best = (2.0 * table / sizes).max(axis=1)
    return float((natural * best).sum() / natural.sum())


def match_point(table: Counts) -> float:
    """The share of pairs of records, both orders and a record with itself, that are together in both or in neither."""
    records = _total(table)
    together, natural, query = _squares(table), _squares(table.sum(axis=1)), _squares(table.sum(axis=0))
    return (records**2 - natural - query + 2 * together) / records**2


def adjusted_rand(table: Counts) -> float:
    """Pairs that agree, less those that would by chance: 1 for equal partitions, about 0 for independent ones."""
    records = _total(table)
    pairs = records * (records - 1)
    both = _squares(table) - records
    natural, query = _squares(table.sum(axis=1)) - records, _squares(table.sum(axis=0)) - records
    if natural + query in {0, 2 * pairs}:
        return 1.0  # all records alone, or all together, in both
    expected = natural * query / pairs
    return (both - expected) / ((natural + query) / 2 - expected)


def _total(counts: Counts) -> int:
    return int(counts.sum())


def _squares(counts: Counts) -> int:
    return sum(int(count) ** 2 for count in counts.ravel())
