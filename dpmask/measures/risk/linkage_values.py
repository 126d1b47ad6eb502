"""What an intruder compares: known values and masked ones, as points and ranges.

A column of numbers is a point, standardised in each file by its own mean and standard deviation. Everything else is a
range that a known value is inside or outside of: an interval label, a category (a range of one code), a set of
categories (a range of neighbouring codes), and a number where some are missing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats
from dpmask.table.encoders.interval import end_number, interval_parts, is_ordered, numbers
from dpmask.table.encoders.numeric import Scale
from dpmask.table.encoders.texts import text_values
from dpmask.table.label_sets import label_of_each

_OUTSIDE = 1e-3  # standard deviations: a value at the open end of an interval is outside by no less
_EVERYTHING = 1e100
_FIRST_HASH = 2.0**21  # codes below are places among the values of declared sets
_LAST_HASH = _FIRST_HASH + 2.0**52
_REMEMBERED = 1 << 14  # hashes of values, which every block has again
_MISSING = _FIRST_HASH - 1.0  # among the values that are not listed


class Ruler(NamedTuple):
    """How far outside a range is: min(max(scale * distance, least), cap)."""

    scale: float
    least: float
    cap: float


_SAME_OR_NOT = Ruler(1.0, 0.0, 1.0)
_NO_NUMBER = (math.nan, math.nan)
GROUP = " (group)"
"""The column of the numbers of groups."""
_APART = 1e6  # farther than other columns can bring together


def _zero(scale: Scale) -> float:
    return float(scale.to_units(np.zeros(1))[0])


@dataclass(frozen=True)
class Points:
    """A column of numbers, none of them missing."""

    column: str
    original: Scale
    masked: Scale

    rulers: Sequence[Ruler] = ()

    @property
    def zeros(self) -> tuple[float, float]:
        """What zero is in the units of the point, before and after masking."""
        return _zero(self.original), _zero(self.masked)

    def known(self, rows: Rows) -> list[Floats]:
        """The one point of each original record."""
        return [self.original.to_units(numbers(rows, self.column))]

    def released(self, rows: Rows, column: str) -> list[tuple[Floats, Floats]]:
        """The one point of each masked record, under this column name."""
        values = self.masked.to_units(numbers(rows, column))
        return [(values, values)]


@dataclass(frozen=True)
class Ranges:
    """A column of numbers or dates that was generalised to intervals, or has missing values.

    A missing value is compared with nothing but whether the other one is missing, too: 0 if it is, otherwise 1.
    """

    column: str
    original: Scale
    masked: Scale | None  # None: labels
    who: str
    intervals: Mapping[str, str] = field(default_factory=dict)
    """What a label stands for that is no interval itself, such as a midpoint."""
    gaps: frozenset[str] = frozenset()
    """Labels that stand for missing values, too."""

    @property
    def rulers(self) -> Sequence[Ruler]:
        """Labels are compared in the column's own units: what is inside must be so to the last digit."""
        value = Ruler(1.0, 0.0, math.inf) if self.masked else Ruler(1.0 / float(self.original.sd), _OUTSIDE, math.inf)
        return (value, _SAME_OR_NOT)

    @property
    def zeros(self) -> Sequence[tuple[float, float]]:
        """What zero is in the units of each range, before and after masking; NaN for labels and flags."""
        return ((_zero(self.original), _zero(self.masked)) if self.masked else _NO_NUMBER), _NO_NUMBER

    def known(self, rows: Rows) -> list[Floats]:
        """Each original record's value, NaN where missing, and whether it is."""
        values = numbers(rows, self.column)
        return [self.original.to_units(values) if self.masked else values, np.isnan(values).astype(np.float64)]

    def released(self, rows: Rows, column: str) -> list[tuple[Floats, Floats]]:
        """Each masked record's range, and whether it is missing, or may be."""
        maybe: Floats | float = 0.0
        if self.masked is not None:
            low = high = self.masked.to_units(numbers(rows, column))
        elif is_ordered(rows.schema.field(column).type):
            low, high = self._midpoints(numbers(rows, column))
        else:
            low, high, maybe = text_values(rows, column).lookup(self._labelled, (math.nan, math.nan, 1.0)).T
        missing = np.isnan(low)
        flag = missing.astype(np.float64)
        ends = np.where(missing, -_EVERYTHING, low), np.where(missing, _EVERYTHING, high)
        return [ends, (flag, np.maximum(flag, maybe))]

    def _labelled(self, label: str) -> tuple[float, float, float]:
        return *self._ends(label), float(label in self.gaps)

    def _midpoints(self, values: Floats) -> tuple[Floats, Floats]:
        """The intervals that numbers stand for; a number that is no label stands for itself."""
        labels = sorted((float(label), *self._ends(text)) for label, text in self.intervals.items())
        middles, lows, highs = np.array(labels).T
        places = np.minimum(np.searchsorted(middles, values), len(middles) - 1)
        known = middles[places] == values
        return np.where(known, lows[places], values), np.where(known, highs[places], values)

    def _ends(self, label: str) -> tuple[float, float]:
        """The smallest and the largest double inside an interval label, or the number that a label is."""
        text = self.intervals.get(label, label)
        opening, first, last, closing = interval_parts(text) or ("[", text, text, "]")
        try:
            low, high = end_number(first), end_number(last)
        except ValueError:
            low, high = math.nan, math.nan
        low = math.nextafter(low, math.inf) if opening == "(" else low
        high = math.nextafter(high, -math.inf) if closing == ")" else high
        if not low <= high:
            raise InputError(
                f"{self.who}: column '{self.column}' is a number in the original and text in the masked table; its "
                "labels must be intervals such as [20, 40), or numbers, or stand in sets, and one does not. Its text "
                "is withheld."
            )
        return max(low, -_EVERYTHING), min(high, _EVERYTHING)


@dataclass(frozen=True)
class Categories:
    """A column of values that are the same or not, and labels that stand for sets of them. Missing is one of them."""

    column: str
    places: Mapping[str | None, float]
    sets: Mapping[str, tuple[float, float]]

    rulers: Sequence[Ruler] = (_SAME_OR_NOT,)
    zeros: Sequence[tuple[float, float]] = (_NO_NUMBER,)

    def known(self, rows: Rows) -> list[Floats]:
        """The code of each original record's value."""
        return [text_values(rows, self.column).lookup(self._code, self._missing)]

    def released(self, rows: Rows, column: str) -> list[tuple[Floats, Floats]]:
        """The codes each masked record's label stands for."""
        low, high = text_values(rows, column).lookup(self._codes, (self._missing, self._missing)).T
        return [(low, high)]

    @property
    def _missing(self) -> float:
        return self.places.get(None, _MISSING)

    def _codes(self, label: str) -> tuple[float, float]:
        return self.sets.get(label) or (self._code(label), self._code(label))

    def _code(self, value: str) -> float:
        """Its place in the declared sets, or a hash."""
        found = self.places.get(value)
        return _hashed(value) if found is None else found


@lru_cache(_REMEMBERED)
def _hashed(value: str) -> float:
    """A hash of 52 bits: no list of all values is ever made, in any place.

    Two of a million different values share a code with a probability of 1 in 9,000; they would count as the same.
    """
    digest = hashlib.blake2b(value.encode(), digest_size=8).digest()
    return _FIRST_HASH + float(int.from_bytes(digest) >> 12)


@dataclass(frozen=True)
class GroupNumbers:
    """Numbers of groups that are known for certain: nobody is in another one."""

    column: str = GROUP
    rulers: Sequence[Ruler] = (Ruler(_APART, 0.0, _APART),)
    zeros: Sequence[tuple[float, float]] = (_NO_NUMBER,)

    def known(self, rows: Rows) -> list[Floats]:
        """The group that each record became part of."""
        return [floats(rows, self.column)]

    def released(self, rows: Rows, column: str) -> list[tuple[Floats, Floats]]:
        """The group of each masked record."""
        groups = floats(rows, column)
        return [(groups, groups)]


Values = Points | Ranges | Categories | GroupNumbers


def categories(column: str, sets: Mapping[str, Sequence[object] | None], who: str) -> Categories:
    """A category column whose labels may stand for sets of values, nested or disjoint as the nodes of a taxonomy are.

    Values are put in an order in which each set is a run of neighbours: by the sets they are in, the largest first.
    A label for all other values covers the codes of values that are not listed.
    """
    sizes = {label: len(set(members)) for label, members in sets.items() if members is not None}
    rank = {label: place for place, label in enumerate(sorted(sizes, key=lambda label: (-sizes[label], label)))}
    within = {value: sorted(rank[label] for label in labels) for value, labels in label_of_each(sets).items()}
    ordered = sorted(within, key=lambda value: (within[value], value is None, value or ""))
    places = {value: float(place) for place, value in enumerate(ordered)}
    ends: dict[str, list[float]] = {}
    for value, labels in label_of_each(sets).items():
        for label in labels:
            ends.setdefault(label, []).append(places[value])
    for label, found in ends.items():
        if max(found) - min(found) + 1 != len(set(found)):
            raise JobError(
                f"{who}: sets of column '{column}' must be nested or disjoint, as the nodes of a taxonomy are; "
                f"'{label}' overlaps another one."
            )
    ranges = {label: (min(found), max(found)) for label, found in ends.items()}
    others = dict.fromkeys((label for label, members in sets.items() if members is None), (_MISSING, _LAST_HASH))
    return Categories(column, places, ranges | others)
