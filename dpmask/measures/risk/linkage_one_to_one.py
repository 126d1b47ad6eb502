"""The intruder who assigns one to one: a masked record that is another's is nobody else's.

Few records are all assigned at once. Of many, a keyed sample is: each in the crowd of the masked records nearest to it
and of those these belong to, at the density of the whole table (kernels/linkage/crowds.py). What assigning adds to the
nearest masked record there is added to the rate of the strongest of the other intruders, in whose metric it is done.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.engine.collection import Collection
from dpmask.engine.dispatch import threads
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.linkage.assignment import assigned
from dpmask.kernels.linkage.crowds import (
    Crowds,
    MetricPairs,
    assignment_gains,
    crowds,
    joined_pairs,
    merge_crowds,
    no_crowds,
)
from dpmask.kernels.linkage.nearest import Metric, Radii, own_radii
from dpmask.lake.reading import Rows
from dpmask.measures.risk.linkage_attack import chosen_rows, pairs_of, released
from dpmask.measures.risk.linkage_values import Values
from dpmask.table.columns import floats
from dpmask.table.distinct_rows import distinct_rows
from dpmask.table.pairs import POSITION, masked_name

_NORMAL = 1.96


class OneToOne(NamedTuple):
    """What assigning adds to the rate of the nearest masked record, and the half width of its 95 % interval."""

    gain: float
    error: float


class _CrowdedRecords(NamedTuple):
    """Some records, how far their own masked records are, and who stands around them, as far as was searched."""

    records: MetricPairs
    radii: Radii
    found: Crowds


def added_by_assignment(
    values: Sequence[Values],
    metric: Metric,
    linked: float,
    chosen: Integers | None,
    records: Collection[Rows],
    pairs: Collection[Rows],
    present: float,
) -> OneToOne:
    """What assigning adds to the share ``linked`` in this metric: for the chosen ones, or, without any, all pairs.

    ``present`` is the share of the records that have a masked one.
    """
    if linked >= 1.0:
        return OneToOne(0.0, 0.0)  # everybody attacked is linked already
    if chosen is None:
        return OneToOne(_assigned_share(values, metric, pairs) * present - linked, 0.0)
    return _one_to_one(values, metric, chosen, records, pairs)


def _assigned_share(values: Sequence[Values], metric: Metric, records: Collection[Rows]) -> float:
    """The share of all these records that an assignment links right."""

    def found() -> float:
        every = records.persist_joined(partial(_pairs, values, metric, None), _joined, "linkage: one to one")
        (share,) = every.map(partial(_share, metric), "linkage: one to one")
        return share

    return records.as_one_pass(found, "linkage: one to one")


def _one_to_one(
    values: Sequence[Values],
    metric: Metric,
    chosen: Integers,
    records: Collection[Rows],
    pairs: Collection[Rows],
) -> OneToOne:
    """What assigning adds for the chosen ones among some records, in crowds of all pairs."""

    def found() -> OneToOne:
        joined = records.persist_joined(partial(_pairs, values, metric, chosen), _joined, "linkage: one to one")
        crowded = joined.persist(partial(_alone, metric), "linkage: one to one")
        start, count = 0, threads()
        while start < len(pairs.positions):  # what few blocks found bounds the search in the others
            some = pairs[start : start + count]
            answer = partial(_answer, values, metric)
            crowded = crowded.meet_all(some, answer, merge_crowds, _with_crowds, "linkage: crowds")
            start, count = start + count, 2 * count
        ((gain, error),) = crowded.map(partial(_gain, metric), "linkage: one to one")
        return OneToOne(gain, error)

    return records.as_one_pass(found, "linkage: one to one")


def _pairs(values: Sequence[Values], metric: Metric, chosen: Integers | None, rows: Rows) -> MetricPairs:
    """The chosen pairs of a block, or all of them, in the metric."""
    kept = chosen_rows(rows, chosen)
    pairs = pairs_of(values, kept)
    return MetricPairs(
        floats(kept, POSITION).astype(np.int64), metric.known(pairs.points, pairs.ranges), *metric.masked(pairs.masked)
    )


def _joined(parts: Sequence[MetricPairs]) -> MetricPairs:
    """In the order of positions."""
    joined = joined_pairs(parts)
    return joined.at(np.argsort(joined.positions))


def _share(metric: Metric, pairs: MetricPairs) -> float:
    return assigned(metric, *pairs[1:])


def _alone(metric: Metric, records: MetricPairs) -> _CrowdedRecords:
    return _CrowdedRecords(records, own_radii(metric, records.known, records.low, records.high), no_crowds(records))


def _answer(values: Sequence[Values], metric: Metric, crowded: _CrowdedRecords, rows: Rows) -> Crowds:
    """Who of one block's pairs stands around each record: what is known of a pair is only read where it is near."""
    kept, bound = chosen_rows(rows, None), crowded.found.distance[:, -1]
    distinct, members = distinct_rows(kept, [masked_name(one.column) for one in values], exact=False)
    low, high = metric.masked(released(values, distinct, masked_name))
    pairs_at = partial(_pairs_at, values, metric, kept)
    return crowds(metric, crowded.records, bound, low, high, members, pairs_at)


def _pairs_at(values: Sequence[Values], metric: Metric, rows: Rows, places: Integers) -> MetricPairs:
    return _pairs(values, metric, None, rows.take(places))


def _with_crowds(crowded: _CrowdedRecords, more: Crowds) -> _CrowdedRecords:
    return crowded._replace(found=merge_crowds(crowded.found, more))


def _gain(metric: Metric, crowded: _CrowdedRecords) -> tuple[float, float]:
    gains: Floats = assignment_gains(metric, *crowded)
    return float(gains.mean()), _NORMAL * float(gains.std()) / math.sqrt(len(gains))
