"""The attack of all intruders on the whole masked table: records attacked, and what the masked blocks answer.

The records attacked are persisted on the cluster and travel to the masked blocks; what comes back to the driver is one
sum for each intruder, and the positions of the few records that the last of them is surest of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.engine.collection import Collection, concatenated, itself
from dpmask.engine.dispatch import threads
from dpmask.engine.limits import current_limits
from dpmask.errors import InputError
from dpmask.kernels.arrays import Floats, Integers, stacked
from dpmask.kernels.keys import float_keys, grouped, mostly_equal
from dpmask.kernels.linkage.nearest import (
    BEATEN,
    WIDE,
    Masked,
    Metric,
    Radii,
    merge_found,
    search,
    search_all,
    tree_of,
    true_radii,
)
from dpmask.kernels.linkage.record_tree import RecordTree
from dpmask.lake.arrow import array_of
from dpmask.lake.reading import Rows
from dpmask.measures.risk.linkage_values import Points, Values
from dpmask.table.columns import floats
from dpmask.table.distinct_rows import distinct_rows, looked_at
from dpmask.table.pairs import POSITION, PRESENT, masked_name

RISKIEST = 36
"""How many records are named by their positions."""
_TILE = 1 << 16
_ENOUGH = 2 / 3
"""The share of a tree's columns that a search in it must take: boxes that are cut by others reach far in those."""


class LinkageAttack(NamedTuple):
    """What is compared, the metrics of the intruders, and the positions of the records attacked, in order.

    Each metric takes the first columns, or all of them, and no fewer than the metric before it.
    """

    values: Sequence[Values]
    metrics: Sequence[Metric]
    chosen: Integers | None  # None: all of them


class Pairs(NamedTuple):
    """Records and their own masked records, in the same order, as columns x rows."""

    points: Floats
    ranges: Floats
    masked: Masked


class Riskiest(NamedTuple):
    """A few records by their positions, and the chance of a right link of each, the largest first."""

    positions: Integers
    chances: Floats

    def plus(self, other: Riskiest) -> Riskiest:
        """The riskiest of both; of equal chances the first positions."""
        positions = np.concatenate([self.positions, other.positions])
        chances = np.concatenate([self.chances, other.chances])
        kept = np.lexsort((positions, -chances))[:RISKIEST]
        return Riskiest(positions[kept], chances[kept])


NOBODY = Riskiest(np.zeros(0, np.int64), np.zeros(0))


class Links(NamedTuple):
    """For each metric the number of right links, and the records that are riskiest in the last of them."""

    right: Floats
    riskiest: Riskiest


class AttackedRecords(NamedTuple):
    """Records attacked, their radii in some of the metrics, and what the masked blocks answered so far."""

    positions: Integers
    points: Floats
    ranges: Floats
    metrics: tuple[int, ...]
    radii: tuple[Radii, ...]
    found: Integers  # metrics x records


class DistinctRecords(NamedTuple):
    """Each different masked record of a block once, and how often it is there."""

    records: Masked
    counts: Integers

    def known_by(self, metric: Metric) -> DistinctRecords:
        """The same of the first columns that a metric takes: fewer records differ there."""
        points, low, high = self.records
        ranges = len(metric.scale)
        if metric.takes_all(len(points), len(low)):
            return self
        part = Masked(points[: metric.points], low[:ranges], high[:ranges])
        if not _repeat(part):
            return DistinctRecords(part, self.counts)
        equal = grouped(float_keys(np.concatenate(part)))
        if 2 * len(equal.starts) > len(self.counts):
            return DistinctRecords(part, self.counts)
        return DistinctRecords(Masked(*(one[:, equal.firsts] for one in part)), equal.sums(self.counts))


def _repeat(records: Masked) -> bool:
    """Whether most records are equal to others, as far as some show: only then is it worth to look at all of them."""
    places = looked_at(records.points.shape[1])
    some = grouped(float_keys(np.concatenate([part[:, places] for part in records])))
    return mostly_equal(some.sizes, records.points.shape[1])


def released(values: Sequence[Values], rows: Rows, name: Callable[[str], str] = str) -> Masked:
    """A block's masked records, whose columns are called by ``name``."""
    ranges = sum(len(one.rulers) for one in values)
    masked = Masked(*(np.empty((count, rows.num_rows)) for count in (_points(values), ranges, ranges)))
    point = at = 0
    for one in values:
        for low, high in one.released(rows, name(one.column)):
            if isinstance(one, Points):
                masked.points[point] = low
                point += 1
            else:
                masked.low[at], masked.high[at] = low, high
                at += 1
    return masked


def _points(values: Sequence[Values]) -> int:
    return sum(isinstance(one, Points) for one in values)


def chosen_rows(rows: Rows, chosen: Integers | None) -> Rows:
    """Those of a block's pairs that have a masked record and are among the chosen ones, if it matters."""
    kept = ~np.isnan(floats(rows, PRESENT))
    if chosen is not None:
        position = floats(rows, POSITION).astype(np.int64)
        ends = [position.min(initial=chosen[-1]), position.max(initial=chosen[0]) + 1]
        kept &= np.isin(position, chosen[slice(*np.searchsorted(chosen, ends))])
    return rows if kept.all() else rows.take(array_of(np.flatnonzero(kept)))


def pairs_of(values: Sequence[Values], rows: Rows) -> Pairs:
    """A block's pairs, each of which has a masked record."""
    known = [(isinstance(one, Points), column) for one in values for column in one.known(rows)]
    return Pairs(
        stacked([column for is_point, column in known if is_point], rows.num_rows),
        stacked([column for is_point, column in known if not is_point], rows.num_rows),
        released(values, rows, masked_name),
    )


def slices(rows: Rows) -> Iterator[Rows]:
    """A block's rows a tile at a time, at least one: what is made of pairs takes more room than they do."""
    return (rows.slice(start, _TILE) for start in range(0, max(rows.num_rows, 1), _TILE))


def linked(attack: LinkageAttack, records: Collection[Rows], attacked: int, table: Collection[Rows], who: str) -> Links:
    """For each metric the number of right links, a tie of q as 1/q, against all rows of the masked table.

    ``records`` are pairs, among which are those ``attacked``. Few are attacked together, many in portions of as many
    blocks as there are threads: memory is bounded.
    """
    few = attacked <= current_limits().attacked_records
    masked = table.transform(partial(distinct_records, attack.values))
    return records.as_one_pass(lambda: _linked(attack, records, masked, few, who), "linkage")


def distinct_records(values: Sequence[Values], rows: Rows) -> DistinctRecords:
    """A block's masked records, equal ones once where many are."""
    found = distinct_rows(rows, rows.schema.names, exact=False)
    return DistinctRecords(released(values, found.rows), found.members.sizes)


def _linked(
    attack: LinkageAttack, records: Collection[Rows], masked: Collection[DistinctRecords], few: bool, who: str
) -> Links:
    blocks = len(records.positions)
    size = blocks if few else threads()
    total, riskiest = np.zeros(len(attack.metrics)), NOBODY
    last = len(attack.metrics) - 1
    if len(masked.positions) < threads():  # which then compare it with the records in several metrics each
        masked = masked.persist(itself, "linkage: masked")
    for start in range(0, blocks, size):
        attacked = _persist_attacked(attack, records[start : start + size], few)
        answered = _compare_all(attack, attacked, masked)
        for group, links, lost, some in answered.map(partial(_links, last), "linkage: links"):
            if lost:
                raise InputError(
                    f"{who}: the masked table changed while it was read. Persist it, or write it to files."
                )
            total[list(group)] += links
            riskiest = riskiest.plus(some)
    return Links(total, riskiest)


def _persist_attacked(attack: LinkageAttack, records: Collection[Rows], few: bool) -> Collection[AttackedRecords]:
    """The records attacked in these blocks, kept on the cluster: together where they are few, else block by block.

    Where there are fewer blocks than threads, each thread gets some of the metrics.
    """
    label = "linkage: records"
    shares = metric_shares(attack.metrics, 1 if len(records.positions) >= threads() else threads())
    select = [partial(_select_attacked, attack, share) for share in shares]
    if few:
        return concatenated([records.persist_joined(one, _joined, label) for one in select])
    return concatenated([records.persist(one, label) for one in select])


def metric_shares(metrics: Sequence[Metric], most: int) -> list[tuple[int, ...]]:
    """The places of metrics, in at most so many parts: those that search in one tree are not torn apart."""
    together = [at for at, metric in enumerate(metrics) if metric.as_it_is]
    others = [at for at, metric in enumerate(metrics) if not metric.as_it_is]
    if most == 1 or not others:
        return [tuple(range(len(metrics)))]
    parts = [others[start :: most - 1] for start in range(most - 1)]
    return [tuple(part) for part in ([together] if together else []) + parts if part]


def _select_attacked(attack: LinkageAttack, group: tuple[int, ...], rows: Rows) -> AttackedRecords:
    return _joined([_attacked(attack, group, part) for part in slices(chosen_rows(rows, attack.chosen))])


def _attacked(attack: LinkageAttack, group: tuple[int, ...], rows: Rows) -> AttackedRecords:
    points, ranges, masked = pairs_of(attack.values, rows)
    metrics = [attack.metrics[at] for at in group]
    radii = tuple(true_radii(metric, metric.known(points, ranges), masked) for metric in metrics)
    positions = floats(rows, POSITION).astype(np.int64)
    return AttackedRecords(positions, points, ranges, group, radii, np.zeros((len(group), len(positions)), np.int64))


def _joined(parts: Sequence[AttackedRecords]) -> AttackedRecords:
    positions, points, ranges, groups, radii, found = zip(*parts, strict=True)
    all_radii = tuple(Radii(*map(np.concatenate, zip(*one, strict=True))) for one in zip(*radii, strict=True))
    joined = (np.concatenate(arrays, axis=1) for arrays in (points, ranges, found))
    return AttackedRecords(np.concatenate(positions), next(joined), next(joined), groups[0], all_radii, next(joined))


def _compare_all(
    attack: LinkageAttack, attacked: Collection[AttackedRecords], masked: Collection[DistinctRecords]
) -> Collection[AttackedRecords]:
    """The records attacked, with the answers of all masked blocks.

    A few blocks come first, then twice as many, and so on: a record beaten by one of them is not compared again.
    """
    start, count = 0, threads()
    while start < len(masked.positions):
        some = masked[start : start + count]
        attacked = attacked.meet_all(some, partial(_answers, attack), merge_found, _with_answers, "linkage: attack")
        start, count = start + count, 2 * count
    return attacked


class _Built(NamedTuple):
    """A tree, and how many of a block's records and of their columns it has."""

    tree: RecordTree
    records: int
    columns: int

    def serves(self, metric: Metric, masked: DistinctRecords) -> bool:
        """Whether few columns more, and no records more, are in it than a metric asks for."""
        return len(masked.counts) == self.records and _columns(metric) >= _ENOUGH * self.columns


def _columns(metric: Metric) -> int:
    return metric.points + len(metric.scale)


def _answers(attack: LinkageAttack, attacked: AttackedRecords, masked: DistinctRecords) -> Integers:
    """What one block of masked records answers to each query, metrics x records: those of most columns first.

    Who compares first columns as they are finds them in the tree of some more, too, if there is one.
    """
    answers, built = attacked.found.copy(), None
    for number, at in reversed(list(enumerate(attacked.metrics))):
        metric = attack.metrics[at]
        masked = masked.known_by(metric)
        if not len(masked.counts):
            answers[number] = np.where(answers[number] == BEATEN, BEATEN, 0)
        elif metric.points >= WIDE:
            _answer(answers, metric, attacked, number, partial(_among_all, metric, masked))
        elif metric.as_it_is:
            if built is None or not built.serves(metric, masked):
                tree = tree_of(metric, masked.records, counts=masked.counts)
                built = _Built(tree, len(masked.counts), _columns(metric))
            tree = built.tree.of_first(metric.points, len(metric.scale))
            _answer(answers, metric, attacked, number, partial(search, tree, metric))
        else:
            tree = tree_of(metric, masked.records, counts=masked.counts)
            _answer(answers, metric, attacked, number, partial(search, tree, metric))
    return answers


def _among_all(metric: Metric, masked: DistinctRecords, known: Floats, radii: Radii) -> Integers:
    return search_all(metric, known, radii, masked.records, masked.counts)


def _answer(
    answers: Integers,
    metric: Metric,
    attacked: AttackedRecords,
    number: int,
    searched: Callable[[Floats, Radii], Integers],
) -> None:
    """Only those are compared that no block has beaten before."""
    asked = answers[number] != BEATEN
    known = metric.known(attacked.points[:, asked], attacked.ranges[:, asked])
    radii = Radii(*(radius[asked] for radius in attacked.radii[number]))
    answers[number, asked] = searched(known, radii)


def _with_answers(attacked: AttackedRecords, answers: Integers) -> AttackedRecords:
    return attacked._replace(found=merge_found(attacked.found, answers))


def _links(last: int, attacked: AttackedRecords) -> tuple[tuple[int, ...], Floats, int, Riskiest]:
    """Which metrics, the right links in each, how many records did not even find themselves, and the riskiest ones."""
    shares = np.where(attacked.found > 0, 1.0 / np.maximum(attacked.found, 1), 0.0)
    riskiest = NOBODY
    if last in attacked.metrics:
        chances = shares[attacked.metrics.index(last)]
        linked = chances > 0.0
        riskiest = NOBODY.plus(Riskiest(attacked.positions[linked], chances[linked]))
    return attacked.metrics, shares.sum(axis=1), int((attacked.found == 0).sum()), riskiest
