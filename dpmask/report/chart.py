"""Charts: Vega-Lite, drawn to SVG when a page is written, so the page needs neither a script nor a network.

A chart takes its text colour from the page, light or dark. vl-convert brings Vega-Lite and an engine to run it: that
takes most of a second to start, so it is loaded with the first chart, and a chart that is drawn for each of many
columns is compiled once. The same numbers give the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from markupsafe import Markup, escape

BEFORE, AFTER = "#4c7fd0", "#e08214"
"""Blue and orange: distinct to all kinds of eyes, on white, on black and in print."""

_FAINT = {"domainOpacity": 0.4, "tickOpacity": 0.4, "gridOpacity": 0.15}
_COLOURS = {"domainColor": "currentColor", "tickColor": "currentColor", "gridColor": "currentColor"}
_TEXT = {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 11, "titleFontSize": 11}
_PADDING = 2
_CONFIG = {
    "background": None,
    "padding": _PADDING,
    "config": {
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {**_FAINT, **_COLOURS, **_TEXT, "titleFontWeight": "normal", "labelLimit": 150},
        "legend": {**_TEXT, "title": None, "orient": "top", "symbolOpacity": 1},
        "text": {"fill": "currentColor"},
    },
}
_WIDEST = 34  # letters
_OPENING = re.compile(r'<svg [^>]*width="([\d.]+)" height="([\d.]+)"[^>]*>')
_MOST_TICKS = 15
_SHARE = {"type": "quantitative", "title": None, "axis": {"format": "~%", "tickCount": 4}}


def can_draw() -> bool:
    """Whether the library that draws is installed."""
    return find_spec("vl_convert") is not None


def histogram_chart(edges: Sequence[float], sides: Sequence[Sequence[float]], label: str) -> Markup:
    """Bars of the last of one or two tables, and a line for the first of two, on common edges; without axes."""
    heights = [[*side, side[-1]] for side in sides]
    rows = [
        {"x": x, "after": one[-1], **({"before": one[0]} if len(one) > 1 else {})}
        for x, *one in zip(edges, *heights, strict=True)
    ]
    return _filled("histogram", rows, label)


def category_chart(labels: Sequence[str], sides: Mapping[str, Sequence[float]], label: str) -> Markup:
    """A bar for each category and table."""
    rows = [
        {"label": text, "place": place, "side": side, "share": share}
        for side, shares in sides.items()
        for place, (text, share) in enumerate(zip(labels, shares, strict=True))
    ]
    colour = {"field": "side", "scale": {"domain": ["before", "after"], "range": [BEFORE, AFTER]}, "legend": None}
    spec = {
        "width": 200,
        "height": {"step": 9 if len(sides) > 1 else 16},
        "mark": {"type": "bar"},
        "encoding": {
            "y": {
                "field": "label",
                "type": "nominal",
                "title": None,
                "sort": {"field": "place", "op": "min"},
                "axis": {"ticks": False, "domain": False, "labelLimit": 110},
                "scale": {"paddingInner": 0.2},
            },
            "yOffset": {"field": "side", "sort": ["before", "after"]},
            "x": {"field": "share", **_SHARE},
            "color": colour,
        },
    }
    return _drawn(spec, rows, label, labels)


def matrix_chart(columns: Sequence[str], matrix: Sequence[Sequence[float | None]], label: str) -> Markup:
    """A square for each pair: blue below zero, orange above, the stronger the farther from it."""
    rows = [
        {"one": one, "two": two, "size": abs(value), "sign": "below" if value < 0 else "above"}
        for one, line in zip(columns, matrix, strict=True)
        for two, value in zip(columns, line, strict=True)
        if value is not None
    ]
    place = {"type": "nominal", "title": None, "sort": list(columns), "scale": {"domain": list(columns)}}
    bare = {"ticks": False, "domain": False, "labelLimit": 90}
    spec = {
        "width": {"step": max(8, min(28, 260 // len(columns)))},
        "height": {"step": max(8, min(28, 260 // len(columns)))},
        "mark": {"type": "rect", "stroke": "currentColor", "strokeOpacity": 0.15, "strokeWidth": 0.5},
        "encoding": {
            "x": {"field": "two", **place, "axis": {**bare, "labelAngle": -60}},
            "y": {"field": "one", **place, "axis": bare},
            "fill": {
                "field": "sign",
                "scale": {"domain": ["below", "above"], "range": [BEFORE, AFTER]},
                "legend": None,
            },
            "fillOpacity": {
                "field": "size",
                "type": "quantitative",
                "scale": {"domain": [0, 1], "range": [0, 1]},
                "legend": None,
            },
        },
    }
    return _drawn(spec, rows, label, columns)


def sizes_chart(groups: Mapping[str, int], label: str) -> Markup:
    """How many groups there are of each size."""
    rows = [{"size": size.replace("more than", ">"), "groups": count} for size, count in groups.items()]
    spec = {
        "width": max(14 * len(rows), 140),
        "height": 120,
        "mark": {"type": "bar", "color": AFTER},
        "encoding": {
            "x": {"field": "size", "type": "ordinal", "sort": None, "title": "records in a group"},
            "y": {
                "field": "groups",
                "type": "quantitative",
                "title": "groups",
                "axis": {"tickCount": 4, "titlePadding": 8},
            },
        },
    }
    return _drawn(spec, rows, label)


def risk_chart(risks: Sequence[Mapping[str, Any]], label: str) -> Markup:
    """Each rate with its interval as a point with whiskers, and what guessing scores as a stroke."""
    y = {
        "field": "name",
        "type": "nominal",
        "title": None,
        "sort": None,
        "axis": {"labelLimit": 200, "labelPadding": 8, "ticks": False},
    }
    x = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {"format": ".0%", "tickCount": 5}}
    spec = {
        "width": 320,
        "height": {"step": 24},
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "tick", "color": BEFORE, "thickness": 3, "size": 16},
                "encoding": {"x": {**x, "field": "guessing", "title": "share of what was attacked"}},
            },
            {
                "mark": {"type": "rule", "color": AFTER, "strokeWidth": 2},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "color": AFTER, "size": 60, "opacity": 1},
                "encoding": {"x": {**x, "field": "rate"}},
            },
        ],
    }
    return _drawn(spec, list(risks), label, [one["name"] for one in risks])


def convergence_chart(shifts: Mapping[str, Sequence[float]], label: str) -> Markup:
    """How far each pass moved the centres, on a logarithmic scale, one line for each clustering."""
    rows = [
        {"name": name, "pass": number, "shift": max(value, 1e-300)}
        for name, values in shifts.items()
        for number, value in enumerate(values, start=1)
    ]
    if not rows:
        return Markup("")
    longest = max(map(len, shifts.values()))
    ticks = list(range(1, longest + 1, max(1, longest // 8)))
    spec = {
        "width": 360,
        "height": 160,
        "mark": {"type": "line", "point": {"size": 12}, "strokeWidth": 1.5},
        "encoding": {
            "x": {"field": "pass", "type": "quantitative", "axis": {"values": ticks, "format": "d"}},
            "y": {
                "field": "shift",
                "type": "quantitative",
                "scale": {"type": "log"},
                "title": "shift of the centres",
                "axis": {"format": "~e", "tickCount": 5},
            },
            "color": {"field": "name", "sort": None, "scale": {"range": [BEFORE, AFTER, "#999999", "#2a9d8f"]}},
        },
    }
    return _drawn(spec, rows, label)


def map_chart(points: Sequence[Mapping[str, Any]], axes: tuple[str, str], label: str) -> Markup:
    """Risk against loss: a line through the frontier; points that break the policy are hollow, one may have a label."""
    x = {"field": "loss", "type": "quantitative", "title": f"{axes[1]}: lost", "scale": {"zero": False, "padding": 12}}
    y = {
        "field": "risk",
        "type": "quantitative",
        "title": f"{axes[0]}: risked",
        "scale": {"zero": False, "padding": 12},
    }
    x["axis"] = y["axis"] = {"tickCount": 6, "titlePadding": 12}
    size = {"size": 90, "strokeWidth": 2, "opacity": 1, "color": AFTER}
    spec = {
        "width": 460,
        "height": 300,
        "encoding": {"x": x, "y": y},
        "layer": [
            {
                "transform": [{"filter": "datum.frontier"}],
                "mark": {"type": "line", "color": BEFORE, "strokeWidth": 1.5, "strokeDash": [5, 3]},
                "encoding": {"order": {"field": "loss", "type": "quantitative"}},
            },
            {"transform": [{"filter": "datum.holds"}], "mark": {"type": "point", "filled": True, **size}},
            {"transform": [{"filter": "!datum.holds"}], "mark": {"type": "point", "filled": False, **size}},
            {
                "transform": [{"filter": "datum.recommended"}],
                "mark": {"type": "point", "filled": False, "color": "currentColor", "size": 260, "strokeWidth": 1.5},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 11, "dy": -9, "fontSize": 11},
                "encoding": {"text": {"field": "label"}},
            },
        ],
    }
    return _drawn(spec, list(points), label)


def curves_chart(rows: Sequence[Mapping[str, Any]], parameter: str, axes: tuple[str, str], label: str) -> Markup:
    """Risk and loss against a parameter, one above the other; rows have x, risk, loss and the line they belong to."""
    ticks = sorted({row["x"] for row in rows})
    x = {"field": "x", "type": "quantitative", "scale": {"zero": False, "padding": 8}, "title": parameter}
    if len(ticks) <= _MOST_TICKS:
        x["axis"] = {"values": ticks, "format": "~g", "grid": False}
    colour: dict[str, Any] = {"value": AFTER}
    if len({row["line"] for row in rows}) > 1:
        colour = {"field": "line", "type": "nominal", "sort": None, "legend": {"labelLimit": 300, "columns": 2}}
    heading = {"anchor": "start", "color": "currentColor", "fontSize": 11, "fontWeight": "normal"}
    panels = [
        {
            "title": {"text": axis, **heading},
            "width": 460,
            "height": 130,
            "mark": {"type": "line", "point": {"size": 40}, "strokeWidth": 1.5},
            "encoding": {
                "x": x,
                "y": {"field": field, "type": "quantitative", "title": None, "axis": {"tickCount": 5}},
                "color": colour,
            },
        }
        for field, axis in zip(("risk", "loss"), axes, strict=True)
    ]
    return _drawn({"vconcat": panels}, list(rows), label)


def _drawn(spec: Mapping[str, Any], rows: list[Any], label: str, beside: Sequence[str] = ()) -> Markup:
    """A chart; ``beside`` are the texts at its left, for which there must be room in wider fonts than Vega reckons."""
    import vl_convert

    sides = dict.fromkeys(("left", "right", "top", "bottom"), _PADDING)
    sides["left"] += min(max(map(len, beside), default=0), _WIDEST)
    whole = {**_CONFIG, **spec, "padding": sides, "data": {"values": rows}}
    return _inline(vl_convert.vegalite_to_svg(json.dumps(whole), allowed_base_urls=[]), label)


def _filled(template: str, rows: list[Any], label: str) -> Markup:
    """A chart from a template that was compiled before."""
    import vl_convert

    vega = _compiled(template)
    vega = {**vega, "data": [{"name": "rows", "values": rows}, *vega["data"][1:]]}
    return _inline(vl_convert.vega_to_svg(json.dumps(vega), allowed_base_urls=[]), label)


@cache
def _compiled(template: str) -> Any:
    import vl_convert

    spec = {**_CONFIG, **_TEMPLATES[template], "data": {"name": "rows"}}
    return vl_convert.vegalite_to_vega(json.dumps(spec))


def _inline(svg: str, label: str) -> Markup:
    """An SVG for the middle of a page: as wide as there is room, and labelled for readers who cannot see it."""
    width, height = _OPENING.match(svg).groups()  # type: ignore[union-attr]
    opening = (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}" style="max-width:{width}px">'
        f"<title>{escape(label)}</title>"
    )
    return Markup(opening + svg[svg.index(">") + 1 :])  # noqa: S704  made of numbers, and of text that Vega escapes


_HIDDEN: dict[str, Any] = {"axis": None, "title": None}
_TEMPLATES: dict[str, dict[str, Any]] = {
    "histogram": {
        "width": 260,
        "height": 90,
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "scale": {"zero": False, "nice": False}, **_HIDDEN},
        },
        "layer": [
            {
                "mark": {"type": "area", "interpolate": "step-after", "color": AFTER, "opacity": 0.55},
                "encoding": {"y": {"field": "after", "type": "quantitative", **_HIDDEN}},
            },
            {
                "mark": {"type": "line", "interpolate": "step-after", "color": BEFORE, "strokeWidth": 1.5},
                "encoding": {"y": {"field": "before", "type": "quantitative", **_HIDDEN}},
            },
        ],
    },
}
