"""Linkage by ranks: which masked records a person may have become, if values moved by known random distances.

How unlikely a masked record is, is a sum over columns that is never negative: 0 for an equal value, else what keeping
a value is worth more than moving by nothing, plus half the squared distance in rank in standard deviations of the law
of distances, up to ``FARTHEST``. Equal values have all the ranks from the first to the last of them: distances are
between the middles, windows reach from end to end. The columns after the first ``ranked`` ones are labels, by the codes
they stand for: a person's code is inside, or outside of the label.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.compile import compiled, read_only
from dpmask.kernels.elementary import log1p

FARTHEST = 12.0
_SAME = 1e-9
_MISSING = -1e300


class RankedRecords(NamedTuple):
    """Values (columns x records) and the first and the last rank of each; missing ones are NaN."""

    values: Floats
    low: Floats
    high: Floats


class Persons(NamedTuple):
    """Whom the intruder looks for, what equal values are worth, and how unlikely their own masked records are."""

    known: RankedRecords
    worth: Floats  # columns x persons
    cost: Floats  # of the own record
    inside: NDArray[np.bool_]  # whether windows have the own record


class Candidates(NamedTuple):
    """For each person in how many blocks one is likelier than the own, how many are as likely, and in all windows.

    As likely ones matter only where none is likelier, those in windows only where the own is.
    """

    likelier: Counts
    equal: Counts
    inside: Counts


def worth_of_equal(low: Floats, high: Floats, share: float, sd: float, size: NDArray[np.int64]) -> Floats:
    """What an equal value is worth over one next to it: log of (kept or moved to it) over (moved to it)."""
    mass = np.maximum(high - low, 1.0 / np.maximum(size, 1))
    return log1p((1.0 - share) / mass * sd * math.sqrt(2.0 * math.pi) / share)


def own_costs(
    known: RankedRecords, masked: RankedRecords, worth: Floats, ranked: int, sd: float, window: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """How unlikely the own masked record of each person is, and whether it is within the window in every column."""
    costs, inside = np.empty(known.values.shape[1]), np.empty(known.values.shape[1], np.bool_)
    _own(*_by_record(known), *_by_record(masked), read_only(worth.T), ranked, 0.5 / sd**2, window, costs, inside)
    return costs, inside


def candidates(persons: Persons, masked: RankedRecords, ranked: int, sd: float, window: float) -> Candidates:
    """What one block of masked records adds to each person's candidates."""
    found = Candidates(*(np.zeros(len(persons.cost), np.int64) for _ in range(3)))
    _scan(
        *_by_record(persons.known),
        read_only(persons.worth.T),
        read_only(persons.cost),
        read_only(persons.inside),
        *_by_record(masked),
        ranked,
        0.5 / sd**2,
        window,
        *found,
    )
    return found


def merge_candidates(left: Candidates, right: Candidates) -> Candidates:
    """The candidates of both parts."""
    return Candidates(*(one + other for one, other in zip(left, right, strict=True)))


def _by_record(records: RankedRecords) -> tuple[Floats, Floats, Floats]:
    """Arrays of records x columns in which a missing value equals another one, and is far from every present one."""
    values, low, high = (read_only(np.where(np.isnan(part.T), _MISSING, part.T)) for part in records)
    return values, low, high


@compiled(part=True, reassociate=False, contract=False)
def _gap(low: float, high: float, other_low: float, other_high: float) -> float:
    """How far apart two intervals of ranks are."""
    return max(0.0, other_low - high, low - other_high)


@compiled(part=True, reassociate=False, contract=False)
def _cost(value: float, other: float, gap: float, worth: float, precision: float) -> float:
    return 0.0 if value == other else worth + min(precision * gap * gap, FARTHEST)


@compiled(reassociate=False, contract=False)
def _own(
    values: Floats,
    low: Floats,
    high: Floats,
    others: Floats,
    other_low: Floats,
    other_high: Floats,
    worth: Floats,
    ranked: int,
    precision: float,
    window: float,
    costs: Floats,
    inside: NDArray[np.bool_],
) -> None:
    for q in range(len(values)):
        cost = 0.0
        within = True
        for c in range(values.shape[1]):
            gap = _gap(low[q, c], high[q, c], other_low[q, c], other_high[q, c])
            within &= gap <= window
            if c < ranked:
                gap = 0.5 * abs(low[q, c] + high[q, c] - other_low[q, c] - other_high[q, c])
            cost += _cost(values[q, c], others[q, c], gap, worth[q, c], precision)
        costs[q] = cost
        inside[q] = within


@compiled(reassociate=False, contract=False)
def _scan(
    values: Floats,
    low: Floats,
    high: Floats,
    worth: Floats,
    own: Floats,
    own_inside: NDArray[np.bool_],
    others: Floats,
    other_low: Floats,
    other_high: Floats,
    ranked: int,
    precision: float,
    window: float,
    likelier: Counts,
    equal: Counts,
    inside: Counts,
) -> None:
    columns = values.shape[1]
    for q in range(len(values)):
        limit = own[q] + _SAME
        open_rank = True  # no likelier one was found
        for r in range(len(others)):
            cost = 0.0
            within = own_inside[q]
            for c in range(columns):
                gap = _gap(low[q, c], high[q, c], other_low[r, c], other_high[r, c])
                within &= gap <= window
                if open_rank:
                    if c < ranked:
                        gap = 0.5 * abs(low[q, c] + high[q, c] - other_low[r, c] - other_high[r, c])
                    cost += _cost(values[q, c], others[r, c], gap, worth[q, c], precision)
                if not within and (not open_rank or cost > limit):
                    break
            inside[q] += within
            if open_rank and cost < own[q] - _SAME:
                likelier[q] = 1
                open_rank = False
            elif open_rank and cost <= limit:
                equal[q] += 1
            if not open_rank and not own_inside[q]:
                break
