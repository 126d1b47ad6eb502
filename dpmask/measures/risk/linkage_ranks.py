"""The joint intruder who compares numbers by their ranks, and knows which zeros stayed where they were.

Distances of skewed columns are those of the few who have most. By ranks (kernels/linkage/scores.py) everybody counts,
and where zeros were kept, rows with other zeros are not a person's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.kernels.covariance import CovarianceSums
from dpmask.kernels.linkage.likelihood import CERTAIN, agreement_weight, gap_weight, likelihood_ratio, pair_moments
from dpmask.kernels.linkage.nearest import Masked, Metric, principal, range_gaps
from dpmask.kernels.linkage.scores import Scores, curve, zero_pattern
from dpmask.kernels.zeros import MANY_ZEROS
from dpmask.measures.risk.linkage_attack import Pairs
from dpmask.measures.risk.linkage_metrics import Learnt, first_columns, least_gaps, moved_nothing
from dpmask.measures.risk.linkage_values import Points, Values

_LOST = 0.02
"""The share of true pairs up to which a column's zeros count as unchanged: rare patterns join others."""


def by_ranks(values: Sequence[Values], pairs: Pairs, moves: CovarianceSums, learnt: Learnt) -> Metric | None:
    """The likelihood ratio by ranks, from a sample of pairs in the order of their positions.

    What is no number is compared as ``learnt`` says. None where there is no number, or masking moved nothing.
    """
    scores = _scores(values, pairs)
    if scores is None or moved_nothing(values, moves):
        return None
    points, ranges = scores.of_known(pairs.points, pairs.ranges)
    masked, plain = Masked(*scores.of_masked(*pairs.masked)), first_columns(values)
    weights, rulers = learnt.weights.copy(), [plain.scale, plain.least, plain.cap]
    gaps = range_gaps(ranges[: len(weights)], masked.low[: len(weights)], masked.high[: len(weights)], *rulers)
    for place, way in enumerate(scores.known[len(points) :]):
        if way is not None and weights[place] != CERTAIN:
            weights[place] = gap_weight(gaps[place])
    if scores.zeros is not None:
        strangers = np.roll(masked.low[-1], len(ranges[-1]) // 2)
        differ = (float((ranges[-1] != other).mean()) for other in (masked.low[-1], strangers))
        weights = np.append(weights, agreement_weight(*differ))
        rulers = [np.append(one, end) for one, end in zip(rulers, (1.0, 0.0, 1.0), strict=True)]
    scale, least, cap = rulers
    least = least_gaps(least, cap, weights)
    metric = Metric(len(points), None, scale * weights, least, cap * weights, scores=scores)
    if not len(points):
        return metric
    moments = pair_moments(points, masked.points)
    turn = likelihood_ratio(moments, np.arange(len(points)))
    return principal(metric._replace(turn=turn.masked, known_turn=turn.known, shift=turn.shift), moments.masked)


def _scores(values: Sequence[Values], pairs: Pairs) -> Scores | None:
    """Numbers by the curves of their samples in both files; None without any."""
    zeros = _zeros(values)
    there = np.where(pairs.masked.low == pairs.masked.high, pairs.masked.low, np.nan)  # a missing value is any
    known, masked = [*pairs.points, *pairs.ranges], [*pairs.masked.points, *there]
    curves = [
        (curve(one), curve(other)) if not np.isnan(zero) else (None, None)
        for one, other, zero in zip(known, masked, zeros[0], strict=True)
    ]
    before, after = zip(*((None, None) if None in both else both for both in curves), strict=True)
    if not any(before):
        return None
    was, still = (
        np.array([one == zero for one, zero in zip(some, ends, strict=True)])
        for some, ends in zip((known, masked), zeros, strict=True)
    )
    return Scores(before, after, zero_pattern(was, still, zeros, MANY_ZEROS, _LOST))


def _zeros(values: Sequence[Values]) -> tuple[Floats, Floats]:
    """What zero is in the units of each point, then each range, before and after masking; NaN of what is no number."""
    points = [one.zeros for one in values if isinstance(one, Points)]
    ranges = [zero for one in values if not isinstance(one, Points) for zero in one.zeros]
    before, after = np.array([*points, *ranges]).T
    return before, after
