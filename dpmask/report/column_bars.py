"""Counts of a column of numbers as bars: of all values, and without zeros where these would fill a bar of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpmask.kernels.arrays import Counts
from dpmask.kernels.order.histogram import Bars, Grid, common_bars
from dpmask.report.compared import ComparedNumbers, ValuesButZero
from dpmask.report.log_bars import log_bars

_MOST_BARS = 32
_TAIL = 0.005
_MANY_ZEROS = 0.05
"""From this share on zeros have a bar of their own."""

Ratios = tuple[list[float] | None, Sequence[Counts]]
"""Of a skewed column edges that grow by ratios, and the counts of both tables between them."""


def compared_numbers(
    column: str, grid: Grid, zeros: tuple[int, int], counted: Sequence[Counts], ratios: Ratios
) -> ComparedNumbers:
    """A column as both tables have it, and as the masked one alone shows it."""
    bars, released = _bars(grid, *counted), _bars(grid, counted[-1])
    return ComparedNumbers(column, bool(grid.shift), bars, released, zeros, _others(grid, zeros, counted, ratios))


def _bars(grid: Grid, *counted: Counts) -> Bars:
    bars = common_bars(grid, counted, _MOST_BARS, _TAIL)
    return bars._replace(edges=_clean(bars.edges))


def _clean(edges: list[float]) -> list[float]:
    """Edges as people write them, 0.3 and not 0.30000000000000004, as long as they are still distinct."""
    written = [float(f"{edge:.12g}") for edge in edges]
    return written if len(set(written)) == len(edges) else edges


def _others(grid: Grid, zeros: tuple[int, int], counted: Sequence[Counts], ratios: Ratios) -> ValuesButZero | None:
    """The column without zeros, by ratios where it is skewed; None where one picture of all values is enough."""
    edges, by_ratio = ratios
    apart = [_has_own_bar(grid, none, counts) for none, counts in zip(zeros, counted, strict=True)]
    if edges is None and not any(apart):
        return None
    if edges is None:
        rest = [_without_zeros(grid, none, counts) for none, counts in zip(zeros, counted, strict=True)]
        both, alone = _bars_if_any(grid, *rest), _bars_if_any(grid, rest[-1])
        return ValuesButZero(both, alone if apart[-1] else None, False)
    whole = bool(grid.shift)
    both, alone = (
        log_bars(edges, some, _MOST_BARS, _TAIL, whole=whole) if _any_value(*some) else None
        for some in (by_ratio, by_ratio[-1:])
    )
    return ValuesButZero(both, alone, True)


def _bars_if_any(grid: Grid, *counted: Counts) -> Bars | None:
    return _bars(grid, *counted) if _any_value(*counted) else None


def _any_value(*counted: Counts) -> bool:
    return any(counts[:-1].sum() for counts in counted)


def _has_own_bar(grid: Grid, zeros: int, counts: Counts) -> bool:
    """Whether zeros are many and would share a bar with other values."""
    values = int(counts[:-1].sum())
    if zeros < _MANY_ZEROS * values or zeros in (0, values):
        return False
    edges = _bars(grid, counts).edges
    return not (grid.shift and len(edges) > 1 and edges[1] - edges[0] <= 1.0)


def _without_zeros(grid: Grid, zeros: int, counts: Counts) -> Counts:
    """The counts less zeros, which all lie in one cell."""
    cell = int(np.floor(grid.shift / grid.step)) - grid.first
    place = 0 if cell < 0 else min(cell, grid.cells) + 1
    rest = counts.copy()
    rest[place] -= zeros
    return rest
