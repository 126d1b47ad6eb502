"""Rotations: a Haar-distributed orthogonal matrix out of normal draws, and a block turned by it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.vector_math import compiled

Floats = NDArray[np.float64]

_TILE = 512  # records whose columns stay in the cache while all are turned


def haar_orthogonal(normals: Floats) -> Floats:
    """An orthogonal matrix from a square one of standard normal draws, every rotation and reflection equally likely.

    The Q of a QR decomposition alone is not: its distribution depends on which signs the decomposition happens to
    choose. With each column times the sign of R's diagonal the decomposition is unique, and Q is Haar (Mezzadri 2007).
    """
    q, r = np.linalg.qr(normals)
    return np.ascontiguousarray(q * np.where(np.diag(r) < 0.0, -1.0, 1.0))


def rotated(columns: list[Floats], matrix: Floats) -> Floats:
    """D R, as columns x records: each record, a row of D, times the matrix.

    No BLAS and no fused sums: where a record lies in its block must not change its last digits.
    """
    block = np.array(columns)
    turned = np.zeros(block.shape)
    _rotate(block, matrix, turned)
    return turned


@compiled(reassociate=False, contract=False)
def _rotate(block: Floats, matrix: Floats, turned: Floats) -> None:
    columns, records = block.shape
    for start in range(0, records, _TILE):
        end = min(start + _TILE, records)
        for j in range(columns):
            for i in range(columns):
                factor = matrix[i, j]
                for k in range(start, end):
                    turned[j, k] += factor * block[i, k]
