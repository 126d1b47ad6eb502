"""What groups of equal quasi-identifiers give away: their sizes, and how the sensitive values inside them spread.

Sensitive values are small codes 0, 1, ... For one group with shares p of the codes, and shares q in the whole table:
distinct l is how many codes occur, entropy l is exp(-sum p log p) (Machanavajjhala et al. 2007), confidence is the
largest p, and t is how far p lies from q (Li, Li and Venkatasubramanian 2007): sum of max(p - q, 0) where all codes are
equally far apart, sum_i |P_i - Q_i| / (codes - 1) of the cumulated shares where codes are in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.elementary import exp, log, log_where_positive
from dpmask.kernels.keys import RowKeys, grouped, with_word

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_DENSE = 1 << 20  # entries of a table of groups x codes that is made at once


class GroupCells(NamedTuple):
    """Different rows: their key, the codes of their sensitive values, and how often each occurs."""

    keys: RowKeys
    codes: Counts  # sensitive columns x cells
    times: Counts


class SensitiveShares(NamedTuple):
    """A sensitive column's shares of codes in the whole table, and whether its codes are in order."""

    shares: Floats
    ordered: bool


class Bounds(NamedTuple):
    """Below how many different values, above which confidence and which t records of a group are counted."""

    distinct: float
    confidence: float
    closeness: float


class Diversity(NamedTuple):
    """The worst of some groups for one sensitive column, and how many records are in groups beyond the bounds."""

    distinct: float
    entropy: float
    confidence: float
    closeness: float
    uniform: int = 0  # records in groups of too few different values
    inferred: int = 0  # in groups that give a value away with too large a confidence
    distant: int = 0  # in groups too far from the whole table


class Groups(NamedTuple):
    """What some groups add up to."""

    records: int
    groups: int
    smallest: int
    uniques: int
    below: int  # records in groups of less than k
    diversities: tuple[Diversity, ...]
    matched: float  # expected re-identifications against a register


NOBODY = 1 << 62
"""The size of the smallest of no groups."""


def cells(keys: RowKeys, codes: Sequence[Counts], times: Counts | None = None) -> GroupCells:
    """The different rows of a block; each stands for one record, or for so many as ``times`` say."""
    whole = keys
    for column in codes:
        whole = with_word(whole, column.view(np.uint64))
    groups = grouped(whole)
    rows = groups.order[groups.starts]
    matrix = np.array([column[rows] for column in codes], np.int64).reshape(len(codes), len(rows))
    return GroupCells(
        keys.at(rows), matrix, groups.sums(np.ones(len(whole.first), np.int64) if times is None else times)
    )


def split_cells(found: GroupCells, shards: int) -> list[GroupCells]:
    """The cells of each shard: all of a group go to the same one."""
    place = found.keys.first % np.uint64(shards)
    picked = [np.flatnonzero(place == shard) for shard in range(shards)]
    return [GroupCells(found.keys.at(rows), found.codes[:, rows], found.times[rows]) for rows in picked]


def join_cells(parts: Sequence[GroupCells]) -> GroupCells:
    """All cells together; equal ones may stand more than once."""
    keys = RowKeys(*(np.concatenate(lane) for lane in zip(*(part.keys for part in parts), strict=True)))
    return GroupCells(
        keys, np.concatenate([part.codes for part in parts], axis=1), np.concatenate([part.times for part in parts])
    )


def measure_groups(
    found: GroupCells,
    sensitive: Sequence[SensitiveShares],
    k: int,
    bounds: Bounds,
    register: GroupCells | None = None,
) -> Groups:
    """The groups of a shard, with the worst spread of each sensitive column; a register's groups are matched."""
    groups = grouped(found.keys)
    sizes = groups.sums(found.times)
    if not len(sizes):
        nothing = tuple(Diversity(np.inf, np.inf, 0.0, 0.0) for _ in sensitive)
        return Groups(0, 0, NOBODY, 0, 0, nothing, 0.0)
    numbers = groups.numbers()
    diversities = [
        _diversity(numbers, codes, found.times, sizes, one, bounds)
        for codes, one in zip(found.codes, sensitive, strict=True)
    ]
    keys = found.keys.at(groups.order[groups.starts])
    return Groups(
        int(sizes.sum()),
        len(sizes),
        int(sizes.min()),
        int((sizes == 1).sum()),
        int(sizes[sizes < k].sum()),
        tuple(diversities),
        0.0 if register is None else _matched(keys, sizes, register),
    )


def _diversity(
    numbers: Counts, codes: Counts, times: Counts, sizes: Counts, column: SensitiveShares, bounds: Bounds
) -> Diversity:
    """The worst distinct l, entropy l, confidence and t of the groups, for one sensitive column."""
    places, at = np.unique(numbers * len(column.shares) + codes, return_inverse=True)
    held = np.bincount(at, times).astype(np.int64)
    group, code = np.divmod(places, len(column.shares))
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    p = held / sizes[group]
    distinct = np.diff(np.append(starts, len(group)))
    entropy = exp(-np.add.reduceat(p * log(p), starts))
    confidence = np.maximum.reduceat(p, starts)
    if column.ordered:
        far = _ordered_distances(group, code, p, len(sizes), column.shares)
    else:
        far = np.add.reduceat(np.maximum(p - column.shares[code], 0.0), starts)
    return _worst(distinct, entropy, confidence, far, sizes, bounds)


def _worst(
    distinct: Counts, entropy: Floats, confidence: Floats, far: Floats, records: Counts, bounds: Bounds
) -> Diversity:
    """The worst of some groups, and the records of those beyond the bounds."""
    beyond = distinct < bounds.distinct, confidence > bounds.confidence, far > bounds.closeness
    uniform, inferred, distant = (int(records[some].sum()) for some in beyond)
    return Diversity(
        float(distinct.min(initial=NOBODY)),
        float(entropy.min(initial=np.inf)),
        float(confidence.max(initial=0.0)),
        float(far.max(initial=0.0)),
        uniform,
        inferred,
        distant,
    )


def diversity_of_counts(counts: Counts, records: Counts, column: SensitiveShares, bounds: Bounds) -> Diversity:
    """The worst of rows whose records, some of which they share, have these codes (rows x codes).

    ``records``: how many have each row.
    """
    counts = counts[:, : len(column.shares)]
    p = counts / counts.sum(axis=1, keepdims=True)
    entropy = exp(-(p * log_where_positive(p)).sum(axis=1))
    if column.ordered:
        apart = np.abs(np.cumsum(p, axis=1) - np.cumsum(column.shares))[:, :-1]
        far = apart.sum(axis=1) / max(len(column.shares) - 1, 1)
    else:
        far = np.maximum(p - column.shares, 0.0).sum(axis=1)
    return _worst((counts > 0).sum(axis=1), entropy, p.max(axis=1), far, records, bounds)


def _ordered_distances(group: Counts, code: Counts, p: Floats, groups: int, shares: Floats) -> Floats:
    """The distance between cumulated shares of each group, a stretch of groups at a time."""
    cumulated, found = np.cumsum(shares), np.empty(groups)
    step = max(1, _DENSE // len(shares))
    for first in range(0, groups, step):
        low, high = np.searchsorted(group, [first, first + step])
        table = np.zeros((min(step, groups - first), len(shares)))
        table[group[low:high] - first, code[low:high]] = p[low:high]
        found[first : first + step] = np.abs(np.cumsum(table, axis=1) - cumulated)[:, :-1].sum(axis=1)
    return found / max(len(shares) - 1, 1)


def _matched(keys: RowKeys, sizes: Counts, register: GroupCells) -> float:
    """Sum over groups of min(f, F) / F, f records here and F in the register: who can be found by picking one of F."""
    both = RowKeys(*(np.concatenate(lane) for lane in zip(keys, register.keys, strict=True)))
    groups = grouped(both)
    here = np.zeros(len(both.first), np.int64)
    here[: len(sizes)] = sizes
    there = np.zeros(len(both.first), np.int64)
    there[len(sizes) :] = register.times
    f, all_of = groups.sums(here), groups.sums(there)
    met = all_of > 0
    return float((np.minimum(f, all_of)[met] / all_of[met]).sum())


def merge_diversities(left: Diversity, right: Diversity) -> Diversity:
    """The worst of both."""
    return Diversity(
        min(left.distinct, right.distinct),
        min(left.entropy, right.entropy),
        max(left.confidence, right.confidence),
        max(left.closeness, right.closeness),
        left.uniform + right.uniform,
        left.inferred + right.inferred,
        left.distant + right.distant,
    )


def merge_groups(left: Groups, right: Groups) -> Groups:
    """Both together."""
    return Groups(
        left.records + right.records,
        left.groups + right.groups,
        min(left.smallest, right.smallest),
        left.uniques + right.uniques,
        left.below + right.below,
        tuple(merge_diversities(*pair) for pair in zip(left.diversities, right.diversities, strict=True)),
        left.matched + right.matched,
    )
