"""The nearest masked record of some queries, and whether what it says of a sensitive value is right.

Records that are equally near share: a query's score is the share of them whose value is right. Once with all records,
and once with the query's own masked record held out. Where only links count, a query whose own record is known to lie
at some distance ends at the first record that is nearer: hardly any record is compared with most queries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.compile import compiled, read_only
from dpmask.kernels.linkage.nearest import BEATEN, Metric, own_radii

_NO_RANGES = np.empty(0)

_WIDE, _FEWEST = 64, 256
"""From so many columns and records on, a product of matrices says which records are worth a look."""
_QUERIES = 256


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
    own = queries.positions - first
    if len(records) < _WIDE or records.shape[1] < _FEWEST:
        return nearest_of_all(queries.known, own, queries.truth, records, values, tolerance)
    near = _candidates(queries.known, records)
    parts = []
    for number, places in enumerate(near):
        query = slice(number, number + 1)
        mine = np.searchsorted(places, own[query])  # one that is not among them is nowhere
        mine[~np.isin(own[query], places)] = -1
        some = records[:, places], values[places]
        parts.append(nearest_of_all(queries.known[:, query], mine, queries.truth[query], *some, tolerance))
    return Nearest(*(np.concatenate(some, axis=1) for some in zip(*parts, strict=True)))


def nearest_of_all(known: Floats, own: Counts, truth: Floats, records: Floats, values: Floats, most: float) -> Nearest:
    """The nearest of all these records, each compared with every query; ``own`` is where a query's own record is."""
    shape = (2, len(truth))
    found = Nearest(np.full(shape, np.inf), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    _scan(read_only(known.T), own, read_only(truth), read_only(records.T), read_only(values), most, *found)
    return found


def _candidates(known: Floats, records: Floats) -> list[Counts]:
    """For each query the records that may be its nearest, or its nearest but one, by a product of matrices.

    |q - r|^2 = |q|^2 + |r|^2 - 2 q r, whose rounding is bounded: whoever is left out is farther than two others.
    """
    lengths, own = (records**2).sum(axis=0), (known**2).sum(axis=0)
    error = 4.0 * (len(records) + 4) * np.finfo(float).eps
    found = []
    for start in range(0, len(own), _QUERIES):
        some = slice(start, start + _QUERIES)
        with np.errstate(invalid="ignore", over="ignore"):
            distances = own[some, None] + lengths - 2.0 * (known[:, some].T @ records)
        slack = error * (own[some, None] + lengths)
        second = np.partition(distances + slack, 1, axis=1)[:, 1]
        # a missing or infinite value anywhere is compared with nothing: it stays among the candidates
        found += [np.flatnonzero(near) for near in ~(distances - slack > second[:, None])]
    return found


@compiled(part=True, reassociate=False)
def _distance_up_to(most: float, known: Floats, q: int, records: Floats, r: int) -> float:
    """The squared distance of a query and a record, or so much of it as is more than ``most``."""
    d = 0.0
    for c in range(known.shape[1]):
        gap = known[q, c] - records[r, c]
        d += gap * gap
        if d > most:
            break
    return d


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
            d = _distance_up_to(distance[1, q], known, q, records, r)
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


class Sought(NamedTuple):
    """What the intruder knows, where the own records are (both columns x queries), and the positions of these."""

    known: Floats
    own: Floats
    positions: Floats


def as_near(sought: Sought, records: Floats, positions: Floats) -> Counts:
    """For each query how many of a block's records are as near as the own one, itself included; or BEATEN.

    Distances are the same, or one is nearer, as in ``dpmask.kernels.linkage.nearest``.
    """
    known, own, places = sought
    metric = Metric(len(known), None, _NO_RANGES, _NO_RANGES, _NO_RANGES)
    radii = own_radii(metric, known, own, np.empty((0, known.shape[1])))
    found = np.zeros(len(places), np.int64)
    inner, outer = read_only(radii.inner), read_only(radii.outer)
    _count(read_only(known.T), read_only(places), inner, outer, read_only(records.T), read_only(positions), found)
    return found


@compiled(reassociate=False)
def _count(
    known: Floats,
    own: Floats,
    inner: Floats,
    outer: Floats,
    records: Floats,
    positions: Floats,
    found: Counts,
) -> None:
    for q in range(len(known)):
        for r in range(len(records)):
            d = _distance_up_to(outer[q], known, q, records, r)
            # the own record is never nearer than itself, however its distance was rounded
            if positions[r] == own[q]:
                found[q] += 1
            elif d < inner[q]:
                found[q] = BEATEN
                break
            elif d <= outer[q]:
                found[q] += 1
