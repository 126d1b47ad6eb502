"""The Hellinger distance between each column's distributions before and after masking.

sqrt(1 - sum sqrt(p p')) over the shares p of a column's values before and p' after masking (shares.py says which).
Unlike total variation it weighs a change by how rare the value was: values that vanish or appear count most.
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

_WHO = "hellinger"


@dataclass(frozen=True, kw_only=True)
class HellingerDistance(ShareDistance):
    """``value`` is the mean over the columns, ``largest`` the largest; ``parts`` has each column's own."""

    about: ClassVar[Term] = Term(
        "sqrt(1 - sum sqrt(p p')) over the shares of a column's values before and after masking: categories by value, "
        "numbers in 20 quantile bins of the original; the mean, and the largest, over the columns.",
        WORSE,
        "Hellinger 1909; Le Cam and Yang 2000, Asymptotics in Statistics, chapter 3",
    )

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"The Hellinger distance is {self.value:.4g} on average and up to {self.largest:.4g} in a column. 0 means "
            "the same shares of values or quantile bins, 1 nothing in common; larger means more information lost."
            f"{self.weighed}"
        )


@of_summary(HellingerDistance, Need.BINS)
def hellinger(found: Summary) -> HellingerDistance:
    """Hellinger distances between columns before and after masking.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"region": ["north", "north", "south", "east"]})
    >>> masked = pandas.DataFrame({"region": ["north", "north", "south", "south"]})
    >>> round(dpmask.utility.hellinger(original, masked, columns=["region"]).value, 4)
    0.3827
    """
    return share_distance(HellingerDistance, _between, found, _WHO)


def _between(p: Floats, q: Floats) -> float:
    return float(np.sqrt(0.5) * np.linalg.norm(np.sqrt(p) - np.sqrt(q)))  # 1 - sum sqrt(pq), without cancellation


MEASURE = share_measure(hellinger)
