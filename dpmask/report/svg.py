"""Charts that every report has, written as SVG at once: an engine for Vega takes longer to start than all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from dpmask.errors import printable

BEFORE, AFTER = "#4c7fd0", "#e08214"
"""Blue and orange: distinct to all kinds of eyes, on white, on black and in print."""

_LETTER, _LINE = 7.0, 11  # the widest an average letter is, in pixels, and the size of letters
_PAD = 2


def histogram_chart(edges: Sequence[float], sides: Sequence[Sequence[float]], label: str) -> Markup:
    """Bars of the last of one or two tables, and a line for the first of two, on common edges; without axes."""
    width, height = 260, 90
    reach, most = edges[-1] - edges[0], max(max(side) for side in sides)
    across = [_PAD + width * ((edge - edges[0]) / reach if reach > 0 else 0.0) for edge in edges]

    def outline(side: Sequence[float]) -> str:
        heights = [_PAD + height * (1.0 - (share / most if most > 0 else 0.0)) for share in side]
        steps = zip(across, across[1:], heights, strict=False)
        return " ".join(f"L{_number(x)},{_number(y)} {_number(end)},{_number(y)}" for x, end, y in steps)

    floor = _number(_PAD + height)
    area = f"M{_number(across[0])},{floor} {outline(sides[-1])} L{_number(across[-1])},{floor}Z"
    marks = [f'<path d="{area}" fill="{AFTER}" fill-opacity="0.55"/>']
    if len(sides) > 1:
        marks.append(f'<path d="M{outline(sides[0])[1:]}" fill="none" stroke="{BEFORE}" stroke-width="1.5"/>')
    return _chart(marks, width + 2 * _PAD, height + 2 * _PAD, label)


def category_chart(labels: Sequence[str], sides: Mapping[str, Sequence[float]], label: str) -> Markup:
    """A bar for each category and table; nothing where all are withheld, as few records have them."""
    if not labels:
        return Markup("")
    width, step = 200, 9 * len(sides) if len(sides) > 1 else 16
    names = [_short(text, 16) for text in labels]
    left, most = _room(names), max(max(shares) for shares in sides.values()) or 1.0
    thick, marks = step * 0.8 / len(sides), list[str]()
    for place, name in enumerate(names):
        marks.append(_text(left - 6, (place + 0.5) * step + _PAD, name, "end"))
        for number, (side, shares) in enumerate(sides.items()):
            top, colour = place * step + 0.1 * step + number * thick + _PAD, BEFORE if side == "before" else AFTER
            marks.append(_rect(left, top, width * shares[place] / most, thick, f'fill="{colour}"'))
    bottom = len(names) * step + _PAD
    marks += _axis(left, width, bottom, [(share / most, f"{share:.0%}") for share in _ticks(most)], top=_PAD)
    return _chart(marks, left + width + 24, bottom + 20, label)


def matrix_chart(columns: Sequence[str], matrix: Sequence[Sequence[float | None]], label: str) -> Markup:
    """A square for each pair: blue below zero, orange above, the stronger the farther from it."""
    step, names = max(8, min(28, 260 // len(columns))), [_short(name, 14) for name in columns]
    left, marks = _room(names), list[str]()
    for row, line in enumerate(matrix):
        for column, value in enumerate(line):
            if value is not None:
                how = f'fill="{BEFORE if value < 0 else AFTER}" fill-opacity="{_number(min(abs(value), 1.0))}"'
                edge = 'stroke="currentColor" stroke-opacity="0.15" stroke-width="0.5"'
                marks.append(_rect(left + column * step, row * step + _PAD, step, step, f"{how} {edge}"))
    bottom = len(columns) * step + _PAD
    for place, name in enumerate(names):
        marks.append(_text(left - 4, (place + 0.5) * step + _PAD, name, "end"))
        x, y = left + (place + 0.5) * step, bottom + 8
        turn = f'transform="rotate(-60 {_number(x)} {_number(y)})"'
        marks.append(_text(x, y, name, "end", turn))
    return _chart(marks, left + len(columns) * step + _PAD, bottom + 12 + 0.9 * left, label)


def risk_chart(risks: Sequence[Mapping[str, Any]], label: str) -> Markup:
    """Each rate with its interval as a point with whiskers, and what guessing scores, where it does, as a stroke."""
    width, step, names = 320, 24, [_short(one["name"], 34) for one in risks]
    left, marks = _room(names), list[str]()
    bottom = len(names) * step + _PAD
    marks += _axis(left, width, bottom, [(share / 5, f"{share * 20}%") for share in range(6)], top=_PAD)
    for place, (name, one) in enumerate(zip(names, risks, strict=True)):
        y = (place + 0.5) * step + _PAD
        marks.append(_text(left - 8, y, name, "end"))
        low, high, rate = (left + width * one[field] for field in ("low", "high", "rate"))
        if one["guessing"] is not None:
            marks.append(_rect(left + width * one["guessing"] - 1.5, y - 8, 3, 16, f'fill="{BEFORE}"'))
        marks.append(_rect(low, y - 1, high - low, 2, f'fill="{AFTER}"'))
        marks.append(f'<circle cx="{_number(rate)}" cy="{_number(y)}" r="4.4" fill="{AFTER}"/>')
    marks.append(_text(left + width / 2, bottom + 32, "share of what was attacked", "middle"))
    return _chart(marks, left + width + 24, bottom + 42, label)


def sizes_chart(groups: Mapping[str, int], label: str) -> Markup:
    """How many groups there are of each size."""
    names, counts = [size.replace("more than", ">") for size in groups], list(groups.values())
    width, height, most = max(14 * len(names), 140), 120, max(counts, default=0) or 1
    left, below = _room([f"{most:,}"]) + 14, _room(names)
    step, bottom, marks = width / max(len(names), 1), height + 8, list[str]()
    for share in (0.0, 0.5, 1.0):
        y = bottom - height * share
        marks.append(f'<path d="M{left},{_number(y)}h{width}" stroke="currentColor" stroke-opacity="0.2"/>')
        marks.append(_text(left - 4, y, f"{most * share:,.0f}", "end"))
    for place, (name, count) in enumerate(zip(names, counts, strict=True)):
        x, tall = left + place * step, height * count / most
        marks.append(_rect(x + 0.05 * step, bottom - tall, 0.9 * step, tall, f'fill="{AFTER}"'))
        turn = f"rotate(-90 {_number(x + 0.5 * step)} {_number(bottom + 6)})"
        marks.append(_text(x + 0.5 * step, bottom + 6, name, "end", f'transform="{turn}"'))
    marks.append(_text(left + width / 2, bottom + below + 4, "records in a group", "middle"))
    side = f'transform="rotate(-90 8 {_number(bottom - height / 2)})"'
    marks.append(_text(8, bottom - height / 2, "groups", "middle", side))
    return _chart(marks, left + width + _PAD, bottom + below + 12, label)


def inline(marks: str, width: str, height: str, label: str) -> Markup:
    """An SVG for the middle of a page: as wide as there is room, and labelled for readers who cannot see it."""
    label = printable(label)
    opening = (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}" style="max-width:{width}px">'
        f"<title>{escape(label)}</title>"
    )
    return Markup(opening + marks)  # noqa: S704  made of numbers, and of text that was escaped


def _chart(marks: Sequence[str], width: float, height: float, label: str) -> Markup:
    group = f'<g font-family="sans-serif" font-size="{_LINE}">{"".join(marks)}</g></svg>'
    return inline(group, _number(width), _number(height), label)


def _axis(left: float, width: float, bottom: float, ticks: list[tuple[float, str]], *, top: float) -> Iterator[str]:
    """Lines from top to bottom, and what each stands for."""
    for share, text in ticks:
        x = _number(left + width * share)
        yield f'<path d="M{x},{_number(top)}V{_number(bottom + 4)}" stroke="currentColor" stroke-opacity="0.2"/>'
        yield _text(left + width * share, bottom + 13, text, "middle")


def _ticks(most: float) -> list[float]:
    """Round shares from 0 to the largest, three to six of them."""
    step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25) if most / step <= 5 or step == 0.25)  # noqa: PLR2004
    return [number * step for number in range(int(most / step + 1e-9) + 1)]


def _rect(x: float, y: float, width: float, height: float, how: str) -> str:
    size = f'width="{_number(max(width, 0.0))}" height="{_number(height)}"'
    return f'<rect x="{_number(x)}" y="{_number(y)}" {size} {how}/>'


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    place = f'x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}" dominant-baseline="central"'
    return f'<text {place} fill="currentColor" {more}>{escape(text)}</text>'


def _short(text: str, most: int) -> str:
    text = printable(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def _room(names: Sequence[str]) -> float:
    """How wide the longest of the texts at the left is, at most."""
    return _LETTER * max(map(len, names), default=0) + 12


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
