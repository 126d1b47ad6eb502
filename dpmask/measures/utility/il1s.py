"""IL1s: the mean distance between a value and its masked value, in units of sqrt(2) standard deviations.

sqrt(2) S_j is the root mean square distance of two independent draws from column j, so 0 means untouched and values
near 1 mean that a masked value says little more about its record than another record's value would. (Mateo-Sanz, Sebe
and Domingo-Ferrer 2004, "Outlier protection in continuous microdata masking"; S_j is the original's standard deviation,
divided by n - 1.) One pass; a pair with a missing value on either side is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dpmask.errors import InputError
from dpmask.measures.measure import Measure, Need
from dpmask.measures.utility.summary import Summary, summarised
from dpmask.results import Loss, Term
from dpmask.table.checks import require_spread
from dpmask.table.table import Frame

_WHO = "il1s"
_NEEDS = Need.DISTANCES | Need.MOMENTS


@dataclass(frozen=True, kw_only=True)
class StandardisedLoss(Loss):
    """``value`` is the mean over the columns; ``parts`` has each column's own."""

    about: ClassVar[Term] = Term(
        "The mean of |x - x'| / (sqrt(2) S) over records, S the standard deviation of the original column, divided by "
        "n - 1; then the mean over the columns.",
        "0 means untouched; larger means more information lost.",
        "Mateo-Sanz, Sebe and Domingo-Ferrer 2004, Outlier protection in continuous microdata masking",
    )

    def explain(self) -> str:
        """What the number means."""
        return (
            f"IL1s is {self.value:.4g}: values moved on average by {math.sqrt(2) * self.value:.4g} standard deviations "
            "of their column. 0 means untouched; larger means more information lost."
        )


def il1s(original: Frame, masked: Frame, *, columns: Sequence[str]) -> StandardisedLoss:
    """IL1s: how far values moved, in units of sqrt(2) standard deviations.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": [0.0, 2.0, 4.0]})
    >>> masked = pandas.DataFrame({"income": [0.0, 3.0, 4.0]})
    >>> round(dpmask.utility.il1s(original, masked, columns=["income"]).value, 4)
    0.1179
    """
    return _from_summary(summarised(original, masked, columns, _NEEDS, _WHO))


def _from_summary(found: Summary) -> StandardisedLoss:
    gaps, original = found.gaps, found.before.moments
    assert gaps is not None
    require_spread(original, found.numbers, _WHO)
    for column, count in zip(found.numbers, gaps.pairs, strict=True):
        if not count:
            raise InputError(f"{_WHO}: column '{column}' has no record with a value before and after masking.")
    sd = original.sd * (original.values / (original.values - 1)) ** 0.5
    with_pairs = zip(found.numbers, gaps.absolute, gaps.pairs, sd, strict=True)
    parts = {name: float(gap / count / (math.sqrt(2) * s)) for name, gap, count, s in with_pairs}
    return StandardisedLoss(value=sum(parts.values()) / len(parts), parts=parts)


MEASURE = Measure(function=il1s, result=StandardisedLoss, varied=True, needs=_NEEDS, from_summary=_from_summary)
