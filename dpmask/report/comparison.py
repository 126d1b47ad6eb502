"""The numbers behind the charts: how each column was spread before and after masking, and how columns hang together.

One pass over each table, a small summary for each block: counts on a grid of round numbers, counts of categories, and
sums for the correlations. Where the grid lies follows from 2,000 masked values of each column, from five blocks at most
(ten where a stretch of them lies across two); nothing in it tells of an original. Counts are exact, and the same for
any partitioning. Memory per task: one block, and 16 KB for each column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmask.engine.passes import Span
from dpmask.kernels.correlation import PairSums, correlations, merge_pair_sums, pair_sums
from dpmask.kernels.histogram import Bars, Counts, Grid, common_bars, even_grid, grid_counts
from dpmask.lake.columns import Rows, category_counts, floats, is_category, is_numeric, rounding_step
from dpmask.lake.table import Table

MOST_CORRELATED = 30
"""More columns than this make a heat map that nobody can read."""

_CELLS = 1024
_MOST_BARS = 32
_TAIL = 0.005
_STRETCHES, _STRETCH = 5, 400
_LARGEST = 1e308
_MOST_CATEGORIES = 1000
_SHOWN_CATEGORIES = 12

Tally = dict[str, int] | None
"""How many records have each category; None where there are too many to tell."""


class Kinds(NamedTuple):
    """Which columns are numbers on both sides, which are categories once masked, and which of these were before."""

    numbers: tuple[str, ...]
    after: tuple[str, ...]
    before: tuple[str, ...]
    related: tuple[str, ...]


class Seen(NamedTuple):
    """One block's share of one table: grid counts of numbers, tallies of categories, and sums for correlations."""

    counts: list[Counts]
    tallies: list[Tally]
    sums: PairSums | None


def compare(original: Table, masked: Table, columns: Sequence[str], related: Sequence[str] = ()) -> dict[str, Any]:
    """How ``columns`` are spread in both tables, and the correlations of ``related`` ones; records need no partner."""
    kinds = _kinds(original, masked, columns, related)
    grids = _grids(original, masked, kinds.numbers)
    before = _seen(original, grids, kinds.before, kinds.related)
    after = _seen(masked, grids, kinds.after, kinds.related)
    tallies = dict(zip(kinds.before, before.tallies, strict=True)), dict(zip(kinds.after, after.tallies, strict=True))
    drawn = _numbers(kinds.numbers, grids, before.counts, after.counts)
    drawn |= {name: _category(name, tallies[0].get(name), tally) for name, tally in tallies[1].items()}
    return {
        "columns": [drawn.get(name) or _not_drawn(original, masked, name) for name in columns],
        "correlations": _correlations(kinds.related, before.sums, after.sums),
    }


def _seen(table: Table, grids: Mapping[str, Grid], categories: Sequence[str], related: Sequence[str]) -> Seen:
    names = list(dict.fromkeys([*grids, *categories, *related]))
    if not names:
        return Seen([], [], None)
    look = partial(_look, grids, categories, related if len(related) > 1 else ())
    return table.reduce_rows(names, look, _merge, "report: distributions")


def _kinds(original: Table, masked: Table, columns: Sequence[str], related: Sequence[str]) -> Kinds:
    schemas = original.masked_schema, masked.masked_schema
    kinds = {name: [one.field(name).type for one in schemas] for name in dict.fromkeys([*columns, *related])}
    after = tuple(name for name in columns if is_category(kinds[name][1]))
    return Kinds(
        tuple(name for name in columns if all(map(is_numeric, kinds[name]))),
        after,
        tuple(name for name in after if is_category(kinds[name][0])),
        tuple(name for name in related if all(map(is_numeric, kinds[name])))[:MOST_CORRELATED],
    )


def _grids(original: Table, masked: Table, columns: Sequence[str]) -> dict[str, Grid]:
    """A grid for each column of numbers that has any: round the middle of the masked values, three times as wide."""
    grids = {}
    for name, values in zip(columns, _sampled(masked, columns), strict=True):
        if len(values):
            low, high = np.quantile(values, [_TAIL, 1 - _TAIL])
            reach = high / 2 - low / 2  # halves: the difference of two doubles may be none
            kinds = [one.masked_schema.field(name).type for one in (original, masked)]
            with np.errstate(over="ignore"):
                start, end = np.clip([low - 2 * reach, high + 2 * reach], -_LARGEST, _LARGEST).tolist()
            grids[name] = even_grid(start, end, _CELLS, all(rounding_step(kind) == 1 for kind in kinds))
    return grids


def _sampled(table: Table, columns: Sequence[str]) -> list[Any]:
    """Some values of each column, from the same few stretches of records however the table is cut into blocks."""
    length = min(_STRETCH, -(-table.rows // _STRETCHES))
    starts = [(2 * n + 1) * (table.rows - length) // (2 * _STRETCHES) for n in range(_STRETCHES)]
    blocks = [one for one in table.blocks if any(one.first - length < at < one.first + one.rows for at in starts)]
    if not columns or not blocks:
        return [np.empty(0)] * len(columns)
    there = replace(table, blocks=tuple(blocks))
    pick = partial(_pick, tuple(columns), starts, length)
    return [np.concatenate(parts) for parts in zip(*there.map(columns, pick, "report: ranges"), strict=True)]


def _pick(columns: Sequence[str], starts: Sequence[int], length: int, rows: Rows, span: Span) -> list[Any]:
    ends = [(max(at - span.first, 0), max(at - span.first + length, 0)) for at in starts]
    values = [np.concatenate([floats(rows, name)[low:high] for low, high in ends]) for name in columns]
    return [np.sort(one[np.isfinite(one)]) for one in values]


def _look(grids: Mapping[str, Grid], categories: Sequence[str], related: Sequence[str], rows: Rows, span: Span) -> Seen:
    return Seen(
        [grid_counts(floats(rows, name), grid) for name, grid in grids.items()],
        [category_counts(rows, name, _MOST_CATEGORIES) for name in categories],
        pair_sums([floats(rows, name) for name in related]) if related else None,
    )


def _merge(left: Seen, right: Seen) -> Seen:
    return Seen(
        [one + two for one, two in zip(left.counts, right.counts, strict=True)],
        [_both(one, two) for one, two in zip(left.tallies, right.tallies, strict=True)],
        merge_pair_sums(left.sums, right.sums) if left.sums and right.sums else None,
    )


def _both(left: Tally, right: Tally) -> Tally:
    if left is None or right is None:
        return None
    total = {text: left.get(text, 0) + right.get(text, 0) for text in {**left, **right}}
    return total if len(total) <= _MOST_CATEGORIES else None


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
        "edges": [float(f"{edge:.12g}") for edge in bars.edges],
        "counts": list(bars.counts),
        "below": list(bars.below),
        "above": list(bars.above),
        "missing": list(bars.missing),
    }


def _category(name: str, before: Tally, after: Tally) -> dict[str, Any]:
    if after is None:
        return {"column": name, "kind": "none", "reason": f"has more than {_MOST_CATEGORIES:,} different values"}
    sides = [before or {}, after]
    order = sorted({**after, **sides[0]}, key=lambda text: (-after.get(text, 0), -sides[0].get(text, 0), text))
    shown, rest = order[:_SHOWN_CATEGORIES], order[_SHOWN_CATEGORIES:]
    counts = [[side.get(text, 0) for text in shown] + [sum(side.get(text, 0) for text in rest)] for side in sides]
    labels = [*shown, f"{len(rest)} other values"]
    last = None if rest else -1
    return {
        "column": name,
        "kind": "category",
        "labels": labels[:last],
        "counts": [counts[0][:last] if before is not None else None, counts[1][:last]],
    }


def _not_drawn(original: Table, masked: Table, name: str) -> dict[str, Any]:
    kinds = [str(one.masked_schema.field(name).type) for one in (original, masked)]
    return {"column": name, "kind": "none", "reason": " and then ".join(dict.fromkeys(kinds)) + " is not drawn"}


def _correlations(columns: Sequence[str], before: PairSums | None, after: PairSums | None) -> dict[str, Any] | None:
    if before is None or after is None:
        return None
    sides = {"before": _listed(correlations(before)), "after": _listed(correlations(after))}
    return {"columns": list(columns), **sides}


def _listed(matrix: Any) -> list[list[float | None]]:
    return [[None if np.isnan(r) else round(float(r), 6) for r in row] for row in matrix]
