"""Weighted means, variances and covariances of a block's columns, with their missing and infinite values counted.

Each column's own mean and variance come from the values it has; covariances from the complete records. Merged as in
Chan, Golub and LeVeque (1979).

Three kernels sum moments, because they sum different things and their last bits reach releases. This one is weighted
and complete-case: clusterings, correlated noise and linkage are scaled by it. ``moments`` takes each column by itself,
unweighted and with means to twice the precision, at a fraction of the cost. ``comoments`` takes each pair of columns
over the records that have both, up to order 4, for what is measured and not released.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Floats

_SINGULAR = 1e-13


class CovarianceSums(NamedTuple):
    """One block's share. Arrays have an entry for each column."""

    rows: int
    values: Counts  # present and finite
    infinite: Counts
    low: Floats
    high: Floats
    weight: Floats  # of the present values
    mean: Floats
    squares: Floats  # weighted sum of squared deviations
    complete: float  # weight of the complete records
    center: Floats  # their mean
    products: Floats  # columns x columns: their weighted sum of products of deviations

    @property
    def sd(self) -> Floats:
        """Standard deviations, divided by the weight."""
        return np.sqrt(self.squares / np.where(self.weight > 0.0, self.weight, 1.0))

    @property
    def covariance(self) -> Floats:
        """Covariances of the complete records, divided by their weight."""
        return self.products / (self.complete if self.complete > 0.0 else 1.0)


def covariance_sums(columns: Sequence[Floats], weights: Floats | None = None, *, wide: bool = False) -> CovarianceSums:
    """The sums of one block, given as its columns; NaN is a missing value. Without weights each record weighs 1.

    ``wide``: products of columns by BLAS, a twentieth of the time, for what is measured and not released.
    """
    block = np.array(columns)
    rows = block.shape[1]
    weight = np.ones(rows) if weights is None else weights
    present = np.isfinite(block)
    infinite = np.isinf(block).sum(axis=1)
    whole = present.all(axis=0)
    zeroed = np.where(present, block, 0.0)
    # plain sums, no BLAS: its order of summation depends on threads and on where an array happens to lie
    total = (present * weight).sum(axis=1)
    mean = (zeroed * weight).sum(axis=1) / np.where(total > 0.0, total, 1.0)
    deviations = np.where(present, block - mean[:, None], 0.0)
    kept, kept_weight = block[:, whole], weight[whole]
    complete = float(kept_weight.sum())
    center = (kept * kept_weight).sum(axis=1) / (complete if complete > 0.0 else 1.0)
    kept = kept - center[:, None]
    return CovarianceSums(
        rows,
        present.sum(axis=1),
        infinite,
        np.where(present, block, np.inf).min(axis=1, initial=np.inf),
        np.where(present, block, -np.inf).max(axis=1, initial=-np.inf),
        total,
        mean,
        (deviations**2 * weight).sum(axis=1),
        complete,
        center,
        (kept * kept_weight) @ kept.T if wide else np.einsum("ik,jk->ij", kept * kept_weight, kept),
    )


def merge_covariance_sums(left: CovarianceSums, right: CovarianceSums) -> CovarianceSums:
    """The sums of both parts together."""
    weight, complete = left.weight + right.weight, left.complete + right.complete
    share = right.weight / np.where(weight > 0.0, weight, 1.0)
    step = right.mean - left.mean
    part = right.complete / complete if complete > 0.0 else 0.0
    jump = right.center - left.center
    return CovarianceSums(
        left.rows + right.rows,
        left.values + right.values,
        left.infinite + right.infinite,
        np.minimum(left.low, right.low),
        np.maximum(left.high, right.high),
        weight,
        left.mean + step * share,
        left.squares + right.squares + step**2 * left.weight * share,
        complete,
        left.center + jump * part,
        left.products + right.products + np.outer(jump, jump) * left.complete * part,
    )


def linear_estimate(found: CovarianceSums, targets: int) -> tuple[Floats, Floats]:
    """The best linear estimate of the first columns by all others: slopes (targets x others), and constants."""
    sd = np.where(found.sd > 0.0, found.sd, 1.0)
    correlation = found.covariance / sd[:, None] / sd
    others = correlation[targets:, targets:]
    slope = correlation[:targets, targets:] @ np.linalg.pinv(others, rcond=_SINGULAR, hermitian=True)
    slope = slope * sd[:targets, None] / sd[targets:]
    return slope, found.center[:targets] - slope @ found.center[targets:]
