"""Numbers by their ranks, and which of them are zero: how one compares who does not trust distances of skewed columns.

Masking leaves the order of values about as it was, so ranks distinguish who has little as well as who has much. A
value's score is the normal quantile of its rank in its file, estimated by a sample: ties have their middle rank, and
values between two that were seen lie between their scores. Zeros that masking left where they were are compared as one
pattern of all these columns, which is the same or not.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Flags, Floats, Integers, stacked

_KNOTS = 512
_BEYOND = 1e6
_MOST_ZEROS = 50
"""Columns that a pattern has bits for."""


class RankCurve(NamedTuple):
    """What values are scored by: knots in ascending order and their scores."""

    knots: Floats
    scores: Floats

    def of(self, values: Floats) -> Floats:
        """The score of each value; equal values have equal ones, a missing value none."""
        return np.interp(values, self.knots, self.scores)


def curve(values: Floats) -> RankCurve | None:
    """The curve of a sample; None where fewer than two values differ.

    Beyond what was seen it goes on as steeply as it is on average, so that nobody is among equals there.
    """
    different, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(different) <= 1:
        return None
    middle, last = (np.cumsum(counts) - counts / 2.0) / counts.sum(), len(different) - 1
    even = np.searchsorted(middle, np.linspace(0.0, 1.0, _KNOTS))
    many = np.flatnonzero(counts * _KNOTS > counts.sum())  # what lies beside them is not between their scores
    ends = np.arange(_KNOTS // 8)
    kept = np.unique(np.clip(np.concatenate([ends, last - ends, even, many - 1, many, many + 1]), 0, last))
    knots, normal = different[kept], NormalDist()
    scores = np.array([normal.inv_cdf(share) for share in middle[kept].tolist()])
    far, high = _BEYOND * (knots[-1] - knots[0]), _BEYOND * (scores[-1] - scores[0])
    return RankCurve(
        np.concatenate([[knots[0] - far], knots, [knots[-1] + far]]),
        np.concatenate([[scores[0] - high], scores, [scores[-1] + high]]),
    )


class ZeroPattern(NamedTuple):
    """Which points, then ranges, may be zero, and what zero is in the units of each, known and masked."""

    places: Integers
    known: Floats
    masked: Floats


class Scores(NamedTuple):
    """The curves of points, then ranges, before and after masking; and the pattern that zeros are compared by."""

    known: tuple[RankCurve | None, ...]
    masked: tuple[RankCurve | None, ...]
    zeros: ZeroPattern | None

    def of_known(self, points: Floats, ranges: Floats) -> tuple[Floats, Floats]:
        """Known points and ranges, columns x rows, scored; the pattern of zeros is the last range."""
        scored, more = _scored(self.known, points, ranges), []
        if self.zeros is not None:
            more = [_pattern(self.zeros.places, self.zeros.known, points, ranges)]
        return scored[: len(points)], stacked([*scored[len(points) :], *more], points.shape[1])

    def of_masked(self, points: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
        """Masked ones likewise: points, and where ranges begin and end."""
        scored, more = _scored(self.masked, points, low), []
        if self.zeros is not None:
            more = [_pattern(self.zeros.places, self.zeros.masked, points, low)]
        ends = [one if way is None else way.of(one) for way, one in zip(self.masked[len(points) :], high, strict=True)]
        rows = points.shape[1]
        return scored[: len(points)], stacked([*scored[len(points) :], *more], rows), stacked([*ends, *more], rows)


def _scored(curves: tuple[RankCurve | None, ...], points: Floats, ranges: Floats) -> Floats:
    found = np.empty((len(curves), points.shape[1]))
    for place, (way, values) in enumerate(zip(curves, [*points, *ranges], strict=True)):
        found[place] = values if way is None else way.of(values)
    return found


def zero_pattern(
    known: Flags, masked: Flags, zeros: tuple[Floats, Floats], many: float, lost: float
) -> ZeroPattern | None:
    """The columns with ``many`` zeros of which no more than the share ``lost`` of true pairs have other values.

    Given are pairs, columns x rows, and what zero is in the units of each column before and after masking.
    """
    kept = (known.mean(axis=1) >= many) & ((known != masked).mean(axis=1) <= lost) & (known.mean(axis=1) < 1.0)
    places = np.flatnonzero(kept)[:_MOST_ZEROS]
    return ZeroPattern(places, zeros[0][places], zeros[1][places]) if len(places) else None


def _pattern(places: Integers, zeros: Floats, points: Floats, ranges: Floats) -> Floats:
    """One number for which of the columns are zero."""
    found = np.zeros(points.shape[1])
    for bit, (place, zero) in enumerate(zip(places.tolist(), zeros.tolist(), strict=True)):
        column = points[place] if place < len(points) else ranges[place - len(points)]
        found += (column == zero) * 2.0**bit
    return found
