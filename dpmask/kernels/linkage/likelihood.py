"""How likely a masked record is that of a known one: the likelihood ratio of true pairs against pairs at random.

Of points x before and y after masking: y given x is B x + b with residuals of covariance R, y at random has covariance
V. Then -2 log of the ratio is, but for what x alone decides, (y - m)' Q (y - m) with Q = R^-1 - V^-1 and
m = Q^-1 R^-1 (B x + b): a distance again, between turned points. B and R are those of a t distribution (5 degrees of
freedom; Lange, Little and Taylor 1989), so that few records that a mask moved far do not decide how all are compared.

Of agreement (a category, a set that a value is in): with m the share of true pairs that agree and u that of pairs at
random, a disagreement costs 2 log(m (1 - u) / (u (1 - m))), as in Fellegi and Sunter (1969).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.linkage.nearest import WIDE

CERTAIN = 1e6
"""What a range weighs that no true pair is outside of: nothing else makes up for it."""
NOTHING = 1e-24
"""A variance that is only rounding."""
_FREEDOM = 5.0
_ROUNDS = 10
_ROUNDS_WIDE = 2
"""With many points all weights are near 1, and hardly change after the first ones."""
_TILE = 4096  # records at a time
_RIDGE = 1e-6
_SMALL_RIDGE = 1e-9
_TINY = 1e-12
_LEAST = 1e-4  # squared correlation of known and masked points below which a direction says nothing


class PairMoments(NamedTuple):
    """Points before and after masking: means and covariances of true pairs, and the masked ones' own covariance."""

    mean: Floats  # twice as many as points: before, then after
    covariance: Floats
    tail: float  # what the residuals' covariance is to be multiplied by
    masked: Floats


class Turn(NamedTuple):
    """How masked and known points are turned, and what is then added to the known ones."""

    masked: Floats
    known: Floats
    shift: Floats


def pair_moments(known: Floats, masked: Floats) -> PairMoments:
    """The moments of true pairs, columns x rows: records whose residuals are large weigh less."""
    points, rows = known.shape
    weight = np.ones(rows)
    spread = np.cov(masked, ddof=0).reshape(points, points) if points else np.empty((0, 0))
    found = PairMoments(np.concatenate([known.mean(axis=1), masked.mean(axis=1)]), np.empty((0, 0)), 1.0, spread)
    rounds = 0 if not points else _ROUNDS if points < WIDE else _ROUNDS_WIDE
    tiles = [slice(start, start + _TILE) for start in range(0, rows, _TILE)]
    for number in range(rounds):
        mean = np.concatenate([(part * weight).sum(axis=1) for part in (known, masked)]) / weight.sum()
        covariance = np.zeros((2 * points, 2 * points))
        for tile in tiles:  # of both before and after there is no copy but of a tile
            rooted = _centred(known, masked, mean, tile) * np.sqrt(weight[tile])  # with itself it is half the work
            covariance += rooted @ rooted.T
        found = PairMoments(mean, covariance / weight.sum(), float(weight.mean()), spread)
        if number + 1 < rounds:
            slope, residual = _regression(found, np.arange(points))
            for tile in tiles:
                centred = _centred(known, masked, mean, tile)
                gaps = centred[points:] - slope @ centred[:points]
                squares = (gaps * np.linalg.solve(residual, gaps)).sum(axis=0)
                weight[tile] = (_FREEDOM + points) / (_FREEDOM + squares)
    return found


def _centred(known: Floats, masked: Floats, mean: Floats, tile: slice) -> Floats:
    return np.concatenate([known[:, tile], masked[:, tile]]) - mean[:, None]


def _regression(found: PairMoments, columns: Integers) -> tuple[Floats, Floats]:
    """The slope of masked points on known ones, and the covariance of what is left, with a ridge."""
    after = columns + len(found.masked)
    before = found.covariance[np.ix_(columns, columns)]
    both = found.covariance[np.ix_(columns, after)]
    small = _SMALL_RIDGE * _mean_variance(before) + _TINY * np.eye(len(columns))
    slope: Floats = np.linalg.solve(before + small, both).T.astype(np.float64)
    rest: Floats = found.tail * (found.covariance[np.ix_(after, after)] - slope @ both)
    # a column that was left as it is counts a thousand times as much as others
    return slope, (rest + rest.T) / 2.0 + _RIDGE * _mean_variance(np.maximum(rest, 0.0)) + _TINY * np.eye(len(columns))


def _mean_variance(matrix: Floats) -> Floats:
    return np.eye(len(matrix)) * np.trace(matrix) / len(matrix)


def likelihood_ratio(found: PairMoments, columns: Integers) -> Turn:
    """How points of these columns are turned so that their distance is the likelihood ratio's."""
    slope, residual = _regression(found, columns)
    inverse = np.linalg.inv(residual)
    at_random = found.masked[np.ix_(columns, columns)]
    ratio = inverse - np.linalg.inv(at_random + _RIDGE * _mean_variance(at_random) + _TINY * np.eye(len(columns)))
    values, vectors = np.linalg.eigh((ratio + ratio.T) / 2.0)
    informative = values > _LEAST * (vectors * (inverse @ vectors)).sum(axis=0)
    turn = np.where(informative, vectors * np.sqrt(np.maximum(values, 0.0)), 0.0).T
    expected = np.where(informative, vectors / np.sqrt(np.where(informative, values, 1.0)), 0.0).T @ inverse
    means = found.mean[columns + len(found.masked)] - slope @ found.mean[columns]
    return Turn(turn, expected @ slope, expected @ means)


def agreement_weight(disagree: float, at_random: float) -> float:
    """The weight of a gap of 1 between a known value and a set, by how often true and random pairs have one."""
    if disagree <= NOTHING:
        return CERTAIN
    differ = min(max(at_random, 1e-9), 1.0 - 1e-9)
    odds = (1.0 - disagree) * differ / max(disagree * (1.0 - differ), 1e-300)
    return math.sqrt(max(2.0 * math.log(max(odds, 1e-300)), 0.0))


def gap_weight(gaps: Floats) -> float:
    """The weight of gaps to ranges: one over the scale of a t distribution around 0."""
    squares = gaps * gaps
    scale = float(squares.mean())
    if scale <= NOTHING:
        return CERTAIN
    for _ in range(_ROUNDS):
        scale = float((squares * (_FREEDOM + 1.0) / (_FREEDOM + squares / scale)).mean())
    return float(1.0 / np.sqrt(scale + _RIDGE))
