"""Charts of a sweep: risk against loss, and both against a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from dpmask.report.chart import drawn
from dpmask.report.svg import AFTER, BEFORE

_MOST_TICKS = 15


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
    return drawn(spec, list(points), label)


def curves_chart(rows: Sequence[Mapping[str, Any]], parameter: str, panels: Mapping[str, str], label: str) -> Markup:
    """Numbers against a parameter, one above the other; rows have x, the line they belong to, each panel's field."""
    ticks = sorted({row["x"] for row in rows})
    x = {"field": "x", "type": "quantitative", "scale": {"zero": False, "padding": 8}, "title": parameter}
    if len(ticks) <= _MOST_TICKS:
        x["axis"] = {"values": ticks, "format": "~g", "grid": False}
    colour: dict[str, Any] = {"value": AFTER}
    if len({row["line"] for row in rows}) > 1:
        colour = {"field": "line", "type": "nominal", "sort": None, "legend": {"labelLimit": 300, "columns": 2}}
    heading = {"anchor": "start", "color": "currentColor", "fontSize": 11, "fontWeight": "normal"}
    drawn_panels = [
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
        for field, axis in panels.items()
    ]
    return drawn({"vconcat": drawn_panels}, list(rows), label)
