"""Refusals of columns that are missing, infinite, empty or constant; no message shows a value.

They read the summaries that a first pass makes anyway, or the footers of a lake before anything is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpmask.errors import ColumnError, InputError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.covariance import CovarianceSums
from dpmask.kernels.moments import Moments
from dpmask.lake.footers import is_empty_range
from dpmask.table.table import Table

ColumnSummary = Moments | CovarianceSums


def require_finite(found: ColumnSummary, columns: Sequence[str], who: str, *, what: str = "column") -> None:
    """Refuse columns that are infinite somewhere."""
    for column, count in zip(columns, found.infinite, strict=True):
        if count:
            raise infinite_column(who, column, f" in {count} records", what)


def require_values(found: ColumnSummary, columns: Sequence[str], who: str) -> None:
    """Refuse columns that are infinite somewhere, or empty."""
    require_finite(found, columns, who)
    for column, count in zip(columns, found.values, strict=True):
        if not count:
            raise empty_column(who, column)


def require_complete(found: ColumnSummary, columns: Sequence[str], rows: int, who: str, advice: str) -> None:
    """Refuse columns that are missing in some of so many records; ``advice`` follows the sentence that says so."""
    for column, count in zip(columns, found.values + found.infinite, strict=True):
        if count < rows:
            raise _incomplete_column(who, column, rows - count, advice)


def require_varied(found: ColumnSummary, columns: Sequence[str], who: str) -> None:
    """Refuse columns that are constant, or so by their records' weights."""
    for number, column in enumerate(columns):
        if not (found.low[number] < found.high[number] and found.sd[number] > 0.0):
            raise constant_column(who, column)


def require_spread(found: ColumnSummary, columns: Sequence[str], who: str) -> None:
    """Refuse columns that are infinite somewhere, empty, or constant."""
    require_values(found, columns, who)
    for number, column in enumerate(columns):
        if found.values[number] == 1:
            raise ColumnError(f"{who}: column '{column}' has a value in one record only; at least 2 are needed.")
        if found.low[number] == found.high[number]:
            raise constant_column(who, column)
        if not 0.0 < found.sd[number] < math.inf:
            raise InputError(
                f"{who}: column '{column}' is too large or too small for its standard deviation. Rescale it."
            )


def require_spread_by_footers(table: Table, columns: Sequence[str], who: str) -> None:
    """The same refusals, as far as a lake's footers show it, before anything is read."""
    for column in columns:
        facts = table.facts.get(column)
        if facts is None or column in table.changed or facts.low is None:
            continue
        if is_empty_range(facts.low):
            raise empty_column(who, column)
        if isinstance(facts.low, float) and (math.isinf(facts.low) or math.isinf(facts.high)):
            raise infinite_column(who, column, " somewhere")
        if facts.low == facts.high:
            raise constant_column(who, column)


def require_complete_by_footers(table: Table, columns: Sequence[str], who: str, advice: str) -> None:
    """Refuse columns of which a lake's footers say that some records lack them, before anything is read."""
    for column in columns:
        facts = table.facts.get(column)
        if facts is not None and facts.nulls and column not in table.changed:
            raise _incomplete_column(who, column, facts.nulls, advice)


def require_finite_rows(values: Sequence[Floats], columns: Sequence[str], who: str, done: str) -> None:
    """Refuse a block with a value that is missing or infinite, so that it cannot be ``done``: grouped, rotated."""
    for column, some in zip(columns, values, strict=True):
        if not np.isfinite(some).all():
            raise ColumnError(
                f"{who}: column '{column}' has missing or infinite values, which cannot be {done}. Fill them in, drop "
                "those records, or take the column out."
            )


def require_no_infinities(values: Sequence[Floats] | Floats, who: str) -> None:
    """Refuse a block with an infinite value."""
    if np.isinf(values).any():
        raise ColumnError(f"{who}: the table has infinite values. Make them null, or drop those records.")


def require_weights(values: Floats, column: str, who: str) -> None:
    """Refuse weights or tolerances that are missing, infinite or negative."""
    if not (np.isfinite(values) & (values >= 0)).all():
        raise InputError(f"{who}: column '{column}' must hold a number >= 0 in every record.")


def _incomplete_column(who: str, column: str, count: int, advice: str) -> ColumnError:
    return ColumnError(f"{who}: column '{column}' is missing in {count} records{advice}")


def infinite_column(who: str, column: str, where: str = "", what: str = "column") -> ColumnError:
    """The error of infinite values."""
    return ColumnError(f"{who}: {what} '{column}' holds infinite values{where}. Make them null, or drop those records.")


def empty_column(who: str, column: str, where: str = "any record") -> ColumnError:
    """The error of a column without values."""
    return ColumnError(f"{who}: column '{column}' has no value in {where}. Take it out of columns.")


def constant_column(who: str, column: str) -> ColumnError:
    """The error of a column with one value only."""
    return ColumnError(f"{who}: column '{column}' is constant, its standard deviation is 0. Take it out of columns.")
