"""Types of columns in words that people use."""

from __future__ import annotations

import re

_WORDS = (
    (re.compile(r"u?int\d+"), "whole number"),
    (re.compile(r"float|double|halffloat"), "number"),
    (re.compile(r"(?:large_)?string(?:_view)?"), "text"),
    (re.compile(r"bool"), "true or false"),
    (re.compile(r"date\d+\[\w+\]"), "date"),
    (re.compile(r"timestamp\[.*\]"), "date and time"),
    (re.compile(r"time\d+\[\w+\]"), "time of day"),
    (re.compile(r"duration\[\w+\]"), "duration"),
    (re.compile(r"(?:large_|fixed_size_)?binary.*"), "bytes"),
    (re.compile(r"null"), "no value"),
    (re.compile(r"(?:(?:large_)?list|fixed_size_list|struct|map).*"), "nested values"),
)
_STORED_ONCE = re.compile(r"dictionary<values=(.+), indices=\w+, ordered=\d>")
_DECIMAL = re.compile(r"decimal\d+\((\d+), (-?\d+)\)")


def kind_words(kind: str) -> str:
    """A type as Arrow writes it, in words; one that is not known stays as it is."""
    stored = _STORED_ONCE.fullmatch(kind)
    if stored:
        return kind_words(stored[1])
    decimal = _DECIMAL.fullmatch(kind)
    if decimal:
        return f"decimal, {decimal[2]} places"
    return next((words for form, words in _WORDS if form.fullmatch(kind)), kind)
