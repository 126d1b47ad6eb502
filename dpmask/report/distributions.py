"""Compared columns prepared for drawing: both tables for the data holder; the masked one, pooled, for the public."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from dpmask.kernels.order.histogram import pooled
from dpmask.report.compared import ComparedCategories, ComparedColumn, ComparedNumbers, Correlations, Matrix, NotDrawn
from dpmask.report.public_numbers import public_share

LEAST_SHOWN = 10
"""Fewer records than this are not shown by themselves to the public."""

_MOST_CHANGED = 10


@dataclass(frozen=True, kw_only=True)
class DrawnColumn:
    """A column as a page shows it: a chart of ``shares``, by table, and a table of ``rows``."""

    column: str
    kind: Literal["number", "category", "none"]
    shares: Mapping[str, Sequence[float]] = field(default_factory=dict)
    rows: Sequence[tuple[Any, ...]] = ()
    labels: Sequence[str] = ()
    edges: Sequence[float] = ()
    ends: tuple[str, ...] = ()
    """The first, the middle and the last value of the chart."""
    outside: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """The shares of values below and above the chart."""
    missing: Sequence[int] = ()
    reason: str = ""
    """Why it is not drawn."""


def drawn_columns(columns: Iterable[ComparedColumn]) -> list[DrawnColumn]:
    """Each column with its shares before and after masking, and a table of them."""
    return [_drawn(one) for one in columns]


def public_columns(columns: Iterable[ComparedColumn]) -> list[DrawnColumn]:
    """Each column's masked values, ends open, everything small joined with its neighbours; without counts."""
    return [found for one in columns if (found := _public(one)) is not None]


def _drawn(column: ComparedColumn) -> DrawnColumn:
    if isinstance(column, NotDrawn):
        return DrawnColumn(column=column.column, kind="none", reason=column.reason)
    return _drawn_numbers(column) if isinstance(column, ComparedNumbers) else _drawn_categories(column)


def _drawn_categories(column: ComparedCategories) -> DrawnColumn:
    counted = {"before": column.before, "after": column.after}
    shares = {table: _shares(counts, sum(counts)) for table, counts in counted.items() if counts is not None}
    rows = list(zip(column.labels, *shares.values(), strict=True))
    return DrawnColumn(column=column.column, kind="category", labels=column.labels, shares=shares, rows=rows)


def _drawn_numbers(column: ComparedNumbers) -> DrawnColumn:
    (edges, counts, below, above, missing), whole = column.bars, column.whole
    totals = [sum(some) + under + over for some, under, over in zip(counts, below, above, strict=True)]
    shares = [_shares(some, total) for some, total in zip(counts, totals, strict=True)]
    outside = {
        name: [count / max(total, 1) for count, total in zip(some, totals, strict=True)]
        for name, some in (("below", below), ("above", above))
    }
    rows: list[tuple[Any, ...]] = (
        [(f"below {shown(edges[0], whole)}", *outside["below"])] if any(outside["below"]) else []
    )
    rows += [
        (between(low, high, whole), *both) for low, high, *both in zip(edges[:-1], edges[1:], *shares, strict=True)
    ]
    rows += [(f"{shown(edges[-1], whole)} and more", *outside["above"])] if any(outside["above"]) else []
    return DrawnColumn(
        column=column.column,
        kind="number",
        edges=edges,
        shares=dict(zip(("before", "after"), shares, strict=True)),
        rows=rows,
        ends=_ends(edges, whole),
        outside=outside,
        missing=missing,
    )


def _public(column: ComparedColumn) -> DrawnColumn | None:
    if isinstance(column, NotDrawn):
        return None
    return _public_numbers(column) if isinstance(column, ComparedNumbers) else _public_categories(column)


def _public_numbers(column: ComparedNumbers) -> DrawnColumn | None:
    bars = column.released  # whose edges follow from the masked values alone
    counts = [bars.below[0], *bars.counts[0], bars.above[0]]
    groups = pooled(counts, LEAST_SHOWN)
    if not groups:
        return None
    edges, whole, total = bars.edges, column.whole, sum(counts)
    width = edges[1] - edges[0]
    ends = [edges[0] - width, *edges, edges[-1] + width]
    rows = []
    for start, end, count in groups:
        low = None if start == 0 else ends[start]
        high = None if end == len(counts) else ends[end]
        rows.append((_open(low, high, whole), public_share(count, total)))
    return DrawnColumn(
        column=column.column,
        kind="number",
        edges=[ends[groups[0][0]], *(ends[end] for _, end, _ in groups)],
        shares={"after": [round(public_share(count, total) / (end - start), 6) for start, end, count in groups]},
        rows=rows,
        ends=_ends(edges, whole),
    )


def _public_categories(column: ComparedCategories) -> DrawnColumn | None:
    counts, total = column.after, sum(column.after)
    named = dict(zip(column.labels[: -1 if column.others else None], counts, strict=False))
    kept = {text: count for text, count in named.items() if count >= LEAST_SHOWN}
    other = total - sum(kept.values())
    while kept and 0 < other < LEAST_SHOWN:
        other += kept.pop(min(kept, key=lambda text: (kept[text], text)))
    if not kept:
        return None
    labels = [*kept, *(["other values"] if other else [])]
    shares = [public_share(count, total) for count in [*kept.values(), *([other] if other else [])]]
    rows = list(zip(labels, shares, strict=True))
    return DrawnColumn(column=column.column, kind="category", labels=labels, shares={"after": shares}, rows=rows)


class ComparedCorrelations(NamedTuple):
    """Correlations of both tables, their difference, and the pairs that changed most: names, before, after, change."""

    columns: list[str]
    before: Matrix
    after: Matrix
    change: Matrix
    most_changed: list[tuple[Any, ...]]


def correlation_change(found: Correlations) -> ComparedCorrelations:
    """The difference beside before and after."""
    names, before, after = found.columns, found.before, found.after
    change = [
        [None if one is None or two is None else two - one for one, two in zip(*lines, strict=True)]
        for lines in zip(before, after, strict=True)
    ]
    pairs: list[tuple[Any, ...]] = [
        (names[i], names[j], before[i][j], after[i][j], change[i][j])
        for i in range(len(names))
        for j in range(i)
        if change[i][j] is not None
    ]
    pairs.sort(key=lambda one: -abs(one[4]))
    return ComparedCorrelations(names, before, after, change, pairs[:_MOST_CHANGED])


def _shares(counts: Sequence[int], total: int) -> list[float]:
    return [round(count / max(total, 1), 6) for count in counts]


def _ends(edges: Sequence[float], whole: bool) -> tuple[str, str, str]:
    """What stands below a chart: its first, middle and last value."""
    low, high = (round(edges[0] + 0.5), round(edges[-1] - 0.5)) if whole else (edges[0], edges[-1])
    return shown(low, False), shown(low / 2 + high / 2, False), shown(high, False)


def _open(low: float | None, high: float | None, whole: bool) -> str:
    if low is None:
        return "all" if high is None else f"below {shown(high, whole)}"
    return f"{shown(low, whole)} and more" if high is None else between(low, high, whole)


def between(low: float, high: float, whole: bool) -> str:
    """A bar in words: one whole number, or from where to where."""
    if whole:
        first, last = round(low + 0.5), round(high - 0.5)
        return f"{first:,}" if first == last else f"{first:,} to {last:,}"
    return f"{shown(low, False)} to {shown(high, False)}"


def shown(edge: float, whole: bool) -> str:
    """An edge as people write it; whole numbers begin half a step above theirs."""
    return f"{edge + 0.5 if whole else edge:,.6g}"
