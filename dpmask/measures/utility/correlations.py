"""How masking changed the correlations between columns.

|r' - r| for each pair of columns, over the records that have both values. A masked column that is constant correlates
with nothing: r' = 0. One pass over each table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpmask.errors import InputError, JobError
from dpmask.measures.measure import Need
from dpmask.measures.utility.of_summary import of_summary, summary_measure
from dpmask.measures.utility.summary import Summary
from dpmask.measures.utility.weights import WeightedLoss, check_weight
from dpmask.results import Term
from dpmask.table.checks import require_spread, require_values
from dpmask.table.columns import require_numeric

_WHO = "correlations"
_LEAST_COLUMNS = 2


@dataclass(frozen=True, kw_only=True)
class CorrelationChange(WeightedLoss):
    """``value`` is the mean of ``|r' - r|``, ``largest`` the largest; ``parts`` has r' - r of each pair of columns."""

    largest: float

    judged: ClassVar[tuple[str, ...]] = ("value", "largest")
    about: ClassVar[Term] = Term(
        "The mean, and the largest, of |r' - r| over the pairs of columns; r is Pearson's.",
        "0 means unchanged, 2 is the most; larger means more information lost.",
        "Domingo-Ferrer and Torra 2001, A quantitative comparison of disclosure control methods",
    )

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"Correlations changed by {self.value:.4g} on average and by up to {self.largest:.4g}. "
            f"0 means unchanged; larger means that more of the columns' dependence was lost.{self.weighed}"
        )


def _check(schema: Any, *, columns: Sequence[str], weight: Any = None, weighted: bool = True) -> None:
    _require_two(columns)
    check_weight(schema, weight, _WHO, weighted=weighted)
    require_numeric(schema, columns, _WHO)


def _require_two(columns: Sequence[str]) -> None:
    if len(columns) < _LEAST_COLUMNS:
        raise JobError(f"{_WHO}: columns must be two or more different columns; got {len(columns)}.")


@of_summary(CorrelationChange, Need.MOMENTS, _require_two)
def correlations(found: Summary) -> CorrelationChange:
    """Changes of the correlations between two or more numeric columns.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"net": [1.0, 2.0, 3.0], "tax": [2.0, 4.0, 6.0]})
    >>> masked = pandas.DataFrame({"net": [1.0, 2.0, 3.0], "tax": [2.0, 6.0, 4.0]})
    >>> round(dpmask.utility.correlations(original, masked, columns=["net", "tax"]).value, 4)
    0.5
    """
    _require_two(found.numbers)
    before, after = found.before, found.after
    require_spread(before.moments, found.numbers, _WHO)
    require_values(after.moments, found.numbers, _WHO)
    change = np.nan_to_num(after.correlation) - before.correlation
    parts: dict[str, float] = {}
    for i, j in zip(*np.triu_indices(len(found.numbers), k=1), strict=True):
        if np.isnan(change[i, j]):
            raise InputError(
                f"{_WHO}: '{found.numbers[i]}' and '{found.numbers[j]}' have no correlation in the records that have "
                "both values. Take one of them out of columns."
            )
        parts[f"{found.numbers[i]}, {found.numbers[j]}"] = float(change[i, j])
    sizes = np.abs(list(parts.values()))
    return CorrelationChange(value=float(sizes.mean()), largest=float(sizes.max()), parts=parts, **found.weighed)


MEASURE = summary_measure(correlations, check=_check, varied=True, least_columns=_LEAST_COLUMNS)
