"""Measures of information loss as their definitions read, in plain Python over whole columns. A missing value is NaN."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np


def present(values, weights=None):
    weights = [1] * len(values) if weights is None else weights
    return [(float(x), float(w)) for x, w in zip(values, weights, strict=True) if not math.isnan(x)]


def complete(x, y, weights=None):
    weights = [1] * len(x) if weights is None else weights
    each = zip(x, y, weights, strict=True)
    return [(float(a), float(b), float(w)) for a, b, w in each if not math.isnan(a) and not math.isnan(b)]


def effective(weights):
    """Kish's effective size: n, where all weigh the same."""
    return math.fsum(weights) ** 2 / math.fsum(w * w for w in weights)


def quantile(values, j):
    """The smallest value up to which more than j percent of all weight but that of a mean record lies."""
    total = Fraction(0)
    whole = sum(Fraction(w) for _, w in values)
    for value, weight in sorted(values):
        total += Fraction(weight)
        if total > (whole - whole / len(values)) * j / 100:
            return value
    raise AssertionError


def mu(pairs, p, q):
    n = math.fsum(w for _, _, w in pairs)
    a, b = math.fsum(x * w for x, _, w in pairs) / n, math.fsum(y * w for _, y, w in pairs) / n
    return math.fsum((x - a) ** p * (y - b) ** q * w for x, y, w in pairs) / n


def correlation(pairs):
    product = mu(pairs, 2, 0) * mu(pairs, 0, 2)
    return mu(pairs, 1, 1) / math.sqrt(product) if product else 0.0


def statistics(x, y, w=None, v=None):
    """For each of the five groups: (theta, theta', n Var, n) of every statistic. x and y are columns by name, w and v their weights."""
    names = list(x)
    groups = {"means": [], "variances": [], "covariances": [], "correlations": [], "quantiles": []}
    for name in names:
        a, b = present(x[name], w), present(y[name], v)
        mine, theirs = ([(one, one, weight) for one, weight in side] for side in (a, b))
        n, mu2, mu4 = effective([weight for _, weight in a]), mu(mine, 2, 0), mu(mine, 4, 0)
        sizes = [math.fsum(weight for _, weight in side) for side in (a, b)]
        sums = [math.fsum((one - a[0][0]) * weight for one, weight in side) for side in (a, b)]  # digits far from 0
        means = (total / size for total, size in zip(sums, sizes, strict=True))
        groups["means"].append((*means, mu2, n))
        groups["variances"].append((mu2, mu(theirs, 2, 0), mu4 - mu2**2, n))
        h = (max(a)[0] - min(a)[0]) / 1000
        for j in range(5, 100, 5):
            q, other = quantile(a, j), quantile(b, j)
            f = sum(weight for one, weight in a if abs(one - q) <= h) / sizes[0] / (2 * h) if h else math.inf
            groups["quantiles"].append((q, other, j / 100 * (1 - j / 100) / f**2, n))
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            mine, theirs = complete(x[first], x[second], w), complete(y[first], y[second], v)
            n = effective([weight for *_, weight in mine])
            m = {(p, q): mu(mine, p, q) for p, q in ((1, 1), (2, 0), (0, 2), (4, 0), (0, 4), (2, 2), (3, 1), (1, 3))}
            groups["covariances"].append((m[1, 1], mu(theirs, 1, 1), m[2, 2] - m[1, 1] ** 2, n))
            if not m[2, 0] * m[0, 2]:
                continue
            r = correlation(mine)
            joint = m[2, 2] / (m[2, 0] * m[0, 2])
            var = joint + r**2 / 4 * (m[4, 0] / m[2, 0] ** 2 + m[0, 4] / m[0, 2] ** 2 + 2 * joint)
            var -= r * (m[3, 1] / (m[2, 0] ** 1.5 * m[0, 2] ** 0.5) + m[1, 3] / (m[2, 0] ** 0.5 * m[0, 2] ** 1.5))
            groups["correlations"].append((r, correlation(theirs), var, n))
    return groups


def pil(x, y, n_ref=None, w=None, v=None):
    """The five groups' averages, those that have any."""
    averages = {}
    for group, found in statistics(x, y, w, v).items():
        losses = []
        for theta, other, var, n in found:
            difference = abs(other - theta)
            if difference <= 1e-12 * max(abs(theta), abs(other)):
                difference = 0.0
            if var > 0:
                losses.append(100 * math.erf(difference / math.sqrt(2 * var / (n_ref or n))))
            elif difference:
                losses.append(100.0)
        if losses:
            averages[group] = sum(losses) / len(losses)
    return averages


def shares(x, y, w=None, v=None):
    """Shares of the quantile bins, or of the categories, and of what is missing, before and after."""
    weights = [np.ones(len(side)) if own is None else np.asarray(own, float) for side, own in ((x, w), (y, v))]
    if not np.issubdtype(np.asarray(x).dtype, np.number):
        values = sorted(set(x) | set(y), key=repr)
        counts = [
            [own[[one == value for one in side]].sum() for value in values]
            for side, own in zip((x, y), weights, strict=True)
        ]
    else:
        a = present(x, weights[0])
        edges = sorted({quantile(a, j) for j in range(5, 100, 5)})
        bounds = [-math.inf, *edges, math.inf]
        counts = []
        for side, own in zip((x, y), weights, strict=True):
            numbers = np.asarray(side, float)
            inside = [own[(low <= numbers) & (numbers < high)].sum() for low, high in pairwise(bounds)]
            counts.append([*inside, own[np.isnan(numbers)].sum()])
    return [np.array(some) / own.sum() for some, own in zip(counts, weights, strict=True)]


def total_variation(x, y, w=None, v=None):
    return 0.5 * sum(abs(p - q) for p, q in zip(*shares(x, y, w, v), strict=True))


def hellinger(x, y, w=None, v=None):
    return math.sqrt(max(0.0, 1 - sum(math.sqrt(p * q) for p, q in zip(*shares(x, y, w, v), strict=True))))


def kolmogorov_smirnov(x, y, w, v):
    (a, one), (b, two) = (np.array(present(*side)).T for side in ((x, w), (y, v)))
    at = np.union1d(a, b)
    return max(abs(one[a <= t].sum() / one.sum() - two[b <= t].sum() / two.sum()) for t in at)
