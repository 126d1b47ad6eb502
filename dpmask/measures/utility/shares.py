"""What measures share that compare the shares of a column's values before and after masking.

Categories are compared value by value, numbers in 20 bins between the original's 5 %, 10 %, ..., 95 % quantiles (exact
order statistics, each edge once); missing is a value too. Three or four passes over each table, one where there are no
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeVar

from dpmask.kernels.order.float_order import Floats
from dpmask.measures.utility.summary import Need, Summary
from dpmask.table.row_keys import require_groupable

NEEDS = Need.BINS


@dataclass(frozen=True)
class ShareDistance:
    """``value`` is the mean over the columns, ``largest`` the largest; ``parts`` has each column's own."""

    value: float
    largest: float
    parts: Mapping[str, float] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = ("value", "largest")
    public: ClassVar[bool] = True
    direction: ClassVar[str] = "0 means the same shares, 1 nothing in common; larger means more information lost."

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {**vars(self), "parts": dict(self.parts)}


Distance = TypeVar("Distance", bound=ShareDistance)


def share_distance(
    kind: type[Distance], between: Callable[[Floats, Floats], float], found: Summary, who: str
) -> Distance:
    """The distances of all columns, from a summary of both tables."""
    shares = zip(found.columns, found.shares(who), strict=True)
    parts = {name: float(between(before, after)) for name, (before, after) in shares}
    return kind(sum(parts.values()) / len(parts), max(parts.values()), parts)


def check_for(who: str) -> Callable[..., None]:
    """What refuses columns whose values cannot be told apart."""
    return partial(_check, who)


def _check(who: str, schema: Any, *, columns: Sequence[str]) -> None:
    require_groupable(schema, columns, who)
