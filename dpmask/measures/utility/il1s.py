"""IL1s: the mean distance between a value and its masked value, in units of sqrt(2) standard deviations.

sqrt(2) S_j is the root mean square distance of two independent draws from column j, so 0 means untouched and values
near 1 mean that a masked value tells little more of its record than another record's value would. (Mateo-Sanz, Sebe and
Domingo-Ferrer 2004, "Outlier protection in continuous microdata masking"; S_j is the original's standard deviation,
divided by n - 1.) One pass; a pair with a missing value on either side is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpmask.errors import InputError
from dpmask.measures.utility.summary import Need, Summary, summarised
from dpmask.table.checks import require_spread

_WHO = "il1s"
NEEDS = Need.DISTANCES | Need.MOMENTS


@dataclass(frozen=True)
class StandardisedLoss:
    """The mean over the columns, and each column's own value."""

    value: float
    parts: Mapping[str, float] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = ("value",)
    public: ClassVar[bool] = True
    definition: ClassVar[str] = (
        "The mean of |x - x'| / (sqrt(2) S) over records, S the standard deviation of the original column, divided by "
        "n - 1; then the mean over the columns."
    )
    direction: ClassVar[str] = "0 means untouched; larger means more information lost."
    source: ClassVar[str] = (
        "Mateo-Sanz, Sebe and Domingo-Ferrer 2004, Outlier protection in continuous microdata masking."
    )

    def explain(self) -> str:
        """What the number means."""
        return (
            f"IL1s is {self.value:.4g}: values moved on average by {math.sqrt(2) * self.value:.4g} standard deviations "
            "of their column. 0 means untouched; larger means more information lost."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {"value": self.value, "parts": dict(self.parts)}


def il1s(original: Any, masked: Any, *, columns: Sequence[str]) -> StandardisedLoss:
    """IL1s between two tables: frames paired by index, or lakes cut into the same blocks."""
    return result(summarised(original, masked, columns, NEEDS, _WHO))


def result(found: Summary) -> StandardisedLoss:
    """IL1s from a summary of both tables."""
    gaps, original = found.gaps, found.before.moments
    assert gaps is not None
    require_spread(original, found.numbers, _WHO)
    for column, count in zip(found.numbers, gaps.pairs, strict=True):
        if not count:
            raise InputError(f"{_WHO}: column '{column}' has no record with a value before and after masking.")
    sd = original.sd * (original.values / (original.values - 1)) ** 0.5
    with_pairs = zip(found.numbers, gaps.absolute, gaps.pairs, sd, strict=True)
    parts = {name: float(gap / count / (math.sqrt(2) * s)) for name, gap, count, s in with_pairs}
    return StandardisedLoss(sum(parts.values()) / len(parts), parts)
