"""The intruders' metrics: plain distances, distances in units of what the mask did, and the joint likelihood ratio."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.engine.collection import Collection
from dpmask.engine.tasks import merge_tree
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.covariance import CovarianceSums, covariance_sums, merge_covariance_sums
from dpmask.kernels.linkage.likelihood import (
    CERTAIN,
    NOTHING,
    PairMoments,
    agreement_weight,
    gap_weight,
    likelihood_ratio,
    pair_moments,
)
from dpmask.kernels.linkage.nearest import WIDE, Masked, Metric, principal, range_gaps
from dpmask.lake.reading import Rows
from dpmask.measures.risk.linkage_attack import Pairs, chosen_rows, pairs_of, slices
from dpmask.measures.risk.linkage_values import Points, Values
from dpmask.table.columns import joined_rows

_RIDGE = 1e-6


def first_columns(values: Sequence[Values]) -> Metric:
    """The Euclidean distance over all of these."""
    rulers = np.array([ruler for one in values for ruler in one.rulers]).reshape(-1, 3)
    return Metric(sum(isinstance(one, Points) for one in values), None, *np.ascontiguousarray(rulers.T))


class _FirstLook(NamedTuple):
    """How far apart a block's pairs are, and those of them that are chosen."""

    moves: CovarianceSums
    chosen: Rows


def first_pass(
    values: Sequence[Values], pairs: Collection[Rows], chosen: Integers | None
) -> tuple[CovarianceSums, Collection[Rows]]:
    """How far apart all pairs are, and the chosen ones, persisted together; all of them where none are chosen."""
    label = "linkage: what moved"
    if chosen is None:
        return pairs.reduce(partial(moved, values), merge_covariance_sums, label), pairs
    looks = pairs.persist(partial(_first_look, values, chosen), label)
    moves = looks.reduce(lambda one: one.moves, merge_covariance_sums, label)
    return moves, looks.persist_joined(lambda one: one.chosen, joined_rows, "linkage: records")


def _first_look(values: Sequence[Values], chosen: Integers, rows: Rows) -> _FirstLook:
    return _FirstLook(moved(values, rows), chosen_rows(rows, chosen))


def moved(values: Sequence[Values], rows: Rows) -> CovarianceSums:
    """How far apart a block's pairs are: differences of points, gaps to ranges."""
    parts = [_moved(values, pairs_of(values, part)) for part in slices(chosen_rows(rows, None))]
    return merge_tree(parts, merge_covariance_sums)


def _moved(values: Sequence[Values], pairs: Pairs) -> CovarianceSums:
    moves = np.concatenate([pairs.points - pairs.masked.points, _gaps(values, pairs)])
    return covariance_sums(list(moves), wide=len(moves) >= WIDE)


def _gaps(values: Sequence[Values], pairs: Pairs) -> Floats:
    metric = first_columns(values)
    return range_gaps(pairs.ranges, *pairs.masked[1:], metric.scale, metric.least, metric.cap)


def mahalanobis(plain: Metric, moves: CovarianceSums) -> Metric:
    """The plain distance in units of what the mask did: points by their covariance, ranges by their mean squared gap.

    The ridge makes a column that was left as it is count a thousand times as much as others, as it should; a
    pseudo-inverse would leave it out.
    """
    points = plain.points
    covariance, squares = moves.covariance[:points, :points], mean_squares(moves)[points:]
    mean_square = (np.trace(covariance) + squares.sum()) / len(moves.mean)
    if mean_square <= NOTHING:
        return plain
    ridge = _RIDGE * mean_square
    turn = np.linalg.inv(np.linalg.cholesky(covariance + ridge * np.eye(points))) if points else None
    weight = 1.0 / np.sqrt(squares + ridge)
    return plain._replace(turn=turn, scale=plain.scale * weight, least=plain.least * weight, cap=plain.cap * weight)


def mean_squares(moves: CovarianceSums) -> Floats:
    """The mean squared gap of true pairs, of points and then of ranges."""
    return np.diag(moves.covariance) + moves.mean**2


class Learnt(NamedTuple):
    """What the joint intruder knows of the mask: how points moved, and what a gap to each range is worth."""

    moments: PairMoments
    weights: Floats


def learn(values: Sequence[Values], pairs: Pairs, moves: CovarianceSums) -> Learnt:
    """From a sample of pairs in the order of their positions; what never happens is known from all pairs."""
    half = pairs.points.shape[1] // 2
    strangers = Masked(*(np.roll(part, half, axis=1) for part in pairs.masked))
    squares, points = mean_squares(moves), len(pairs.points)
    true, random = _gaps(values, pairs), _gaps(values, pairs._replace(masked=strangers))
    rulers = first_columns(values)
    weights = [
        agreement_weight(float(squares[points + at]), float((random[at] ** 2).mean()))
        if np.isfinite(rulers.cap[at])
        else gap_weight(true[at])
        if squares[points + at] > NOTHING
        else CERTAIN
        for at in range(len(true))
    ]
    return Learnt(pair_moments(pairs.points, pairs.masked.points), np.array(weights))


def some_columns(values: Sequence[Values], columns: Sequence[int]) -> Metric:
    """The Euclidean distance over some of the columns."""
    plain = first_columns(values)
    points, ranges = _places(values, columns)
    return Metric(
        len(points), None, plain.scale[ranges], plain.least[ranges], plain.cap[ranges], chosen=(points, ranges)
    )


def by_some(values: Sequence[Values], learnt: Learnt | None, columns: Sequence[int]) -> Metric:
    """The joint intruder's metric over some of the columns; the plain one without anything learnt."""
    return some_columns(values, columns) if learnt is None else joint(values, learnt, columns)


def moved_nothing(values: Sequence[Values], moves: CovarianceSums) -> bool:
    """Whether masking moved nothing: then there is nothing to learn from."""
    plain = first_columns(values)
    return mahalanobis(plain, moves) is plain


def joint(values: Sequence[Values], learnt: Learnt, columns: Sequence[int]) -> Metric:
    """The likelihood ratio over some of the columns, numbers, categories and generalised ones at once."""
    plain = first_columns(values)
    points, ranges = _places(values, columns)
    weights = learnt.weights[ranges]
    least = least_gaps(plain.least[ranges], plain.cap[ranges], weights)
    metric = Metric(
        len(points), None, plain.scale[ranges] * weights, least, plain.cap[ranges] * weights, chosen=(points, ranges)
    )
    if not len(points):
        return metric
    turn = likelihood_ratio(learnt.moments, points)
    metric = metric._replace(turn=turn.masked, known_turn=turn.known, shift=turn.shift)
    return principal(metric, learnt.moments.masked[np.ix_(points, points)])


def least_gaps(least: Floats, cap: Floats, weights: Floats) -> Floats:
    """How far at least who is outside is: out, however near, of what nobody left."""
    return np.where((weights == CERTAIN) & np.isinf(cap), CERTAIN, least * weights)


def _places(values: Sequence[Values], columns: Sequence[int]) -> tuple[Integers, Integers]:
    """Which points and which ranges some of the columns are."""
    points: list[int] = []
    ranges: list[int] = []
    point, at, chosen = 0, 0, set(columns)
    for number, one in enumerate(values):
        count = len(one.rulers)
        if number in chosen:
            points += [point] if isinstance(one, Points) else []
            ranges += range(at, at + count)
        point, at = point + isinstance(one, Points), at + count
    return np.array(points, np.int64), np.array(ranges, np.int64)
