"""Models from their Gram matrices: least squares that stand singular designs, and roots of covariances."""

from __future__ import annotations

import numpy as np

from dpmask.kernels.arrays import Floats

_TRUNCATED = 1e-13


def solve_models(gram: Floats, cross: Floats, previous: Floats | None = None) -> Floats:
    """B_i = G_i^+ H_i for each model; one that nobody weighs on stays as it was."""
    models = np.array([solve(one, two) for one, two in zip(gram, cross, strict=True)])
    if previous is not None:
        empty = gram[:, 0, 0] == 0.0
        models[empty] = previous[empty]
    return models


def solve(gram: Floats, cross: Floats) -> Floats:
    """G^+ H, where columns that depend on others share their weight: singular designs have a solution, too."""
    inverse, _ = inverted(gram)
    return inverse @ cross


def inverted(gram: Floats) -> tuple[Floats, int]:
    """G^+ and the rank of G: columns made equal in size, eigenvalues below p 1e-13 of the largest left out."""
    diagonal = np.diag(gram)
    scale = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(gram * np.outer(scale, scale))
    kept = values > max(len(gram) * _TRUNCATED * values[-1], 0.0)
    half = scale[:, None] * vectors[:, kept]
    return (half / values[kept]) @ half.T, int(kept.sum())


def lower_root(matrix: Floats) -> Floats:
    """L with L L' = the matrix, lower triangular (Cholesky); where it is singular, columns of L are 0."""
    rest, root = matrix.copy(), np.zeros(matrix.shape)
    least = len(matrix) * _TRUNCATED * np.diag(matrix)
    for j in range(len(matrix)):
        if rest[j, j] > least[j]:
            root[j:, j] = rest[j:, j] / np.sqrt(rest[j, j])
            rest -= np.outer(root[:, j], root[:, j])
    return root
