"""What an intruder compares: known values and masked ones, as points and ranges.

A column of numbers is a point, standardised in each file by its own mean and standard deviation. Everything else is a
range that a known value is inside or outside of: an interval label, a category (a range of one code), a set of
categories (a range of neighbouring codes), and a number where some are missing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.errors import InputError, JobError
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats
from dpmask.table.encoders.interval import interval_parts
from dpmask.table.encoders.numeric import Scale
from dpmask.table.encoders.texts import text_values

Floats = NDArray[np.float64]

_OUTSIDE = 1e-3  # standard deviations: a value at the open end of an interval is outside by no less
_EVERYTHING = 1e100
_FIRST_HASH = 2.0**21  # codes below are places among the values of declared sets
_MISSING = -1.0


class Ruler(NamedTuple):
    """How far outside a range is: min(max(scale * distance, least), cap)."""

    scale: float
    least: float
    cap: float


_SAME_OR_NOT = Ruler(1.0, 0.0, 1.0)


@dataclass(frozen=True)
class Points:
    """A column of numbers, none of them missing."""

    column: str
    original: Scale
    masked: Scale

    rulers: Sequence[Ruler] = ()

    def known(self, rows: Rows) -> list[Floats]:
        """The one point of each original record."""
        return [self.original.to_units(floats(rows, self.column))]

    def released(self, rows: Rows, column: str) -> list[tuple[Floats, Floats]]:
        """The one point of each masked record, under this column name."""
        values = self.masked.to_units(floats(rows, column))
        return [(values, values)]


@dataclass(frozen=True)
class Ranges:
    """A column of numbers that was generalised to interval labels, or has missing values.

    A missing value is compared with nothing but whether the other one is missing, too: 0 if it is, otherwise 1.
    """

    column: str
    original: Scale
    masked: Scale | None  # None: labels
    who: str

    @property
    def rulers(self) -> Sequence[Ruler]:
        """Labels are compared in the column's own units: what is inside must be so to the last digit."""
        value = Ruler(1.0, 0.0, math.inf) if self.masked else Ruler(1.0 / float(self.original.sd), _OUTSIDE, math.inf)
        return (value, _SAME_OR_NOT)

    def known(self, rows: Rows) -> list[Floats]:
        """Each original record's value, NaN where missing, and whether it is."""
        values = floats(rows, self.column)
        return [self.original.to_units(values) if self.masked else values, np.isnan(values).astype(np.float64)]

    def released(self, rows: Rows, column: str) -> list[tuple[Floats, Floats]]:
        """Each masked record's range, and whether it is missing."""
        if self.masked is not None:
            low = high = self.masked.to_units(floats(rows, column))
        else:
            low, high = text_values(rows, column).lookup(self._interval, (math.nan, math.nan)).T
        missing = np.isnan(low)
        flag = missing.astype(np.float64)
        return [(np.where(missing, -_EVERYTHING, low), np.where(missing, _EVERYTHING, high)), (flag, flag)]

    def _interval(self, text: str) -> tuple[float, float]:
        """The smallest and the largest double inside an interval label, or the number that a label is."""
        opening, first, last, closing = interval_parts(text) or ("[", text, text, "]")
        try:
            low, high = float(first), float(last)
        except ValueError:
            low, high = math.nan, math.nan
        low = math.nextafter(low, math.inf) if opening == "(" else low
        high = math.nextafter(high, -math.inf) if closing == ")" else high
        if not low <= high:
            raise InputError(
                f"{self.who}: column '{self.column}' is a number in the original and text in the masked table; its "
                "labels must be intervals such as [20, 40) or numbers, and one is not. Its text is withheld."
            )
        return max(low, -_EVERYTHING), min(high, _EVERYTHING)


@dataclass(frozen=True)
class Categories:
    """A column of values that are the same or not, and labels that stand for sets of them. Missing is one of them."""

    column: str
    places: Mapping[str, float]
    sets: Mapping[str, tuple[float, float]]

    rulers: Sequence[Ruler] = (_SAME_OR_NOT,)

    def known(self, rows: Rows) -> list[Floats]:
        """The code of each original record's value."""
        return [text_values(rows, self.column).lookup(self._code, _MISSING)]

    def released(self, rows: Rows, column: str) -> list[tuple[Floats, Floats]]:
        """The codes each masked record's label stands for."""
        low, high = text_values(rows, column).lookup(self._codes, (_MISSING, _MISSING)).T
        return [(low, high)]

    def _codes(self, label: str) -> tuple[float, float]:
        return self.sets.get(label) or (self._code(label), self._code(label))

    def _code(self, value: str) -> float:
        """Its place in the declared sets, or a hash of 52 bits: no list of all values is ever made, in any place.

        Two of a million different values share a code with a probability of 1 in 9,000; they would count as the same.
        """
        found = self.places.get(value)
        if found is not None:
            return found
        digest = hashlib.blake2b(value.encode(), digest_size=8).digest()
        return _FIRST_HASH + float(int.from_bytes(digest) >> 12)


Values = Points | Ranges | Categories


def categories(column: str, sets: Mapping[str, Sequence[Any]], who: str) -> Categories:
    """A category column whose labels may stand for sets of values, nested or disjoint as the nodes of a taxonomy are.

    Values are put in an order in which each set is a run of neighbours: by the sets they are in, the largest first.
    """
    members = {label: {str(value) for value in values} for label, values in sets.items()}
    ordered = sorted(members, key=lambda label: (-len(members[label]), label))
    values = sorted({value for one in members.values() for value in one})
    values.sort(key=lambda value: [number for number, label in enumerate(ordered) if value in members[label]])
    places = {value: float(place) for place, value in enumerate(values)}
    ranges = {}
    for label, one in members.items():
        if not one:
            raise JobError(f"{who}: sets of column '{column}': label '{label}' stands for no value. List some.")
        low, high = min(places[value] for value in one), max(places[value] for value in one)
        if high - low + 1 != len(one):
            raise JobError(
                f"{who}: sets of column '{column}' must be nested or disjoint, as the nodes of a taxonomy are; "
                f"'{label}' overlaps another one."
            )
        ranges[label] = (low, high)
    return Categories(column, places, ranges)
