"""Group means calibrated to totals by domain: each group's mean moves a little, for all of its members alike.

The mean of a group counts in the total of a domain as much as its members there weigh. Means are moved as little as
possible (dpmask.kernels.calibration) until the totals of all domains are those of the originals, but for rounding to
the columns' types. Totals to which fewer records than a group contribute, and those that one record dominates, by the
p % rule (dpmask.kernels.dominance), are left alone: exact ones would show them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.constraints.sets import Constraints
from dpmask.engine.collection import Collection
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.calibration import (
    CalibrationSums,
    Shares,
    calibrated,
    calibration_sums,
    relative_gap,
    steps_of,
)
from dpmask.kernels.dominance import Contributors, contributors

_DOMINATED = 0.5
_NOTHING = 1e-12


class Contributions(NamedTuple):
    """The original totals of domains (columns x domains), how many records contribute, and how much the largest do."""

    totals: Floats
    records: Integers
    largest: Contributors

    def plus(self, other: Contributions) -> Contributions:
        """Both parts together."""
        largest = self.largest.plus(other.largest)
        return Contributions(self.totals + other.totals, self.records + other.records, largest)


class GroupTotals(NamedTuple):
    """Groups of some cells: what their means weigh, and where; and the original totals of their records."""

    values: Floats  # groups x columns: mean times weight, 0 where a value is missing
    shares: Shares
    originals: Contributions


class Calibration(NamedTuple):
    """What was asked for, and the multipliers (columns x domains) that come nearest."""

    targets: Floats  # NaN where a total is left alone
    multipliers: Floats
    left: int
    """Totals to which fewer records than a group contribute."""
    sensitive: int
    """Totals that one record dominates, by the p % rule; they are left alone, too."""
    dominated: int
    """Totals that are kept, and of which one record makes up more than half."""

    def report(self, released: Floats) -> CalibrationReport:
        """What it came to, by the totals that are released."""
        kept = int((~np.isnan(self.targets)).sum())
        return CalibrationReport(kept, self.left, self.sensitive, self.dominated, relative_gap(released, self.targets))


class CalibrationReport(NamedTuple):
    """Totals that are kept, those that are left alone as of few or of one, kept ones mostly of one, the largest gap."""

    totals_kept: int
    totals_left: int
    totals_sensitive: int
    totals_dominated: int
    totals_off: float


def contributions(block: Floats, weights: Floats, domains: Integers, count: int) -> Contributions:
    """What records (columns x rows, NaN missing) contribute to each domain."""
    there = ~np.isnan(block) & (block != 0.0)
    amounts = np.where(there, block, 0.0) * weights
    totals = np.array([np.bincount(domains, some, count) for some in amounts])
    records = np.array([np.bincount(domains[some], minlength=count) for some in there])
    each = [contributors(some[here], domains[here], count) for some, here in zip(amounts, there, strict=True)]
    return Contributions(totals, records, Contributors(*(np.array(part) for part in zip(*each, strict=True))))


def joined_totals(groups: Sequence[tuple[Floats, Shares]], originals: Contributions, columns: int) -> GroupTotals:
    """The groups of several cells as those of one."""
    firsts = np.cumsum([0, *(shares.units for _, shares in groups)])
    parts = [shares._replace(unit=shares.unit + first) for (_, shares), first in zip(groups, firsts, strict=False)]
    empty = Shares(0, 0, np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    unit, total, share = (np.concatenate(some) for some in zip(*(one[2:] for one in (empty, *parts)), strict=True))
    values = np.concatenate([np.empty((0, columns)), *(some for some, _ in groups)])
    return GroupTotals(values, Shares(int(firsts[-1]), originals.totals.shape[1], unit, total, share), originals)


def group_shares(groups: Integers, domains: Integers, weights: Floats, count: int) -> Shares:
    """Of each group the share of its weight that lies in each domain; ``weights`` are its members' own."""
    units = int(groups.max(initial=-1)) + 1
    cells, place = np.unique(groups * count + domains, return_inverse=True)
    unit = cells // count
    weight = np.bincount(groups, weights, units)
    return Shares(units, count, unit, cells % count, np.bincount(place, weights, len(cells)) / weight[unit])


def moved(rows: Floats, shares: Shares, multipliers: Floats, written: Constraints | None, size: Floats) -> Floats:
    """Rows of groups (groups x columns), calibrated; what equalities make of other columns follows these.

    Of each equality the column that is largest as a rule, by ``size``, follows: totals of a sum are sums of totals.
    """
    rows = rows + np.abs(rows) * steps_of(shares, multipliers)
    if written is None or not len(written.constants):
        return rows
    followers, matrix, constants = _solved_for(written, size)
    rows[:, followers] = constants - sum(rows[:, [at]] * matrix[:, at] for at in range(rows.shape[1]))
    return rows


def _solved_for(written: Constraints, size: Floats) -> tuple[list[int], Floats, Floats]:
    """Equalities as columns that follow the others: which they are, the others' coefficients, and constants."""
    left = np.column_stack([written.coefficients, written.constants])
    order = np.argsort((written.coefficients != 0.0).sum(axis=1), kind="stable")  # zeros first
    followers: list[int] = []
    used: list[int] = []
    for row in order.tolist():
        bound = np.abs(left[row, :-1]) > _NOTHING
        bound[followers] = False
        if bound.any():  # an equality that others imply says nothing more
            at = int(np.where(bound, size, -1.0).argmax())
            left[row] /= left[row, at]
            others = [one for one in range(len(left)) if one != row]
            left[others] -= left[others, at][:, None] * left[row]
            followers.append(at)
            used.append(row)
    matrix = left[used, :-1]
    matrix[:, followers] = 0.0
    return followers, matrix, left[used, -1]


def calibrate(groups: Collection[GroupTotals], least: int, percent: float, label: str) -> Calibration:
    """Find the multipliers, in a few passes over the groups' sums, which stay where the cells are.

    Totals of fewer than ``least`` records, and those that show the largest to within ``percent``, are no targets.
    """
    found = groups.reduce(_contributions, Contributions.plus, f"{label}: totals")
    enough = (found.records >= least) & (found.totals != 0.0)
    shown = enough & found.largest.sensitive(percent)
    asked = enough & ~shown
    targets = np.where(asked, found.totals, np.nan)

    def sums_at(multipliers: Floats) -> CalibrationSums:
        return groups.reduce(partial(_sums, multipliers), CalibrationSums.plus, f"{label}: calibrate")

    multipliers = calibrated(sums_at, targets)
    heavy = asked & (found.largest.first > _DOMINATED * found.largest.size)
    left = (found.records > 0) & ~enough
    return Calibration(targets, multipliers, int(left.sum()), int(shown.sum()), int(heavy.sum()))


def _contributions(one: GroupTotals) -> Contributions:
    return one.originals


def _sums(multipliers: Floats, one: GroupTotals) -> CalibrationSums:
    return calibration_sums(one.values, one.shares, multipliers)
