"""Measures of information loss as their definitions read, in plain Python over whole columns. A missing value is NaN."""

import math
from itertools import pairwise

import numpy as np


def present(values):
    return [float(x) for x in values if not math.isnan(x)]


def complete(x, y):
    return [(float(a), float(b)) for a, b in zip(x, y, strict=True) if not math.isnan(a) and not math.isnan(b)]


def mu(pairs, p, q):
    n = len(pairs)
    a, b = math.fsum(x for x, _ in pairs) / n, math.fsum(y for _, y in pairs) / n
    return math.fsum((x - a) ** p * (y - b) ** q for x, y in pairs) / n


def correlation(pairs):
    product = mu(pairs, 2, 0) * mu(pairs, 0, 2)
    return mu(pairs, 1, 1) / math.sqrt(product) if product else 0.0


def statistics(x, y):
    """For each of the five groups: (theta, theta', n Var, n) of every statistic. x and y are columns by name."""
    names = list(x)
    groups = {"means": [], "variances": [], "covariances": [], "correlations": [], "quantiles": []}
    for name in names:
        a, b = present(x[name]), present(y[name])
        mine, theirs = [(v, v) for v in a], [(v, v) for v in b]
        n, mu2, mu4 = len(a), mu(mine, 2, 0), mu(mine, 4, 0)
        means = (math.fsum(v - a[0] for v in side) / len(side) for side in (a, b))  # from a value: digits far from 0
        groups["means"].append((*means, mu2, n))
        groups["variances"].append((mu2, mu(theirs, 2, 0), mu4 - mu2**2, n))
        a, b = sorted(a), sorted(b)
        h = (a[-1] - a[0]) / 1000
        for j in range(5, 100, 5):
            q, other = a[(n - 1) * j // 100], b[(len(b) - 1) * j // 100]
            f = sum(abs(v - q) <= h for v in a) / n / (2 * h) if h else math.inf
            groups["quantiles"].append((q, other, j / 100 * (1 - j / 100) / f**2, n))
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            mine, theirs = complete(x[first], x[second]), complete(y[first], y[second])
            m = {(p, q): mu(mine, p, q) for p, q in ((1, 1), (2, 0), (0, 2), (4, 0), (0, 4), (2, 2), (3, 1), (1, 3))}
            groups["covariances"].append((m[1, 1], mu(theirs, 1, 1), m[2, 2] - m[1, 1] ** 2, len(mine)))
            if not m[2, 0] * m[0, 2]:
                continue
            r = correlation(mine)
            joint = m[2, 2] / (m[2, 0] * m[0, 2])
            var = joint + r**2 / 4 * (m[4, 0] / m[2, 0] ** 2 + m[0, 4] / m[0, 2] ** 2 + 2 * joint)
            var -= r * (m[3, 1] / (m[2, 0] ** 1.5 * m[0, 2] ** 0.5) + m[1, 3] / (m[2, 0] ** 0.5 * m[0, 2] ** 1.5))
            groups["correlations"].append((r, correlation(theirs), var, len(mine)))
    return groups


def pil(x, y, n_ref=None):
    """The five groups' averages, those that have any."""
    averages = {}
    for group, found in statistics(x, y).items():
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


def shares(x, y):
    """Shares of the quantile bins, or of the categories, and of what is missing, before and after."""
    if not np.issubdtype(np.asarray(x).dtype, np.number):
        values = sorted(set(x) | set(y), key=repr)
        return [[list(side).count(v) / len(side) for v in values] for side in (x, y)]
    a = sorted(present(x))
    edges = sorted({a[(len(a) - 1) * j // 20] for j in range(1, 20)})
    bounds = [-math.inf, *edges, math.inf]
    found = []
    for side in (x, y):
        counts = [sum(lo <= v < hi for v in side) for lo, hi in pairwise(bounds)]
        found.append([c / len(side) for c in (*counts, sum(math.isnan(v) for v in side))])
    return found


def total_variation(x, y):
    return 0.5 * sum(abs(p - q) for p, q in zip(*shares(x, y), strict=True))


def hellinger(x, y):
    return math.sqrt(max(0.0, 1 - sum(math.sqrt(p * q) for p, q in zip(*shares(x, y), strict=True))))
