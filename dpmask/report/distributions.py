"""Compared columns prepared for drawing: both sides for the data holder; the masked one, pooled, for the public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpmask.kernels.order.histogram import pooled

LEAST_SHOWN = 10
"""Fewer records than this are not shown by themselves to the public."""

_MOST_CHANGED = 10


def drawn_columns(columns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each column with its shares before and after masking, and a table of them."""
    return [_drawn(one) for one in columns]


def public_columns(columns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each column's masked values, ends open, everything small joined with its neighbours; without counts."""
    return [found for one in columns if (found := _public(one))["kind"] != "none"]


def _drawn(column: Mapping[str, Any]) -> dict[str, Any]:
    if column["kind"] == "none":
        return dict(column)
    if column["kind"] == "category":
        sides = {
            side: _shares(counts, sum(counts))
            for side, counts in zip(("before", "after"), column["counts"], strict=True)
            if counts is not None
        }
        rows = list(zip(column["labels"], *sides.values(), strict=True))
        return {**column, "sides": sides, "rows": rows}
    totals = [
        sum(counts) + below + above
        for counts, below, above in zip(column["counts"], column["below"], column["above"], strict=True)
    ]
    edges, whole = column["edges"], column["whole"]
    shares = [_shares(counts, total) for counts, total in zip(column["counts"], totals, strict=True)]
    outside = {
        side: [count / max(total, 1) for count, total in zip(column[side], totals, strict=True)]
        for side in ("below", "above")
    }
    rows = [(f"below {shown(edges[0], whole)}", *outside["below"])] if any(outside["below"]) else []
    rows += [
        (between(low, high, whole), *both) for low, high, *both in zip(edges[:-1], edges[1:], *shares, strict=True)
    ]
    rows += [(f"{shown(edges[-1], whole)} and more", *outside["above"])] if any(outside["above"]) else []
    sides = dict(zip(("before", "after"), shares, strict=True))
    return {**column, "sides": sides, "outside": outside, "rows": rows, "ends": _ends(edges, whole)}


def _public(column: Mapping[str, Any]) -> dict[str, Any]:
    nothing = {"column": column["column"], "kind": "none"}
    if column["kind"] == "none":
        return nothing
    if column["kind"] == "category":
        return _public_categories(column) or nothing
    bars = column["released"]  # whose edges follow from the masked values alone
    counts = [bars["below"][0], *bars["counts"][0], bars["above"][0]]
    groups = pooled(counts, LEAST_SHOWN)
    if not groups:
        return nothing
    edges, whole, total = bars["edges"], column["whole"], sum(counts)
    width = edges[1] - edges[0]
    ends = [edges[0] - width, *edges, edges[-1] + width]
    rows = []
    for start, end, count in groups:
        low = None if start == 0 else ends[start]
        high = None if end == len(counts) else ends[end]
        rows.append((_open(low, high, whole), count / total))
    return {
        "column": column["column"],
        "kind": "number",
        "edges": [ends[groups[0][0]], *(ends[end] for _, end, _ in groups)],
        "sides": {"after": [round(count / total / (end - start), 4) for start, end, count in groups]},
        "rows": rows,
        "ends": _ends(edges, whole),
    }


def _public_categories(column: Mapping[str, Any]) -> dict[str, Any] | None:
    counts = column["counts"][1]
    many = len(counts) > 1 and column["labels"][-1].endswith(" other values")
    named = dict(zip(column["labels"][: -1 if many else None], counts, strict=False))
    kept = {text: count for text, count in named.items() if count >= LEAST_SHOWN}
    other = sum(counts) - sum(kept.values())
    while kept and 0 < other < LEAST_SHOWN:
        other += kept.pop(min(kept, key=lambda text: (kept[text], text)))
    if not kept:
        return None
    labels, total = [*kept, *(["other values"] if other else [])], sum(counts)
    shares = [round(count / total, 4) for count in [*kept.values(), *([other] if other else [])]]
    rows = list(zip(labels, shares, strict=True))
    return {"column": column["column"], "kind": "category", "labels": labels, "sides": {"after": shares}, "rows": rows}


def correlation_change(found: Mapping[str, Any]) -> dict[str, Any]:
    """The difference beside before and after, and the pairs that changed most."""
    names, before, after = found["columns"], found["before"], found["after"]
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
    return {**found, "change": change, "most_changed": pairs[:_MOST_CHANGED]}


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
