"""From distances to the share of a record in each centre: one function for each model.

`find_shares` turns shares from d_ik into q_ik r_ik (see tiles.py) or, for plain memberships, into q_ik, and fills a
line with sum_i q_ik. `finish` then finds what normalises the shares and what a record adds to J.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.kernels.compile import compiled
from dpmask.kernels.fuzzy.tiles import (
    FACTOR,
    FARTHEST,
    NEAREST,
    OBJECTIVE,
    POWER,
    RATIO,
    ROWS,
    SCALE,
    TOTAL,
    UNIT,
)
from dpmask.kernels.vector_math import exp2, log2

CRISP, FUZZY_2, FUZZY_1_5, FUZZY_WHOLE, FUZZY, ENTROPY = "crisp", "2", "1.5", "whole", "fuzzy", "entropy"
"""The models: m = 1, m = 2, m = 1.5, another m with a whole number 1/(m-1), any other m, entropy. A kernel is built for
one of them and has the code of no other; 1/(m-1) or lambda is an argument of it."""

# Outside this range squares, products of two distances or cubes of their inverses overflow or lose digits: records with
# such distances are computed again.
SMALLEST_DISTANCE, LARGEST_DISTANCE = 1e-90, 1e90
_FEW = 8  # of a tile, that are quicker one by one
_SMALLEST_RATIO = 2.0**-1022
_LN2 = math.log(2.0)


@cache
def find_shares(model: str, partial: bool) -> Any:
    """The part that turns distances into shares: those of u_ik^m when `powered`, else those of u_ik.

    Its argument `exponent` is 1/(m-1) or lambda.
    """
    to_shares, mend, on_centers = _TO_SHARES[model], _extreme_shares(model, partial), _on_centers(partial)
    shared = model not in (CRISP, ENTROPY)

    @compiled(part=True)
    def shares_of(
        records: Floats,
        seen: Floats,
        lines: Floats,
        shares: Floats,
        centers: Floats,
        clusters: int,
        exponent: float,
        powered: bool,
    ) -> None:
        for k in range(ROWS):
            lines[NEAREST, k] = np.inf
            lines[FARTHEST, k] = lines[TOTAL, k] = 0.0
        to_shares(shares, lines, clusters, exponent, powered)
        extreme = _count_extremes(lines)
        if extreme > _FEW and shared:  # as most records are that a tolerance lets go to a centre
            on_centers(records, seen, lines, shares, centers, clusters)
            extreme = _count_extremes(lines)
        if extreme > 0:
            for k in range(ROWS):
                if lines[NEAREST, k] < SMALLEST_DISTANCE or lines[FARTHEST, k] > LARGEST_DISTANCE:
                    mend(records, seen, lines, shares, centers, clusters, exponent, powered, k)

    return shares_of


@compiled(part=True)
def _count_extremes(lines: Floats) -> int:
    extreme = 0
    for k in range(ROWS):
        extreme += (lines[NEAREST, k] < SMALLEST_DISTANCE) | (lines[FARTHEST, k] > LARGEST_DISTANCE)
    return extreme


@cache
def _on_centers(partial: bool) -> Any:
    """The part by which records with all values of a centre, or of several, share themselves among these."""

    @compiled(part=True)
    def on_centers(
        records: Floats, seen: Floats, lines: Floats, shares: Floats, centers: Floats, clusters: int
    ) -> None:
        whole = 0 if partial else records.shape[0] // 4 * 4
        for k in range(ROWS):
            lines[RATIO, k] = 0.0  # of how many
        for i in range(clusters):
            for k in range(ROWS):
                lines[POWER, k] = 0.0  # differences, which are 0 between equals only
            for s in range(0, whole, 4):
                a, b, c, d = centers[i, s], centers[i, s + 1], centers[i, s + 2], centers[i, s + 3]
                for k in range(ROWS):
                    w, x, y, z = records[s, k], records[s + 1, k], records[s + 2, k], records[s + 3, k]
                    lines[POWER, k] += abs(w - a) + abs(x - b) + abs(y - c) + abs(z - d)
            for s in range(whole, records.shape[0]):
                v = centers[i, s]
                for k in range(ROWS):
                    away = abs(records[s, k] - v)
                    lines[POWER, k] += (away if seen[s, k] > 0.0 else 0.0) if partial else away
            for k in range(ROWS):
                lies_on = lines[POWER, k] == 0.0
                lines[RATIO, k] += 1.0 if lies_on else 0.0
                shares[i, k] = -1.0 if lies_on else shares[i, k]
        for i in range(clusters):
            for k in range(ROWS):
                own = 1.0 if shares[i, k] == -1.0 else 0.0
                shares[i, k] = own if lines[RATIO, k] > 0.0 else shares[i, k]
        for k in range(ROWS):
            some = lines[RATIO, k] > 0.0
            lines[TOTAL, k] = lines[RATIO, k] if some else lines[TOTAL, k]
            lines[UNIT, k] = 0.0 if some else lines[UNIT, k]
            lines[NEAREST, k] = 1.0 if some else lines[NEAREST, k]  # done
            lines[FARTHEST, k] = 1.0 if some else lines[FARTHEST, k]

    return on_centers


@compiled(part=True)
def _widen(lines: Floats, k: int, one: float, two: float) -> None:
    """Have the range of a record's distances contain these."""
    near, far = lines[NEAREST, k], lines[FARTHEST, k]
    less, more = one if one < two else two, two if one < two else one
    lines[NEAREST, k] = less if less < near else near
    lines[FARTHEST, k] = more if more > far else far


@compiled(part=True)
def _find_range(shares: Floats, lines: Floats) -> None:
    """The unit is the nearest distance."""
    for i in range(0, shares.shape[0], 2):
        j = i + 1
        for k in range(ROWS):
            _widen(lines, k, shares[i, k], shares[j, k])
    for k in range(ROWS):
        lines[UNIT, k] = lines[NEAREST, k]


@compiled(part=True)
def _crisp(shares: Floats, lines: Floats, clusters: int, exponent: float, powered: bool) -> None:
    """M = 1: everything to the nearest centre, the first of several."""
    _find_range(shares, lines)
    for i in range(clusters):
        for k in range(ROWS):
            first = (shares[i, k] <= lines[NEAREST, k]) & (lines[TOTAL, k] == 0.0)
            shares[i, k] = 1.0 if first else 0.0
            lines[TOTAL, k] += shares[i, k]


def _by_inverses(squared: bool) -> Any:
    """The part for m = 2, where q = r = 1 / d, and for m = 1.5, where q = r^2: one division for two centres."""

    @compiled(part=True)
    def to_shares(shares: Floats, lines: Floats, clusters: int, exponent: float, powered: bool) -> None:
        for i in range(0, shares.shape[0], 2):
            j = i + 1
            counts = 1.0 if j < clusters else 0.0
            for k in range(ROWS):
                one, two = shares[i, k], shares[j, k]
                _widen(lines, k, one, two)
                inverse = 1.0 / (one * two)
                r, s = two * inverse, one * inverse
                p, q = r * r if squared else r, s * s if squared else s
                lines[TOTAL, k] += p + counts * q
                shares[i, k] = p * r if powered else p
                shares[j, k] = q * s if powered else q
        for k in range(ROWS):
            lines[UNIT, k] = 1.0

    return to_shares


@compiled(part=True)
def _find_ratios(shares: Floats, lines: Floats) -> None:
    """From d_ik to r_ik = min_j d_jk / d_ik, by one division for two centres."""
    _find_range(shares, lines)
    for i in range(0, shares.shape[0], 2):
        j = i + 1
        for k in range(ROWS):
            one, two = shares[i, k], shares[j, k]
            inverse = lines[UNIT, k] / (one * two)
            shares[i, k] = two * inverse
            shares[j, k] = one * inverse


@compiled(part=True)
def _fuzzy_whole(shares: Floats, lines: Floats, clusters: int, exponent: float, powered: bool) -> None:
    """Where 1/(m-1) is a whole number, as for m = 1.25, 1.2 and 1.1: q = r^whole, by squares."""
    whole = int(exponent)
    _find_ratios(shares, lines)
    for i in range(clusters):
        for k in range(ROWS):
            ratio = shares[i, k]
            lines[RATIO, k] = ratio
            lines[POWER, k] = ratio * ratio
            shares[i, k] = ratio if whole & 1 else 1.0
        left = whole >> 1
        while left > 0:
            if left & 1:
                for k in range(ROWS):
                    shares[i, k] *= lines[POWER, k]
            left >>= 1
            if left > 0:
                for k in range(ROWS):
                    lines[POWER, k] *= lines[POWER, k]
        _count_shares(shares, lines, i, powered)


@compiled(part=True)
def _count_shares(shares: Floats, lines: Floats, i: int, powered: bool) -> None:
    """Count q_ik in the total, and make it q_ik r_ik."""
    for k in range(ROWS):
        lines[TOTAL, k] += shares[i, k]
        shares[i, k] *= lines[RATIO, k] if powered else 1.0


@compiled(part=True)
def _fuzzy(shares: Floats, lines: Floats, clusters: int, exponent: float, powered: bool) -> None:
    """Any m > 1: q = r^exponent with exponent = 1/(m-1)."""
    _find_ratios(shares, lines)
    for i in range(clusters):
        for k in range(ROWS):  # two loops: one would need more registers than there are
            ratio = shares[i, k]
            lines[RATIO, k] = ratio
            lines[POWER, k] = exponent * log2(ratio if ratio > _SMALLEST_RATIO else _SMALLEST_RATIO)
        for k in range(ROWS):
            shares[i, k] = exp2(lines[POWER, k])
        _count_shares(shares, lines, i, powered)


@compiled(part=True)
def _entropy(shares: Floats, lines: Floats, clusters: int, entropy: float, powered: bool) -> None:
    """Eq. 3 of Torra 2020 as a softmax that cannot overflow: q = exp(-lambda (d - min d))."""
    slope = -entropy / _LN2
    _find_range(shares, lines)
    for i in range(clusters):
        for k in range(ROWS):
            shares[i, k] = exp2(slope * (shares[i, k] - lines[NEAREST, k]))
            lines[TOTAL, k] += shares[i, k]


_TO_SHARES: dict[str, Any] = {
    CRISP: _crisp,
    FUZZY_2: _by_inverses(squared=False),
    FUZZY_1_5: _by_inverses(squared=True),
    FUZZY_WHOLE: _fuzzy_whole,
    FUZZY: _fuzzy,
    ENTROPY: _entropy,
}


@cache
def _extreme_shares(model: str, partial: bool) -> Any:
    """The part for one record so near or so far that squares fail: shares from distances |x - v|."""
    crisp, entropic, safe_distance = model == CRISP, model == ENTROPY, _safe_distance(partial)

    @compiled(part=True, reassociate=False)
    def shares_of_one(
        records: Floats,
        seen: Floats,
        lines: Floats,
        shares: Floats,
        centers: Floats,
        clusters: int,
        exponent: float,
        powered: bool,
        k: int,
    ) -> None:
        smallest = np.inf
        for i in range(clusters):
            distance = safe_distance(records, seen, lines, centers, i, k)
            shares[i, k] = distance
            smallest = distance if distance < smallest else smallest
        total = 0.0
        for i in range(clusters):
            distance = shares[i, k]
            ratio = q = 1.0  # for the nearest: records on several centres share themselves among these
            if crisp:
                q = 1.0 if distance == smallest and total == 0.0 else 0.0
            elif distance > smallest and entropic:
                q = math.exp(-exponent * (distance - smallest) * (distance + smallest))
            elif distance > smallest:
                ratio = (smallest / distance) * (smallest / distance)
                q = ratio**exponent
            total += q
            shares[i, k] = q * ratio if powered else q
        lines[TOTAL, k] = total
        lines[UNIT, k] = smallest * smallest

    return shares_of_one


@cache
def _safe_distance(partial: bool) -> Any:
    """The part for the (partial) distance of record k to centre i, not squared, from differences over the largest."""

    @compiled(part=True, reassociate=False)
    def distance(records: Floats, seen: Floats, lines: Floats, centers: Floats, i: int, k: int) -> float:
        largest = 0.0
        for s in range(records.shape[0]):
            away = abs(records[s, k] - centers[i, s])
            if away > largest and (not partial or seen[s, k] > 0.0):
                largest = away
        if not 0.0 < largest < np.inf:
            return largest
        squares = 0.0
        for s in range(records.shape[0]):
            if not partial or seen[s, k] > 0.0:
                away = (records[s, k] - centers[i, s]) / largest
                squares += away * away
        return largest * math.sqrt(squares * lines[FACTOR, k])

    return distance


def finish(model: str) -> Any:
    """The part that finds the scale, which turns shares into u_ik^m, and each record's part of J.

    FCM: f (sum q)^(1-m) with f the unit. EFCM: min d - log(sum q) / lambda. Both equal the sums over clusters (eq. 2)
    at these u.
    """
    special = {CRISP: _finish_crisp, FUZZY_2: _finish_2, FUZZY_1_5: _finish_1_5, ENTROPY: _finish_entropy}
    return special.get(model, _finish_fuzzy)


@compiled(part=True)
def _finish_crisp(lines: Floats, exponent: float) -> None:
    for k in range(ROWS):
        lines[SCALE, k] = 1.0
        lines[OBJECTIVE, k] = lines[UNIT, k]


@compiled(part=True)
def _finish_2(lines: Floats, exponent: float) -> None:
    for k in range(ROWS):
        inverse = 1.0 / lines[TOTAL, k]
        lines[SCALE, k] = inverse * inverse
        lines[OBJECTIVE, k] = lines[UNIT, k] * inverse


@compiled(part=True)
def _finish_1_5(lines: Floats, exponent: float) -> None:
    for k in range(ROWS):
        total = lines[TOTAL, k]
        lines[SCALE, k] = 1.0 / (total * math.sqrt(total))
        lines[OBJECTIVE, k] = lines[UNIT, k] * total * lines[SCALE, k]


@compiled(part=True)
def _finish_fuzzy(lines: Floats, exponent: float) -> None:
    fuzziness = 1.0 + 1.0 / exponent
    for k in range(ROWS):
        total = lines[TOTAL, k]
        lines[SCALE, k] = exp2(-fuzziness * log2(total))
        lines[OBJECTIVE, k] = lines[UNIT, k] * total * lines[SCALE, k]


@compiled(part=True)
def _finish_entropy(lines: Floats, entropy: float) -> None:
    for k in range(ROWS):
        total = lines[TOTAL, k]
        lines[SCALE, k] = 1.0 / total
        lines[OBJECTIVE, k] = lines[UNIT, k] - log2(total) * (_LN2 / entropy)
