"""Fuzzy c-regression and probabilistic information loss in plain NumPy: slow, written to be compared with the papers.

z: rows x p. y: rows x t. u: models x rows. Equations are those of Cano and Torra (2009), section II.C, and for the loss
those of Mateo-Sanz, Domingo-Ferrer and Sebe (2005).
"""

from itertools import combinations

import numpy as np
from scipy.special import erf


def weighted_fit(z, y, weight):
    """Weighted least squares by QR of the weighted design (through its SVD), not by Gram matrices."""
    root = np.sqrt(weight)[:, None]
    return np.linalg.lstsq(root * z, root * y, rcond=1e-7)[0]


def errors(z, y, models):
    return np.maximum([((y - z @ model) ** 2).sum(axis=1) for model in models], 1e-100)


def shares(error, fuzziness):
    q = np.exp((np.log(error.min(axis=0)) - np.log(error)) / (fuzziness - 1))
    return q / q.sum(axis=0)


def fuzzy_c_regression(z, y, u, *, fuzziness=1.5, iterations=30, change=1e-4):
    """Models, memberships and the objective of every iteration, from an initial partition u."""
    objectives = []
    for _ in range(iterations):
        models = [weighted_fit(z, y, line**fuzziness) for line in u]
        error = errors(z, y, models)
        new = shares(error, fuzziness)
        objectives.append((new**fuzziness * error).sum())
        moved = np.abs(new - u).max()
        u = new
        if moved < change:
            break
    return np.array(models), u, objectives


def information_loss(original, masked):
    """PIL in percent: the mean over means, variances, covariances, correlations and quantiles."""
    columns = original.shape[1]
    pairs = list(combinations(range(columns), 2))
    groups = [
        [_mean(original[:, j], masked[:, j]) for j in range(columns)],
        [_variance(original[:, j], masked[:, j]) for j in range(columns)],
        [_covariance(original[:, [i, j]], masked[:, [i, j]]) for i, j in pairs],
        [_correlation(original[:, [i, j]], masked[:, [i, j]]) for i, j in pairs],
        [_quantile(original[:, j], masked[:, j], p) for j in range(columns) for p in range(5, 100, 5)],
    ]
    kept = [[value for value in group if value is not None] for group in groups]
    return float(np.mean([np.mean(group) for group in kept if group]))


def _loss(difference, scale, variance):
    difference = 0.0 if abs(difference) < 1e-12 * scale else difference
    if not variance > 0.0:
        return None if difference == 0.0 else 100.0
    return 100 * erf(abs(difference) / np.sqrt(2 * variance))


def _mean(x, y):
    return _loss(x.mean() - y.mean(), np.abs(x).max(), x.var() / len(x))


def _variance(x, y):
    fourth = ((x - x.mean()) ** 4).mean()
    return _loss(x.var() - y.var(), x.var(), (fourth - x.var() ** 2) / len(x))


def _mu(pair, i, j):
    a, b = (pair - pair.mean(axis=0)).T
    return (a**i * b**j).mean()


def _covariance(x, y):
    m11, m22 = _mu(x, 1, 1), _mu(x, 2, 2)
    return _loss(m11 - _mu(y, 1, 1), np.sqrt(_mu(x, 2, 0) * _mu(x, 0, 2)), (m22 - m11**2) / len(x))


def _correlation(x, y):
    m20, m02, m22 = _mu(x, 2, 0), _mu(x, 0, 2), _mu(x, 2, 2)
    r = _mu(x, 1, 1) / np.sqrt(m20 * m02)
    other = _mu(y, 1, 1) / np.sqrt(_mu(y, 2, 0) * _mu(y, 0, 2))
    outer = _mu(x, 4, 0) / m20**2 + _mu(x, 0, 4) / m02**2 + 2 * m22 / (m20 * m02)
    skew = _mu(x, 3, 1) / (m20**1.5 * m02**0.5) + _mu(x, 1, 3) / (m20**0.5 * m02**1.5)
    return _loss(r - other, 1.0, (m22 / (m20 * m02) + r**2 / 4 * outer - r * skew) / len(x))


def _quantile(x, y, percent):
    a, n = percent / 100, len(x)
    one, two = np.sort(x)[(n - 1) * percent // 100], np.sort(y)[(n - 1) * percent // 100]
    h = (x.max() - x.min()) / 1000
    density = (np.abs(x - one) <= h).mean() / (2 * h)
    return _loss(one - two, np.abs(x).max(), a * (1 - a) / (n * density**2))
