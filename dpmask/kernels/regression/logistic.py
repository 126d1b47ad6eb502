"""Logistic regression on a few thousand records, by iteratively reweighted least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]

_INDEPENDENT = 1e-8
_MOST_STEPS = 100
_SETTLED = 1e-8
_SETTLED_LIKELIHOOD = 1e-11  # a record


def basis(features: Floats) -> Floats:
    """Orthogonal columns of length sqrt(records) with the span of centred features (records x features)."""
    centred = features - features.mean(axis=0)
    size = np.sqrt((centred**2).mean(axis=0))
    scaled = centred[:, size > _INDEPENDENT * np.maximum(np.abs(features).max(axis=0, initial=0.0), 1e-300)]
    scaled = scaled / np.sqrt((scaled**2).mean(axis=0))
    if not scaled.size:
        return np.empty((len(features), 0))
    left, strength, _ = np.linalg.svd(scaled, full_matrices=False)
    return left[:, strength > _INDEPENDENT * strength[0]] * np.sqrt(len(features))


def fitted_chances(columns: Floats, kind: Floats) -> Floats:
    """The chance of each record to be of kind 1, by a logistic regression on an orthogonal basis and a constant.

    No coefficient is penalised. Where the two kinds can be separated without fail, coefficients grow without end and
    chances settle at 0 and 1; it ends when a step adds nothing to the likelihood.
    """
    design = np.column_stack([np.ones(len(kind)), columns])
    weights = np.zeros(design.shape[1])
    best = _likelihood(design, kind, weights)
    for _ in range(_MOST_STEPS):
        chances = expit(design @ weights)
        slope = design.T @ (kind - chances)
        curvature = (design.T * (chances * (1.0 - chances))) @ design
        step = np.linalg.lstsq(curvature, slope, rcond=None)[0]
        found = _likelihood(design, kind, weights + step)
        while found < best and np.abs(step).max() > _SETTLED:  # a step too far
            step = step / 2
            found = _likelihood(design, kind, weights + step)
        gain, weights, best = found - best, weights + step, found
        if gain <= _SETTLED_LIKELIHOOD * len(kind):
            break
    return expit(design @ weights)


def _likelihood(design: Floats, kind: Floats, weights: Floats) -> float:
    """The log-likelihood."""
    score = design @ weights
    return float((kind * score - np.logaddexp(0.0, score)).sum())
