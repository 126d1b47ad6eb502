"""Compared columns prepared for drawing: both tables for the data holder; the masked one, pooled, for the public."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from dpmask.kernels.order.histogram import pooled
from dpmask.report.compared import (
    ComparedCategories,
    ComparedColumn,
    ComparedNumbers,
    Correlations,
    Matrix,
    NotDrawn,
    ReleasedCategories,
)
from dpmask.report.public_numbers import public_share

LEAST_SHOWN = 10
"""Fewer records than this are not shown by themselves to the public."""

_MOST_CHANGED = 10


@dataclass(frozen=True, kw_only=True)
class NumbersPicture:
    """How a page draws a column of numbers: zeros as a bar of their own, other values on even edges or by ratios."""

    edges: Sequence[float]
    shares: Mapping[str, Sequence[float]]
    """Of all records with a value, by table, in each bar."""
    zeros: Mapping[str, float] | None = None
    """The share of zeros, by table, where they are a bar of their own."""
    logarithmic: bool = False
    whole: bool = False


@dataclass(frozen=True, kw_only=True)
class DrawnColumn:
    """A column as a page shows it: a picture of ``shares``, by table, and a table of ``rows``.

    ``edges`` and ``shares`` have all values of a column of numbers, ``picture`` has them as they are best drawn.
    """

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
    picture: NumbersPicture | None = None
    ordered: bool = False
    """Whether the labels are intervals or numbers, in their order."""
    generalised: bool = False
    """Whether originals were counted under the labels that they are released as."""


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
    return DrawnColumn(
        column=column.column,
        kind="category",
        labels=column.labels,
        shares=shares,
        rows=list(zip(column.labels, *shares.values(), strict=True)),
        missing=column.missing or (),
        ordered=column.ordered,
        generalised=column.generalised,
    )


def _drawn_numbers(column: ComparedNumbers) -> DrawnColumn:
    others = column.others
    apart = others is not None and others.bars is not None
    totals = [sum(some) + under + over for some, under, over in zip(*column.bars[1:4], strict=True)]
    bars = others.bars if others is not None and others.bars is not None else column.bars
    zeros = [_share(count, total) for count, total in zip(column.zeros, totals, strict=True)]
    logarithmic = others is not None and others.logarithmic
    picture = NumbersPicture(
        edges=bars.edges,
        shares=_by_table([_shares(some, total) for some, total in zip(bars.counts, totals, strict=True)]),
        zeros=_by_table(zeros) if apart and any(column.zeros) else None,
        logarithmic=logarithmic,
        whole=column.whole,
    )
    outside = {
        name: [_share(count, total) for count, total in zip(some, totals, strict=True)]
        for name, some in (("below", bars.below), ("above", bars.above))
    }
    plain = [_shares(some, total) for some, total in zip(column.bars.counts, totals, strict=True)]
    return DrawnColumn(
        column=column.column,
        kind="number",
        edges=column.bars.edges,
        shares=_by_table(plain),
        rows=_number_rows(picture, outside),
        ends=_ends(column.bars.edges, column.whole),
        outside=outside,
        missing=column.bars.missing,
        picture=picture,
    )


def _number_rows(picture: NumbersPicture, outside: Mapping[str, Sequence[float]]) -> list[tuple[Any, ...]]:
    """The table of a picture: a row for zeros, for each bar, and for what lies outside."""
    edges, named = picture.edges, _Named(picture.whole, picture.logarithmic)
    zeros = [("0", *picture.zeros.values())] if picture.zeros is not None else []
    below = [(f"below {named.edge(edges[0])}", *outside["below"])] if any(outside["below"]) else []
    above = [(f"{named.edge(edges[-1])} and more", *outside["above"])] if any(outside["above"]) else []
    bars = [
        (named.between(low, high), *both)
        for low, high, *both in zip(edges[:-1], edges[1:], *picture.shares.values(), strict=True)
    ]
    return [*zeros, *below, *bars, *above]


def _by_table(both: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(("before", "after"), both, strict=True))


def _public(column: ComparedColumn) -> DrawnColumn | None:
    if isinstance(column, NotDrawn):
        return None
    return _public_numbers(column) if isinstance(column, ComparedNumbers) else _public_categories(column)


def _public_numbers(column: ComparedNumbers) -> DrawnColumn | None:
    """Without originals: the edges follow from the masked values alone."""
    bars, zeros, logarithmic = column.released, None, False
    if column.others is not None and column.others.released is not None:
        apart, count = column.others.released, column.zeros[1]
        rest = sum(apart.counts[0]) + apart.below[0] + apart.above[0]
        if (count == 0 or count >= LEAST_SHOWN) and rest >= LEAST_SHOWN:
            bars, zeros, logarithmic = apart, count, column.others.logarithmic
    counts = [bars.below[0], *bars.counts[0], bars.above[0]]
    groups, total = pooled(counts, LEAST_SHOWN), sum(counts) + (zeros or 0)
    if not groups:
        return None
    named, ends = _Named(column.whole, logarithmic), _open_edges(bars.edges, logarithmic)
    rows: list[tuple[Any, ...]] = [("0", public_share(zeros, total))] if zeros else []
    for start, end, count in groups:
        low = None if start == 0 else ends[start]
        high = None if end == len(counts) else ends[end]
        rows.append((named.open(low, high), public_share(count, total)))
    edges = [ends[groups[0][0]], *(ends[end] for _, end, _ in groups)]
    shares = {"after": [round(public_share(count, total) / (end - start), 6) for start, end, count in groups]}
    return DrawnColumn(
        column=column.column,
        kind="number",
        edges=edges,
        shares=shares,
        rows=rows,
        ends=_ends(bars.edges, column.whole),
        picture=NumbersPicture(
            edges=edges,
            shares=shares,
            zeros={"after": public_share(zeros, total)} if zeros else None,
            logarithmic=logarithmic,
            whole=column.whole,
        ),
    )


def _open_edges(edges: Sequence[float], logarithmic: bool) -> list[float]:
    """The edges of bars, and of one more at either end that stands for all beyond."""
    if logarithmic:
        return [edges[0] * edges[0] / edges[1], *edges, edges[-1] * edges[-1] / edges[-2]]
    width = edges[1] - edges[0]
    return [edges[0] - width, *edges, edges[-1] + width]


def _public_categories(column: ComparedCategories) -> DrawnColumn | None:
    released = column.released or ReleasedCategories(column.labels, column.after, column.others)
    counts, total = released.counts, sum(released.counts)
    named = dict(zip(released.labels[: -1 if released.others else None], counts, strict=False))
    kept = {text: count for text, count in named.items() if count >= LEAST_SHOWN}
    other = total - sum(kept.values())
    while kept and 0 < other < LEAST_SHOWN:
        other += kept.pop(min(kept, key=lambda text: (kept[text], text)))
    if not kept:
        return None
    labels = [*kept, *(["other values"] if other else [])]
    shares = [public_share(count, total) for count in [*kept.values(), *([other] if other else [])]]
    return DrawnColumn(
        column=column.column,
        kind="category",
        labels=labels,
        shares={"after": shares},
        rows=list(zip(labels, shares, strict=True)),
        ordered=column.ordered,
    )


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


def _share(count: int, total: int) -> float:
    return count / max(total, 1)


def _ends(edges: Sequence[float], whole: bool) -> tuple[str, str]:
    """The first and the last value of a chart of all values."""
    low, high = (round(edges[0] + 0.5), round(edges[-1] - 0.5)) if whole else (edges[0], edges[-1])
    return f"{low:,.6g}", f"{high:,.6g}"


class _Named(NamedTuple):
    """How bars are called: whole numbers by the first and the last of them."""

    whole: bool
    logarithmic: bool

    def between(self, low: float, high: float) -> str:
        """A bar in words: one whole number, or from where to where."""
        if self.whole:
            first, last = self._first(low), self._first(high) - 1
            return f"{first:,}" if first == last else f"{first:,} to {last:,}"
        return f"{self.edge(low)} to {self.edge(high)}"

    def edge(self, edge: float) -> str:
        """An edge as people write it."""
        return f"{self._first(edge) if self.whole else edge:,.6g}"

    def open(self, low: float | None, high: float | None) -> str:
        """A bar that may be open at either end."""
        if low is None:
            return "all" if high is None else f"below {self.edge(high)}"
        return f"{self.edge(low)} and more" if high is None else self.between(low, high)

    def _first(self, edge: float) -> int:
        """The first whole number of a bar: even edges lie half a step below it."""
        return math.ceil(edge) if self.logarithmic else round(edge + 0.5)
