"""The plain NumPy form of dpmask.kernels.fuzzy.center_sums: slow, needs rows x clusters x columns, written to be compared with the papers.

x: columns x rows. v: clusters x columns. u: clusters x rows. Equation numbers are those of Torra (2020); the tolerance is
Algorithm 2 of Torra, Endo, Miyamoto (2009) with x_k + e_k in its Step 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ROUNDS = 300
STILL = 1e-26


class ReferenceSums(NamedTuple):
    """For one set of centres: sum w u^m (x + e), sum w u^m for each column, and J."""

    weighted: np.ndarray  # clusters x columns
    weight: np.ndarray  # clusters x columns
    objective: float


def distances(x, v):
    """d_ik = t/|O_k| times the sum of squares over the observed columns O_k; all of them when nothing is NaN."""
    difference = x[None, :, :] - v[:, :, None]  # clusters x columns x rows
    observed = np.maximum((~np.isnan(x)).sum(axis=0), 1)
    return np.nansum(difference**2, axis=1) * (x.shape[0] / observed)


def memberships_at(d, fuzziness=None, entropy=None):
    """Proposition 1 and eq. 3."""
    if entropy is not None:
        q = np.exp(-entropy * (d - d.min(axis=0)))
        return q / q.sum(axis=0)
    if fuzziness == 1.0:
        return (np.arange(len(d))[:, None] == d.argmin(axis=0)).astype(float)
    nearest = d.min(axis=0)
    on_a_center = nearest == 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.exp((np.log(nearest) - np.log(d)) / (fuzziness - 1.0))
    q[:, on_a_center] = d[:, on_a_center] == 0.0
    return q / q.sum(axis=0)


def objective_at(u, d, fuzziness=None, entropy=None):
    """J of each record, summed over clusters as the papers define it (eq. 2 for EFCM)."""
    if entropy is not None:
        logarithm = np.log(np.where(u > 0.0, u, 1.0))
        return (u * d + u * logarithm / entropy).sum(axis=0)
    return (u**fuzziness * d).sum(axis=0)


def displaced(x, v, tolerance, fuzziness=None, entropy=None):
    """x + e: alternate u and e from e = 0, each record until it stands still."""
    power = 1.0 if entropy is not None else fuzziness
    e, moving = np.zeros_like(x), np.ones(x.shape[1], bool)
    for _ in range(ROUNDS):
        weight = memberships_at(distances(x + e, v), fuzziness, entropy) ** power
        total = weight.sum(axis=0)
        pull = np.nan_to_num(total * x - v.T @ weight)  # sum_i u_ik^m (x_k - v_i); what is missing does not move
        with np.errstate(divide="ignore", invalid="ignore"):
            alpha = np.fmin(tolerance / np.linalg.norm(pull, axis=0), 1.0 / total)
        step = np.where(moving, -alpha * pull - e, 0.0)
        e = e + step
        size = np.nansum(x**2, axis=0) + np.nansum((x - pull / total) ** 2, axis=0)
        moving = (step**2).sum(axis=0) > STILL * size
    return x + e


def memberships(x, v, *, fuzziness=None, entropy=None, tolerance=None):
    """u_ik at x + e."""
    y = x if tolerance is None else displaced(x, v, tolerance, fuzziness, entropy)
    return memberships_at(distances(y, v), fuzziness, entropy)


def center_sums(x, v, *, fuzziness=None, entropy=None, weights=None, tolerance=None):
    """The sums of one pass and J, for one set of centres. NaN in x is a missing value."""
    y = x if tolerance is None else displaced(x, v, tolerance, fuzziness, entropy)
    observed = ~np.isnan(y)
    w = (np.ones(x.shape[1]) if weights is None else weights) * observed.any(axis=0)
    d = distances(y, v)
    u = memberships_at(d, fuzziness, entropy)
    factor = x.shape[0] / np.maximum(observed.sum(axis=0), 1)
    share = w * factor * (u if entropy is not None else u**fuzziness)
    objective = w @ objective_at(u, d, fuzziness, entropy)
    return ReferenceSums(share @ np.nan_to_num(y).T, share @ observed.T.astype(float), float(objective))
