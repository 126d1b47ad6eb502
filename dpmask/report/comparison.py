"""The numbers behind the charts: the distribution of each column before and after masking, and the correlations.

A small summary for each block of each table: counts on a grid of round numbers, counts of categories, and sums for the
correlations. A run takes them while it masks, so they cost no pass; two tables that are there already take one each.
Where the grid lies follows from 2,000 masked values of each column, from five runs of records; nothing in it comes
from an original. Counts are exact, and the same for any partitioning. Memory per task: one block, and 16 KB for each
column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts
from dpmask.kernels.comoments import CoMoments, comoments, merge_comoments
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.order.histogram import Bars, Grid, common_bars, even_grid, grid_counts
from dpmask.lake.reading import Rows
from dpmask.report.compared import (
    ComparedCategories,
    ComparedColumn,
    ComparedNumbers,
    ComparedTables,
    Correlations,
    Matrix,
    NotDrawn,
)
from dpmask.table.columns import floats, is_category, is_numeric, rounding_step
from dpmask.table.encoders.texts import TextCounts
from dpmask.table.sample_rows import sample_rows
from dpmask.table.table import Table

MOST_CORRELATED = 30
"""More columns than this make a heat map that nobody can read."""

_CELLS = 1024
_MOST_BARS = 32
_TAIL = 0.005
_BEYOND = 4
_LARGEST = 1e308
_MOST_CATEGORIES = 1000
_SHOWN_CATEGORIES = 12


class ColumnCounts(NamedTuple):
    """One block's share of one table: grid counts of numbers, counts of categories, sums for correlations, moments."""

    counts: list[Counts]
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

    @property
    def columns(self) -> list[str]:
        """The columns it needs."""
        return list(dict.fromkeys([*self.grids, *self.categories, *self.related, *self.others]))

    def __call__(self, rows: Rows) -> ColumnCounts:
        """The counts of one block."""
        return ColumnCounts(
            [grid_counts(floats(rows, name), grid) for name, grid in self.grids.items()],
            [TextCounts.of(rows, name, most=_MOST_CATEGORIES) for name in self.categories],
            comoments([floats(rows, name) for name in self.related], 2) if self.related else None,
            column_moments([floats(rows, name) for name in self.others]) if self.others else None,
        )

    def over(self, table: Table) -> ColumnCounts:
        """The counts of a whole table, in a pass over it."""
        return table.select(self.columns).reduce(self, merge_counts, "report: distributions")


@dataclass(frozen=True)
class Comparison:
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
        drawn |= _numbers(self.after.grids, before.counts, after.counts)
        drawn |= {name: _category(name, originals.get(name), texts) for name, texts in released.items()}
        columns = tuple(drawn.get(name) or _not_drawn(name, self.kinds[name]) for name in self.columns)
        with np.errstate(invalid="ignore"):  # values near the largest double have no moments
            related = before.sums.moments if before.sums else None
        leverages = _leverages(self.before.related, related) | _leverages(self.before.others, before.moments)
        return ComparedTables(columns, _correlations(self.after.related, before.sums, after.sums), leverages)


def comparison(original: Table, masked: Table, columns: Sequence[str], related: Sequence[str] = ()) -> Comparison:
    """How ``columns`` will be compared, and the correlations of ``related`` ones; reads some masked records."""
    schemas = original.masked_schema, masked.masked_schema
    kinds = {
        name: (schemas[0].field(name).type, schemas[1].field(name).type) for name in dict.fromkeys([*columns, *related])
    }
    numeric = [name for name, both in kinds.items() if all(map(is_numeric, both))]
    after = tuple(name for name in columns if is_category(kinds[name][1]))
    before = tuple(name for name in after if is_category(kinds[name][0]))
    most = tuple(name for name in related if name in numeric)[:MOST_CORRELATED]
    grids = _grids(masked, {name: kinds[name] for name in columns if name in numeric})
    pairs = most if len(most) > 1 else ()
    others = tuple(name for name in numeric if name not in pairs)
    counters = ColumnCounter(grids, before, pairs, others), ColumnCounter(grids, after, pairs)
    return Comparison(tuple(columns), kinds, *counters)


def compare(original: Table, masked: Table, columns: Sequence[str], related: Sequence[str] = ()) -> ComparedTables:
    """Columns of two tables compared, in a pass over each."""
    found = comparison(original, masked, columns, related)
    return found.result(found.before.over(original), found.after.over(masked))


def _grids(masked: Table, kinds: Mapping[str, tuple[Any, Any]]) -> dict[str, Grid]:
    """A grid for each column of numbers that has any: round the middle of the masked values, five times as wide."""
    grids = {}
    for name, values in zip(kinds, _sampled(masked, tuple(kinds)), strict=True):
        if len(values):
            low, high = np.quantile(values, [_TAIL, 1 - _TAIL])
            reach = high / 2 - low / 2  # halves: the difference of two doubles may be none
            with np.errstate(over="ignore"):
                start, end = np.clip([low - _BEYOND * reach, high + _BEYOND * reach], -_LARGEST, _LARGEST).tolist()
            grids[name] = even_grid(start, end, _CELLS, all(rounding_step(kind) == 1 for kind in kinds[name]))
    return grids


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
        [one.plus(two) for one, two in zip(left.texts, right.texts, strict=True)],
        merge_comoments(left.sums, right.sums) if left.sums and right.sums else None,
        merge_moments(left.moments, right.moments) if left.moments and right.moments else None,
    )


def _numbers(grids: Mapping[str, Grid], before: Sequence[Counts], after: Sequence[Counts]) -> dict[str, ComparedColumn]:
    return {
        name: ComparedNumbers(name, bool(grid.shift), _bars(grid, one, two), _bars(grid, two))
        for (name, grid), one, two in zip(grids.items(), before, after, strict=True)
    }


def _bars(grid: Grid, *counted: Counts) -> Bars:
    bars = common_bars(grid, counted, _MOST_BARS, _TAIL)
    return bars._replace(edges=_clean(bars.edges))


def _clean(edges: list[float]) -> list[float]:
    """Edges as people write them, 0.3 and not 0.30000000000000004, as long as they are still distinct."""
    written = [float(f"{edge:.12g}") for edge in edges]
    return written if len(set(written)) == len(edges) else edges


def _category(name: str, before: TextCounts | None, after: TextCounts) -> ComparedColumn:
    if after.many:
        return NotDrawn(name, f"has more than {_MOST_CATEGORIES:,} different values")
    original = Counter[str]() if before is None or before.many else before.texts
    order = sorted(original | after.texts, key=lambda text: (-after.texts[text], -original[text], text))
    shown, rest = order[:_SHOWN_CATEGORIES], order[_SHOWN_CATEGORIES:]
    known = before is not None and not before.many
    return ComparedCategories(
        name,
        [*shown, *([f"{len(rest)} other values"] if rest else [])],
        _counted(original, shown, rest) if known else None,
        _counted(after.texts, shown, rest),
        len(rest),
    )


def _counted(counts: Counter[str], shown: Sequence[str], rest: Sequence[str]) -> list[int]:
    """How often each of the shown values occurs, and all others together, if there are any."""
    return [counts[text] for text in shown] + ([sum(counts[text] for text in rest)] if rest else [])


def _not_drawn(name: str, kinds: tuple[Any, Any]) -> NotDrawn:
    types = " and then ".join(dict.fromkeys(map(str, kinds)))
    return NotDrawn(name, f"{types} is not drawn")


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
