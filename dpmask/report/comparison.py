"""The numbers behind the charts: the distribution of each column before and after masking, and the correlations.

A small summary for each block of each table: counts on a grid of round numbers, counts of categories, and sums for the
correlations. A run takes them while it masks, so they cost no pass; two tables that are there already take one each.
Where the grid lies, and whether it grows by ratios, follows from 2,000 masked values of each column, from five runs of
records; nothing in it comes from an original. Originals of a generalised column are counted under the labels that they
are released as. Counts are exact, and the same for any partitioning. Memory per task: one block, and 16 KB for each
column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts
from dpmask.kernels.comoments import CoMoments, comoments, merge_comoments
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.order.histogram import Grid, even_grid, grid_counts
from dpmask.lake.reading import Rows
from dpmask.report.arrangement import arranged
from dpmask.report.column_bars import compared_numbers
from dpmask.report.compared import (
    ComparedCategories,
    ComparedColumn,
    ComparedTables,
    Correlations,
    Matrix,
    NotDrawn,
    ReleasedCategories,
)
from dpmask.report.log_bars import log_counts, log_edges
from dpmask.report.words import kind_words
from dpmask.table.columns import floats, is_category, is_numeric, rounding_step
from dpmask.table.encoders.texts import TextCounts
from dpmask.table.label_sets import AsReleased, LabelSets, overlap
from dpmask.table.sample_rows import sample_rows
from dpmask.table.table import Table

MOST_CORRELATED = 30
"""More columns than this make a heat map that nobody can read."""

_CELLS = 1024
_TAIL = 0.005
_BEYOND = 4
_LARGEST = 1e308
_MOST_CATEGORIES = 1000
_SKEWED = 12.0
"""A column whose upper end is so many times its median is drawn on bars that grow by ratios."""


class ColumnCounts(NamedTuple):
    """One block's share of one table: numbers on grids, zeros, skewed ones by ratios, categories, sums, moments."""

    counts: list[Counts]
    zeros: Counts
    by_ratio: list[Counts]
    texts: list[TextCounts]
    sums: CoMoments | None
    moments: Moments | None


@dataclass(frozen=True)
class ColumnCounter:
    """Counts columns in the blocks of one table."""

    grids: Mapping[str, Grid]
    categories: tuple[str, ...]
    related: tuple[str, ...]
    others: tuple[str, ...] = ()
    """Numbers whose moments are needed though they are not related."""
    edges: Mapping[str, list[float]] = field(default_factory=dict)
    """Of skewed columns, between which values are counted once more."""
    labels: tuple[AsReleased, ...] = ()
    """The labels that originals of generalised columns are counted under."""

    @property
    def columns(self) -> list[str]:
        """The columns it needs."""
        return list(dict.fromkeys([*self.grids, *self.categories, *self.related, *self.others]))

    def __call__(self, rows: Rows) -> ColumnCounts:
        """The counts of one block."""
        labelled = {one.column: one for one in self.labels}
        counts, zeros, by_ratio = list[Counts](), list[int](), list[Counts]()
        for name, grid in self.grids.items():
            values = floats(rows, name)
            counts.append(grid_counts(values, grid))
            zeros.append(int(np.count_nonzero(values == 0.0)))
            by_ratio += [log_counts(values, self.edges[name])] if name in self.edges else []
        return ColumnCounts(
            counts,
            np.array(zeros, np.int64),
            by_ratio,
            [_texts(rows, name, labelled.get(name)) for name in self.categories],
            comoments([floats(rows, name) for name in self.related], 2) if self.related else None,
            column_moments([floats(rows, name) for name in self.others]) if self.others else None,
        )

    def over(self, table: Table) -> ColumnCounts:
        """The counts of a whole table, in a pass over it."""
        return table.select(self.columns).reduce(self, merge_counts, "report: distributions")


def _texts(rows: Rows, column: str, labels: AsReleased | None) -> TextCounts:
    if labels is not None:
        rows = labels.replaced(rows.select([column]))
    return TextCounts.of(rows, column, most=_MOST_CATEGORIES)


@dataclass(frozen=True)
class ColumnComparison:
    """Columns of two tables to be compared; records need no partner. ``before`` and ``after`` count a table each."""

    columns: tuple[str, ...]
    kinds: Mapping[str, tuple[Any, Any]]
    before: ColumnCounter
    after: ColumnCounter

    def result(self, before: ColumnCounts, after: ColumnCounts) -> ComparedTables:
        """The distributions and correlations, ready for a report."""
        numbers = [name for name in self.columns if all(map(is_numeric, self.kinds[name]))]
        originals, released = (
            dict(zip(counter.categories, counts.texts, strict=True))
            for counter, counts in ((self.before, before), (self.after, after))
        )
        drawn: dict[str, ComparedColumn] = {name: NotDrawn(name, "too few values to draw") for name in numbers}
        drawn |= self._numbers(before, after)
        sets = {one.column: one.sets for one in self.before.labels}
        drawn |= {name: _category(name, originals.get(name), one, sets.get(name)) for name, one in released.items()}
        columns = tuple(drawn.get(name) or _not_drawn(name, self.kinds[name]) for name in self.columns)
        with np.errstate(invalid="ignore"):  # values near the largest double have no moments
            related = before.sums.moments if before.sums else None
        leverages = _leverages(self.before.related, related) | _leverages(self.before.others, before.moments)
        return ComparedTables(columns, _correlations(self.after.related, before.sums, after.sums), leverages)

    def _numbers(self, before: ColumnCounts, after: ColumnCounts) -> dict[str, ComparedColumn]:
        both = zip(before.by_ratio, after.by_ratio, strict=True)
        by_ratio = dict(zip(self.after.edges, both, strict=True))
        zeros = zip(before.zeros.tolist(), after.zeros.tolist(), strict=True)
        each = zip(self.after.grids.items(), zeros, before.counts, after.counts, strict=True)
        return {
            name: compared_numbers(name, grid, none, counted, (self.after.edges.get(name), by_ratio.get(name, ())))
            for (name, grid), none, *counted in each
        }


def comparison(
    original: Table, masked: Table, columns: Sequence[str], related: Sequence[str] = (), sets: LabelSets | None = None
) -> ColumnComparison:
    """How ``columns`` will be compared, and the correlations of ``related`` ones; reads some masked records.

    ``sets`` say what labels of generalised columns stand for.
    """
    schemas = original.masked_schema, masked.masked_schema
    kinds = {
        name: (schemas[0].field(name).type, schemas[1].field(name).type) for name in dict.fromkeys([*columns, *related])
    }
    numeric = [name for name, both in kinds.items() if all(map(is_numeric, both))]
    after = tuple(name for name in columns if is_category(kinds[name][1]))
    labels = tuple(
        AsReleased(name, sets[name], kinds[name][1])
        for name in after
        if sets and sets.get(name) and len(sets[name]) <= _MOST_CATEGORIES
    )
    labelled = {one.column for one in labels}
    before = tuple(name for name in after if is_category(kinds[name][0]) or name in labelled)
    most = tuple(name for name in related if name in numeric)[:MOST_CORRELATED]
    numbers = [name for name in columns if name in numeric]
    sampled = dict(zip(numbers, _sampled(masked, tuple(numbers)), strict=True))
    grids = {name: _grid(values, kinds[name]) for name, values in sampled.items() if len(values)}
    edges = {name: found for name, values in sampled.items() if (found := _edges_by_ratio(values))}
    pairs = most if len(most) > 1 else ()
    others = tuple(name for name in numeric if name not in pairs)
    counters = (
        ColumnCounter(grids, before, pairs, others, edges, labels),
        ColumnCounter(grids, after, pairs, edges=edges),
    )
    return ColumnComparison(tuple(columns), kinds, *counters)


def compare(
    original: Table, masked: Table, columns: Sequence[str], related: Sequence[str] = (), sets: LabelSets | None = None
) -> ComparedTables:
    """Columns of two tables compared, in a pass over each."""
    found = comparison(original, masked, columns, related, sets)
    return found.result(found.before.over(original), found.after.over(masked))


def _grid(values: Any, kinds: tuple[Any, Any]) -> Grid:
    """A grid round the middle of some masked values, five times as wide."""
    low, high = np.quantile(values, [_TAIL, 1 - _TAIL])
    reach = high / 2 - low / 2  # halves: the difference of two doubles may be none
    with np.errstate(over="ignore"):
        start, end = np.clip([low - _BEYOND * reach, high + _BEYOND * reach], -_LARGEST, _LARGEST).tolist()
    return even_grid(start, end, _CELLS, all(rounding_step(kind) == 1 for kind in kinds))


def _edges_by_ratio(values: Any) -> list[float]:
    """Round numbers that grow by ratios, where some masked values are positive and skewed; nothing where they are not.

    A few negative ones among them lie outside.
    """
    others = values[values != 0.0]
    if not len(others):
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        low, middle, high = np.quantile(others, [_TAIL, 0.5, 1 - _TAIL]).tolist()
    return log_edges(low, high) if low > 0.0 and high / _SKEWED > middle else []


def _sampled(table: Table, columns: tuple[str, ...]) -> list[Any]:
    """Some values of each column, from the same few runs of records however the table is cut into blocks."""
    there = sample_rows(table)
    if not columns or not there.blocks:
        return [np.empty(0)] * len(columns)
    parts = there.select(columns).map(partial(_finite, columns), "report: ranges")
    return [np.concatenate(some) for some in zip(*parts, strict=True)]


def _finite(columns: tuple[str, ...], rows: Rows) -> list[Any]:
    """The finite values of each column, sorted: none is to be known by its place."""
    values = (floats(rows, name) for name in columns)
    return [np.sort(one[np.isfinite(one)]) for one in values]


def merge_counts(left: ColumnCounts, right: ColumnCounts) -> ColumnCounts:
    """The counts of both parts."""
    return ColumnCounts(
        [one + two for one, two in zip(left.counts, right.counts, strict=True)],
        left.zeros + right.zeros,
        [one + two for one, two in zip(left.by_ratio, right.by_ratio, strict=True)],
        [one.plus(two) for one, two in zip(left.texts, right.texts, strict=True)],
        merge_comoments(left.sums, right.sums) if left.sums and right.sums else None,
        merge_moments(left.moments, right.moments) if left.moments and right.moments else None,
    )


def _category(
    name: str, before: TextCounts | None, after: TextCounts, sets: Mapping[str, Sequence[object] | None] | None
) -> ComparedColumn:
    if after.many:
        return NotDrawn(name, f"has more than {_MOST_CATEGORIES:,} different values")
    known = before is not None and not before.many and (sets is None or not overlap(sets, after.texts))
    original = before.texts if before is not None and known else None
    shown, alone = arranged(after.texts, original), arranged(after.texts)
    return ComparedCategories(
        name,
        shown.labels,
        None if original is None else shown.counted(original),
        shown.counted(after.texts),
        shown.others,
        ordered=shown.ordered,
        missing=(before.missing if before is not None and known else 0, after.missing),
        generalised=sets is not None and known,
        released=ReleasedCategories(alone.labels, alone.counted(after.texts), alone.others),
    )


def _not_drawn(name: str, kinds: tuple[Any, Any]) -> NotDrawn:
    types = ", then ".join(dict.fromkeys(kind_words(str(kind)) for kind in kinds))
    return NotDrawn(name, f"not drawn: {types}")


def _correlations(columns: Sequence[str], before: CoMoments | None, after: CoMoments | None) -> Correlations | None:
    if before is None or after is None:
        return None
    return Correlations(list(columns), _listed(before), _listed(after))


def _leverages(columns: Sequence[str], found: Moments | None) -> dict[str, float]:
    """The largest (x - m)^2 / sum of (x - m)^2 of each column, to three digits; 1 if unknown, 0 of a constant."""
    if found is None:
        return {}
    with np.errstate(all="ignore"):
        farthest = np.maximum(found.high - found.mean, found.mean - found.low)
        shares = (farthest / np.sqrt(found.squares)) ** 2
    shares = np.where(
        np.isfinite(shares) & np.isfinite(found.squares) & (found.infinite == 0), np.minimum(shares, 1.0), 1.0
    )
    constant = (found.squares <= 0) & (found.infinite == 0)
    exact = np.where(constant, 0.0, shares).tolist()
    return {name: float(f"{share:.3g}") for name, share in zip(columns, exact, strict=True)}


def _listed(sums: CoMoments) -> Matrix:
    matrix = np.clip(sums.correlation, -1.0, 1.0)
    return [[None if np.isnan(r) else round(float(r), 6) for r in row] for row in matrix]
