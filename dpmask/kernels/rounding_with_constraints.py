"""Rows on the grid of their types that still keep linear equalities: integers stay integers, and net + tax stays gross.

Rounding each column by itself breaks equalities. Here as many columns as there are independent equalities are taken as
dependent: the others are rounded, these are computed. A dependent column of integers needs whole coefficients; which
columns can be dependent is decided in exact fractions. Where a computed value leaves its bounds, rounding up or down is
tried for the others, the nearest row that keeps everything wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats

Equality = tuple[Sequence[Fraction], Fraction]
"""Coefficients, one for each column, and the constant."""

_TRIES = 5000
_SLACK = 1e-9  # relative: a bound missed by less is only rounding
_CHOICES = 12  # columns that are tried rounded up and down, 2^12 rows


class NoRoundingError(ValueError):
    """No row of the columns' types keeps the equalities; the message says which columns are in the way."""


class ConstrainedRounding(NamedTuple):
    """How a row gets onto the grid: steps of the columns, and the dependent ones as functions of the others."""

    steps: Floats  # 1 for integers, 0.01 for two decimals, 0 for floats
    kinds: tuple[str, ...]  # the floats that a column can hold: float64, float32 or float16
    lower: Floats  # as the columns' kinds hold them
    upper: Floats
    dependent: NDArray[np.intp]
    factors: Floats  # dependent x columns, 0 at dependent columns
    constants: Floats  # dependent

    @property
    def free(self) -> NDArray[np.intp]:
        """The columns that are rounded."""
        return np.setdiff1d(np.arange(len(self.steps)), self.dependent)


def constrained_rounding(
    equalities: Sequence[Equality], steps: Sequence[Fraction], kinds: Sequence[str], lower: Floats, upper: Floats
) -> ConstrainedRounding:
    """The grid of columns with these steps (0: floats), or NoRoundingError. The equalities must not contradict."""
    bounded = np.isfinite(lower) | np.isfinite(upper)
    columns = range(len(steps))
    wish = sorted(columns, key=lambda j: (steps[j] != 0, float(np.finfo(kinds[j]).eps), bool(bounded[j]), -j))
    rows = [([*coefficients, constant]) for coefficients, constant in equalities]
    for tried, (reduced, pivots) in enumerate(_reductions(rows, wish)):
        if all(_computable(row, pivot, steps) for row, pivot in zip(reduced, pivots, strict=True)):
            return _rounding(reduced, pivots, steps, kinds, lower, upper)
        if tried > _TRIES:
            break
    raise NoRoundingError("no column of whole numbers can be computed from the others without a remainder")


def _reductions(
    rows: list[list[Fraction]], wish: Sequence[int], done: tuple[int, ...] = ()
) -> Iterator[tuple[list[list[Fraction]], tuple[int, ...]]]:
    """Every way to solve the equalities for some columns, the most wanted columns first."""
    if len(done) == len(rows):
        yield rows, done
        return
    current = rows[len(done)]
    candidates = [j for j in wish if current[j] != 0]
    if not candidates:  # it follows from the others
        yield from _reductions(rows[: len(done)] + rows[len(done) + 1 :], wish, done)
    for pivot in candidates:
        yield from _reductions(_eliminated(rows, len(done), pivot), wish, (*done, pivot))


def _eliminated(rows: list[list[Fraction]], number: int, pivot: int) -> list[list[Fraction]]:
    scaled = [value / rows[number][pivot] for value in rows[number]]
    return [
        scaled if at == number else [one - row[pivot] * other for one, other in zip(row, scaled, strict=True)]
        for at, row in enumerate(rows)
    ]


def _computable(row: Sequence[Fraction], pivot: int, steps: Sequence[Fraction]) -> bool:
    """Whether a column lies on its grid whenever those it is computed from lie on theirs."""
    if steps[pivot] == 0:
        return True
    others = [j for j in range(len(steps)) if j != pivot and row[j] != 0]
    moves = [row[j] * steps[j] / steps[pivot] for j in others]
    return all(steps[j] != 0 for j in others) and all(
        move.denominator == 1 for move in (*moves, row[-1] / steps[pivot])
    )


def _rounding(
    rows: list[list[Fraction]],
    pivots: tuple[int, ...],
    steps: Sequence[Fraction],
    kinds: Sequence[str],
    lower: Floats,
    upper: Floats,
) -> ConstrainedRounding:
    factors = np.array([[float(-value) for value in row[:-1]] for row in rows]).reshape(len(rows), len(steps))
    factors[np.arange(len(pivots)), list(pivots)] = 0.0
    constants = np.array([float(row[-1]) for row in rows])
    sizes = np.array([float(step) for step in steps])
    low = np.array([_inside(bound, kind, np.inf) for bound, kind in zip(lower, kinds, strict=True)])
    high = np.array([_inside(bound, kind, -np.inf) for bound, kind in zip(upper, kinds, strict=True)])
    return ConstrainedRounding(sizes, tuple(kinds), low, high, np.array(pivots, np.intp), factors, constants)


def _inside(bound: float, kind: str, inward: float) -> float:
    """The number of this kind that is nearest to a bound and not outside."""
    with np.errstate(over="ignore"):
        number = np.dtype(kind).type(bound)
    outside = number < bound if inward > 0.0 else number > bound
    return float(np.nextafter(number, number.dtype.type(inward)) if outside else number)


def rounded_with_constraints(rows: Floats, grid: ConstrainedRounding, scale: Floats) -> Floats:
    """Rows (rows x columns) on the grid, each near its own; near is in units of ``scale``."""
    result = _completed(_rounded(rows, grid), grid)
    for at in np.flatnonzero(_broken(result, grid)):
        result[at] = _nearest(rows[at], grid, scale)
    return np.clip(result, grid.lower, grid.upper)  # only rounding is left


def _rounded(rows: Floats, grid: ConstrainedRounding) -> Floats:
    """Each column by itself, inside its bounds."""
    result = rows.copy()
    for j in grid.free:
        step = grid.steps[j]
        if step > 0.0:
            result[:, j] = np.clip(np.rint(rows[:, j] / step), *_ends(grid, j)) * step
        else:
            result[:, j] = np.clip(rows[:, j].astype(grid.kinds[j]), grid.lower[j], grid.upper[j])
    return result


def _ends(grid: ConstrainedRounding, j: int) -> tuple[Any, Any]:
    """The first and the last step inside a column's bounds."""
    step = grid.steps[j]
    slack = _SLACK * (1.0 + np.abs(np.array([grid.lower[j], grid.upper[j]])) / step)
    slack[~np.isfinite(slack)] = 0.0
    return np.ceil(grid.lower[j] / step - slack[0]), np.floor(grid.upper[j] / step + slack[1])


def _completed(rows: Floats, grid: ConstrainedRounding) -> Floats:
    """The dependent columns computed. Terms are added in the order of the columns: the sum that people would check."""
    for number, j in enumerate(grid.dependent):
        total = np.full(len(rows), 0.0)
        for s in np.flatnonzero(grid.factors[number]):
            total += grid.factors[number, s] * rows[:, s]
        total += grid.constants[number]
        step = grid.steps[j]
        rows[:, j] = np.rint(total / step) * step if step > 0.0 else total.astype(grid.kinds[j])
    return rows


def _broken(rows: Floats, grid: ConstrainedRounding) -> NDArray[np.bool_]:
    slack = np.array([max(_SLACK, float(np.finfo(kind).eps)) for kind in grid.kinds])
    below = rows < grid.lower - slack * (1.0 + np.abs(grid.lower))
    above = rows > grid.upper + slack * (1.0 + np.abs(grid.upper))
    return np.any(below | above, axis=1)


def _nearest(row: Floats, grid: ConstrainedRounding, scale: Floats) -> Floats:
    """The nearest row that keeps all bounds, among those with some columns rounded up and others down."""
    moved = [j for j in grid.free if grid.steps[j] > 0.0 and grid.factors[:, j].any()][:_CHOICES]
    for choices in (range(2), range(-1, 3)) if len(moved) <= _CHOICES // 2 else (range(2),):
        options = np.array(list(product(choices, repeat=len(moved))), np.float64)
        candidates = np.repeat(_rounded(row[None], grid), len(options), axis=0)
        for place, j in enumerate(moved):
            down = np.floor(row[j] / grid.steps[j])
            candidates[:, j] = np.clip(down + options[:, place], *_ends(grid, j)) * grid.steps[j]
        candidates = _completed(candidates, grid)
        candidates = candidates[~_broken(candidates, grid)]
        if len(candidates):
            return candidates[np.argmin((((candidates - row) / scale) ** 2).sum(axis=1))]
    raise NoRoundingError("rounding to the columns' types breaks a bound or an equality")
