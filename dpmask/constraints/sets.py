"""Linear constraints as people write them: `net + tax = gross`, `1.16*v1 + 1.07*v2 = v3`, `0 <= age <= 120`.

They become the rows of M v = A and bounds over an ordered list of columns (eq. 5 of Torra 2020 has one such row). A
name with other characters than letters, digits, `_` and `.` stands in backticks or quotes. Whether all constraints
together have a solution is decided by dpmask.kernels.projection.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpmask.constraints.parser import ConstraintError, ConstraintText, LinearForm
from dpmask.kernels.arrays import Flags, Floats

__all__ = ["ConstraintError", "Constraints", "breaks", "parse_constraints"]

_ROUNDINGS = 8.0
"""A sum of a few floats is exact to so many roundings of its largest term."""


class Constraints(NamedTuple):
    """M v = A and lower <= v <= upper over `columns`."""

    columns: tuple[str, ...]
    coefficients: Floats  # M: equalities x columns
    constants: Floats  # A: equalities
    lower: Floats  # columns, -inf where there is none
    upper: Floats  # columns, inf where there is none
    texts: tuple[str, ...]  # the constraint that each equality comes from
    exact: tuple[tuple[tuple[Fraction, ...], Fraction], ...]  # M and A before they became floats


def parse_constraints(texts: Sequence[str], columns: Sequence[str]) -> Constraints:
    """All constraints over the given columns; ConstraintError for a text that cannot be used."""
    if isinstance(texts, str):
        texts = [texts]
    place = {column: index for index, column in enumerate(columns)}
    rows: list[Floats] = []
    constants: list[float] = []
    sources: list[str] = []
    exact: list[tuple[tuple[Fraction, ...], Fraction]] = []
    lower, upper = np.full(len(place), -np.inf), np.full(len(place), np.inf)
    for text in texts:
        if not isinstance(text, str):
            raise ConstraintError(f"a constraint must be text such as 'net + tax = gross'; got {type(text).__name__}")
        source = ConstraintText(text, columns)
        for relation, difference in source.relations():
            if relation == "=":
                row, constant = _equality(source, difference, place)
                rows.append(row)
                constants.append(constant)
                sources.append(text)
                terms = tuple(difference.terms.get(column, Fraction(0)) for column in columns)
                exact.append((terms, -difference.number))
            else:
                _tighten(source, relation, difference, place, lower, upper)
    matrix = np.array(rows, np.float64).reshape(len(rows), len(place))
    return Constraints(
        tuple(columns), matrix, np.array(constants, np.float64), lower, upper, tuple(sources), tuple(exact)
    )


def breaks(written: Constraints, precision: float, values: Floats) -> Flags:
    """Which records (columns x rows) break a constraint by more than the rounding of their types.

    A record that lacks a value of a column breaks nothing that binds it.
    """
    lower, upper = written.lower[:, None], written.upper[:, None]
    slack = _ROUNDINGS * precision * np.abs(values)
    broken: Flags = np.any((values < lower - slack) | (values > upper + slack), axis=0)
    for row, constant in zip(written.coefficients, written.constants, strict=True):
        used = np.flatnonzero(row)
        terms = row[used, None] * values[used]
        size = np.abs(terms).sum(axis=0) + abs(constant)
        broken |= np.abs(terms.sum(axis=0) - constant) > _ROUNDINGS * precision * size
    return broken


def _equality(source: ConstraintText, difference: LinearForm, place: dict[str, int]) -> tuple[Floats, float]:
    """The row of M and the constant of A that difference = 0 means."""
    _require_columns(source, difference)
    row = np.zeros(len(place))
    for column, coefficient in difference.terms.items():
        row[place[column]] = _float(source, coefficient, difference)
    return row, _float(source, -difference.number, difference)


def _tighten(
    source: ConstraintText, relation: str, difference: LinearForm, place: dict[str, int], lower: Floats, upper: Floats
) -> None:
    """Narrow the bounds by difference >= 0 or difference <= 0."""
    _require_columns(source, difference)
    if len(difference.terms) > 1:
        source.refuse("an inequality may name one column only, as in age >= 0", difference.start, difference.end)
    ((column, coefficient),) = difference.terms.items()
    bound, at = _float(source, -difference.number / coefficient, difference), place[column]
    if (relation == ">=") == (coefficient > 0):
        lower[at] = max(lower[at], bound)
    else:
        upper[at] = min(upper[at], bound)
    if lower[at] > upper[at]:
        source.refuse(f"no {column} keeps this bound and the others", difference.start, difference.end)


def _require_columns(source: ConstraintText, difference: LinearForm) -> None:
    if not difference.terms:
        source.refuse("it says nothing about any column", difference.start, difference.end)


def _float(source: ConstraintText, value: Fraction, difference: LinearForm) -> float:
    try:
        return float(value)
    except OverflowError:
        source.refuse("a number here becomes too large", difference.start, difference.end)
