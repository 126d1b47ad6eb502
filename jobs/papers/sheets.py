"""What every exhibit of a paper gives, a sheet, and how it is shown: numbers as text, figures as SVG."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any

from dpmask.errors import InputError
from dpmask.report.drawing import drawer

HOME = Path(__file__).parents[2]
COLOURS = [
    "#e08214",
    "#4c7fd0",
    "#2a9d8f",
    "#7b4fa3",
    "#999999",
    "#c0392b",
    "#8c564b",
    "#e377c2",
    "#17becf",
    "#bcbd22",
    "#1b4965",
]
SOURCES = {
    "census.csv": "the CASC project's Census test set (in R: sdcMicro's CASCrefmicrodata)",
    "eia.csv": "the CASC project's EIA test set (in R: sdcMicro's EIA)",
    "tarragona.csv": "the CASC project's Tarragona test set (in R: sdcMicro's Tarragona)",
    "adult.parquet": "UCI's Adult, training and test file in one, with column names",
    "crx.csv": "UCI's Japanese Credit Screening (crx.data), with names A1 to A15 and class",
    "taxonomies/adult": "trees of Adult's categories, as JSON",
}


@dataclass(frozen=True)
class Size:
    """How much of an experiment is run: all that was published, or a part that shows the same in less time."""

    quick: bool = False
    asked: list[bool] = field(default_factory=list, compare=False, repr=False)
    """Whether a part was taken of anything: exhibits without a shorter form are always whole."""

    def of(self, whole: Sequence[Any], part: Sequence[Any]) -> Sequence[Any]:
        """The whole list, or a part of it."""
        if self.quick:
            self.asked.append(True)
        return part if self.quick else whole


@dataclass(frozen=True)
class Sheet:
    """A table with ours beside the published numbers, why they differ, and the charts drawn from it."""

    title: str
    heads: Mapping[str, str]
    """Each column and the format of its numbers."""
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()
    charts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def text(self) -> str:
        """The table and the notes."""
        cells = [
            [_cell(value, form) for value, form in zip(row, self.heads.values(), strict=True)] for row in self.rows
        ]
        columns = list(zip(self.heads, *cells, strict=True))
        widths = [max(map(len, column)) for column in columns]
        lines = [
            "  ".join(
                text.ljust(width) if place == 0 else text.rjust(width)
                for place, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in [list(self.heads), *cells]
        ]
        notes = [fill(note, 120, initial_indent="* ", subsequent_indent="  ") for note in self.notes]
        return "\n".join([self.title, "", *lines, *(["", *notes] if notes else [])]) + "\n"


Exhibit = Callable[[Size], Sheet]


def _cell(value: Any, form: str) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else format(value, form)


def reference(name: str = "") -> Path:
    """A file of the reference data: under DPMASK_REFERENCE_DATA, or in ../shared/data beside the repository."""
    folder = Path(os.environ.get("DPMASK_REFERENCE_DATA") or HOME.parent / "shared" / "data")
    path = folder / name
    if not path.exists():
        what = SOURCES.get(name, "the papers' data")
        raise InputError(f"{path} is not there: {what}. Set DPMASK_REFERENCE_DATA to the folder that has it.")
    return path


def census() -> Any:
    """The CASC census file, 1080 records of 13 numbers."""
    import pandas as pd

    return pd.read_csv(reference("census.csv")).astype(float)


def plot(
    rows: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    *,
    mark: str = "line",
    log: str = "",
    zero: bool = False,
    columns: int = 2,
) -> dict[str, Any]:
    """A chart of rows with x, y and, where they have them, line, panel, label, and low and high for an interval."""
    known = {name for row in rows for name in row}
    across = {"field": "x", "type": "nominal" if mark == "bar" else "quantitative", "title": x, "scale": {"zero": zero}}
    up = {"field": "y", "type": "quantitative", "title": y, "scale": {"zero": zero or mark == "bar"}}
    for letter, axis in (("x", across), ("y", up)):
        if letter in log:
            axis["scale"] = {"type": "log"}
    if mark == "bar":
        across |= {"sort": None, "axis": {"labelAngle": -40}, "scale": {}}
    colour: dict[str, Any] = {"value": COLOURS[0]}
    if "line" in known:
        colour = {
            "field": "line",
            "type": "nominal",
            "sort": None,
            "scale": {"range": COLOURS},
            "legend": {"title": None, "orient": "top", "columns": 3, "columnPadding": 24, "labelLimit": 260},
        }
    encoding = {"x": across, "y": up, "color": colour}
    if mark == "bar" and "line" in known:
        encoding["xOffset"] = {"field": "line", "type": "nominal", "sort": None}
    layers: list[dict[str, Any]] = [{"mark": _mark(mark), "encoding": encoding}]
    if "low" in known:
        ends = {"y": {**up, "field": "low"}, "y2": {"field": "high"}, "opacity": {"value": 0.25}}
        shape = "area" if mark == "line" else "rule"
        layers.insert(0, {"mark": shape, "encoding": {**encoding, **ends}})
    if "label" in known:
        text = {"x": across, "y": up, "text": {"field": "label", "type": "nominal"}}
        layers.append({"mark": {"type": "text", "dx": 8, "dy": -8, "align": "left", "fontSize": 10}, "encoding": text})
    spec: dict[str, Any] = {"width": 340, "height": 210, **(layers[0] if len(layers) == 1 else {"layer": layers})}
    if "panel" in known:
        panels = list(dict.fromkeys(row["panel"] for row in rows))
        heading = {"field": "panel", "type": "nominal", "sort": panels, "title": None, "header": {"labelFontSize": 12}}
        spec = {
            "facet": heading,
            "columns": columns,
            "spec": spec,
            "resolve": {"scale": {"y": "independent", "x": "shared" if mark == "bar" else "independent"}},
        }
    return {**spec, "data": {"values": list(rows)}}


def _mark(mark: str) -> dict[str, Any]:
    if mark == "line":
        return {"type": "line", "point": {"size": 24}, "strokeWidth": 1.6}
    return {"type": mark, **({"filled": True, "size": 36, "opacity": 0.85} if mark == "point" else {})}


def drawn(spec: Mapping[str, Any]) -> str:
    """A chart as SVG, on white."""
    whole = {"background": "white", "padding": 8, "config": {"font": "sans-serif", "view": {"stroke": None}}, **spec}
    svg = drawer.drawn(whole)
    if svg is None:
        raise InputError("A chart could not be drawn; its numbers are in the table.")
    return svg
