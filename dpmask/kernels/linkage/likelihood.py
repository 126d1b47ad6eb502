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
_ROUNDS_WIDE, _FAR = 2, 0.5
"""With many points all weights are near 1, and change little after the first ones; if none is below this, nothing."""
_TILE, _CELLS = 4096, 1 << 20  # records at a time, and values
_SHOWING = WIDE  # of many points those that weights are of
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
    """The moments of true pairs, columns x rows: records whose residuals are large weigh less.

    Of many points some show as well as all how far a record was moved.
    """
    points, rows = known.shape
    if not points:
        return PairMoments(np.empty(0), np.empty((0, 0)), 1.0, np.empty((0, 0)))
    weight, spread = np.ones(rows), None
    some = np.arange(points) if points < WIDE else np.linspace(0, points - 1, _SHOWING).astype(np.int64)
    rounds = _ROUNDS if points < WIDE else _ROUNDS_WIDE
    for number in range(rounds):
        mean, covariance = _weighted(known, masked, weight)
        spread = covariance[points:, points:].copy() if spread is None else spread  # of equal weights
        found = PairMoments(mean, covariance, float(weight.mean()), spread)
        if number + 1 < rounds:
            weight = _weights(known, masked, found, some)
            if points >= WIDE and weight.min(initial=1.0) > _FAR:
                break
    return found


def _weighted(known: Floats, masked: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """The weighted mean and covariance of both, known ones first; of both there is no copy but of a tile."""
    points, total = len(known), weight.sum()
    mean = np.concatenate([known @ weight, masked @ weight]) / total
    covariance, root = np.zeros((2 * points, 2 * points)), np.sqrt(weight)
    for tile in _tiles(known, 2 * points):
        rooted = np.empty((2 * points, tile.stop - tile.start))
        for half, part in ((slice(points), known), (slice(points, None), masked)):
            np.subtract(part[:, tile], mean[half, None], out=rooted[half])
        rooted *= root[tile]
        covariance += rooted @ rooted.T  # with itself it is half the work
    return mean, covariance / total


def _weights(known: Floats, masked: Floats, found: PairMoments, some: Integers) -> Floats:
    """The weights of pairs by how far these points were moved, of a t distribution."""
    slope, residual = _slope(found, np.arange(len(known)), some)
    before, after = found.mean[: len(known), None], found.mean[len(known) + some, None]
    weight = np.empty(known.shape[1])
    for tile in _tiles(known, 2 * len(known)):
        gaps = (masked[some, tile] - after) - slope @ (known[:, tile] - before)
        squares = (gaps * np.linalg.solve(residual, gaps)).sum(axis=0)
        weight[tile] = (_FREEDOM + len(some)) / (_FREEDOM + squares)
    return weight


def _tiles(known: Floats, columns: int) -> list[slice]:
    """Records a tile at a time, of which so many columns stay where memory is not given back each time."""
    rows, length = known.shape[1], min(_TILE, max(_CELLS // columns, 1))
    return [slice(start, min(start + length, rows)) for start in range(0, rows, length)]


def _regression(found: PairMoments, columns: Integers) -> tuple[Floats, Floats]:
    """The slope of masked points on known ones, and the covariance of what is left, with a ridge."""
    return _slope(found, columns, columns)


def _slope(found: PairMoments, columns: Integers, moved: Integers) -> tuple[Floats, Floats]:
    """The same of some masked points, on all of these known ones."""
    after = moved + len(found.masked)
    before = found.covariance[np.ix_(columns, columns)]
    both = found.covariance[np.ix_(columns, after)]
    small = _SMALL_RIDGE * _mean_variance(before) + _TINY * np.eye(len(columns))
    slope: Floats = np.linalg.solve(before + small, both).T.astype(np.float64)
    rest: Floats = found.tail * (found.covariance[np.ix_(after, after)] - slope @ both)
    # a column that was left as it is counts a thousand times as much as others
    return slope, (rest + rest.T) / 2.0 + _RIDGE * _mean_variance(np.maximum(rest, 0.0)) + _TINY * np.eye(len(moved))


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
