"""Calibration: numbers moved as little as possible so that given totals hold.

Units (records with their weights, or groups with their sums) have a number v and contribute a share s_d of it to total
d. The calibrated numbers v + |v| u, u = s . lambda, are those with the smallest chi-square distance, the sum of
(v' - v)^2 / |v|, that reach the totals, u being cut off at half a unit's number (Deville and Sarndal 1992, "Calibration
estimators in survey sampling", case 7, truncated linear). Lambda is found by Newton steps; each is one pass over the
units. Sums and the elimination are plain, without BLAS: the same bits on any machine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from dpmask.kernels.arrays import Floats, Integers

LARGEST_STEP = 0.5
MOST_STEPS = 25
_RIDGE = 1e-12
_REACHED = 1e-10


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


def is_reached(found: CalibrationSums, targets: Floats) -> bool:
    """Whether all targets are met, as far as sums of floats are."""
    return bool(relative_gap(found.totals, targets) <= _REACHED)


def relative_gap(totals: Floats, targets: Floats) -> float:
    """The largest difference of a total from its target, relative to it."""
    asked = ~np.isnan(targets) & (targets != 0.0)
    return float(np.abs(totals[asked] / targets[asked] - 1.0).max(initial=0.0))


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
