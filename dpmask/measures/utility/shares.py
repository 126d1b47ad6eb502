"""What measures have in common that compare the shares of a column's values before and after masking.

Categories are compared value by value, numbers in 20 bins between the original's 5 %, 10 %, ..., 95 % quantiles (exact
order statistics, each edge once); missing is a value too. Three or four passes over each table, one where there are no
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

from dpmask.kernels.arrays import Floats
from dpmask.kernels.warm_up import ORDER
from dpmask.measures.measure import Measure
from dpmask.measures.utility.of_summary import SummaryLoss, summary_measure
from dpmask.measures.utility.summary import Summary
from dpmask.measures.utility.weights import WeightedLoss, check_weight
from dpmask.table.row_keys import require_groupable

WORSE = "0 means the same shares, 1 nothing in common; larger means more information lost."


@dataclass(frozen=True, kw_only=True)
class ShareDistance(WeightedLoss, abstract=True):
    """``value`` is the mean over the columns, ``largest`` the largest; ``parts`` has each column's own."""

    largest: float

    judged: ClassVar[tuple[str, ...]] = ("value", "largest")
    far_values_weigh: ClassVar[bool] = False


Distance = TypeVar("Distance", bound=ShareDistance)


def share_distance(
    kind: type[Distance], between: Callable[[Floats, Floats], float], found: Summary, who: str
) -> Distance:
    """The distances of all columns, from a summary of both tables."""
    shares = zip(found.columns, found.shares(who), strict=True)
    parts = {name: float(between(before, after)) for name, (before, after) in shares}
    return kind(value=sum(parts.values()) / len(parts), largest=max(parts.values()), parts=parts, **found.weighed)


def share_measure(function: SummaryLoss[Distance]) -> Measure[Distance]:
    """A measure of such distances."""
    return summary_measure(function, check=partial(_check, function.__name__), kernels=ORDER)


def _check(who: str, schema: Any, *, columns: Sequence[str], weight: Any = None, weighted: bool = True) -> None:
    require_groupable(schema, columns, who)
    check_weight(schema, weight, who, weighted=weighted)
