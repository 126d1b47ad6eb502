"""The total variation distance between each column's distributions before and after masking.

Half the sum of |p - p'| over the shares p of a column's values before and p' after masking: the share of records that
would have to change for the two distributions to be one. Categories are compared value by value, numbers in 20 bins
between the original's 5 %, 10 %, ..., 95 % quantiles (exact order statistics, each edge once); missing is a value too.
Three passes over each table, or four; one where there are no numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpmask.lake.keys import require_groupable
from dpmask.utility.summary import Need, Summary, summarised

_WHO = "total_variation"
NEEDS = Need.BINS


@dataclass(frozen=True)
class TotalVariation:
    """``value`` is the mean over the columns, ``largest`` the largest; ``parts`` has each column's own."""

    value: float
    largest: float
    parts: Mapping[str, float] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = ("value", "largest")
    public: ClassVar[bool] = True
    definition: ClassVar[str] = (
        "Half the sum of |p - p'| over the shares of a column's values before and after masking: categories by value, "
        "numbers in 20 quantile bins of the original; the mean, and the largest, over the columns."
    )
    direction: ClassVar[str] = "0 means the same shares, 1 nothing in common; larger means more information lost."
    source: ClassVar[str] = "Levin, Peres and Wilmer 2009, Markov Chains and Mixing Times, chapter 4."

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"The total variation is {self.value:.4g} on average and up to {self.largest:.4g} in a column: the share "
            "of records that changed the value or quantile bin they count in, at the least. Larger means more "
            "information lost."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {**vars(self), "parts": dict(self.parts)}


def total_variation(original: Any, masked: Any, *, columns: Sequence[str]) -> TotalVariation:
    """Total variation distances between two tables' columns, numbers or categories."""
    return result(summarised(original, masked, columns, NEEDS, _WHO))


def check(schema: Any, *, columns: Sequence[str]) -> None:
    """Refuse columns whose values cannot be told apart."""
    require_groupable(schema, columns, _WHO)


def result(found: Summary) -> TotalVariation:
    """The distances, from a summary of both tables."""
    parts = {
        name: float(0.5 * np.abs(p - q).sum()) for name, (p, q) in zip(found.columns, found.shares(_WHO), strict=True)
    }
    return TotalVariation(sum(parts.values()) / len(parts), max(parts.values()), parts)
