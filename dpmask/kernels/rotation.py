"""Rotations: a Haar-distributed orthogonal matrix out of normal draws, and a block turned by it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.kernels.compile import compiled, read_only

_TILE = 1 << 11  # records whose columns stay in the cache while all are turned


def haar_orthogonal(normals: Floats) -> Floats:
    """An orthogonal matrix from a square one of standard normal draws, every rotation and reflection equally likely.

    The Q of a QR decomposition alone is not: its distribution depends on which signs the decomposition happens to
    choose. With each column times the sign of R's diagonal the decomposition is unique, and Q is Haar (Mezzadri 2007).
    """
    q, r = np.linalg.qr(normals)
    return np.ascontiguousarray(q * np.where(np.diag(r) < 0.0, -1.0, 1.0))


def rotated(columns: Sequence[Floats], matrix: Floats, out: Sequence[Floats] | None = None) -> Sequence[Floats]:
    """D R, column by column, in ``out`` if that is given: each record, a row of D, times the matrix.

    No BLAS and no fused sums: where a record lies in its block must not change its last digits.
    """
    turned = [np.empty(len(column)) for column in columns] if out is None else out
    for start in range(0, len(columns[0]), _TILE):
        tile = np.array([column[start : start + _TILE] for column in columns])
        for column, new in zip(turned, _turn(tile, read_only(matrix)), strict=True):
            column[start : start + _TILE] = new
    return turned


@compiled(allocates=True, reassociate=False, contract=False)
def _turn(tile: Floats, matrix: Floats) -> Floats:
    columns, records = tile.shape
    turned = np.zeros((columns, records))
    for j in range(columns):
        for i in range(columns):
            for k in range(records):
                turned[j, k] += matrix[i, j] * tile[i, k]
    return turned
