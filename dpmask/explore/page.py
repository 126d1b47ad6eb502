"""What the explorer's page shows, as parts of HTML: controls, views, what was tried, the difference to the file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from dpmask.errors import DpmaskError, printable
from dpmask.explore import charts
from dpmask.explore.evaluation import FEWER, Estimate, Evaluated
from dpmask.explore.everything import FullRun
from dpmask.explore.session import Exact, Explorer, Tried, setting_key
from dpmask.report import svg
from dpmask.report.distributions import DrawnColumn
from dpmask.report.line_charts import PolicyLimits
from dpmask.report.page import distribution_chart
from dpmask.report.rules import upper_limit

FOLDER = Path(__file__).parent
_VIEWS = ("verdict", "map", "groups", "distributions", "clusters", "trees")


def controls_html(explorer: Explorer) -> str:
    """All controls, as they are set."""
    grouped = [(heading, list(some)) for heading, some in groupby(explorer.controls, lambda one: one.heading)]
    return _rendered("controls", groups=grouped, value=explorer.value, changed=explorer.changes)


def views_html(explorer: Explorer, run: FullRun) -> str:
    """What the setting came to."""
    found = explorer.current()
    exact = explorer.exact.get(setting_key(explorer.changes))
    trees = {f"{step}: {column}": tree for step, of in found.trees.items() for column, tree in of.items()}
    rules = [line for line in found.verdict if line.judged is not None]
    limits = PolicyLimits(*(upper_limit(rules, one.name) for one in (found.risk, found.loss)))
    return _rendered(
        "views",
        found=found,
        exact=exact,
        rows=explorer.sample.table.rows,
        all_rows=explorer.sample.lake.rows,
        whole=explorer.sample.whole,
        fewer=FEWER,
        numbers=_numbers(found, exact),
        map=charts.map_chart(_map_points(explorer), (found.loss.name, found.risk.name), limits),
        limits=limits,
        sizes=svg.sizes_chart(_sized(found.sizes), "How many groups have how many records") if found.sizes else None,
        clusters=charts.cluster_chart(found.clusters) if found.clusters else None,
        trees={name: charts.tree_chart(tree, name) for name, tree in trees.items()},
        distributions=_distributions(found),
        tried=_tried_rows(explorer),
        code={view: _code(explorer, view) for view in _VIEWS},
        running=run.running,
        progress=run.progress,
        failed=run.error,
        difference=_difference(explorer),
        colours=(svg.BEFORE, svg.AFTER),
        file=os.path.basename(explorer.url),
    )


def _rendered(template: str, **shown: Any) -> str:
    return _templates().get_template(f"{template}.html.j2").render(shown)


def _templates() -> Environment:
    found = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    found.filters.update(estimate=_estimate, number=_number, brief=_brief)
    return found


def _distributions(found: Evaluated) -> list[tuple[DrawnColumn, Markup | None]]:
    """Each column before and after, as the internal report shows them."""
    return [(one, None if one.kind == "none" else distribution_chart(one)) for one in found.columns]


def _map_points(explorer: Explorer) -> list[charts.SettingPoint]:
    now = setting_key(explorer.changes)
    points = []
    for number, (key, one) in enumerate(explorer.tried.items(), start=1):
        title = f"{number}: {_changes(one.changes)}"
        losses, risks = (of.interval or (of.value, of.value) for of in (one.loss, one.risk))
        found = charts.SettingPoint(
            one.loss.value, one.risk.value, losses, risks, not one.broken, key == now, False, title
        )
        points.append(found)
        exact = explorer.exact.get(key)
        if exact is not None:
            points.append(_exact_point(exact, f"{title} (on everything)"))
    return points


def _exact_point(exact: Exact, title: str) -> charts.SettingPoint:
    loss, risk = exact.loss, exact.risk
    return charts.SettingPoint(loss, risk, (loss, loss), (risk, risk), not exact.broken, False, True, title)


def _numbers(found: Evaluated, exact: Exact | None) -> list[tuple[Estimate, float | None]]:
    """Each number on the sample, and on everything."""
    shown = {**found.values, found.loss.name: found.loss}
    return [(one, None if exact is None else exact.values.get(name)) for name, one in shown.items()]


def _tried_rows(explorer: Explorer) -> list[dict[str, Any]]:
    now, rows = setting_key(explorer.changes), []
    for number, (key, one) in enumerate(explorer.tried.items(), start=1):
        rows.append(_tried_row(number, one, explorer.exact.get(key)) | {"now": key == now})
    return rows


def _tried_row(number: int, one: Tried, exact: Exact | None) -> dict[str, Any]:
    return {
        "number": number,
        "changes": _changes(one.changes),
        "risk": one.risk,
        "loss": one.loss,
        "broken": one.broken,
        "exact": exact,
    }


def _changes(changes: Mapping[str, Any]) -> str:
    parts = [f"{name.split('+')[0]} = {value}" for name, value in changes.items()]
    return printable(", ".join(parts)) if parts else "as in the file"


def _sized(groups: Mapping[int, int]) -> dict[str, int]:
    """Groups by powers of two of their records."""
    found: dict[int, int] = {}
    for size, count in groups.items():
        power = size.bit_length() - 1
        found[power] = found.get(power, 0) + count
    ends = range(min(found), max(found) + 1)
    return {f"{2**one:,}" + (f" to {2 ** (one + 1) - 1:,}" if one else ""): found.get(one, 0) for one in ends}


def _difference(explorer: Explorer) -> str:
    try:
        return explorer.difference()
    except DpmaskError as error:
        return str(error)


def _code(explorer: Explorer, view: str) -> dict[str, str]:
    """The Python that gives a view's numbers on the sample, and the command line that gives them on everything."""
    settings = explorer.settings_at(explorer.changes)
    options = "".join(f" --set {shlex.quote(one)}" for one in settings)
    rows = explorer.sample.table.rows if explorer.sample.whole else explorer.asked_rows
    given = f", settings={list(settings)!r}" if settings else ""
    ending = {
        "verdict": "found.verdict",
        "map": "found.risk, found.loss",
        "groups": "found.sizes",
        "distributions": "found.columns",
        "clusters": "found.clusters",
        "trees": "found.trees",
    }[view]
    python = (
        "from dpmask.explore.session import Explorer\n"
        f"found = Explorer({explorer.url!r}{given}, rows={rows}).current()\n{ending}"
    )
    command = f"dpmask run {shlex.quote(explorer.url)}{options} --trial"
    if view == "map":
        k = next((one.name for one in explorer.controls if one.kind == "number"), None)
        over = f"{k}={explorer.value(explorer.control(k))}" if k else "PATH=VALUES"
        command = f"dpmask sweep {shlex.quote(explorer.url)}{options} --over {shlex.quote(over)}"
    return {"python": python, "command": command}


def _estimate(one: Estimate) -> str:
    text = _number(one.value)
    return text if one.interval is None else f"{text} ({_number(one.interval[0])} to {_number(one.interval[1])})"


def _brief(one: Estimate) -> str:
    text = f"{one.value:.3g}"
    return text if one.interval is None else f"{text} ({one.interval[0]:.2g} to {one.interval[1]:.2g})"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:,.4g}"  # noqa: PLR2004
