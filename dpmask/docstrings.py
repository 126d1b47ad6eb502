"""Docstrings that are completed: what a parameter means that many share is written once, and stands in every help."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from textwrap import dedent, indent

_HEAD = "Parameters\n----------\n"
_RETURNS, _EXAMPLES = "Returns\n-------\n", "Examples\n--------\n"
_ENTRY = re.compile(r"^(\S.*)\n((?: +.*\n)+)", re.MULTILINE)
_SECTION = re.compile(r"^\w+\n---+$", re.MULTILINE)


def parameter_texts(text: str) -> dict[str, str]:
    """What a numpydoc docstring says of its parameters, by the names that head each entry."""
    _, _, after = inspect.cleandoc(text).partition(_HEAD)
    entries = _ENTRY.findall(after.partition("\n\n")[0] + "\n")
    return {names: dedent(about).rstrip() for names, about in entries}


def completed(text: str, parameters: Iterable[str], shared: Mapping[str, str], returned: type | None = None) -> str:
    """A numpydoc docstring with an entry for each of these parameters: its own one, otherwise the shared one.

    What is ``returned`` is described by its class, if there is no entry for it.
    """
    text = inspect.cleandoc(text)
    if returned is not None and _RETURNS not in text:
        about = inspect.cleandoc(returned.__doc__ or "").partition("\n\n")[0]
        before, head, after = text.partition(_EXAMPLES)
        text = f"{before.rstrip()}\n\n{_RETURNS}{returned.__name__}\n{indent(about, '    ')}\n\n{head}{after}"
    entries = {**shared, **parameter_texts(text)}
    entry_of = {name: names for names in entries for name in names.split(", ")}
    named = dict.fromkeys(entry_of[name] for name in parameters if name in entry_of)
    described = "".join(f"{names}\n{indent(entries[names], '    ')}\n" for names in named)
    before, head, after = text.partition(_HEAD)
    if head:
        after = after.partition("\n\n")[2]
    elif section := _SECTION.search(text):
        before, after = text[: section.start()], text[section.start() :]
    return f"{before.rstrip()}\n\n{_HEAD}{described}\n{after}".rstrip()
