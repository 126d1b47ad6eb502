"""How masking changed each column's mean and variance.

A mean's change is in standard deviations of the original, (m' - m) / s, a variance's relative to it, v' / v - 1. One
pass over each table. Values that are missing are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmask.measures.measure import Need
from dpmask.measures.utility.of_summary import of_summary, summary_measure
from dpmask.measures.utility.summary import Summary
from dpmask.measures.utility.weights import WeightedLoss
from dpmask.results import Term
from dpmask.table.checks import require_spread, require_values

_WHO = "moments"


@dataclass(frozen=True, kw_only=True)
class MomentChange(WeightedLoss):
    """``value`` is the mean size of all changes, ``means`` and ``variances`` the largest; ``parts`` has signs."""

    means: float
    variances: float

    judged: ClassVar[tuple[str, ...]] = ("value", "means", "variances")
    moments_of_originals: ClassVar[bool] = True
    about: ClassVar[Term] = Term(
        "Change of each mean in standard deviations of the original, and of each variance relative to the original's; "
        "value is the mean of their sizes, means and variances are the largest of each.",
        "0 means unchanged; larger means more information lost.",
        "Domingo-Ferrer and Torra 2001, A quantitative comparison of disclosure control methods",
    )

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"Means moved by up to {self.means:.4g} standard deviations, variances by up to {self.variances:.4g} of "
            f"themselves; {self.value:.4g} on average. 0 means unchanged; larger means more information lost."
            f"{self.weighed}"
        )


@of_summary(MomentChange, Need.MOMENTS)
def moments(found: Summary) -> MomentChange:
    """Changes of the means and variances of numeric columns.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": [0.0, 2.0, 4.0]})
    >>> masked = pandas.DataFrame({"income": [1.0, 2.0, 3.0]})
    >>> round(dpmask.utility.moments(original, masked, columns=["income"]).variances, 4)
    0.75
    """
    before, after = found.before.moments, found.after.moments
    require_spread(before, found.numbers, _WHO)
    require_values(after, found.numbers, _WHO)
    means = ((after.mean - before.mean) + (after.rest - before.rest)) / before.sd
    variances = (after.sd / before.sd) ** 2 - 1.0
    parts: dict[str, float] = {}
    for name, mean, variance in zip(found.numbers, means.tolist(), variances.tolist(), strict=True):
        parts |= {f"{name}: mean": mean, f"{name}: variance": variance}
    sizes = np.abs([means, variances])
    largest = sizes.max(axis=1).tolist()
    return MomentChange(value=float(sizes.mean()), means=largest[0], variances=largest[1], parts=parts, **found.weighed)


MEASURE = summary_measure(moments, varied=True)
