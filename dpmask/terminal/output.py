"""Printing: what a terminal would obey is shown escaped; a closed pipe stops no release and changes no exit code."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from contextlib import suppress
from typing import IO, Any

import click

from dpmask.errors import printable


def echo(text: str, *, err: bool = False) -> None:
    """Print lines of which nothing is obeyed."""
    write("\n".join(map(escaped, text.split("\n"))), err=err)


def escaped(line: str) -> str:
    """A line with control, format and bidi characters shown as their escapes."""
    return line if line.isprintable() else printable(line, len(line) * 10)


def write(text: str, *, err: bool, end: bool = True) -> None:
    """Print as it is."""
    with suppress(OSError, ValueError, AttributeError):
        click.echo(text, nl=end, err=err, color=True if coloured(err=err) else None)


def echo_error(text: str) -> None:
    """Print on stderr what went wrong."""
    echo(f"dpmask: {text}", err=True)


def echo_paragraph(text: str, *, indent: int = 0, err: bool = False) -> None:
    """Print a long line; on a terminal in lines as wide as it is, those after the first further in."""
    width = width_of(err=err)
    if width is None or places(text) + indent <= width:
        echo(" " * indent + text, err=err)
        return
    first, later = " " * indent, " " * (indent + 2)
    for line in textwrap.wrap(escaped(text), width, initial_indent=first, subsequent_indent=later):
        write(line, err=err)


def count(number: int, thing: str) -> str:
    """A number with its noun: 1 file, 2 files."""
    return f"{number} {thing}" + "s" * (number != 1)


def is_terminal(*, err: bool = False) -> bool:
    """Whether a stream is a terminal that obeys: one that moves its cursor."""
    stream: IO[Any] | None = sys.stderr if err else sys.stdout
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def coloured(*, err: bool = False) -> bool:
    """Whether colours are shown: on a terminal, unless NO_COLOR says otherwise (no-color.org)."""
    return is_terminal(err=err) and not os.environ.get("NO_COLOR")


def width_of(*, err: bool = False) -> int | None:
    """How wide lines may be; None where they may be as long as they are."""
    return max(shutil.get_terminal_size().columns, 40) if is_terminal(err=err) else None


def places(text: str) -> int:
    """How many places a terminal gives to a text: none to combining marks, two to wide letters."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(one) else 1 + (east_asian_width(one) in "WF") for one in text)


def settle_output() -> None:
    """Flush what is left; a closed stream is pointed to nowhere, or Python would end with an exit code of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            with suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
