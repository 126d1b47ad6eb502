"""Variables that are masked together: their units, the constraints their rows must keep, the grid of their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmask.clustering.scaling import Constrained, Inputs, constrained, covariance_of
from dpmask.constraints.sets import parse_constraints
from dpmask.errors import InputError, JobError
from dpmask.kernels.covariance import CovarianceSums
from dpmask.kernels.rounding_with_constraints import (
    ConstrainedRounding,
    NoRoundingError,
    constrained_rounding,
    rounded_with_constraints,
)
from dpmask.table.checks import require_complete, require_finite
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

    def to_original(self, centers: Floats) -> Floats:
        """Centres (centres x columns) in original units, within the constraints."""
        return self.limits.released(centers, self.scale) if self.limits else self.scale.to_original(centers)

    def finished(self, rows: Floats) -> Floats:
        """Rows as they are released: on the grid of their types, still within the constraints."""
        return rounded_with_constraints(rows, self.grid, self.scale.sd)


def checked_covariance(table: Table, columns: Sequence[str], least: int, who: str) -> CovarianceSums:
    """Means and deviations in one pass; values that cannot be grouped are refused, and so are too few records."""
    found = covariance_of(table, Inputs(tuple(columns), None, None), who)
    require_finite(found, columns, who)
    advice = ", which cannot be grouped. Fill them in, drop those records, or take the column out."
    require_complete(found, columns, found.rows, who, advice)
    if found.rows < least:
        raise InputError(f"{who}: groups of {least} need at least as many records; there are {found.rows}.")
    return found


def make_variables(
    schema: Any, found: CovarianceSums, groups: Sequence[Sequence[str]], constraints: Sequence[str], who: str
) -> list[Variables]:
    """The variables of each group, with the constraints on them."""
    columns = [name for group in groups for name in group]
    texts = _by_group(constraints, columns, groups, who)
    return [_make(schema, found, columns, tuple(group), texts[number], who) for number, group in enumerate(groups)]


def _make(
    schema: Any, found: CovarianceSums, columns: list[str], group: tuple[str, ...], texts: Sequence[str], who: str
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


def _by_group(
    constraints: Sequence[str], columns: Sequence[str], groups: Sequence[Sequence[str]], who: str
) -> list[list[str]]:
    """The constraints of each group; one that binds columns of several groups cannot be kept by any of them."""
    texts: list[list[str]] = [[] for _ in groups]
    for text in constraints:
        written = parse_constraints([text], columns)
        bound = written.coefficients.any(axis=0) | np.isfinite(written.lower) | np.isfinite(written.upper)
        named = {name for name, used in zip(columns, bound, strict=True) if used}
        place = next((number for number, group in enumerate(groups) if named <= set(group)), None)
        if place is None:
            raise JobError(
                f"{who}: constraint '{text}' binds columns that are masked separately: {', '.join(sorted(named))}. "
                "Put them into one group."
            )
        texts[place].append(text)
    return texts
