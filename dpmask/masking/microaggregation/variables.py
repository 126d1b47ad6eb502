"""Variables that are masked together: their units, the constraints their rows must keep, the grid of their types."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmask.clustering.scaling import Constrained, Inputs, constrained, covariance_of
from dpmask.constraints.sets import parse_constraints
from dpmask.errors import InputError, JobError
from dpmask.kernels.covariance import CovarianceSums
from dpmask.kernels.patterns import MISSING, ZERO
from dpmask.kernels.rounding_with_constraints import (
    ConstrainedRounding,
    NoRoundingError,
    constrained_rounding,
    rounded_with_constraints,
)
from dpmask.masking.parts import Parts
from dpmask.table.checks import require_values
from dpmask.table.columns import float_kind, rounding_step, type_range
from dpmask.table.encoders.numeric import Scale
from dpmask.table.table import Table

Floats = npt.NDArray[np.float64]

_DIGITS = 9
"""Means and deviations keep so many digits: what another order of summation changes must not reach the records."""


class Variables(NamedTuple):
    """Columns that share their groups of records."""

    columns: tuple[str, ...]
    scale: Scale
    limits: Constrained | None
    grid: ConstrainedRounding
    signs: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]  # columns with no original below zero, with none above
    texts: tuple[str, ...]
    """The constraints that hold for all records."""

    def to_original(self, centers: Floats) -> Floats:
        """Centres (centres x columns) in original units, within the constraints."""
        return self.limits.released(centers, self.scale) if self.limits else self.scale.to_original(centers)

    def finished(self, rows: Floats) -> Floats:
        """Rows as they are released: on the grid of their types, still within the constraints."""
        return rounded_with_constraints(rows, self.grid, self.scale.sd)

    def off_zero(self, rows: Floats, kept: npt.NDArray[np.bool_]) -> Floats:
        """Rows as they are released, where zeros of the ``kept`` columns mean that there is nothing: none is rounded.

        One step of its type stands for a mean that is rounded to zero, unless an equality binds the column.
        """
        steps = np.where(self.signs[1], -self.grid.steps, self.grid.steps)
        bound = np.zeros(len(steps), np.bool_)
        if len(self.grid.dependent):
            bound |= self.grid.factors.any(axis=0)
        bound[self.grid.dependent] = True
        inside = (steps != 0.0) & (steps >= self.grid.lower) & (steps <= self.grid.upper)
        return np.where((rows == 0.0) & kept & inside & ~bound, steps, rows)


def checked_covariance(table: Table, columns: Sequence[str], least: int, who: str) -> CovarianceSums:
    """Means and deviations in one pass; infinite and empty columns are refused, and so are too few records."""
    found = covariance_of(table, Inputs(tuple(columns), None, None), who)
    require_values(found, columns, who)
    if found.rows < least:
        raise too_few(who, least, found.rows)
    return found


def too_few(who: str, least: int, rows: int) -> InputError:
    """The error of a table that is smaller than one group."""
    return InputError(f"{who}: groups of {least} need at least as many records; there are {rows}.")


class VariablesOf(NamedTuple):
    """What variables of a table are made from: its types, and the moments of all columns."""

    schema: Any
    found: CovarianceSums
    columns: tuple[str, ...]
    who: str

    def make(self, group: Sequence[str], texts: Sequence[str]) -> Variables:
        """The variables of one group, with constraints on them."""
        return _make(self.schema, self.found, self.columns, tuple(group), texts, self.who)

    def of_parts(
        self, group: Sequence[str], texts: Sequence[str], rules: Sequence[str], parts: Parts
    ) -> list[Variables]:
        """Those of each part: with the rules that apply to it, and the constraints on what it has.

        A column that is zero in a part is zero in its rows; what is missing is bound by nothing.
        """
        made: dict[tuple[str, ...], Variables] = {}
        found = []
        for pattern, applying in zip(parts.patterns, parts.rules, strict=True):
            bound = (*texts, *(rules[at] for at in applying))
            gone = {name for name, state in zip(group, pattern, strict=True) if state == MISSING}
            kept = tuple(text for text in bound if not gone.intersection(bound_columns(text, group)))
            zeros = tuple(f"`{name}` = 0" for name, state in zip(group, pattern, strict=True) if state == ZERO)
            own = (*kept, *zeros) if kept else ()
            if own not in made:
                made[own] = self.make(group, own)._replace(texts=tuple(texts))
            found.append(made[own])
        return found


def _make(
    schema: Any, found: CovarianceSums, columns: Sequence[str], group: tuple[str, ...], texts: Sequence[str], who: str
) -> Variables:
    at = [columns.index(name) for name in group]
    scale = Scale(_rounded(found.mean[at]), _rounded(np.where(found.sd[at] > 0.0, found.sd[at], 1.0)))
    kinds = [schema.field(name).type for name in group]
    lowest, highest = _near_ends(kinds, found.low[at], found.high[at])
    written = parse_constraints(texts, group)
    lower, upper = np.maximum(written.lower, lowest), np.minimum(written.upper, highest)
    try:
        grid = constrained_rounding(
            written.exact, [rounding_step(k) for k in kinds], [float_kind(k) for k in kinds], lower, upper
        )
    except NoRoundingError as error:
        raise JobError(
            f"{who}: constraints {', '.join(texts)}: {error}. Store one of the columns as a float, or as a decimal "
            "with enough digits."
        ) from None
    limits = constrained(texts, group, scale, who, lowest=lowest, highest=highest)
    return Variables(group, scale, limits, grid, (found.low[at] >= 0.0, found.high[at] <= 0.0), tuple(texts))


def _near_ends(kinds: Sequence[Any], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The ends of the columns' types, where rows could come near them: constraints can push a row out of the data."""
    lowest, highest = np.array([type_range(kind) for kind in kinds]).T
    width = high - low
    return np.where(low - width < lowest, lowest, -np.inf), np.where(high + width > highest, highest, np.inf)


def _rounded(values: Floats) -> Floats:
    return np.array([float(f"{value:.{_DIGITS - 1}e}") for value in values])


def bound_columns(text: str, columns: Sequence[str]) -> frozenset[str]:
    """The columns that a constraint names."""
    return _bound_columns(text, tuple(columns))


@lru_cache(maxsize=1024)  # every part of a stratified table asks
def _bound_columns(text: str, columns: tuple[str, ...]) -> frozenset[str]:
    written = parse_constraints([text], columns)
    bound = written.coefficients.any(axis=0) | np.isfinite(written.lower) | np.isfinite(written.upper)
    return frozenset(name for name, used in zip(columns, bound, strict=True) if used)


def constraints_by_group(
    constraints: Sequence[str], columns: Sequence[str], groups: Sequence[Sequence[str]], who: str
) -> list[list[int]]:
    """The numbers of each group's constraints; one that binds columns of several groups can be kept by none of them."""
    numbers: list[list[int]] = [[] for _ in groups]
    for number, text in enumerate(constraints):
        named = bound_columns(text, columns)
        place = next((at for at, group in enumerate(groups) if named <= set(group)), None)
        if place is None:
            raise JobError(
                f"{who}: constraint '{text}' binds columns that are masked separately: {', '.join(sorted(named))}. "
                "Put them into one group."
            )
        numbers[place].append(number)
    return numbers
