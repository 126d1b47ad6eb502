"""The information of a split of records on their classes: entropies in bits (Fung et al. 2009, eqs. 2, 3 and 5).

Everything here follows from counts of value x class, so it is the same however the records lie in blocks.
"""

from __future__ import annotations

import numpy as np

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.elementary import log2, log_where_positive

TIE = 1e-12
"""Gains nearer to each other than this differ by rounding only."""


def entropy(counts: Counts) -> Floats:
    """I(T[x]) in bits, eq. 3; classes along the last axis, 0 where there is nobody."""
    total = counts.sum(axis=-1, keepdims=True)
    shares = counts / np.maximum(total, 1)
    return -(shares * log_where_positive(shares, log2)).sum(axis=-1)


def information_gain(children: Counts) -> float:
    """InfoGain of a split into children x classes, eq. 2; never below 0."""
    sizes = children.sum(axis=1)
    total = sizes.sum()
    if not total:
        return 0.0
    return max(float(entropy(children.sum(axis=0)) - (sizes * entropy(children)).sum() / total), 0.0)


def gains_of_each(values: Counts) -> Floats:
    """The gain of separating one value from all others, eq. 5, for every value of values x classes."""
    return _gains_of_two(values, values.sum(axis=0) - values)


def _gains_of_two(left: Counts, right: Counts) -> Floats:
    """The gain of each pair of children, rows of both."""
    total = max(int(left[0].sum() + right[0].sum()), 1) if len(left) else 1
    below = (left.sum(axis=1) * entropy(left) + right.sum(axis=1) * entropy(right)) / total
    whole = entropy(left[:1] + right[:1])
    return np.maximum(whole - below, 0.0)


def best_cut(values: Counts) -> int:
    """Where an interval of values x classes, in order, is cut: the first value of the right part.

    The cut with the largest gain, the smallest of several. Without classes (one column) there is nothing to gain: then
    the cut that leaves both parts most alike in size.
    """
    left = np.cumsum(values, axis=0)[:-1]
    if values.shape[1] == 1:
        uneven = np.abs(2 * left[:, 0] - values.sum())
        return int(np.argmin(uneven)) + 1
    gains = _gains_of_two(left, values.sum(axis=0) - left)
    return int(np.argmax(gains >= gains.max() - TIE)) + 1
