"""Charts of columns, groups and attacks, written as SVG: no engine is started; the same numbers, the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from dpmask.report.svg_parts import (
    AFTER,
    BEFORE,
    LIMIT,
    PAD,
    AxisScale,
    across,
    chart,
    circle,
    inline,
    line,
    mark_text,
    number,
    rect,
    room,
    share_text,
    shortened,
    tick_text,
    upright,
    upwards,
)

__all__ = [
    "AFTER",
    "BEFORE",
    "category_chart",
    "histogram_chart",
    "inline",
    "matrix_chart",
    "risk_chart",
    "sizes_chart",
]

_WIDTH, _HEIGHT, _LEFT, _TOP, _BELOW = 340, 180, 46, 12, 24
_ZERO, _GAP = 46, 40
_COLOURS = {"before": BEFORE, "after": AFTER}
_NUMBERED = 8
"""Squares of so few columns have their numbers written in them."""


def histogram_chart(
    edges: Sequence[float],
    sides: Sequence[Sequence[float]],
    label: str,
    *,
    zeros: Mapping[str, float] | None = None,
    logarithmic: bool = False,
) -> Markup:
    """Bars of the last of one or two tables, and a line for the first of two, on common edges.

    Zeros may stand at the left, on a scale of their own; edges may grow by ratios.
    """
    marks = list[str]()
    left: float = _LEFT
    if zeros is not None:
        marks += _zero_bars(zeros)
        left += _ZERO + _GAP
    bottom = _TOP + _HEIGHT
    x = AxisScale(edges[0], edges[-1], left, left + _WIDTH, logarithmic=logarithmic)
    most = max(max(side) for side in sides) or 1.0
    y = AxisScale(0.0, most, bottom, _TOP)
    marks += upwards([(y(share), share_text(share)) for share in y.ticks(4)], left, left + _WIDTH)
    marks += across([(x(edge), tick_text(edge)) for edge in x.ticks(6)], bottom, bottom)
    outline = f"M{number(x(edges[0]))},{number(bottom)}{_steps(edges, sides[-1], x, y)}V{number(bottom)}Z"
    marks.append(f'<path d="{outline}" fill="{AFTER}" fill-opacity="0.6"/>')
    if len(sides) > 1:
        first = f"M{number(x(edges[0]))},{number(y(sides[0][0]))}{_steps(edges, sides[0], x, y)}"
        marks.append(f'<path d="{first}" fill="none" stroke="{BEFORE}" stroke-width="2"/>')
    return chart(marks, left + _WIDTH + 16, bottom + _BELOW, label)


def _steps(edges: Sequence[float], shares: Sequence[float], x: AxisScale, y: AxisScale) -> str:
    """The upper edge of bars, as a path that has begun at the left."""
    return "".join(f"V{number(y(share))}H{number(x(end))}" for share, end in zip(shares, edges[1:], strict=True))


def _zero_bars(zeros: Mapping[str, float]) -> list[str]:
    """A bar of zeros for each table, from 0 to 100 %."""
    bottom, wide = _TOP + _HEIGHT, _ZERO / len(zeros)
    y = AxisScale(0.0, 1.0, bottom, _TOP)
    marks = list(upwards([(y(share), f"{share * 100:.0f} %") for share in (0.0, 0.5, 1.0)], _LEFT, _LEFT + _ZERO))
    for place, (table, share) in enumerate(zeros.items()):
        at = _LEFT + place * wide
        how = f'fill="{_COLOURS[table]}" fill-opacity="{0.6 if table == "after" else 1}"'
        marks.append(rect(at + 2, y(share), wide - 4, bottom - y(share), how))
    marks.append(mark_text(_LEFT + _ZERO / 2, bottom + 14, "zero", "middle"))
    return marks


def category_chart(labels: Sequence[str], sides: Mapping[str, Sequence[float]], label: str) -> Markup:
    """A bar for each category and table; nothing where all are withheld, as few records have them."""
    if not labels:
        return Markup("")
    step = 22 if len(sides) > 1 else 18
    names = [shortened(text, 22) for text in labels]
    left, most = room(names), max(max(shares) for shares in sides.values()) or 1.0
    width, bottom = max(_LEFT + _WIDTH - left, 200), len(names) * step + PAD
    x = AxisScale(0.0, most, left, left + width)
    marks = list(across([(x(share), share_text(share)) for share in x.ticks(4)], PAD, bottom))
    thick = step * 0.78 / len(sides)
    for place, name in enumerate(names):
        marks.append(mark_text(left - 6, (place + 0.5) * step + PAD, name, "end"))
        for at, (side, shares) in enumerate(sides.items()):
            top = place * step + 0.11 * step + at * thick + PAD
            marks.append(rect(left, top, x(shares[place]) - left, thick, f'fill="{_COLOURS[side]}"'))
    return chart(marks, left + width + 24, bottom + _BELOW, label)


def matrix_chart(columns: Sequence[str], matrix: Sequence[Sequence[float | None]], label: str) -> Markup:
    """A square for each pair: blue below zero, orange above, the stronger the farther from it."""
    step, names = max(10, min(40, 320 // len(columns))), [shortened(name, 14) for name in columns]
    left, marks = room(names), list[str]()
    for row, values in enumerate(matrix):
        for column, value in enumerate(values):
            if value is None:
                continue
            at, top = left + column * step, row * step + PAD
            how = f'fill="{BEFORE if value < 0 else AFTER}" fill-opacity="{min(abs(value), 1.0):.2f}"'
            marks.append(rect(at, top, step, step, f'{how} stroke="currentColor" stroke-opacity="0.15"'))
            if len(columns) <= _NUMBERED:
                text = f"{round(value, 2) + 0.0:.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.0f}"
                marks.append(mark_text(at + step / 2, top + step / 2, text, "middle", 'font-size="11"'))
    bottom = len(columns) * step + PAD
    for place, name in enumerate(names):
        marks.append(mark_text(left - 4, (place + 0.5) * step + PAD, name, "end"))
        x, y = left + (place + 0.5) * step, bottom + 8
        marks.append(mark_text(x, y, name, "end", f'transform="rotate(-60 {number(x)} {number(y)})"'))
    return chart(marks, left + len(columns) * step + PAD, bottom + 12 + 0.9 * left, label)


def risk_chart(risks: Sequence[Mapping[str, Any]], label: str) -> Markup:
    """Each rate with its interval as a point with whiskers, what guessing scores as a stroke, and a limit as a line.

    The scale ends where the largest of them do.
    """
    width, step, names = 270, 26, [shortened(one["name"], 30) for one in risks]
    left, bottom = room(names), len(names) * step + PAD
    ends = [one[name] for one in risks for name in ("high", "guessing", "limit") if one.get(name) is not None]
    x = AxisScale(0.0, min(max(1.15 * max(ends, default=1.0), 0.01), 1.0), left, left + width)
    marks = list(across([(x(share), share_text(share)) for share in x.ticks(5)], PAD, bottom))
    for place, (name, one) in enumerate(zip(names, risks, strict=True)):
        y = (place + 0.5) * step + PAD
        marks.append(mark_text(left - 8, y, name, "end"))
        if one["guessing"] is not None:
            marks.append(rect(x(one["guessing"]) - 1.5, y - 8, 3, 16, f'fill="{BEFORE}"'))
        if one.get("limit") is not None:
            marks.append(line(x(one["limit"]), y - 11, x(one["limit"]), y + 11, f'stroke="{LIMIT}" stroke-width="2.5"'))
        marks.append(rect(x(one["low"]), y - 1.5, x(one["high"]) - x(one["low"]), 3, f'fill="{AFTER}"'))
        marks.append(circle(x(one["rate"]), y, 5, f'fill="{AFTER}"'))
    marks.append(mark_text(left + width / 2, bottom + 32, "share of what was attacked", "middle"))
    return chart(marks, left + width + 28, bottom + 42, label)


def sizes_chart(groups: Mapping[str, int], label: str) -> Markup:
    """How many groups there are of each size."""
    names, counts = [size.replace("more than", ">") for size in groups], list(groups.values())
    width, height, most = max(18 * len(names), 220), 150, max(counts, default=0) or 1
    left, below = room([f"{most:,}"]) + 16, room(names)
    step, bottom, marks = width / max(len(names), 1), height + 8, list[str]()
    y = AxisScale(0.0, most, bottom, bottom - height)
    marks += upwards([(y(tick), f"{tick:,.0f}") for tick in y.ticks(4) if tick.is_integer()], left, left + width)
    for place, (name, count) in enumerate(zip(names, counts, strict=True)):
        wide, tall = min(0.9 * step, 40), height * count / most
        middle = left + (place + 0.5) * step
        marks.append(rect(middle - wide / 2, bottom - tall, wide, tall, f'fill="{AFTER}"'))
        turn = f'transform="rotate(-90 {number(middle)} {number(bottom + 6)})"'
        marks.append(mark_text(middle, bottom + 6, name, "end", turn))
    marks.append(mark_text(left + width / 2, bottom + below + 4, "records in a group", "middle"))
    marks.append(upright(9, bottom - height / 2, "groups"))
    return chart(marks, left + width + PAD, bottom + below + 14, label)
