"""The nearest masked record of some queries, and whether what it says of a sensitive value is right.

Records that are equally near share: a query's score is the share of them whose value is right. Once with all records,
and once with the query's own masked record held out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.compile import compiled, read_only


class Nearest(NamedTuple):
    """For each query: the least squared distance, how many records lie at it, and how many of these are right.

    The first row is over all records, the second without the query's own.
    """

    distance: Floats
    ties: Counts
    right: Counts


class Queries(NamedTuple):
    """What the intruder knows (columns x queries), where the own records lie, and the true sensitive values."""

    known: Floats
    positions: Counts
    truth: Floats


def nearest(queries: Queries, records: Floats, values: Floats, first: int, tolerance: float) -> Nearest:
    """The nearest of one block's records, whose first one is at position ``first``."""
    shape = (2, len(queries.truth))
    found = Nearest(np.full(shape, np.inf), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    _scan(
        read_only(queries.known.T),
        queries.positions - first,
        read_only(queries.truth),
        read_only(records.T),
        read_only(values),
        tolerance,
        *found,
    )
    return found


@compiled(reassociate=False)
def _scan(
    known: Floats,
    own: Counts,
    truth: Floats,
    records: Floats,
    values: Floats,
    tolerance: float,
    distance: Floats,
    ties: Counts,
    right: Counts,
) -> None:
    for q in range(len(known)):
        for r in range(len(records)):
            d = 0.0
            for c in range(known.shape[1]):
                gap = known[q, c] - records[r, c]
                d += gap * gap
                if d > distance[1, q]:
                    break
            # the second row's distance is never the smaller one: what is farther than that matters to neither
            if not d <= distance[1, q]:
                continue
            hit = 1 if abs(values[r] - truth[q]) <= tolerance else 0
            for row in range(2):
                if row == 1 and r == own[q]:
                    continue
                if d < distance[row, q]:
                    distance[row, q] = d
                    ties[row, q] = 1
                    right[row, q] = hit
                elif d == distance[row, q]:
                    ties[row, q] += 1
                    right[row, q] += hit


def merge_nearest(left: Nearest, right: Nearest) -> Nearest:
    """The nearest of both parts."""
    ours, theirs = left.distance <= right.distance, right.distance <= left.distance
    return Nearest(
        np.minimum(left.distance, right.distance),
        left.ties * ours + right.ties * theirs,
        left.right * ours + right.right * theirs,
    )
