"""Intruders and their attack: metrics over known values, records attacked, and what the masked blocks answer.

The records attacked are persisted on the cluster and travel to the masked blocks; what comes back to the driver is one
sum for each intruder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.passes import (
    Block,
    Run,
    Span,
    hold_beside,
    hold_blocks,
    hold_joined,
    map_blocks,
    merge_tree,
    one_pass,
    threads,
)
from dpmask.errors import InputError
from dpmask.kernels.covariance import Spread, merge_spread, spread
from dpmask.kernels.linkage.nearest import BEATEN, Masked, Metric, Radii, as_close, merge_found, range_gaps, true_radii
from dpmask.lake.reading import Rows
from dpmask.measures.risk.linkage_values import Points, Values
from dpmask.table.columns import floats
from dpmask.table.pairs import POSITION, PRESENT, masked_name
from dpmask.table.table import Table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_TOGETHER = 250_000  # records attacked at once
_TILE = 1 << 16
_RIDGE = 1e-6
_NOTHING = 1e-24  # a variance that is only rounding


class Attack(NamedTuple):
    """What is compared, the metrics of the intruders, and the positions of the records attacked, in order."""

    values: Sequence[Values]
    metrics: Sequence[Metric]
    chosen: Integers | None  # None: all of them


class Pairs(NamedTuple):
    """Records and their own masked records, in the same order, as columns x rows."""

    points: Floats
    ranges: Floats
    masked: Masked


class Queries(NamedTuple):
    """Records attacked, their radii in some of the metrics, and what the masked blocks answered so far."""

    points: Floats
    ranges: Floats
    metrics: tuple[int, ...]
    radii: tuple[Radii, ...]
    found: Integers  # metrics x records


def _released(values: Sequence[Values], rows: Rows, name: Callable[[str], str] = str) -> Masked:
    """A block's masked records."""
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


def _pairs(values: Sequence[Values], rows: Rows, chosen: Integers | None) -> Pairs:
    """Those of a block's pairs that have a masked record and are among the chosen ones, if it matters."""
    kept = ~np.isnan(floats(rows, PRESENT))
    if chosen is not None:
        position = floats(rows, POSITION).astype(np.int64)
        kept &= chosen[np.minimum(np.searchsorted(chosen, position), len(chosen) - 1)] == position
    known = [(isinstance(one, Points), column) for one in values for column in one.known(rows)]
    sides = [
        _stacked([column for is_point, column in known if is_point], rows.num_rows),
        _stacked([column for is_point, column in known if not is_point], rows.num_rows),
        *_released(values, rows, masked_name),
    ]
    points, ranges, *masked = (side if kept.all() else side[:, kept] for side in sides)
    return Pairs(points, ranges, Masked(*masked))


def _stacked(columns: Sequence[Floats], rows: int) -> Floats:
    return np.array(columns).reshape(len(columns), rows)


def first_columns(values: Sequence[Values]) -> Metric:
    """The Euclidean distance over all of these."""
    rulers = np.array([ruler for one in values for ruler in one.rulers]).reshape(-1, 3)
    return Metric(_points(values), None, *np.ascontiguousarray(rulers.T))


def _slices(rows: Rows) -> Iterator[Rows]:
    """A block's rows a tile at a time, at least one: what is made of pairs takes more room than they do."""
    return (rows.slice(start, _TILE) for start in range(0, max(rows.num_rows, 1), _TILE))


def moved(values: Sequence[Values], rows: Rows, span: Span) -> Spread:
    """How far apart a block's pairs are: differences of points, gaps to ranges."""
    return merge_tree([_moved(values, part) for part in _slices(rows)], merge_spread)


def _moved(values: Sequence[Values], rows: Rows) -> Spread:
    pairs, metric = _pairs(values, rows, None), first_columns(values)
    gaps = range_gaps(pairs.ranges, *pairs.masked[1:], metric.scale, metric.least, metric.cap)
    return spread(list(np.concatenate([pairs.points - pairs.masked.points, gaps])))


def mahalanobis(plain: Metric, moves: Spread) -> Metric:
    """The plain distance in units of what the mask did: points by their covariance, ranges by their mean squared gap.

    The ridge makes a column that was left as it is count a thousand times as much as others, as it should; a
    pseudo-inverse would leave it out.
    """
    points = plain.points
    covariance = moves.covariance[:points, :points]
    squares = (np.diag(moves.covariance) + moves.mean**2)[points:]
    mean_square = (np.trace(covariance) + squares.sum()) / len(moves.mean)
    if mean_square <= _NOTHING:
        return plain
    ridge = _RIDGE * mean_square
    turn = np.linalg.inv(np.linalg.cholesky(covariance + ridge * np.eye(points))) if points else None
    weight = 1.0 / np.sqrt(squares + ridge)
    return plain._replace(turn=turn, scale=plain.scale * weight, least=plain.least * weight, cap=plain.cap * weight)


def linked(
    attack: Attack, pairs: Table, names: Sequence[str], table: Table, columns: Sequence[str], who: str
) -> Floats:
    """For each metric the number of right links, a tie of q as 1/q, against all of the masked table.

    Few records are attacked together, many in portions of as many blocks as there are threads: memory is bounded.
    """
    return one_pass(lambda: _linked(attack, pairs, names, table, columns, who), pairs.blocks, "linkage")


def _linked(
    attack: Attack, pairs: Table, names: Sequence[str], table: Table, columns: Sequence[str], who: str
) -> Floats:
    few = (pairs.rows if attack.chosen is None else len(attack.chosen)) <= _TOGETHER
    size = len(pairs.blocks) if few else threads()
    total = np.zeros(len(attack.metrics))
    for start in range(0, len(pairs.blocks), size):
        held = _hold(attack, pairs.reader(names), pairs.blocks[start : start + size], few)
        held = _met(attack, held, table, columns)
        for group, links, lost in map_blocks(_links, held, "linkage: links"):
            if lost:
                raise InputError(
                    f"{who}: the masked table changed while it was read. Persist it, or write it to files."
                )
            total[list(group)] += links
    return total


def _hold(attack: Attack, read: Callable[[Any, Span], Rows], blocks: Sequence[Block], few: bool) -> list[Run]:
    """The records attacked in these blocks, kept on the cluster: together where they are few, else block by block.

    Where there are fewer blocks than threads, each thread gets some of the metrics.
    """
    metrics = len(attack.metrics)
    shares = 1 if len(blocks) >= threads() else min(threads(), metrics)
    held = []
    for share in range(shares):
        make = partial(_queries, attack, read, tuple(range(share, metrics, shares)))
        label = "linkage: records"
        held += hold_joined(make, _joined, blocks, label) if few else hold_blocks(make, blocks, label)
    return held


def _queries(
    attack: Attack, read: Callable[[Any, Span], Rows], group: tuple[int, ...], content: Any, span: Span
) -> Queries:
    return _joined([_attacked(attack, group, part) for part in _slices(read(content, span))])


def _attacked(attack: Attack, group: tuple[int, ...], rows: Rows) -> Queries:
    points, ranges, masked = _pairs(attack.values, rows, attack.chosen)
    metrics = [attack.metrics[at] for at in group]
    radii = tuple(true_radii(metric, metric.known(points, ranges), masked) for metric in metrics)
    return Queries(points, ranges, group, radii, np.zeros((len(group), points.shape[1]), np.int64))


def _joined(parts: Sequence[Queries]) -> Queries:
    points, ranges, groups, radii, found = zip(*parts, strict=True)
    together = tuple(Radii(*map(np.concatenate, zip(*one, strict=True))) for one in zip(*radii, strict=True))
    joined = (np.concatenate(arrays, axis=1) for arrays in (points, ranges, found))
    return Queries(next(joined), next(joined), groups[0], together, next(joined))


def _met(attack: Attack, held: list[Run], table: Table, columns: Sequence[str]) -> list[Run]:
    """The records attacked, with the answers of all masked blocks.

    A few blocks come first, then twice as many, and so on: who is beaten by one of them is not asked again.
    """
    answers = partial(_answers, attack, table.reader(columns))
    start, count = 0, threads()
    while start < len(table.blocks):
        held = hold_beside(answers, _merge, _told, held, table.blocks[start : start + count], "linkage: attack")
        start, count = start + count, 2 * count
    return held


def _answers(
    attack: Attack, read: Callable[[Any, Span], Rows], held: Sequence[Queries], content: Any, span: Span
) -> list[Integers]:
    """What one block of masked records answers to each query, metrics x records."""
    masked = _released(attack.values, read(content, span))
    return [
        np.array([_answer(attack.metrics[at], one, number, masked) for number, at in enumerate(one.metrics)])
        for one in held
    ]


def _answer(metric: Metric, queries: Queries, number: int, masked: Masked) -> Integers:
    """Only those are asked that no block has beaten before."""
    answer = queries.found[number].copy()
    asked = answer != BEATEN
    known = metric.known(queries.points[:, asked], queries.ranges[:, asked])
    answer[asked] = as_close(metric, known, Radii(*(radius[asked] for radius in queries.radii[number])), masked)
    return answer


def _merge(left: Sequence[Integers], right: Sequence[Integers]) -> list[Integers]:
    return [merge_found(*both) for both in zip(left, right, strict=True)]


def _told(held: Sequence[Queries], answers: Sequence[Integers]) -> list[Queries]:
    return [one._replace(found=merge_found(one.found, answer)) for one, answer in zip(held, answers, strict=True)]


def _links(queries: Queries, span: Span) -> tuple[tuple[int, ...], Floats, int]:
    """Which metrics, the right links in each, and how many records did not even find themselves."""
    shares = np.where(queries.found > 0, 1.0 / np.maximum(queries.found, 1), 0.0)
    return queries.metrics, shares.sum(axis=1), int((queries.found == 0).sum())
