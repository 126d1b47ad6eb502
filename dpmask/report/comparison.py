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

from dpmask.kernels.comoments import CoMoments, comoments, merge_comoments
from dpmask.kernels.order.histogram import Bars, Counts, Grid, common_bars, even_grid, grid_counts
from dpmask.lake.reading import Rows
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
    """One block's share of one table: grid counts of numbers, counts of categories, and sums for correlations."""

    counts: list[Counts]
    texts: list[TextCounts]
    sums: CoMoments | None


@dataclass(frozen=True)
class ColumnCounter:
    """Counts columns in the blocks of one table."""

    grids: Mapping[str, Grid]
    categories: tuple[str, ...]
    related: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """The columns it needs."""
        return list(dict.fromkeys([*self.grids, *self.categories, *self.related]))

    def __call__(self, rows: Rows) -> ColumnCounts:
        """The counts of one block."""
        return ColumnCounts(
            [grid_counts(floats(rows, name), grid) for name, grid in self.grids.items()],
            [TextCounts.of(rows, name, most=_MOST_CATEGORIES) for name in self.categories],
            comoments([floats(rows, name) for name in self.related], 2) if self.related else None,
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

    def result(self, before: ColumnCounts, after: ColumnCounts) -> dict[str, Any]:
        """The distributions and correlations, ready for a report."""
        numbers = [name for name in self.columns if all(map(is_numeric, self.kinds[name]))]
        originals, released = (
            dict(zip(counter.categories, counts.texts, strict=True))
            for counter, counts in ((self.before, before), (self.after, after))
        )
        drawn = _numbers(numbers, self.after.grids, before.counts, after.counts)
        drawn |= {name: _category(name, originals.get(name), texts) for name, texts in released.items()}
        return {
            "columns": [drawn.get(name) or _not_drawn(name, self.kinds[name]) for name in self.columns],
            "correlations": _correlations(self.after.related, before.sums, after.sums),
        }


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
    together = most if len(most) > 1 else ()
    return Comparison(
        tuple(columns), kinds, ColumnCounter(grids, before, together), ColumnCounter(grids, after, together)
    )


def compare(original: Table, masked: Table, columns: Sequence[str], related: Sequence[str] = ()) -> dict[str, Any]:
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
    )


def _numbers(
    columns: Sequence[str], grids: Mapping[str, Grid], before: Sequence[Counts], after: Sequence[Counts]
) -> dict[str, Any]:
    drawn: dict[str, Any] = {}
    for (name, grid), one, two in zip(grids.items(), before, after, strict=True):
        bars = common_bars(grid, [one, two], _MOST_BARS, _TAIL)
        drawn[name] = {
            "column": name,
            "kind": "number",
            "whole": bool(grid.shift),
            **_bars(bars),
            "released": _bars(common_bars(grid, [two], _MOST_BARS, _TAIL)),
        }
    nothing = {"kind": "none", "reason": "too few values to draw"}
    return {name: {"column": name, **nothing} for name in columns} | drawn


def _bars(bars: Bars) -> dict[str, Any]:
    return {
        "edges": _clean(bars.edges),
        "counts": list(bars.counts),
        "below": list(bars.below),
        "above": list(bars.above),
        "missing": list(bars.missing),
    }


def _clean(edges: list[float]) -> list[float]:
    """Edges as people write them, 0.3 and not 0.30000000000000004, as long as they are still distinct."""
    written = [float(f"{edge:.12g}") for edge in edges]
    return written if len(set(written)) == len(edges) else edges


def _category(name: str, before: TextCounts | None, after: TextCounts) -> dict[str, Any]:
    if after.many:
        return {"column": name, "kind": "none", "reason": f"has more than {_MOST_CATEGORIES:,} different values"}
    before = None if before is None or before.many else before
    sides = [before.texts if before else Counter[str](), after.texts]
    order = sorted(sides[0] | sides[1], key=lambda text: (-sides[1][text], -sides[0][text], text))
    shown, rest = order[:_SHOWN_CATEGORIES], order[_SHOWN_CATEGORIES:]
    counts = [[side[text] for text in shown] + [sum(side[text] for text in rest)] for side in sides]
    labels = [*shown, f"{len(rest)} other values"]
    last = None if rest else -1
    return {
        "column": name,
        "kind": "category",
        "labels": labels[:last],
        "counts": [counts[0][:last] if before is not None else None, counts[1][:last]],
    }


def _not_drawn(name: str, kinds: tuple[Any, Any]) -> dict[str, Any]:
    types = " and then ".join(dict.fromkeys(map(str, kinds)))
    return {"column": name, "kind": "none", "reason": f"{types} is not drawn"}


def _correlations(columns: Sequence[str], before: CoMoments | None, after: CoMoments | None) -> dict[str, Any] | None:
    if before is None or after is None:
        return None
    return {"columns": list(columns), "before": _listed(before), "after": _listed(after)}


def _listed(sums: CoMoments) -> list[list[float | None]]:
    matrix = np.clip(sums.correlation, -1.0, 1.0)
    return [[None if np.isnan(r) else round(float(r), 6) for r in row] for row in matrix]
