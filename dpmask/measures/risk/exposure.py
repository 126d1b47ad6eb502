"""Why single records are at risk: what each known column adds to what the joint intruder of ``distance_linkage`` finds.

For each of a few records: the intruder learns its columns one by one, the most informative first, and counts released
rows that fit at least as well as the record's own, by the same likelihood ratio over the columns known so far. The
chance of a right link is 1 over the rows as near as the own, 0 where one is nearer. The order of columns is chosen
among at most 5,000 rows; what is counted then is exact. The same sample shows how much of their sensitive values rows
give away: within a twentieth of a standard deviation, or, of categories, released as they are.

How columns are compared, and how far masking moved them, is taken from that measure. Passes: one over the pairs, one
over the masked table. Memory per task: one block. The driver has the values of these few records, nothing of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.engine.draws import make_key
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.linkage.nearest import WIDE, Masked, Metric, Radii, own_radii, range_gaps, true_radii
from dpmask.measures.risk.distance_linkage import LinkageRisk, sampled_positions
from dpmask.measures.risk.exposed import ExposedRecord, Exposure, GivenAway, KnownColumn
from dpmask.measures.risk.given_away import given_away
from dpmask.measures.risk.linkage_attack import DistinctRecords, Pairs, distinct_records
from dpmask.measures.risk.linkage_crowd import CROWD, SAMPLE, Crowd, crowd_part, joined_crowd, some_pairs
from dpmask.measures.risk.linkage_metrics import Learnt, by_some, moved_nothing
from dpmask.measures.risk.linkage_values import Values
from dpmask.table.pairs import POSITION, PRESENT, masked_name, pair
from dpmask.table.table import Table

_WHO = "exposure"
_STEPS = 8
"""Columns that are learnt one by one; the rest is learnt at once."""
_EXPLAINED = 12
"""Records that are explained: of equally likely links those that take fewest columns."""
_SINGLE = Metric(1, None, *np.empty((3, 0)))
_SHORT_LIST = 12
"""Of more columns than these, the next one is looked for among so many, the most informative by themselves."""


class _Looked(NamedTuple):
    """What the sample came to: the records explained, the order of each one's columns."""

    positions: Integers
    pairs: Pairs
    orders: tuple[tuple[int, ...], ...]
    given: GivenAway | None


class _KnownStep(NamedTuple):
    """One record with some columns known: a query to all masked rows."""

    metric: Metric
    known: Floats
    radii: Radii


def exposure(
    original: Table,
    masked: Table,
    *,
    columns: Sequence[str],
    linkage: LinkageRisk,
    sensitive: Sequence[str] = (),
) -> Exposure:
    """Why the records that linkage by these columns is surest of are at risk; and what rows show of sensitive values.

    ``linkage`` is what ``distance_linkage`` found in the same tables.
    """
    assert linkage.compared is not None
    (values, moves, known), riskiest = linkage.compared, linkage.riskiest
    learnt = None if moved_nothing(values, moves) else known
    pairs = pair(original, masked, columns, _WHO, marks=True)
    everybody = pairs.select([*columns, *map(masked_name, columns), POSITION, PRESENT])
    sampled = sampled_positions(make_key("distance_linkage", seed=0).subkey("linkage crowd"), pairs.rows, SAMPLE)
    wanted = np.array([position for position, _ in riskiest], np.int64)
    either = None if sampled is None else np.unique(np.concatenate([sampled, wanted]))
    sought = tuple(columns.index(name) for name in sensitive)

    def looked() -> _Looked:
        crowd = everybody.persist_joined(partial(crowd_part, values, either), joined_crowd, "exposure: sample")
        look = partial(_looked, values, learnt, sampled, dict(riskiest), sought)
        (found,) = crowd.map(look, "exposure: order of columns")
        return found

    found = everybody.as_one_pass(looked, "exposure: sample")
    metrics: dict[tuple[int, ...], Metric] = {}
    steps = [_steps(values, found, learnt, number, metrics) for number in range(len(found.positions))]
    if not steps:
        return Exposure((), found.given)
    rows = masked.select(columns).transform(partial(distinct_records, values))
    counts = rows.reduce(partial(_fitting, steps), np.add, "exposure: rows that fit")
    explained = (
        _explained(columns, int(position), masked.rows, order, counted)
        for position, order, counted in zip(found.positions, found.orders, counts, strict=True)
    )
    return Exposure(tuple(sorted(explained, key=lambda one: (-one.chance, one.position))), found.given)


def _looked(
    values: Sequence[Values],
    learnt: Learnt | None,
    sampled: Integers | None,
    chances: Mapping[int, float],
    sought: tuple[int, ...],
    crowd: Crowd,
) -> _Looked:
    there = slice(None) if sampled is None else np.flatnonzero(np.isin(crowd.positions, sampled))
    sample = _at(crowd.pairs, there)
    places = np.flatnonzero(np.isin(crowd.positions, list(chances)))
    rows = some_pairs(sample, CROWD).masked
    points = _single_points(values, learnt, rows)
    search = _NarrowingColumn(values, learnt, _at(crowd.pairs, places), rows, {}, points)
    orders = [search.order(number) for number in range(len(places))]
    positions = crowd.positions[places]
    keys = [(-chances[int(at)], one.enough, int(at)) for at, one in zip(positions, orders, strict=True)]
    kept = np.array(sorted(range(len(places)), key=keys.__getitem__)[:_EXPLAINED], np.int64)
    return _Looked(
        positions[kept],
        _at(search.records, kept),
        tuple(orders[number].columns for number in kept),
        given_away(values, sample, sought),
    )


def _single_points(values: Sequence[Values], learnt: Learnt | None, rows: Masked) -> _SinglePoints | None:
    if len(values) < WIDE or len(rows.points) < len(values):
        return None
    return _SinglePoints.of([by_some(values, learnt, (column,)) for column in range(len(values))], rows.points)


def _at(pairs: Pairs, places: Integers | slice) -> Pairs:
    return Pairs(pairs.points[:, places], pairs.ranges[:, places], Masked(*(part[:, places] for part in pairs.masked)))


class _Order(NamedTuple):
    """A record's columns, the most informative first, and how many of them leave no other row of the sample."""

    columns: tuple[int, ...]
    enough: int


class _SinglePoints(NamedTuple):
    """Rows of points, each compared by itself: in its metric, in order."""

    turn: Floats  # of each point, of masked and of known values, and what is added to the latter
    known_turn: Floats
    shift: Floats
    rows: Floats  # points x rows
    means: Floats
    variances: Floats

    @classmethod
    def of(cls, metrics: Sequence[Metric], rows: Floats) -> _SinglePoints:
        """From the metric of each point alone."""
        turn = np.array([1.0 if one.turn is None else one.turn.item() for one in metrics])
        known = [
            way if one.known_turn is None else one.known_turn.item() for one, way in zip(metrics, turn, strict=True)
        ]
        shift = np.array([0.0 if one.shift is None else one.shift.item() for one in metrics])
        ordered = np.sort(turn[:, None] * rows, axis=1)
        return cls(turn, np.array(known), shift, ordered, ordered.mean(axis=1), ordered.var(axis=1))

    def left(self, record: Pairs) -> list[tuple[int, float]]:
        """For each point how many rows fit a record as well as its own, and how near that is, beside others."""
        known = self.known_turn * record.points[:, 0] + self.shift
        own, none = self.turn * record.masked.points[:, 0], np.empty((0, len(known)))
        outer = own_radii(_SINGLE, known[None], own[None], none).outer
        reach, means = np.sqrt(outer), np.maximum((known - self.means) ** 2 + self.variances, 1e-300)
        ends = zip(self.rows, known - reach, known + reach, strict=True)
        counts = [int(row.searchsorted(high, "right") - row.searchsorted(low)) for row, low, high in ends]
        return list(zip(counts, (outer / means).tolist(), strict=True))


class _NarrowingColumn(NamedTuple):
    """Looks for the column that narrows a record's rows most, among few of them."""

    values: Sequence[Values]
    learnt: Learnt | None
    records: Pairs
    rows: Masked
    metrics: dict[tuple[int, ...], Metric]
    """Those that were needed before."""
    points: _SinglePoints | None
    """Where all columns are points, and many."""

    def order(self, number: int) -> _Order:
        """The columns of one record, at most so many as are learnt one by one."""
        few = len(self.values) <= _SHORT_LIST
        columns, rows = self._by_leaving_out(number) if few else self._by_adding(number)
        return _Order(tuple(columns[:_STEPS]), sum(one > min(rows) for one in rows))

    def _by_leaving_out(self, number: int) -> tuple[list[int], list[int]]:
        """From all columns down to one, each time less the least informative; and the rows that fit each first ones."""
        known = list(range(len(self.values)))
        order, rows = list[int](), [self._left(number, tuple(known))[0]]
        while len(known) > 1:
            left = {one: self._left(number, tuple(other for other in known if other != one)) for one in known}
            order.append(min(known, key=lambda column: (*left[column], -column)))
            known.remove(order[-1])
            rows.append(left[order[-1]][0])
        return [*known, *reversed(order)], rows[::-1]

    def _by_adding(self, number: int) -> tuple[list[int], list[int]]:
        """From the most informative column up."""
        left = self._alone(number)
        others = sorted(left, key=lambda column: (*left[column], column))[:_SHORT_LIST]
        chosen = [others.pop(0)]
        rows = [left[chosen[0]][0]]
        while others and len(chosen) < _STEPS:
            left = {column: self._left(number, (*chosen, column)) for column in others}
            chosen.append(min(others, key=lambda column: (*left[column], column)))
            others.remove(chosen[-1])
            rows.append(left[chosen[-1]][0])
        return chosen, rows

    def _alone(self, number: int) -> dict[int, tuple[int, float]]:
        """What ``_left`` finds of each column by itself: of points by their order, as there are many."""
        if self.points is None:
            return {column: self._left(number, (column,)) for column in range(len(self.values))}
        return dict(enumerate(self.points.left(_at(self.records, np.array([number])))))

    def _left(self, number: int, columns: tuple[int, ...]) -> tuple[int, float]:
        """How many rows fit as well as the own; and how near the own is to the record, beside others."""
        known = tuple(sorted(columns))
        if known not in self.metrics:
            self.metrics[known] = by_some(self.values, self.learnt, known)
        step = _step(self.metrics[known], self.records, number)
        squares = _squares(step, *self.metrics[known].masked(self.rows))
        return int((squares <= step.radii.outer[0]).sum()), float(step.radii.outer[0] / max(squares.mean(), 1e-300))


def _step(metric: Metric, records: Pairs, number: int) -> _KnownStep:
    one = _at(records, np.array([number]))
    known = metric.known(one.points, one.ranges)
    return _KnownStep(metric, known, true_radii(metric, known, one.masked))


def _steps(
    values: Sequence[Values],
    found: _Looked,
    learnt: Learnt | None,
    number: int,
    metrics: dict[tuple[int, ...], Metric],
) -> list[_KnownStep]:
    """One record with one, two and more columns known, and with all of them at last; by ``metrics`` of others."""
    order = found.orders[number]
    known = [tuple(sorted(order[:count])) for count in range(1, len(order) + 1)]
    known += [tuple(range(len(values)))] if len(order) < len(values) else []
    for some in known:
        if some not in metrics:
            metrics[some] = by_some(values, learnt, some)
    return [_step(metrics[some], found.pairs, number) for some in known]


def _squares(step: _KnownStep, low: Floats, high: Floats) -> Floats:
    """The squared distance of each masked row, given in the step's metric."""
    points, metric = len(low) - len(high), step.metric
    squares = np.zeros(low.shape[1])
    for gap in step.known[:points] - low[:points]:
        squares += gap * gap
    for gap in range_gaps(step.known[points:], low[points:], high, metric.scale, metric.least, metric.cap):
        squares += gap * gap
    return squares


def _fitting(steps: Sequence[Sequence[_KnownStep]], rows: DistinctRecords) -> Integers:
    """Of each record and step the rows of a block that are nearer than the own, and as near: records x steps x 2."""
    found = np.zeros((len(steps), max(map(len, steps)), 2), np.int64)
    metrics = {id(step.metric): step.metric for known in steps for step in known}
    for key, metric in metrics.items():
        low, high = metric.masked(rows.records)  # once for all records of whom the same is known
        for number, known in enumerate(steps):
            for at, step in enumerate(known):
                if id(step.metric) == key:
                    kept = _within_reach(step, low[: len(low) - len(high)])
                    squares, counts = _squares(step, low[:, kept], high[:, kept]), rows.counts[kept]
                    nearer = squares < step.radii.inner[0]
                    as_near = ~nearer & (squares <= step.radii.outer[0])
                    found[number, at] = counts[nearer].sum(), counts[as_near].sum()
    return found


def _within_reach(step: _KnownStep, points: Floats) -> Integers:
    """The rows of which no coordinate is farther than all of the own row's: others are not as near, whatever else."""
    kept = np.arange(points.shape[1])
    for known, values in zip(step.known[:, 0], points, strict=False):
        gap = known - (values if len(kept) == len(values) else values[kept])
        kept = kept[gap * gap <= step.radii.outer[0]]
    return kept


def _explained(
    columns: Sequence[str], position: int, rows: int, order: tuple[int, ...], counted: Integers
) -> ExposedRecord:
    names = [columns[at] for at in order]
    rest = len(columns) - len(order)
    names += [f"{rest} more columns" if rest > 1 else "the last column"] if rest else []
    steps = tuple(
        KnownColumn(name, int(nearer + ties), 0.0 if nearer else 1.0 / max(int(ties), 1))
        for name, (nearer, ties) in zip(names, counted, strict=False)
    )
    end = next(at for at, step in enumerate(steps) if all(one[1:] == step[1:] for one in steps[at:]))
    return ExposedRecord(position, rows, steps[: end + 1])
