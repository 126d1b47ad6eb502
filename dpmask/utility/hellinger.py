"""The Hellinger distance between each column's distributions before and after masking.

sqrt(1 - sum sqrt(p p')) over the shares p of a column's values before and p' after masking. Unlike total variation it
weighs a change by how rare the value was: values that vanish or appear count most. Categories are compared value by
value, numbers in 20 bins between the original's 5 %, 10 %, ..., 95 % quantiles (exact order statistics, each edge
once); missing is a value too. Three passes over each table, or four; one where there are no numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpmask.lake.keys import require_groupable
from dpmask.utility.summary import Need, Summary, summarised

_WHO = "hellinger"
NEEDS = Need.BINS


@dataclass(frozen=True)
class HellingerDistance:
    """``value`` is the mean over the columns, ``largest`` the largest; ``parts`` has each column's own."""

    value: float
    largest: float
    parts: Mapping[str, float] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = ("value", "largest")
    public: ClassVar[bool] = True
    definition: ClassVar[str] = (
        "sqrt(1 - sum sqrt(p p')) over the shares of a column's values before and after masking: categories by value, "
        "numbers in 20 quantile bins of the original; the mean, and the largest, over the columns."
    )
    direction: ClassVar[str] = "0 means the same shares, 1 nothing in common; larger means more information lost."
    source: ClassVar[str] = "Hellinger 1909; Le Cam and Yang 2000, Asymptotics in Statistics, chapter 3."

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"The Hellinger distance is {self.value:.4g} on average and up to {self.largest:.4g} in a column. 0 means "
            "the same shares of values or quantile bins, 1 nothing in common; larger means more information lost."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {**vars(self), "parts": dict(self.parts)}


def hellinger(original: Any, masked: Any, *, columns: Sequence[str]) -> HellingerDistance:
    """Hellinger distances between two tables' columns, numbers or categories."""
    return result(summarised(original, masked, columns, NEEDS, _WHO))


def check(schema: Any, *, columns: Sequence[str]) -> None:
    """Refuse columns whose values cannot be told apart."""
    require_groupable(schema, columns, _WHO)


def result(found: Summary) -> HellingerDistance:
    """The distances, from a summary of both tables."""
    parts = {
        name: float(np.sqrt(0.5) * np.linalg.norm(np.sqrt(p) - np.sqrt(q)))  # 1 - sum sqrt(pq), without cancellation
        for name, (p, q) in zip(found.columns, found.shares(_WHO), strict=True)
    }
    return HellingerDistance(sum(parts.values()) / len(parts), max(parts.values()), parts)
