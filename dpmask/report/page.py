"""The internal report: one self-contained HTML page for the data holder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from dpmask.report.chart import convergence_chart


def report_page(account: Mapping[str, Any]) -> str:
    """The page, from the whole account of a run."""
    environment = Environment(
        loader=PackageLoader("dpmask.report", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["convergence"] = _convergence
    return environment.get_template("page.html.j2").render(account)


def _convergence(histories: Mapping[str, Any]) -> Markup:
    """The chart of how clusterings converged; it is made of numbers and our own words."""
    return Markup(convergence_chart({name: [shift for _, shift in steps] for name, steps in histories.items()}))  # noqa: S704
