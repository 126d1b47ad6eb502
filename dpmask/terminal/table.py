"""Tables of text: columns in line, nothing of a cell obeyed; on a narrow terminal the last one wraps or goes below."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import click

from dpmask.terminal.output import coloured, escaped, places, width_of, write

GOOD, BAD = "green", "red"
_GAP = "  "
_NARROWEST = 16
_BELOW = 4  # how far in cells stand that go below the others


def show_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    indent: int = 0,
    colours: Sequence[str | None] = (),
    coloured_column: int = -1,
    err: bool = False,
) -> None:
    """Print a table; columns ``right`` are aligned to the right, one cell of each row has the row's colour, if any."""
    lines = [[escaped(cell) for cell in line] for line in (header, *rows)]
    widths = [max(places(line[at]) for line in lines) for at in range(len(header))]
    layout = _layout(widths, indent, width_of(err=err))
    painted, coloured_at = coloured(err=err), coloured_column % len(header)
    for number, line in enumerate(lines):
        cells = [_aligned(cell, widths[at], at in right) for at, cell in enumerate(line[: layout.kept])]
        later = textwrap.wrap(_GAP.join(cell for cell in line[layout.kept :] if cell), layout.rest)
        if layout.beside:
            cells, later = [*cells, *later[:1]], later[1:]
        colour = colours[number - 1] if number and colours else None
        if painted and colour and coloured_at < len(cells):
            cells[coloured_at] = click.style(cells[coloured_at], fg=colour)
        text = (" " * indent + _GAP.join(cells)).rstrip()
        write(click.style(text, bold=True) if painted and number == 0 else text, err=err)
        for part in later:
            write(" " * layout.start + part, err=err)


class _Layout(NamedTuple):
    """How many columns stand in line, how wide the others may be together, where these start, and whether beside."""

    kept: int
    rest: int = _NARROWEST
    start: int = 0
    beside: bool = False


def _layout(widths: Sequence[int], indent: int, width: int | None) -> _Layout:
    """The last column wraps where there is room beside the others; else those that have none go below."""
    ends = [indent + sum(widths[: at + 1]) + len(_GAP) * at for at in range(len(widths))]
    if width is None or ends[-1] <= width:
        return _Layout(len(widths))
    start = ends[-1] - widths[-1]
    if width - start >= _NARROWEST:
        return _Layout(len(widths) - 1, width - start, start, beside=True)
    kept = max(sum(end <= width for end in ends), 1)
    return _Layout(kept, max(width - indent - _BELOW, _NARROWEST), indent + _BELOW)


def _aligned(text: str, width: int, right: bool) -> str:
    fill = " " * (width - places(text))
    return fill + text if right else text + fill
