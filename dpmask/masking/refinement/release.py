"""How refined attributes are released: what each value becomes, in which columns, and as which type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmask.errors import InputError
from dpmask.lake.reading import Rows
from dpmask.masking.refinement.attributes import MISSING, SUPPRESSED, Attribute, Intervals, Ranged, Suppressed
from dpmask.table.encoders.category import CategoryEncoder
from dpmask.table.encoders.interval import IntervalEncoder, day_number, day_text, numbers
from dpmask.table.new_columns import NewColumn, date_column, float_column, text_column
from dpmask.table.taxonomy import Branch

Counts = NDArray[np.int64]

FORMS = ("label", "bounds", "midpoint")
"""How an interval is released: as text such as [20, 40), as two columns, or as the number in its middle."""


def shown(number: float, date: bool) -> str:
    """A bound of an interval, to the last digit."""
    if date:
        return day_text(number)
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def interval(low: float, high: float, date: bool) -> str:
    """An interval that holds its lower bound, and not its upper one."""
    return f"[{shown(low, date)}, {shown(high, date)})"


def parsed_bound(value: Any) -> float:
    """A bound of a domain as a number: a number itself, or a date such as 1985-03-01."""
    return day_number(value) if isinstance(value, str) else float(value)


@dataclass(frozen=True)
class ReleasedTexts:
    """A column of categories: the text of each code, or nothing where it is missing."""

    coding: CategoryEncoder
    texts: tuple[str | None, ...]
    strict: bool

    @property
    def column(self) -> str:
        """The column it comes from."""
        return self.coding.column

    @property
    def names(self) -> tuple[str, ...]:
        """The columns it is released as."""
        return (self.column,)

    @property
    def new_columns(self) -> list[NewColumn]:
        """Their names and types."""
        return [text_column(self.column)]

    def columns(self, rows: Rows, who: str) -> list[Any]:
        """The released columns of one block."""
        codes = self.coding.encode(rows)
        unknown = int((codes >= len(self.texts)).sum())
        if unknown and self.strict:
            raise InputError(
                f"{who}: column '{self.column}' has a value in {unknown} records that the table it was fitted to has "
                "not. Fit to all of the data."
            )
        return [text_column(self.column).taken([*self.texts, SUPPRESSED], codes)]


@dataclass(frozen=True)
class ReleasedIntervals:
    """A column of numbers or dates: the bounds of its intervals. Nothing is told where ``hidden``."""

    source: str
    bounds: tuple[float, ...]
    form: str
    date: bool
    missing: bool
    hidden: bool

    @property
    def column(self) -> str:
        """The column it comes from."""
        return self.source

    @property
    def names(self) -> tuple[str, ...]:
        """The columns it is released as."""
        return interval_names(self.source, self.form)

    @property
    def new_columns(self) -> list[NewColumn]:
        """Their names and types."""
        return interval_columns(self.source, self.form, self.date)

    def columns(self, rows: Rows, who: str) -> list[Any]:
        """The released columns of one block."""
        values = numbers(rows, self.source)
        missing = np.isnan(values)
        outside = int(((values < self.bounds[0]) | (values >= self.bounds[-1])).sum())
        if outside:
            raise InputError(f"{who}: column '{self.source}' has values outside its domain in {outside} records.")
        if missing.any() and not self.missing:
            raise InputError(
                f"{who}: column '{self.source}' is missing in {int(missing.sum())} records, and nowhere in the table "
                "it was fitted to. Fit to all of the data."
            )
        places = np.searchsorted(np.array(self.bounds[1:-1]), values, side="right")
        places = np.where(missing | self.hidden, len(self.bounds) - 1, places)
        return [column.taken(values, places) for column, values in zip(self.new_columns, self._told(), strict=True)]

    def _told(self) -> list[list[Any]]:
        """What stands in each released column for each interval, and then for what is not told."""
        ends = list(pairwise(self.bounds))
        if self.form == "bounds":
            return [[low for low, _ in ends] + [None], [high for _, high in ends] + [None]]
        if self.form == "midpoint":
            return [[(low + high) / 2.0 for low, high in ends] + [None]]
        return [[interval(low, high, self.date) for low, high in ends] + [None]]


Released = ReleasedTexts | ReleasedIntervals


def interval_names(column: str, form: str) -> tuple[str, ...]:
    """The columns that a column of intervals is released as."""
    return (f"{column}_low", f"{column}_high") if form == "bounds" else (column,)


def interval_columns(column: str, form: str, date: bool) -> list[NewColumn]:
    """Their types."""
    if form == "label":
        return [text_column(column)]
    make = date_column if date else float_column
    return [make(name) for name in interval_names(column, form)]


@dataclass(frozen=True)
class MaskedColumn:
    """One masked column: its codes, and its domain or its tree."""

    coding: CategoryEncoder | IntervalEncoder
    domain: tuple[float, float] | None
    tree: Branch | None
    date: bool

    def attribute(self, histogram: Counts) -> Attribute:
        """It, before any refinement."""
        name, missing = self.coding.column, self.coding.missing
        if self.domain is not None:
            assert isinstance(self.coding, IntervalEncoder)
            begins = np.array([self.domain[0], *self.coding.edges, self.domain[1]])
            return Intervals(name, histogram, missing, begins, partial(interval, date=self.date))
        if self.tree is not None:
            return Ranged(name, histogram, self.tree, missing)
        return Suppressed(name, histogram, self._names.__getitem__)

    @property
    def _names(self) -> list[str]:
        """The values, in the order of their codes; the last one is for who has none."""
        assert isinstance(self.coding, CategoryEncoder)
        return [*self.coding.known, MISSING]

    def cut(self, attribute: Attribute) -> list[Any]:
        """Leaves, in order of their names, or edges."""
        if isinstance(attribute, Suppressed):
            return attribute.told_values
        if isinstance(attribute, Intervals):
            bounds = attribute.bounds()
            return [shown(bound, self.date) for bound in bounds] if self.date else bounds
        assert isinstance(attribute, Ranged)
        return sorted(attribute.label(number) for number in attribute.cut)

    def released(self, attribute: Attribute, form: str) -> Released:
        """What its values become."""
        if isinstance(attribute, Suppressed):
            assert isinstance(self.coding, CategoryEncoder)
            names = self._names[: len(attribute.totals)]
            texts = [SUPPRESSED if hidden else name for hidden, name in zip(attribute.hidden, names, strict=True)]
            if self.coding.missing and not attribute.hidden[-1]:
                texts[-1] = None  # type: ignore[call-overload]
            return ReleasedTexts(self.coding, tuple(texts), strict=False)
        if isinstance(attribute, Intervals):
            missing = self.coding.missing
            hidden = missing and int(attribute.nodes[-1]) == 0  # numbers and missing values are not told apart
            bounds = tuple(attribute.bounds())
            return ReleasedIntervals(self.coding.column, bounds, form, self.date, missing, hidden)
        assert isinstance(attribute, Ranged)
        assert isinstance(self.coding, CategoryEncoder)
        labels = [None if attribute.is_missing(n) else attribute.label(n) for n in range(len(attribute.table))]
        return ReleasedTexts(self.coding, tuple(labels[node] for node in attribute.nodes), strict=True)
