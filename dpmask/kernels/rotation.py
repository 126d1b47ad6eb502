"""Rotations: a Haar-distributed orthogonal matrix out of normal draws, and a block turned by it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.vector_math import compiled

Floats = NDArray[np.float64]

_TILE = 1 << 11  # records whose columns stay in the cache while all are turned


def haar_orthogonal(normals: Floats) -> Floats:
    """An orthogonal matrix from a square one of standard normal draws, every rotation and reflection equally likely.

    The Q of a QR decomposition alone is not: its distribution depends on which signs the decomposition happens to
    choose. With each column times the sign of R's diagonal the decomposition is unique, and Q is Haar (Mezzadri 2007).
    """
    q, r = np.linalg.qr(normals)
    return np.ascontiguousarray(q * np.where(np.diag(r) < 0.0, -1.0, 1.0))


def rotated(columns: Sequence[Floats], matrix: Floats) -> list[Floats]:
    """D R, column by column: each record, a row of D, times the matrix.

    No BLAS and no fused sums: where a record lies in its block must not change its last digits.
    """
    turned = np.empty((len(columns), len(columns[0])))
    for start in range(0, turned.shape[1], _TILE):
        _rotate(np.array([column[start : start + _TILE] for column in columns]), matrix, start, turned)
    return list(turned)


@compiled(reassociate=False, contract=False)
def _rotate(tile: Floats, matrix: Floats, start: int, turned: Floats) -> None:
    columns, records = tile.shape
    for j in range(columns):
        new = turned[j, start : start + records]
        new[:] = 0.0
        for i in range(columns):
            for k in range(records):
                new[k] += matrix[i, j] * tile[i, k]
