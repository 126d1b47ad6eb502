"""Calibration: numbers moved as little as possible so that given totals hold.

Units (records with their weights, or groups with their sums) have a number v and contribute a share s_d of it to total
d. The calibrated numbers v + |v| u, u = s . lambda, are those with the smallest chi-square distance, the sum of
(v' - v)^2 / |v|, that reach the totals, u being cut off at half a unit's number (Deville and Sarndal 1992, "Calibration
estimators in survey sampling", case 7, truncated linear). Lambda is found by Newton steps, or, where the totals are out
of reach, by damped ones (Marquardt 1963) that come as near as they can; each is one pass over the units. Sums and the
elimination are plain, without BLAS: the same bits on any machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from dpmask.kernels.arrays import Floats, Integers

LARGEST_STEP = 0.5
MOST_STEPS = 25
_RIDGE = 1e-12
_REACHED = 1e-10
_DAMPING, _LESS, _MORE = 0.1, 0.3, 4.0


class Shares(NamedTuple):
    """What units contribute to which totals; an entry for each pair of a unit and a total."""

    units: int
    totals: int
    unit: Integers
    total: Integers
    share: Floats

    @property
    def matrix(self) -> csr_matrix:
        """Units x totals."""
        return csr_matrix((self.share, (self.unit, self.total)), shape=(self.units, self.totals))


def steps_of(shares: Shares, multipliers: Floats) -> Floats:
    """By which share of its size each unit's number moves: units x columns, from multipliers (columns x totals)."""
    return np.clip(shares.matrix @ multipliers.T, -LARGEST_STEP, LARGEST_STEP)


class CalibrationSums(NamedTuple):
    """One part's share of the totals as they are now, and of how they change with the multipliers."""

    totals: Floats  # columns x totals
    slopes: Floats  # columns x totals x totals

    def plus(self, other: CalibrationSums) -> CalibrationSums:
        """Both parts together."""
        return CalibrationSums(self.totals + other.totals, self.slopes + other.slopes)


def calibration_sums(values: Floats, shares: Shares, multipliers: Floats) -> CalibrationSums:
    """The sums of some units, whose numbers are given (units x columns)."""
    matrix = shares.matrix
    steps = matrix @ multipliers.T
    inside = np.abs(steps) < LARGEST_STEP
    moved = values + np.abs(values) * np.clip(steps, -LARGEST_STEP, LARGEST_STEP)
    totals = (matrix.T @ moved).T
    weights = np.where(inside, np.abs(values), 0.0)
    slopes = [(matrix.T @ matrix.multiply(some[:, None]).tocsr()).toarray() for some in weights.T]
    return CalibrationSums(totals, np.array(slopes))


def next_multipliers(multipliers: Floats, found: CalibrationSums, targets: Floats) -> Floats:
    """One Newton step towards the targets (columns x totals); NaN is no target."""
    new = multipliers.copy()
    for number, (totals, slopes, wanted) in enumerate(zip(found.totals, found.slopes, targets, strict=True)):
        asked = np.flatnonzero(~np.isnan(wanted) & (slopes.diagonal() > 0.0))
        new[number, asked] += _solved(slopes[np.ix_(asked, asked)], (wanted - totals)[asked])
    return new


def calibrated(sums_at: Callable[[Floats], CalibrationSums], targets: Floats) -> Floats:
    """The multipliers that reach the targets (columns x totals), by Newton steps, from none.

    A column whose targets these do not reach, as numbers would have to move too far, comes as near as damped steps take
    it, and never ends farther from them than it began.
    """
    multipliers = np.zeros_like(targets)
    for _ in range(MOST_STEPS):
        sums = sums_at(multipliers)
        if is_reached(sums, targets):
            return multipliers
        multipliers = next_multipliers(multipliers, sums, targets)
    reached = np.abs(_gaps(sums_at(multipliers).totals, targets)).max(axis=1, initial=0.0) <= _REACHED
    return np.where(reached[:, None], multipliers, _nearest(sums_at, targets))


def _nearest(sums_at: Callable[[Floats], CalibrationSums], targets: Floats) -> Floats:
    """The multipliers with the smallest squares of relative gaps that damped steps find, each column by itself.

    Levenberg and Marquardt's: a step that does not come nearer is made again, shorter.
    """
    best = np.zeros_like(targets)
    sums = sums_at(best)
    errors, damping = (_gaps(sums.totals, targets) ** 2).sum(axis=1), np.full(len(targets), _DAMPING)
    for _ in range(MOST_STEPS):
        tried = _damped(best, sums, targets, damping)
        found = sums_at(tried)
        new = (_gaps(found.totals, targets) ** 2).sum(axis=1)
        nearer = new < errors
        best, errors = np.where(nearer[:, None], tried, best), np.where(nearer, new, errors)
        sums = CalibrationSums(
            np.where(nearer[:, None], found.totals, sums.totals),
            np.where(nearer[:, None, None], found.slopes, sums.slopes),
        )
        damping *= np.where(nearer, _LESS, _MORE)
    return best


def _damped(multipliers: Floats, found: CalibrationSums, targets: Floats, damping: Floats) -> Floats:
    """One damped step, by how the relative gaps change with the multipliers."""
    new, gaps = multipliers.copy(), _gaps(found.totals, targets)
    for number, (slopes, wanted) in enumerate(zip(found.slopes, targets, strict=True)):
        asked = np.flatnonzero((np.abs(wanted) > 0.0) & (slopes.diagonal() > 0.0))
        changes = slopes[np.ix_(asked, asked)] / np.abs(wanted[asked])[:, None]
        square = sum((row[:, None] * row for row in changes), np.zeros((len(asked), len(asked))))
        square = square + damping[number] * np.diag(square.diagonal())
        new[number, asked] -= _solved(square, (changes * gaps[number, asked][:, None]).sum(axis=0))
    return new


def _gaps(totals: Floats, targets: Floats) -> Floats:
    """The differences of totals from their targets, relative to these; 0 where there is no target."""
    asked = np.abs(targets) > 0.0
    return np.where(asked, totals - targets, 0.0) / np.where(asked, np.abs(targets), 1.0)


def is_reached(found: CalibrationSums, targets: Floats) -> bool:
    """Whether all targets are met, as far as sums of floats are."""
    return bool(relative_gap(found.totals, targets) <= _REACHED)


def relative_gap(totals: Floats, targets: Floats) -> float:
    """The largest difference of a total from its target, relative to it."""
    return float(np.abs(_gaps(totals, targets)).max(initial=0.0))


def _solved(matrix: Floats, right: Floats) -> Floats:
    """The solution of a positive semi-definite system, by elimination; totals that say the same share the change."""
    scale = np.sqrt(matrix.diagonal())
    left = matrix / scale / scale[:, None] + _RIDGE * np.eye(len(scale))
    found = right / scale
    for at in range(len(found)):
        factors = left[at + 1 :, at] / left[at, at]
        left[at + 1 :] -= factors[:, None] * left[at]
        found[at + 1 :] -= factors * found[at]
    for at in range(len(found) - 1, -1, -1):
        found[at] = (found[at] - (left[at, at + 1 :] * found[at + 1 :]).sum()) / left[at, at]
    return found / scale
