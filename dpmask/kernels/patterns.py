"""Parts of a table that are masked by themselves: strata joined, patterns of what is there merged, parts in shards.

A record's pattern says of each column whether its value is there, is a zero that must stay, or is missing: 0, 1 or 2.
Patterns are merged into one that covers both, the larger state of each column: what was zero stays zero and what was
missing stays missing; values of the few records that a column is taken from are lost, and counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Flags, Floats, Integers

Patterns = NDArray[np.uint8]
"""Patterns x columns."""

THERE, ZERO, MISSING = 0, 1, 2
STATES = 3
_NEARLY = 1e-6


ZerosKept = bool | tuple[bool, ...]
"""Whether zeros must stay: in all columns alike, or in each."""


def states(values: Floats, zeros: ZerosKept) -> Patterns:
    """The state of each value (columns x rows); zeros count as values unless they must stay."""
    found = np.where(np.isnan(values), np.uint8(MISSING), np.uint8(THERE))
    if np.any(zeros):
        found[(values == 0.0) & np.reshape(zeros, (-1, 1))] = ZERO
    return found


def pattern_codes(found: Patterns) -> Integers:
    """One number for each record's states (columns x rows): the first column counts least."""
    codes = np.zeros(found.shape[1], np.int64)
    for column in found[::-1]:
        codes *= STATES
        codes += column
    return codes


def patterns_of(codes: Integers, columns: int) -> Patterns:
    """The patterns that numbers stand for."""
    return (codes[:, None] // STATES ** np.arange(columns, dtype=np.int64) % STATES).astype(np.uint8)


class MergedPatterns(NamedTuple):
    """Where each pattern went, and what the patterns are now; those that nobody has are left in."""

    place: Integers
    patterns: Patterns


def merge_patterns(patterns: Patterns, counts: Integers, least: int, *, covered: bool = False) -> MergedPatterns:
    """While a pattern has fewer than ``least`` records, merge the rarest (ties: the first) where fewest values go.

    That is the nearest pattern which covers it; where none does, the one whose records lose least by covering both. If
    only ``covered`` ones may be merged, a rare pattern that none covers is left as it is.
    """
    now, sizes, place = patterns.copy(), counts.astype(np.int64), np.arange(len(patterns))
    left = np.zeros(len(patterns), np.bool_)
    while True:
        rare = np.flatnonzero((sizes > 0) & (sizes < least) & ~left)
        if not len(rare) or (sizes > 0).sum() == 1:
            return MergedPatterns(place, now)
        one = rare[np.argmin(sizes[rare])]
        union = np.maximum(now, now[one])
        others = (union != now).sum(axis=1)
        possible = (sizes > 0) & ((others == 0) | (not covered))
        possible[one] = False
        if not possible.any():
            left[one] = True
            continue
        lost = sizes[one] * (union != now[one]).sum(axis=1) + sizes * others
        other = int(np.argmin(np.where(possible, lost, np.iinfo(np.int64).max)))
        now[other] = union[other]
        sizes[other] += sizes[one]
        sizes[one] = 0
        place[place == one] = other


def join_strata(distances: Floats, counts: Integers, least: int, *, sparing: bool = False) -> Integers:
    """While a stratum has fewer than ``least`` records, join the smallest (ties: the first) to the nearest one.

    ``distances`` is strata x strata; joined strata are as far as the nearer of them. The stratum that each is in now is
    named after its first. ``sparing`` takes, of those as near, a small one, so that large ones stay by themselves.
    """
    gaps, sizes, place = distances.astype(np.float64), counts.astype(np.int64), np.arange(len(counts))
    while True:
        small = np.flatnonzero((sizes > 0) & (sizes < least))
        if not len(small) or (sizes > 0).sum() == 1:
            return place
        one = small[np.argmin(sizes[small])]
        reach = np.where((sizes > 0) & (np.arange(len(sizes)) != one), gaps[one], np.inf)
        if sparing:
            reach += _NEARLY * (sizes >= least)
        other = int(np.argmin(reach))
        keep, gone = min(one, other), max(one, other)
        gaps[keep] = np.minimum(gaps[keep], gaps[gone])
        gaps[:, keep] = gaps[keep]
        sizes[keep] += sizes[gone]
        sizes[gone] = 0
        place[place == gone] = keep


def shard_firsts(shards: Integers, sizes: Integers, capacity: int) -> tuple[Integers, int]:
    """The first shard of each part, and how many there are: parts of several shards have their own, others share."""
    firsts, following, room = np.zeros(len(sizes), np.int64), 0, 0
    for part, (wanted, size) in enumerate(zip(shards.tolist(), sizes.tolist(), strict=True)):
        if wanted > 1:
            firsts[part], following, room = following, following + wanted, 0
            continue
        if size > room:
            following, room = following + 1, max(capacity, size)
        firsts[part] = following - 1
        room -= size
    return firsts, following


def lost_values(before: Patterns, after: Patterns, counts: Integers) -> tuple[int, int]:
    """How many values became zero, and how many became missing, where so many records had each pattern."""
    turned: list[Flags] = [(after == state) & (before < state) for state in (ZERO, MISSING)]
    zero, missing = (int((one.sum(axis=1) * counts).sum()) for one in turned)
    return zero, missing
