"""Numbers and dates as codes in their order: a code for each value where they are few, otherwise for each interval.

Where the edges lie differs on purpose. A refinement releases its edges, so they are values of records
(``interval_encoders``); a measure's bins are numpy's quantiles, as its definition says (``quantile_edges``).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from dpmask.engine.limits import current_limits
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.order.bins import binned
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats, is_numeric
from dpmask.table.encoders.base import CodeEncoder, Codes
from dpmask.table.encoders.texts import text_numbers
from dpmask.table.quantiles import order_statistics, quantiles
from dpmask.table.table import Table

_BINS = 20
_EPOCH = datetime.date(1970, 1, 1)
_INTERVAL = re.compile(r"\s*([\[(])\s*([^\s,]+)\s*,\s*([^\s,]+)\s*([\])])\s*")


def is_date(kind: Any) -> bool:
    """Whether values of a type are days, or moments, which are taken by their day."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_ordered(kind: Any) -> bool:
    """Whether a column of this type can be cut into intervals."""
    return is_numeric(kind) or is_date(kind)


def numbers(rows: Rows, column: str) -> Floats:
    """A column of numbers or dates as floats, dates as days since 1970, NaN where missing."""
    if not is_date(rows.schema.field(column).type):
        return floats(rows, column)
    days = rows.column(column).cast(pa.date32(), safe=False).cast(pa.int32())
    return floats(pa.table({column: days}), column)


def day_number(text: str) -> float:
    """Days since 1970 of a date such as 1985-03-01."""
    return float((datetime.date.fromisoformat(text) - _EPOCH).days)


def day_text(number: float) -> str:
    """The date of a number of days since 1970."""
    return str(_EPOCH + datetime.timedelta(days=int(number)))


def bound_text(number: float, date: bool) -> str:
    """A bound of an interval, to the last digit."""
    if date:
        return day_text(number)
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def interval_text(low: float, high: float, date: bool) -> str:
    """An interval, which contains its lower bound, and not its upper one."""
    return f"[{bound_text(low, date)}, {bound_text(high, date)})"


@dataclass(frozen=True)
class DistinctNumbers:
    """Different numbers, some of them where there are more than ``most``; how many are missing or outside a domain."""

    values: Floats
    missing: int
    outside: int
    most: int

    @classmethod
    def of(cls, rows: Rows, column: str, *, most: int, domain: tuple[float, float] | None = None) -> DistinctNumbers:
        """One block's."""
        values = numbers(rows, column)
        present = values[~np.isnan(values)]
        outside = 0 if domain is None else int(((present < domain[0]) | (present >= domain[1])).sum())
        return cls(np.unique(present)[: most + 1], len(values) - len(present), outside, most)

    @property
    def many(self) -> bool:
        """Whether there are more different numbers than are kept."""
        return len(self.values) > self.most

    def plus(self, other: DistinctNumbers) -> DistinctNumbers:
        """Both together."""
        values: Floats = np.union1d(self.values, other.values)[: self.most + 1]
        return DistinctNumbers(values, self.missing + other.missing, self.outside + other.outside, self.most)


@dataclass(frozen=True, repr=False)
class IntervalEncoder(CodeEncoder):
    """How many of the edges are at or below each value; a missing one has the last code, or ``size`` if none was."""

    edges: Floats
    missing: bool

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.edges) + 1 + self.missing

    def encode(self, rows: Rows) -> Codes:
        """The code of each row."""
        return binned(numbers(rows, self.column), self.edges)


def interval_encoders(table: Table, found: Mapping[str, DistinctNumbers], who: str) -> dict[str, IntervalEncoder]:
    """Codes for each value, or between exact quantiles where there are too many."""
    for column, one in found.items():
        if one.outside:
            raise InputError(
                f"{who}: column '{column}' has values outside its domain in {one.outside} records. Widen the domain: "
                "[low, high) holds low, but not high."
            )
        if one.many and is_date(table.masked_schema.field(column).type):
            raise JobError(f"{who}: column '{column}' has more than {one.most} different days. Take fewer.")
    many = [column for column, one in found.items() if one.many]
    ordered = (
        order_statistics(table, many, partial(_ranks, current_limits().cut_places), f"{who}: values") if many else []
    )
    edges = {
        column: np.unique(one.values[one.values > one.values[0]]) for column, one in zip(many, ordered, strict=True)
    }
    return {
        column: IntervalEncoder(column, edges.get(column, one.values[1:]), one.missing > 0)
        for column, one in found.items()
    }


def _ranks(places: int, size: int) -> list[int]:
    return [size * number // places for number in range(places)]


def quantile_edges(table: Table, columns: Sequence[str], label: str) -> list[Floats]:
    """For each column the inner edges of its 20 quantile bins, each once."""
    shares = [number / _BINS for number in range(1, _BINS)]
    return [np.unique(values) for values in quantiles(table, columns, shares, label)]


def interval_parts(text: str) -> tuple[str, str, str, str] | None:
    """The opening bracket, both ends and the closing bracket of an interval label; None where it is none."""
    match = _INTERVAL.fullmatch(text)
    return match.groups() if match else None  # type: ignore[return-value]


def middles(rows: Rows, column: str) -> Floats:
    """A column of numbers, dates or interval labels as floats, an interval by its middle; NaN where missing."""
    if is_ordered(rows.schema.field(column).type):
        return numbers(rows, column)
    return text_numbers(rows, column, _middle)


def _middle(text: str) -> float:
    """The middle of an interval such as [20, 40) or [1970-01-01, 1980-01-01)."""
    try:
        _, low, high, _ = interval_parts(text) or (None, "", "", None)
        return (end_number(low) + end_number(high)) / 2.0
    except ValueError:
        raise InputError(
            "A column of interval labels has a text that is none, such as [20, 40). It is withheld."
        ) from None


def end_number(text: str) -> float:
    """An end of an interval: a number, or a date by its day."""
    try:
        return float(text)
    except ValueError:
        return day_number(text)
