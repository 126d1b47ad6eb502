"""Which records of two files agree on which columns, without looking at pairs.

A record's values are bins, and its cell is the number that has them as digits, the first column's the highest. For a
set T of columns, N_T = sum over T-cells of (originals in it) x (masked in it) counts the pairs that agree at least on
T. Pairs that agree on exactly T follow by Moebius inversion over the supersets of T (Fellegi and Sunter 1969 count
patterns of agreement; that the counts need no pairs is plain inclusion and exclusion).

Cells pass through shards by one digit after another: those with the same bin in column j meet in step j, where all sets
T whose first column is j are counted; what the sets after it need, cells without column j, goes on to step j + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts

_DENSE = 4


class CellCounts(NamedTuple):
    """Different cells, and how many records each has."""

    cells: Counts
    records: Counts


class Hunted(NamedTuple):
    """Originals by cell and own pattern: the columns on which they agree with their own masked record, as bits.

    ``ties`` counts the masked records found so far that are as likely as the own one.
    """

    cells: Counts
    pattern: Counts
    records: Counts
    ties: Counts

    def at(self, rows: NDArray[np.generic]) -> Hunted:
        """Some of them."""
        return Hunted(*(part[rows] for part in self))


class LinkageShard(NamedTuple):
    """Originals and masked records of one shard, with the bins of the columns that their cells are made of."""

    hunted: Hunted
    masked: CellCounts
    bins: tuple[int, ...]


def cells_of(codes: Sequence[Counts], bins: Sequence[int]) -> Counts:
    """The cell of each record: its bins as digits."""
    found = np.zeros(len(codes[0]), np.int64)
    for size, code in zip(bins, codes, strict=True):
        found = found * size + code
    return found


def digits_of(cells: Counts, bins: Sequence[int]) -> list[Counts]:
    """The bins that cells are made of."""
    found: list[Counts] = []
    for size in reversed(bins):
        cells, digit = np.divmod(cells, size)
        found.insert(0, digit)
    return found


def cell_counts(cells: Counts, records: Counts | None = None) -> CellCounts:
    """Equal cells together, in order."""
    order = np.argsort(cells)
    ordered = cells[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(cells) else order
    if records is None:
        return CellCounts(ordered[starts], np.diff(np.append(starts, len(cells))))
    return CellCounts(ordered[starts], np.add.reduceat(records[order], starts) if len(cells) else records)


def hunted_records(cells: Counts, pattern: Counts, patterns: int) -> Hunted:
    """Originals with equal cell and pattern together; patterns are less than ``patterns``."""
    both = cell_counts(cells * patterns + pattern)
    found, own = np.divmod(both.cells, patterns)
    return Hunted(found, own, both.records, np.zeros(len(found), np.int64))


NOBODY = Hunted(*(np.empty(0, np.int64),) * 4)
NOTHING = CellCounts(*(np.empty(0, np.int64),) * 2)


def split_shard(shard: LinkageShard, shards: int) -> list[LinkageShard]:
    """Those with the same bin in the first column go to the same shard."""
    below = int(np.prod(shard.bins[1:], dtype=np.int64))
    places = [cells // below * shards // shard.bins[0] for cells in (shard.hunted.cells, shard.masked.cells)]
    parts = []
    for number in range(shards):
        ours, theirs = (np.flatnonzero(place == number) for place in places)
        masked = CellCounts(shard.masked.cells[theirs], shard.masked.records[theirs])
        parts.append(LinkageShard(shard.hunted.at(ours), masked, shard.bins))
    return parts


def join_shards(parts: Sequence[LinkageShard]) -> LinkageShard:
    """All together; equal masked cells become one."""
    hunted = Hunted(*(np.concatenate(one) for one in zip(*(part.hunted for part in parts), strict=True)))
    cells, records = (np.concatenate(one) for one in zip(*(part.masked for part in parts), strict=True))
    return LinkageShard(hunted, cell_counts(cells, records), parts[0].bins)


def without_first(shard: LinkageShard, *, with_patterns: bool) -> LinkageShard:
    """What the sets of columns after the first need."""
    below = int(np.prod(shard.bins[1:], dtype=np.int64))
    cells = shard.hunted.cells % below
    hunted = shard.hunted._replace(cells=cells)
    if not with_patterns:
        ours = cell_counts(cells, hunted.records)
        nothing = np.zeros(len(ours.cells), np.int64)
        hunted = Hunted(ours.cells, nothing, ours.records, nothing)
    return LinkageShard(hunted, cell_counts(shard.masked.cells % below, shard.masked.records), shard.bins[1:])


def sets_with_first(columns: int) -> list[tuple[int, ...]]:
    """The sets of so many columns that hold the first one."""
    return [
        (0, *(column for column in range(1, columns) if choice >> (column - 1) & 1))
        for choice in range(1 << (columns - 1))
    ]


def as_bits(chosen: Sequence[int], skipped: int) -> int:
    """A set of columns as a number, bit j for column j, when so many columns were left behind."""
    return sum(1 << (column + skipped) for column in chosen)


def agreeing_pairs(shard: LinkageShard, columns: int) -> Counts:
    """N_T of one shard, by the bits of T, for all sets T with the shard's first column; 0 for the others."""
    ours, theirs = (digits_of(cells, shard.bins) for cells in (shard.hunted.cells, shard.masked.cells))
    found = np.zeros(1 << columns, np.int64)
    for chosen in sets_with_first(len(shard.bins)):
        bins = [shard.bins[column] for column in chosen]
        asked, held = (cells_of([digits[column] for column in chosen], bins) for digits in (ours, theirs))
        met = _records_in(CellCounts(held, shard.masked.records), asked, bins)
        found[as_bits(chosen, columns - len(shard.bins))] = (met * shard.hunted.records).sum()
    return found


class Weighing(NamedTuple):
    """How an intruder weighs patterns: by rank, 0 for the likeliest and equal for ties; and the columns that count."""

    rank: Counts
    informative: int  # bits

    @property
    def columns(self) -> int:
        """How many columns patterns have."""
        return len(self.rank).bit_length() - 1


def hunt(shard: LinkageShard, weighing: Weighing) -> LinkageShard:
    """Originals that no masked record beats on the sets with the first column; those that tie with their own are added.

    Sets are taken from the likeliest on. A masked record that agrees on more than the set was met before, in a likelier
    set, so whoever is met here agrees on exactly the columns that count.
    """
    skipped = weighing.columns - len(shard.bins)
    sets = {as_bits(one, skipped): one for one in sets_with_first(len(shard.bins))}
    sets = {pattern: one for pattern, one in sets.items() if pattern & weighing.informative == pattern}
    ours, theirs = (digits_of(cells, shard.bins) for cells in (shard.hunted.cells, shard.masked.cells))
    own, ties = weighing.rank[shard.hunted.pattern], shard.hunted.ties.copy()
    alive = np.arange(len(own))
    for pattern in sorted(sets, key=lambda one: int(weighing.rank[one])):
        rank, chosen = weighing.rank[pattern], sets[pattern]
        asked = alive[own[alive] >= rank]
        if not len(asked):
            break
        bins = [shard.bins[column] for column in chosen]
        held = cells_of([theirs[column] for column in chosen], bins)
        cells = cells_of([ours[column][asked] for column in chosen], bins)
        met = _records_in(CellCounts(held, shard.masked.records), cells, bins)
        tied = own[asked] == rank
        ties[asked] += np.where(tied, met, 0)
        beaten = asked[~tied & (met > 0)]
        alive = np.setdiff1d(alive, beaten, assume_unique=True) if len(beaten) else alive
    return shard._replace(hunted=shard.hunted._replace(ties=ties).at(alive))


def _records_in(held: CellCounts, asked: Counts, bins: Sequence[int]) -> Counts:
    """For each cell that is asked for, how many of the held records it has."""
    space = int(np.prod(bins, dtype=np.int64))
    if space <= _DENSE * (len(held.cells) + len(asked)):
        counted: Counts = np.bincount(held.cells, held.records, minlength=space).astype(np.int64)
        return counted[asked]
    found = cell_counts(*held)
    if not len(found.cells):
        return np.zeros(len(asked), np.int64)
    places = np.minimum(np.searchsorted(found.cells, asked), len(found.cells) - 1)
    return np.where(found.cells[places] == asked, found.records[places], 0)


def exact_patterns(at_least: Counts) -> Counts:
    """Pairs by exact pattern, from pairs that agree at least on it: Moebius inversion over supersets."""
    exact = at_least.copy()
    for column in range(len(exact).bit_length() - 1):
        view = exact.reshape(-1, 2, 1 << column)
        view[:, 0] -= view[:, 1]
    return exact
