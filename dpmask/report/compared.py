"""Two tables compared: the distribution of each column before and after masking, and the correlations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpmask.kernels.order.histogram import Bars


@dataclass(frozen=True)
class ComparedNumbers:
    """A column of numbers, counted on common edges; ``whole`` if all of them are whole."""

    column: str
    whole: bool
    bars: Bars
    """Of both tables."""
    released: Bars
    """Of the masked one alone, whose edges follow from its values."""


@dataclass(frozen=True)
class ComparedCategories:
    """A column of categories, the most frequent first; the last label may stand for ``others``, so many values."""

    column: str
    labels: list[str]
    before: list[int] | None
    """None where the column was no category, or had too many."""
    after: list[int]
    others: int = 0


@dataclass(frozen=True)
class NotDrawn:
    """A column that cannot be drawn, and why."""

    column: str
    reason: str


ComparedColumn = ComparedNumbers | ComparedCategories | NotDrawn
Matrix = list[list[float | None]]


@dataclass(frozen=True)
class Correlations:
    """The correlations of columns in both tables; None where one has none."""

    columns: list[str]
    before: Matrix
    after: Matrix


@dataclass(frozen=True)
class ComparedTables:
    """What a report draws of two tables."""

    columns: tuple[ComparedColumn, ...] = ()
    correlations: Correlations | None = None
    leverages: Mapping[str, float] = field(default_factory=dict, repr=False)
    """Of each column of numbers the share of the original's variance that its farthest record has. Never drawn."""
