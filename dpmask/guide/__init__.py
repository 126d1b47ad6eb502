"""The user guide: one page for each method and measure, and some on the whole."""

from __future__ import annotations

from importlib.resources import files

from dpmask.errors import JobError, nearest


def pages() -> list[str]:
    """The names of all pages."""
    return sorted(entry.name.removesuffix(".md") for entry in files(__name__).iterdir() if entry.name.endswith(".md"))


def page(name: str) -> str:
    """One page's text."""
    if name not in pages():
        raise JobError(f"The guide has no page '{name}'. {nearest(name, pages())}")
    return (files(__name__) / f"{name}.md").read_text(encoding="utf-8")
