"""How masking changed the correlations between columns.

|r' - r| for each pair of columns, over the records that have both values. A masked column that is constant correlates
with nothing: r' = 0. One pass over each table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpmask.errors import InputError, JobError
from dpmask.measures.utility.summary import Need, Summary, summarised
from dpmask.table.checks import require_spread, require_values
from dpmask.table.columns import require_numeric

_WHO = "correlations"
NEEDS = Need.MOMENTS

LEAST_COLUMNS = 2


@dataclass(frozen=True)
class CorrelationChange:
    """``value`` is the mean of |r' - r|, ``largest`` the largest; ``parts`` has r' - r of each pair of columns."""

    value: float
    largest: float
    parts: Mapping[str, float] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = ("value", "largest")
    public: ClassVar[bool] = True
    definition: ClassVar[str] = "The mean, and the largest, of |r' - r| over the pairs of columns; r is Pearson's."
    direction: ClassVar[str] = "0 means unchanged, 2 is the most; larger means more information lost."
    source: ClassVar[str] = "Domingo-Ferrer and Torra 2001, A quantitative comparison of disclosure control methods."

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"Correlations changed by {self.value:.4g} on average and by up to {self.largest:.4g}. "
            "0 means unchanged; larger means that more of the columns' dependence was lost."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {**vars(self), "parts": dict(self.parts)}


def correlations(original: Any, masked: Any, *, columns: Sequence[str]) -> CorrelationChange:
    """Changes of the correlations between two or more numeric columns of two tables."""
    _require_two(columns)
    return result(summarised(original, masked, columns, NEEDS, _WHO))


def check(schema: Any, *, columns: Sequence[str]) -> None:
    """Refuse columns that are not numbers, or only one."""
    _require_two(columns)
    require_numeric(schema, columns, _WHO)


def _require_two(columns: Sequence[str]) -> None:
    if len(columns) < LEAST_COLUMNS:
        raise JobError(f"{_WHO}: columns must be two or more different columns; got {len(columns)}.")


def result(found: Summary) -> CorrelationChange:
    """The changes, from a summary of both tables."""
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
    return CorrelationChange(float(sizes.mean()), float(sizes.max()), parts)
