"""How a column's values are spread: counts on an even grid whose edges are round numbers.

A grid's edges are multiples of a round step, so they show nothing of the records at the ends of the range; what lies
outside is counted below or above. Counts add, and several neighbouring steps make one bar of a chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.compile import compiled, read_only

_ROUND = (1.0, 2.0, 5.0)


class Grid(NamedTuple):
    """Cells of width ``step``: the first begins at ``step * first - shift``."""

    step: float
    first: int
    cells: int
    shift: float

    def edge(self, cell: int) -> float:
        """Where a cell begins, numbered from zero on the whole line."""
        return self.step * cell - self.shift


def even_grid(low: float, high: float, most: int, whole: bool) -> Grid:
    """At most this many cells (and one or two for rounding) that cover a range; whole numbers lie inside their cell."""
    width = max(high / most - low / most, 1.0 if whole else 0.0) or abs(low) / most or 1.0
    step = round_step(max(width, math.ulp(max(abs(low), abs(high)))))  # no two doubles lie closer
    shift = 0.5 if whole else 0.0
    first = math.floor((low + shift) / step)
    return Grid(step, first, math.floor((high + shift) / step) - first + 1, shift)


def round_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is no smaller."""
    power = math.floor(math.log10(least))
    found = [digit * 10.0**power for digit in (*_ROUND, 10.0)]
    return next((step for step in found if step >= least * (1 - 1e-12)), found[-1])


def grid_counts(values: Floats, grid: Grid) -> Counts:
    """How many values lie in each cell; before the cells those below, after them those above and the missing ones."""
    found = np.zeros(grid.cells + 3, np.int64)
    _count(read_only(values), grid.step, float(grid.first), grid.cells, grid.shift, found)
    return found


@compiled(reassociate=False, contract=False)
def _count(values: Floats, step: float, first: float, cells: int, shift: float, found: Counts) -> None:
    for k in range(len(values)):
        cell = np.floor((values[k] + shift) / step) - first
        if np.isnan(cell):
            found[cells + 2] += 1
        elif cell < 0.0:
            found[0] += 1
        else:
            found[cells + 1 if cell >= cells else int(cell) + 1] += 1


class Bars(NamedTuple):
    """Two tables on common edges: records in each bar, below the first, above the last, and without a value."""

    edges: list[float]
    counts: tuple[list[int], ...]
    below: tuple[int, ...]
    above: tuple[int, ...]
    missing: tuple[int, ...]


def common_bars(grid: Grid, counted: Sequence[Counts], most: int, tail: float) -> Bars:
    """At most this many bars of equal width; at each end the share ``tail`` of every table's values may be pooled.

    A bar that begins before the grid does, or ends after it, is cut there: what lies beyond was not counted by cells.
    """
    low, high = (grid.first + end for end in core(counted, tail))
    joined = next(n for n in _multiples() if high // n - low // n < most)
    first, last = low // joined, high // joined
    cuts = np.clip(np.arange(first, last + 2) * joined - grid.first, 0, grid.cells)
    return bars_between(cuts, [grid.edge(grid.first + cut) for cut in cuts.tolist()], counted)


def core(counted: Sequence[Counts], tail: float) -> tuple[int, int]:
    """The first and the last cell between the tails of all tables."""
    low, high = zip(*(_between_tails(counts, tail) for counts in counted), strict=True)
    return min(low), max(high)


def _between_tails(counts: Counts, tail: float) -> tuple[int, int]:
    through = np.cumsum(counts[:-1])
    cells = len(counts) - 3
    low = int(np.searchsorted(through, tail * through[-1], "right")) - 1
    high = int(np.searchsorted(through, (1 - tail) * through[-1], "left")) - 1
    return min(max(low, 0), cells - 1), min(max(high, 0), cells - 1)


def bars_between(cuts: NDArray[np.int64], edges: list[float], counted: Sequence[Counts]) -> Bars:
    """The bars between these places among the edges of the cells, which have these values."""
    sums = [np.concatenate([[0], np.cumsum(counts[:-1])]) for counts in counted]
    return Bars(
        edges,
        tuple(np.diff(total[cuts + 1]).tolist() for total in sums),
        tuple(int(total[cuts[0] + 1]) for total in sums),
        tuple(int(total[-1] - total[cuts[-1] + 1]) for total in sums),
        tuple(int(counts[-1]) for counts in counted),
    )


def _multiples() -> list[int]:
    return [int(digit) * 10**power for power in range(12) for digit in _ROUND]


def pooled(counts: Sequence[int], least: int) -> list[tuple[int, int, int]]:
    """Neighbours joined until each has at least so many: first and one past the last of them, and their count.

    Nothing is left if all together are fewer.
    """
    found: list[tuple[int, int, int]] = []
    start = total = 0
    for place, count in enumerate(counts):
        total += count
        if total >= least:
            found.append((start, place + 1, total))
            start, total = place + 1, 0
    if found and start < len(counts):
        first, _, before = found.pop()
        found.append((first, len(counts), before + total))
    return found
