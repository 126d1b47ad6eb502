"""Numbers as numbers: as they are, in standard deviations from their mean, or from 0 to 1 by their range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats
from dpmask.table.encoders.base import NumberEncoder
from dpmask.table.encoders.interval import middles


class Scale(NamedTuple):
    """z = (x - mean) / sd, each column by its own; columns lie along the last axis."""

    mean: Floats
    sd: Floats

    def to_units(self, values: Floats) -> Floats:
        """From original units to standardised ones."""
        return (values - self.mean) / self.sd

    def to_original(self, values: Floats) -> Floats:
        """And back."""
        return values * self.sd + self.mean

    @property
    def upright(self) -> Scale:
        """The same for blocks, where columns lie along the first axis."""
        return Scale(self.mean[:, None], self.sd[:, None])


@dataclass(frozen=True, repr=False)
class NumericEncoder(NumberEncoder):
    """A numeric column as it is; NaN where it is missing."""

    @property
    def size(self) -> int:
        """One number."""
        return 1

    def encode(self, rows: Rows) -> Floats:
        """1 x rows."""
        return floats(rows, self.column)[None]


@dataclass(frozen=True)
class NumberRange:
    """The smallest and the largest number of a column, and whether some are missing or infinite."""

    low: float
    high: float
    missing: bool
    infinite: bool

    @classmethod
    def of(cls, rows: Rows, column: str) -> NumberRange:
        """One block's; an interval label counts by its middle."""
        values = middles(rows, column)
        present = values[~np.isnan(values)]
        low, high = float(present.min(initial=np.inf)), float(present.max(initial=-np.inf))
        return cls(low, high, len(present) < len(values), bool(np.isinf(present).any()))

    def plus(self, other: NumberRange) -> NumberRange:
        """Both together."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return NumberRange(low, high, self.missing or other.missing, self.infinite or other.infinite)


@dataclass(frozen=True, repr=False)
class RangeEncoder(NumberEncoder):
    """A number, a date or the middle of an interval label, from 0 to 1 by its range.

    A missing value lies in the middle, and has a number more that is 1 where it is missing, if that occurs.
    """

    found: NumberRange

    @property
    def size(self) -> int:
        """How many numbers each row has."""
        return 1 + self.found.missing

    def encode(self, rows: Rows) -> Floats:
        """1 or 2 x rows."""
        values = middles(rows, self.column)
        low, high = (self.found.low, self.found.high) if self.found.low <= self.found.high else (0.0, 0.0)
        absent = np.isnan(values)
        scaled = np.where(absent, 0.5, (values - low) / ((high - low) or 1.0))
        return np.array([scaled, absent]) if self.found.missing else scaled[None]
