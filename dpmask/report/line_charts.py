"""Charts with two axes: risk against loss with the limits of the policy, numbers against a parameter, convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from dpmask.errors import printable
from dpmask.report.svg_parts import (
    AFTER,
    BEFORE,
    LETTER,
    LIMIT,
    AxisScale,
    across,
    chart,
    circle,
    line,
    mark_text,
    number,
    shortened,
    tick_text,
    upright,
    upwards,
)

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT = 410, 290, 66, 14, 20
_PANEL = 120
_COLOURS = (AFTER, BEFORE, "#2a9d6f", "#b0559b", "#a3812a", "#5aa6b8", "#c8554d", "#7a6fd0")
_MOST_TICKS = 12


class MapPoint(NamedTuple):
    """A point of a sweep: what it loses and risks."""

    loss: float
    risk: float
    text: str
    """What stands beside it."""
    title: str
    """What is shown when a reader points at it."""
    holds: bool
    frontier: bool
    recommended: bool


class PolicyLimits(NamedTuple):
    """Where the policy ends, as far as it is about what points are compared by: on the risk, and on the loss."""

    risk: float | None = None
    loss: float | None = None


def map_chart(points: Sequence[MapPoint], names: tuple[str, str], limits: PolicyLimits, label: str) -> Markup:
    """Risk against loss: the frontier as a line, limits of the policy as red ones, points that break it hollow."""
    across_ends = [*(one.loss for one in points), *([limits.loss] if limits.loss is not None else [])]
    up_ends = [*(one.risk for one in points), *([limits.risk] if limits.risk is not None else [])]
    bottom, right = _TOP + _HEIGHT, _LEFT + _WIDTH
    x, y = AxisScale.around(across_ends, _LEFT, right), AxisScale.around(up_ends, bottom, _TOP)
    marks = [*upwards([(y(one), tick_text(one)) for one in y.ticks(6)], _LEFT, right)]
    marks += across([(x(one), tick_text(one)) for one in x.ticks(7)], _TOP, bottom)
    dashed = f'stroke="{LIMIT}" stroke-width="2" stroke-dasharray="7 4"'
    if limits.risk is not None:
        marks.append(line(_LEFT, y(limits.risk), right, y(limits.risk), dashed))
        marks.append(mark_text(right - 4, y(limits.risk) - 9, "limit of the policy", "end"))
    if limits.loss is not None:
        marks.append(line(x(limits.loss), _TOP, x(limits.loss), bottom, dashed))
        marks.append(upright(x(limits.loss) + 10, bottom - 0.2 * _HEIGHT, "limit of the policy"))
    frontier = sorted((one.loss, -one.risk) for one in points if one.frontier)
    path = "L".join(f"{number(x(loss))},{number(y(-risk))}" for loss, risk in frontier)
    marks.append(f'<path d="M{path}" fill="none" stroke="{BEFORE}" stroke-width="2" stroke-dasharray="2 4"/>')
    for point in points:
        marks += _map_point(point, x(point.loss), y(point.risk), right)
    marks.append(mark_text((_LEFT + right) / 2, bottom + 36, f"{names[1]}: lost", "middle"))
    marks.append(upright(12, _TOP + _HEIGHT / 2, f"{names[0]}: risked"))
    return chart(marks, right + _RIGHT, bottom + 48, label)


def _map_point(point: MapPoint, x: float, y: float, right: float) -> list[str]:
    how = f'fill="{AFTER}"' if point.holds else f'fill="none" stroke="{AFTER}" stroke-width="2.5"'
    marks = [f"<g><title>{escape(printable(point.title))}</title>", circle(x, y, 6, how), "</g>"]
    if point.recommended:
        marks.append(circle(x, y, 11, 'fill="none" stroke="currentColor" stroke-width="2"'))
    beside = x + 14 + LETTER * len(point.text) < right
    return [*marks, mark_text(x + 13 if beside else x - 13, y - 11, point.text, "start" if beside else "end")]


class Curve(NamedTuple):
    """A line of a panel: its name, and where it goes; None where there is no number."""

    name: str
    points: Sequence[tuple[float, float | None]]


def curves_chart(panels: Mapping[str, Sequence[Curve]], parameter: str, label: str, *, log: bool = False) -> Markup:
    """Numbers against a parameter, one panel above the other, with the same lines in each, whose names stand below."""
    values = sorted({at for curves in panels.values() for curve in curves for at, _ in curve.points})
    right = _LEFT + _WIDTH
    x = AxisScale(values[0], values[-1], _LEFT + 10, right - 10)
    ticks = [(x(one), tick_text(one)) for one in (values if len(values) <= _MOST_TICKS else x.ticks(8))]
    marks, top = list[str](), float(_TOP)
    for name, curves in panels.items():
        found = [one for curve in curves for _, one in curve.points if one is not None]
        bottom = top + 14 + _PANEL
        if len(panels) > 1:
            marks.append(mark_text(_LEFT, top, name, "start", 'font-weight="600"'))
        if found:
            y = _positive(found, bottom, top + 14) if log else AxisScale.around(found, bottom, top + 14)
            marks += upwards(
                [(y(one), tick_text(one) if not log else f"{one:.0e}") for one in y.ticks(5)], _LEFT, right
            )
            for place, curve in enumerate(curves):
                marks += _curve(curve, x, y, _COLOURS[place % len(_COLOURS)])
        marks += across(ticks, bottom, bottom)
        top = bottom + 46
    marks.append(mark_text((_LEFT + right) / 2, top - 14, parameter, "middle"))
    names = [curve.name for curve in next(iter(panels.values()))]
    if len(names) > 1:
        for place, name in enumerate(names):
            marks.append(rect_key(_LEFT, top + 4, _COLOURS[place % len(_COLOURS)]))
            marks.append(mark_text(_LEFT + 18, top + 9, shortened(name, 56), "start"))
            top += 18
    return chart(marks, right + _RIGHT, top + 6, label)


def rect_key(x: float, y: float, colour: str) -> str:
    """The colour of a line, beside its name."""
    return f'<rect x="{number(x)}" y="{number(y)}" width="12" height="10" fill="{colour}"/>'


def _positive(values: Sequence[float], start: float, end: float) -> AxisScale:
    """A scale by ratios over whole decades."""
    positive = [one for one in values if one > 0] or [1.0]
    low, high = min(positive), max(positive)
    return AxisScale(low / 2, high * 2, start, end, logarithmic=True)


def _curve(curve: Curve, x: AxisScale, y: AxisScale, colour: str) -> list[str]:
    places = [(x(at), y(one)) for at, one in curve.points if one is not None]
    path = "L".join(f"{number(across_at)},{number(up)}" for across_at, up in places)
    marks = [f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>'] if places else []
    return [*marks, *(circle(across_at, up, 3.5, f'fill="{colour}"') for across_at, up in places)]


def convergence_chart(shifts: Mapping[str, Sequence[float]], label: str) -> Markup:
    """How far each pass moved the centres, by ratios, one line for each clustering."""
    curves = [Curve(name, list(enumerate(map(float, values), start=1))) for name, values in shifts.items() if values]
    if not curves:
        return Markup("")
    return curves_chart({"shift of the centres": curves}, "pass", label, log=True)
