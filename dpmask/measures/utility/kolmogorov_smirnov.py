"""The Kolmogorov-Smirnov distance between each column's distributions before and after masking.

D = sup |F(x) - F'(x)|. Both distribution functions are counted exactly at sampled values of both tables, 2,048 of each
or more: D on bins whose edges are sampled quantiles. Between two edges neither function can do more than rise from its
value at the one to its value at the other, which bounds what the bins hide: the exact D lies between ``value`` and
``upper``. For tables no larger than the sample, and columns with few values, the two are one. Two passes over each
table. Missing values are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.kernels.order.float_order import Positions
from dpmask.kernels.warm_up import ORDER
from dpmask.measures.measure import Need
from dpmask.measures.utility.of_summary import of_summary, summary_measure
from dpmask.measures.utility.quantile_search import Steps
from dpmask.measures.utility.summary import Summary
from dpmask.measures.utility.weights import WeightedLoss
from dpmask.results import Term

_WHO = "kolmogorov_smirnov"


@dataclass(frozen=True, kw_only=True)
class KolmogorovSmirnov(WeightedLoss):
    """``value`` is the largest distance of a column on bins, ``upper`` the most that the exact one can be."""

    upper: float

    judged: ClassVar[tuple[str, ...]] = ("value", "upper")
    far_values_weigh: ClassVar[bool] = False
    about: ClassVar[Term] = Term(
        "The largest |F(x) - F'(x)| of a column, F and F' its distribution functions before and after masking, counted "
        "exactly at the edges of bins that are sampled quantiles; upper is a bound of the distance without bins.",
        "0 means the same distribution, 1 is the most; larger means more information lost.",
        "Kolmogorov 1933; Smirnov 1939",
    )

    def explain(self) -> str:
        """What the numbers mean."""
        bound = "exactly" if self.upper == self.value else f"on quantile bins, exactly at most {self.upper:.4g}"
        return (
            f"Distribution functions lie up to {self.value:.4g} apart ({bound}). 0 means the same distribution in "
            f"every column, 1 is the most; larger means more information lost.{self.weighed}"
        )


@of_summary(KolmogorovSmirnov, Need.STEPS)
def kolmogorov_smirnov(found: Summary) -> KolmogorovSmirnov:
    """The Kolmogorov-Smirnov distances between numeric columns before and after masking.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": [0.0, 2.0, 4.0, 6.0]})
    >>> masked = pandas.DataFrame({"income": [0.0, 2.0, 4.0, 4.0]})
    >>> dpmask.utility.kolmogorov_smirnov(original, masked, columns=["income"]).value
    0.25
    """
    sizes = found.sizes(_WHO)
    parts, upper = {}, 0.0
    for name, one, both in zip(found.numbers, found.steps, sizes, strict=True):
        parts[name], most = _distance(one, *both)
        upper = max(upper, most)
    return KolmogorovSmirnov(value=max(parts.values()), upper=upper, parts=parts, **found.weighed)


def _distance(steps: Steps, size: int, masked_size: int) -> tuple[float, float]:
    """The distance at the edges, and the most that it can be between them."""
    (left, at), (other_left, other_at) = _shares(steps.original, size), _shares(steps.masked, masked_size)
    found = max(np.abs(left - other_left).max(), np.abs(at - other_at).max())
    between = max((left[1:] - other_at[:-1]).max(), (other_left[1:] - at[:-1]).max())
    return float(found), float(max(found, between))


def _shares(positions: Positions, size: int) -> tuple[Floats, Floats]:
    """The distribution function from the left and at each edge, infinities among them."""
    left, at = (np.concatenate([[0], counts, [size]]) / size for counts in positions)
    return left, at


MEASURE = summary_measure(kolmogorov_smirnov, kernels=ORDER)
