"""Equal rows of a block, counted. Rows come as bits, so that what is equal does not depend on a type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.vector_math import compiled

Floats = NDArray[np.float64]
Bits = NDArray[np.uint64]
Counts = NDArray[np.int64]

_START = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_LONG, _MIDDLE, _SHORT = np.uint64(31), np.uint64(27), np.uint64(30)


def bits_of(values: Floats) -> Bits:
    """The bits of numbers; zeros of either sign are one value, and so are all kinds of NaN."""
    return np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)


def row_hashes(columns: Sequence[Bits]) -> Bits:
    """A 64-bit hash of each row: the finaliser of SplitMix64 (Steele, Lea and Flood 2014) over its columns."""
    result = np.full(len(columns[0]), _START)
    for column in columns:
        _mix(result, np.ascontiguousarray(column))
    return result


@compiled()
def _mix(hashes: Bits, column: Bits) -> None:
    for k in range(len(hashes)):
        word = (hashes[k] ^ column[k]) + _START
        word = (word ^ (word >> _SHORT)) * _FIRST
        word = (word ^ (word >> _MIDDLE)) * _SECOND
        hashes[k] = word ^ (word >> _LONG)


def distinct_rows(columns: Sequence[Bits], counts: Counts | None = None) -> tuple[list[Bits], Counts]:
    """Each different row once, and how often it is there; ``counts`` says how often each given row counts."""
    rows = len(columns[0])
    weights = np.ones(rows, np.int64) if counts is None else counts
    hashes = row_hashes(columns)
    order = np.argsort(hashes, kind="stable")
    if not _in_runs(columns, hashes, order):
        order = np.lexsort(columns)
    sorted_columns = [column[order] for column in columns]
    starts = np.flatnonzero(_new(sorted_columns)) if rows else np.empty(0, np.int64)
    totals = np.add.reduceat(weights[order], starts) if rows else weights
    return [column[starts] for column in sorted_columns], totals


def _new(columns: Sequence[Bits]) -> NDArray[np.bool_]:
    """Where a row differs from the one before it."""
    new = np.zeros(len(columns[0]), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def _in_runs(columns: Sequence[Bits], hashes: Bits, order: NDArray[np.intp]) -> bool:
    """Whether equal hashes mean equal rows, as they almost always do."""
    ordered = hashes[order]
    same = ordered[1:] == ordered[:-1]
    return not (_new([column[order] for column in columns])[1:] & same).any()
