"""The explorer's own charts as SVG: risk against loss, clusters as ellipses, trees of a refinement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from dpmask.explore.cluster_view import ClusterView, Ellipse
from dpmask.report.line_charts import PolicyLimits
from dpmask.report.svg import AFTER, BEFORE, inline
from dpmask.report.svg_parts import LIMIT

_COLOURS = ("#4c7fd0", "#e08214", "#2a9d6f", "#b0559b", "#a3812a", "#5aa6b8", "#c8554d", "#7a6fd0")
"""In the order of the clusters; from the ninth on they begin again, with their numbers beside them."""
_WIDTH, _HEIGHT, _LEFT, _BELOW, _PAD = 400, 270, 58, 44, 12
_ROW, _LEVEL, _LETTER = 17, 26, 7.2
_FAR = 4.0


class SettingPoint(NamedTuple):
    """A setting in the map of risk and loss."""

    loss: float
    risk: float
    losses: tuple[float, float]
    risks: tuple[float, float]
    held: bool
    set: bool
    exact: bool
    title: str


def map_chart(points: Sequence[SettingPoint], names: tuple[str, str], limits: PolicyLimits) -> Markup:
    """Risk against loss: the setting, those tried before, and exact ones, each with its interval.

    A limit of the policy is a line where it is not far beyond all points.
    """
    losses = [one for point in points for one in point.losses]
    risks = [one for point in points for one in point.risks]
    loss, risk = _near(limits.loss, losses), _near(limits.risk, risks)
    across = _PixelScale([*losses, *loss], _LEFT, _WIDTH - _PAD)
    up = _PixelScale([*risks, *risk], _HEIGHT - _BELOW, _PAD)
    marks = [*_axes(across, up, names)]
    dashed = f'stroke="{LIMIT}" stroke-width="2" stroke-dasharray="7 4"'
    marks += [f'<path d="M{_LEFT},{up(one):.1f}H{_WIDTH - _PAD}" {dashed}/>' for one in risk]
    marks += [f'<path d="M{across(one):.1f},{_PAD}V{_HEIGHT - _BELOW}" {dashed}/>' for one in loss]
    for point in sorted(points, key=lambda one: (one.set, one.exact)):
        x, y, colour = across(point.loss), up(point.risk), _COLOURS[2] if point.held else _COLOURS[6]
        faint = 1.0 if point.set or point.exact else 0.45
        lines = f"M{across(point.losses[0]):.1f},{y:.1f}H{across(point.losses[1]):.1f}"
        lines += f"M{x:.1f},{up(point.risks[0]):.1f}V{up(point.risks[1]):.1f}"
        marks.append(f'<g opacity="{faint}"><title>{escape(point.title)}</title>')
        marks.append(f'<path d="{lines}" stroke="{colour}" fill="none"/>')
        marks.append(_dot(x, y, point, colour) + "</g>")
    label = f"{names[1]} against {names[0]}: {len(points)} points"
    return _chart(marks, _WIDTH, _HEIGHT, label)


def _near(limit: float | None, values: Sequence[float]) -> list[float]:
    """A limit, unless it would push all points into a corner."""
    return [limit] if limit is not None and min(values) / _FAR <= limit <= max(values) * _FAR else []


def _dot(x: float, y: float, point: SettingPoint, colour: str) -> str:
    """A circle where the gate holds, a cross where it does not, a square for exact numbers; the setting has a ring."""
    ring = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="10" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    if point.exact:
        mark = f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" fill="{colour}"/>'
    elif point.held:
        mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>'
    else:
        mark = f'<path d="M{x - 5:.1f},{y - 5:.1f}l10,10m0,-10l-10,10" stroke="{colour}" stroke-width="2.5"/>'
    return mark + (ring if point.set else "")


class _PixelScale:
    """Values to pixels, from one end to the other, with a margin."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        low, high = min(values), max(values)
        margin = 0.08 * (high - low) or 0.1 * abs(high) or 0.01
        self.low, self.high = max(low - margin, 0.0) if low >= 0 else low - margin, high + margin
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> Iterator[float]:
        """Three to six round values."""
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 2))
        step *= next(by for by in (1, 2, 5, 10) if (self.high - self.low) / (step * by) <= 5)  # noqa: PLR2004
        at = math.ceil(self.low / step)
        while at * step <= self.high:
            yield at * step
            at += 1


def _axes(across: _PixelScale, up: _PixelScale, names: tuple[str, str]) -> Iterator[str]:
    bottom = _HEIGHT - _BELOW
    for value in across.ticks():
        x = across(value)
        yield f'<path d="M{x:.1f},{_PAD}V{bottom}" stroke="currentColor" stroke-opacity="0.15"/>'
        yield _text(x, bottom + 12, f"{value:.6g}", "middle")
    for value in up.ticks():
        y = up(value)
        yield f'<path d="M{_LEFT},{y:.1f}H{_WIDTH - _PAD}" stroke="currentColor" stroke-opacity="0.15"/>'
        yield _text(_LEFT - 5, y, f"{value:.6g}", "end")
    yield _text((_LEFT + _WIDTH) / 2, _HEIGHT - 10, f"loss: {names[0]}", "middle")
    yield _text(10, bottom / 2, f"risk: {names[1]}", "middle", f'transform="rotate(-90 10 {bottom / 2})"')


def cluster_chart(view: ClusterView) -> Markup:
    """Both clusterings as ellipses: the original's filled, the masked table's dashed, in the colour of its best fit."""
    both = [*view.original, *view.masked]
    reach = [(at, one) for one in both for at in ((0, 1), (0, -1), (1, 1), (1, -1))]
    ends = [[one.center[axis] + sign * one.axes[0] for (axis, sign), one in reach if axis == side] for side in (0, 1)]
    low, high = [min(one) for one in ends], [max(one) for one in ends]
    unit = min(_WIDTH / max(high[0] - low[0], 1e-9), _HEIGHT / max(high[1] - low[1], 1e-9)) * 0.92
    middle = [(one + other) / 2 for one, other in zip(low, high, strict=True)]

    def drawn(one: Ellipse, dashed: bool) -> str:
        x = _WIDTH / 2 + unit * (one.center[0] - middle[0])
        y = _HEIGHT / 2 - unit * (one.center[1] - middle[1])
        colour, shape = _COLOURS[one.number % len(_COLOURS)], [max(unit * axis, 2.0) for axis in one.axes]
        how = 'fill="none" stroke-dasharray="5 3"' if dashed else f'fill="{colour}" fill-opacity="0.3"'
        kind = "masked" if dashed else "original"
        title = f"<title>{kind} cluster {one.number + 1}: {one.records:,} records</title>"
        turn = f'transform="rotate({-one.degrees:.1f} {x:.1f} {y:.1f})"'
        ellipse = f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{shape[0]:.1f}" ry="{shape[1]:.1f}" {turn} {how}'
        number = "" if dashed else _text(x, y, str(one.number + 1), "middle")
        return f'<g>{title}{ellipse} stroke="{colour}" stroke-width="2"/>{number}</g>'

    marks = [drawn(one, False) for one in view.original] + [drawn(one, True) for one in view.masked]
    label = f"{len(view.original)} original and {len(view.masked)} masked clusters in one projection"
    return _chart(marks, _WIDTH, _HEIGHT, label)


def tree_chart(tree: Mapping[str, Any], column: str) -> Markup:
    """A tree as far as it was refined: what is released stands at the ends of its branches."""
    marks: list[str] = []
    widest, rows = _branch(tree, 0, 0, marks)
    return _chart(marks, widest, rows * _ROW + 6, f"{column}: what its values were refined to")


def _branch(tree: Mapping[str, Any], depth: int, row: int, marks: list[str]) -> tuple[float, int]:
    """Draw a node and all below it; how far right they reach, and how many rows they take."""
    x, y, text, children = 8 + depth * _LEVEL, (row + 0.7) * _ROW, str(tree["value"]), tree.get("children", ())
    weight = "" if children else 'font-weight="600"'
    marks.append(_text(x + 6, y, text, "start", weight))
    shape = 'fill="none"' if children else f'fill="{AFTER}"'
    marks.append(f'<circle cx="{x}" cy="{y:.1f}" r="3.5" {shape} stroke="{BEFORE if children else AFTER}"/>')
    widest, used = x + 14 + _LETTER * len(text), 1
    for child in children:
        below = (row + used + 0.7) * _ROW
        line = f"M{x},{y + 4:.1f}V{below:.1f}h{_LEVEL - 4}"
        marks.append(f'<path d="{line}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>')
        right, rows = _branch(child, depth + 1, row + used, marks)
        widest, used = max(widest, right), used + rows
    return widest, used


def _chart(marks: Sequence[str], width: float, height: float, label: str) -> Markup:
    group = f'<g font-family="sans-serif" font-size="11">{"".join(marks)}</g></svg>'
    return inline(group, f"{width:.0f}", f"{height:.0f}", label)


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="central"'
    return f'<text {place} fill="currentColor" {more}>{escape(text)}</text>'
