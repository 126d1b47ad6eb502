"""Refusals that speak of a table's values, without showing any."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpmask.errors import InputError
from dpmask.kernels.moments import Moments
from dpmask.lake.footers import is_empty_range
from dpmask.table.table import Table


def require_finite(moments: Moments, columns: Sequence[str], who: str) -> None:
    """Refuse columns that are infinite somewhere."""
    for number, column in enumerate(columns):
        if moments.infinite[number]:
            raise _infinite(who, column, f"in {moments.infinite[number]} records")


def require_spread(moments: Moments, columns: Sequence[str], who: str) -> None:
    """Refuse columns that are infinite somewhere, empty, or constant."""
    require_values(moments, columns, who)
    for number, column in enumerate(columns):
        if moments.values[number] == 1:
            raise InputError(f"{who}: column '{column}' has a value in one record only; at least 2 are needed.")
        if moments.low[number] == moments.high[number]:
            raise _constant(who, column)
        if not 0.0 < moments.sd[number] < math.inf:
            raise InputError(
                f"{who}: column '{column}' is too large or too small for its standard deviation. Rescale it."
            )


def require_values(moments: Moments, columns: Sequence[str], who: str) -> None:
    """Refuse columns that are infinite somewhere, or empty."""
    require_finite(moments, columns, who)
    for number, column in enumerate(columns):
        if not moments.values[number]:
            raise _empty(who, column)


def require_spread_by_footers(table: Table, columns: Sequence[str], who: str) -> None:
    """The same refusals, as far as a lake's footers can tell, before anything is read."""
    for column in columns:
        facts = table.facts.get(column)
        if facts is None or column in table.changed or facts.low is None:
            continue
        if is_empty_range(facts.low):
            raise _empty(who, column)
        if isinstance(facts.low, float) and (math.isinf(facts.low) or math.isinf(facts.high)):
            raise _infinite(who, column, "somewhere")
        if facts.low == facts.high:
            raise _constant(who, column)


def _infinite(who: str, column: str, where: str) -> InputError:
    return InputError(f"{who}: column '{column}' holds infinite values {where}. Make them null, or drop those records.")


def _empty(who: str, column: str) -> InputError:
    return InputError(f"{who}: column '{column}' has no value in any record. Take it out of columns.")


def _constant(who: str, column: str) -> InputError:
    return InputError(f"{who}: column '{column}' is constant, its standard deviation is 0. Take it out of columns.")
