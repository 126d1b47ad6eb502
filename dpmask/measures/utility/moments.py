"""How masking changed each column's mean and variance.

A mean's change is in standard deviations of the original, (m' - m) / s, a variance's relative to it, v' / v - 1. One
pass over each table. Values that are missing are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpmask.measures.utility.summary import Need, Summary, summarised
from dpmask.table.checks import require_spread, require_values

_WHO = "moments"
NEEDS = Need.MOMENTS


@dataclass(frozen=True)
class MomentChange:
    """``value`` is the mean size of all changes, ``means`` and ``variances`` the largest; ``parts`` has signs."""

    value: float
    means: float
    variances: float
    parts: Mapping[str, float] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = ("value", "means", "variances")
    public: ClassVar[bool] = True
    definition: ClassVar[str] = (
        "Change of each mean in standard deviations of the original, and of each variance relative to the original's; "
        "value is the mean of their sizes, means and variances are the largest of each."
    )
    direction: ClassVar[str] = "0 means unchanged; larger means more information lost."
    source: ClassVar[str] = "Domingo-Ferrer and Torra 2001, A quantitative comparison of disclosure control methods."

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"Means moved by up to {self.means:.4g} standard deviations, variances by up to {self.variances:.4g} of "
            f"themselves; {self.value:.4g} on average. 0 means unchanged; larger means more information lost."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {**vars(self), "parts": dict(self.parts)}


def moments(original: Any, masked: Any, *, columns: Sequence[str]) -> MomentChange:
    """Changes of the means and variances of two tables' numeric columns."""
    return result(summarised(original, masked, columns, NEEDS, _WHO))


def result(found: Summary) -> MomentChange:
    """The changes, from a summary of both tables."""
    before, after = found.before.moments, found.after.moments
    require_spread(before, found.numbers, _WHO)
    require_values(after, found.numbers, _WHO)
    means = ((after.mean - before.mean) + (after.rest - before.rest)) / before.sd
    variances = (after.sd / before.sd) ** 2 - 1.0
    parts: dict[str, float] = {}
    for name, mean, variance in zip(found.numbers, means.tolist(), variances.tolist(), strict=True):
        parts |= {f"{name}: mean": mean, f"{name}: variance": variance}
    sizes = np.abs([means, variances])
    return MomentChange(float(sizes.mean()), float(sizes[0].max()), float(sizes[1].max()), parts)
