"""The user guide: one page for each method and measure, and some on the whole."""

from __future__ import annotations

import re
from difflib import get_close_matches
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


def contents(word: str = "") -> str:
    """A line for each page that has the word, those with most of it first; of all pages without one."""
    counts = {name: page(name).casefold().count(word.casefold()) for name in pages()} if word else {}
    found = sorted((name for name in counts if counts[name]), key=lambda name: -counts[name]) if word else pages()
    if not found:
        known = get_close_matches(word.casefold(), _words(), n=1) or pages()
        raise JobError(f"The guide has no page '{word}', and none has that word. {nearest(word.casefold(), known)}")
    width = max(map(len, found))
    return "\n".join(f"{name:{width}}  {_title(name)}" for name in found)


def explained(asked: str) -> str:
    """The page of that name, or the pages that have that word."""
    if asked in pages():
        return page(asked)
    return f"{contents(asked)}\nThe guide has no page '{asked}'; these have that word, the first most often."


def _words() -> set[str]:
    """All names of pages and all longer words of the guide."""
    return {*pages(), *(word for name in pages() for word in re.findall(r"[a-z]{4,}", page(name).casefold()))}


def _title(name: str) -> str:
    """What a page is about."""
    title = page(name).partition("\n")[0].removeprefix("# ")
    before, colon, after = title.partition(": ")
    return after if colon else before
