"""Weights of agreement patterns, and what an intruder without the answer makes of them (Fellegi and Sunter 1969).

Column j agrees in a share m_j of the true pairs and u_j of all pairs. A pattern weighs log(m_j / u_j) for each column
that agrees and log((1 - m_j) / (1 - u_j)) for each that does not. A column that agrees no more often in true pairs than
in others says nothing and weighs 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.elementary import log

_SAME = 1e-9
_START = 0.9
_STEPS = 10_000


def pattern_bits(columns: int) -> NDArray[np.bool_]:
    """For each pattern and column, whether the pattern has the column in agreement."""
    return (np.arange(1 << columns)[:, None] >> np.arange(columns) & 1).astype(np.bool_)


class PatternWeights(NamedTuple):
    """The weight of each pattern, by its bits, and the columns that weigh anything."""

    patterns: Floats
    informative: NDArray[np.bool_]


def pattern_weights(m: Floats, u: Floats, records: int) -> PatternWeights:
    """Weights of all patterns. m is held half a record below 1, or a disagreement would weigh infinitely much."""
    held = np.minimum(m, 1.0 - 0.5 / records)
    with np.errstate(divide="ignore", invalid="ignore"):
        agree, differ = log(held / u), log((1.0 - held) / (1.0 - u))
        informative = (held > u) & (agree - differ > _SAME)
    patterns = np.where(pattern_bits(len(m)), agree, differ)[:, informative].sum(axis=1)
    return PatternWeights(patterns, informative)


def likelihood_ranks(weights: Floats) -> Counts:
    """0 for the heaviest patterns, 1 for the next, ...; weights within 1e-9 of a class' heaviest belong to it."""
    ranks = np.empty(len(weights), np.int64)
    rank, top = -1, np.inf
    for pattern in np.argsort(-weights, kind="stable"):
        if top - weights[pattern] > _SAME:
            rank, top = rank + 1, float(weights[pattern])
        ranks[pattern] = rank
    return ranks


def estimate_m(pairs: Counts, u: Floats, share: float) -> Floats:
    """Estimate m by EM from the patterns of all pairs; u and the share of true pairs are given."""
    agrees = pattern_bits(len(u))
    by_chance = np.where(agrees, u, 1.0 - u).prod(axis=1)
    m = np.full(len(u), _START)
    for _ in range(_STEPS):
        true = share * np.where(agrees, m, 1.0 - m).prod(axis=1)
        weight = pairs * (true / np.maximum(true + (1.0 - share) * by_chance, np.finfo(np.float64).tiny))
        new = (weight[:, None] * agrees).sum(axis=0) / max(float(weight.sum()), np.finfo(np.float64).tiny)
        if np.abs(new - m).max() < _SAME * 1e-3:
            return new
        m = new
    return m
