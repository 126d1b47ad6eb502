"""Charts that few reports have: Vega-Lite, drawn to SVG when a page is written, so that it needs no script or network.

A chart takes its text colour from the page, light or dark. vl-convert brings Vega-Lite and an engine to run it: that
takes most of a second to start, so it is started with the first such chart, in a process of its own (drawing.py), and
what every report has is drawn in svg.py. The same numbers give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from dpmask.report.drawing import drawer
from dpmask.report.svg import AFTER, BEFORE, inline

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
    return drawn(spec, rows, label)


def drawn(spec: Mapping[str, Any], rows: list[Any], label: str, beside: Sequence[str] = ()) -> Markup:
    """A chart; ``beside`` are the texts at its left, for which there must be room in wider fonts than Vega reckons."""
    padding = dict.fromkeys(("left", "right", "top", "bottom"), _PADDING)
    padding["left"] += min(max(map(len, beside), default=0), _WIDEST)
    whole = {**_CONFIG, **spec, "padding": padding, "data": {"values": rows}}
    svg = drawer.drawn(whole)
    if svg is None:
        return Markup('<p class="note">This chart could not be drawn; its numbers stand in the tables.</p>')
    width, height = _OPENING.match(svg).groups()  # type: ignore[union-attr]
    return inline(svg[svg.index(">") + 1 :], width, height, label)
