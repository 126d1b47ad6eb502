"""The internal report: one self-contained HTML page for the data holder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader


def report_page(account: Mapping[str, Any]) -> str:
    """The page, from the whole account of a run."""
    environment = Environment(
        loader=PackageLoader("dpmask.report", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html.j2").render(account)
