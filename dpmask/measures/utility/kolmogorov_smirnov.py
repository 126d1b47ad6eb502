"""The Kolmogorov-Smirnov distance between each column's distributions before and after masking.

D = sup |F(x) - F'(x)|. Both distribution functions are counted exactly at sampled values of both tables, 2,048 of each
or more: D on bins whose edges are sampled quantiles. Between two edges neither function can do more than rise from its
value at the one to its value at the other, which bounds what the bins hide: the exact D lies between ``value`` and
``upper``. For tables no larger than the sample, and columns with few values, the two are one. Two passes over each
table. Missing values are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpmask.kernels.order.float_order import Floats, Positions
from dpmask.measures.utility.summary import Need, Steps, Summary, summarised

_WHO = "kolmogorov_smirnov"
NEEDS = Need.STEPS


@dataclass(frozen=True)
class KolmogorovSmirnov:
    """``value`` is the largest distance of a column on bins, ``upper`` the most that the exact one can be."""

    value: float
    upper: float
    parts: Mapping[str, float] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = ("value", "upper")
    public: ClassVar[bool] = True
    definition: ClassVar[str] = (
        "The largest |F(x) - F'(x)| of a column, F and F' its distribution functions before and after masking, counted "
        "exactly at the edges of bins that are sampled quantiles; upper is a bound of the distance without bins."
    )
    direction: ClassVar[str] = "0 means the same distribution, 1 is the most; larger means more information lost."
    source: ClassVar[str] = "Kolmogorov 1933; Smirnov 1939."

    def explain(self) -> str:
        """What the numbers mean."""
        bound = "exactly" if self.upper == self.value else f"on quantile bins, exactly at most {self.upper:.4g}"
        return (
            f"Distribution functions lie up to {self.value:.4g} apart ({bound}). 0 means the same distribution in "
            "every column, 1 is the most; larger means more information lost."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {**vars(self), "parts": dict(self.parts)}


def kolmogorov_smirnov(original: Any, masked: Any, *, columns: Sequence[str]) -> KolmogorovSmirnov:
    """The Kolmogorov-Smirnov distances between two tables' numeric columns."""
    return result(summarised(original, masked, columns, NEEDS, _WHO))


def result(found: Summary) -> KolmogorovSmirnov:
    """The distances, from a summary of both tables."""
    sizes = found.sizes(_WHO)
    parts, upper = {}, 0.0
    for name, one, both in zip(found.numbers, found.steps, sizes, strict=True):
        parts[name], most = _distance(one, *both)
        upper = max(upper, most)
    return KolmogorovSmirnov(max(parts.values()), upper, parts)


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
