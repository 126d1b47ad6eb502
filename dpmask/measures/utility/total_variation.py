"""The total variation distance between each column's distributions before and after masking.

Half the sum of |p - p'| over the shares p of a column's values before and p' after masking (shares.py says which): the
share of records that would have to change for the two distributions to be one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from dpmask.kernels.order.float_order import Floats
from dpmask.measures.utility.shares import NEEDS, ShareDistance, check_for, share_distance
from dpmask.measures.utility.summary import Summary, summarised

_WHO = "total_variation"
check = check_for(_WHO)


class TotalVariation(ShareDistance):
    """``value`` is the mean over the columns, ``largest`` the largest; ``parts`` has each column's own."""

    definition: ClassVar[str] = (
        "Half the sum of |p - p'| over the shares of a column's values before and after masking: categories by value, "
        "numbers in 20 quantile bins of the original; the mean, and the largest, over the columns."
    )
    source: ClassVar[str] = "Levin, Peres and Wilmer 2009, Markov Chains and Mixing Times, chapter 4."

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"The total variation is {self.value:.4g} on average and up to {self.largest:.4g} in a column: the share "
            "of records that changed the value or quantile bin they count in, at the least. Larger means more "
            "information lost."
        )


def total_variation(original: Any, masked: Any, *, columns: Sequence[str]) -> TotalVariation:
    """Total variation distances between two tables' columns, numbers or categories."""
    return result(summarised(original, masked, columns, NEEDS, _WHO))


def result(found: Summary) -> TotalVariation:
    """The distances, from a summary of both tables."""
    return share_distance(TotalVariation, _between, found, _WHO)


def _between(p: Floats, q: Floats) -> float:
    return float(0.5 * np.abs(p - q).sum())
