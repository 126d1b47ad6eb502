"""Undoing memberships that rise to a peak and fall again: what they say is a distance from the peak, on either side.

A triangular membership y is at (1 - y) times the width of its side from the peak, a Gaussian one at sqrt(-2 log y)
standard deviations. So x = peak - left d or x = peak + right d. Known records give all three numbers: in the order of
x the first of them lie below the peak, and of all numbers of first ones the best fit by least squares is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.kernels.elementary import log

_SMALLEST = 1e-300


def triangle_distance(shares: Floats) -> Floats:
    """How far from the peak, in widths of its side."""
    return 1.0 - np.clip(shares, 0.0, 1.0)


def bell_distance(shares: Floats) -> Floats:
    """How far from the mean, in standard deviations."""
    return np.sqrt(-2.0 * log(np.clip(shares, _SMALLEST, 1.0)))


class TwoSided(NamedTuple):
    """x is the peak less left times the distance, or plus right times it."""

    distance: Callable[[Floats], Floats]
    peak: Floats
    left: Floats
    right: Floats
    first: Floats
    """1 for a column of which more known values lie above the peak, else -1: that candidate is the likelier."""

    def candidates(self, masked: Floats) -> Floats:
        """Both for every value, the likelier side first."""
        away = self.distance(masked)
        below = self.peak[:, None] - self.left[:, None] * away
        above = self.peak[:, None] + self.right[:, None] * away
        upper = self.first[:, None] > 0
        return np.array([np.where(upper, above, below), np.where(upper, below, above)])


def two_sided(original: Floats, masked: Floats, distance: Callable[[Floats], Floats], *, even: bool) -> TwoSided:
    """The peak and both widths of each column that fit known records best; the same width twice if ``even``."""
    fits = [_fitted(x, away, even) for x, away in zip(original, distance(masked), strict=True)]
    peak, left, right = np.array(fits).T
    return TwoSided(distance, peak, left, right, side_of_peak(original, peak))


def side_of_peak(original: Floats, peak: Floats) -> Floats:
    """On which side of the peak more of the known values lie."""
    return np.where((original > peak[:, None]).mean(axis=1) > 0.5, 1.0, -1.0)  # noqa: PLR2004


def _fitted(x: Floats, away: Floats, even: bool) -> tuple[float, float, float]:
    order = np.argsort(x, kind="stable")
    x, away = x[order], away[order]
    best, found = np.inf, (float(x.mean()), 0.0, 0.0)
    for below in range(len(x) + 1):
        side = np.where(np.arange(len(x)) < below, -1.0, 1.0)
        parts = [side * away] if even else [np.where(side < 0, -away, 0.0), np.where(side > 0, away, 0.0)]
        design = np.column_stack([np.ones(len(x)), *parts])
        numbers = np.linalg.lstsq(design, x, rcond=None)[0]
        misfit = float(((design @ numbers - x) ** 2).sum())
        if misfit < best * (1.0 - 1e-9):
            best, found = misfit, (float(numbers[0]), float(numbers[1]), float(numbers[-1]))
    return found
