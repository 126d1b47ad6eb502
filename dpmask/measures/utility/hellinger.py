"""The Hellinger distance between each column's distributions before and after masking.

sqrt(1 - sum sqrt(p p')) over the shares p of a column's values before and p' after masking (shares.py says which).
Unlike total variation it weighs a change by how rare the value was: values that vanish or appear count most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from dpmask.kernels.order.float_order import Floats
from dpmask.measures.utility.shares import NEEDS, ShareDistance, check_for, share_distance
from dpmask.measures.utility.summary import Summary, summarised

_WHO = "hellinger"
check = check_for(_WHO)


class HellingerDistance(ShareDistance):
    """``value`` is the mean over the columns, ``largest`` the largest; ``parts`` has each column's own."""

    definition: ClassVar[str] = (
        "sqrt(1 - sum sqrt(p p')) over the shares of a column's values before and after masking: categories by value, "
        "numbers in 20 quantile bins of the original; the mean, and the largest, over the columns."
    )
    source: ClassVar[str] = "Hellinger 1909; Le Cam and Yang 2000, Asymptotics in Statistics, chapter 3."

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"The Hellinger distance is {self.value:.4g} on average and up to {self.largest:.4g} in a column. 0 means "
            "the same shares of values or quantile bins, 1 nothing in common; larger means more information lost."
        )


def hellinger(original: Any, masked: Any, *, columns: Sequence[str]) -> HellingerDistance:
    """Hellinger distances between two tables' columns, numbers or categories."""
    return result(summarised(original, masked, columns, NEEDS, _WHO))


def result(found: Summary) -> HellingerDistance:
    """The distances, from a summary of both tables."""
    return share_distance(HellingerDistance, _between, found, _WHO)


def _between(p: Floats, q: Floats) -> float:
    return float(np.sqrt(0.5) * np.linalg.norm(np.sqrt(p) - np.sqrt(q)))  # 1 - sum sqrt(pq), without cancellation
