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
    zeros: tuple[int, int] = (0, 0)
    """Records with exactly 0, before and after."""
    others: ValuesButZero | None = None
    """The same without zeros, where many values are 0 or the column is skewed."""


@dataclass(frozen=True)
class ValuesButZero:
    """A column of numbers without its zeros, on bars that may grow by ratios.

    ``bars`` is None where zeros are few before and after, ``released`` where they are few after.
    """

    bars: Bars | None
    released: Bars | None
    logarithmic: bool


@dataclass(frozen=True)
class ReleasedCategories:
    """The categories of the masked table alone: labels, records with each, and how many values the last stands for."""

    labels: list[str]
    counts: list[int]
    others: int = 0


@dataclass(frozen=True)
class ComparedCategories:
    """A column of categories, the last of which may stand for ``others``, so many values.

    Intervals and numbers stand in their order, other labels by how frequent they are.
    """

    column: str
    labels: list[str]
    before: list[int] | None
    """None where the column was no category, or had too many."""
    after: list[int]
    others: int = 0
    ordered: bool = False
    """Whether the labels are intervals or numbers, in their order."""
    missing: tuple[int, int] | None = None
    """Records without a value, before (as far as known) and after."""
    generalised: bool = False
    """Whether originals were counted under the labels that they are released as."""
    released: ReleasedCategories | None = None
    """What the masked table alone shows; the same labels if None."""


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
