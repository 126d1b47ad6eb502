"""The total variation distance between each column's distributions before and after masking.

Half the sum of |p - p'| over the shares p of a column's values before and p' after masking (shares.py says which): the
share of records that would have to change for the two distributions to be one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.measures.measure import Need
from dpmask.measures.utility.of_summary import of_summary
from dpmask.measures.utility.shares import WORSE, ShareDistance, share_distance, share_measure
from dpmask.measures.utility.summary import Summary
from dpmask.results import Term

_WHO = "total_variation"


@dataclass(frozen=True, kw_only=True)
class TotalVariation(ShareDistance):
    """``value`` is the mean over the columns, ``largest`` the largest; ``parts`` has each column's own."""

    about: ClassVar[Term] = Term(
        "Half the sum of |p - p'| over the shares of a column's values before and after masking: categories by value, "
        "numbers in 20 quantile bins of the original; the mean, and the largest, over the columns.",
        WORSE,
        "Levin, Peres and Wilmer 2009, Markov Chains and Mixing Times, chapter 4",
    )

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"The total variation is {self.value:.4g} on average and up to {self.largest:.4g} in a column: the share "
            "of records that changed the value or quantile bin they count in, at the least. Larger means more "
            f"information lost.{self.weighed}"
        )


@of_summary(TotalVariation, Need.BINS)
def total_variation(found: Summary) -> TotalVariation:
    """Total variation distances between columns before and after masking.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"region": ["north", "north", "south", "east"]})
    >>> masked = pandas.DataFrame({"region": ["north", "north", "south", "south"]})
    >>> round(dpmask.utility.total_variation(original, masked, columns=["region"]).value, 4)
    0.25
    """
    return share_distance(TotalVariation, _between, found, _WHO)


def _between(p: Floats, q: Floats) -> float:
    return float(0.5 * np.abs(p - q).sum())


MEASURE = share_measure(total_variation)
