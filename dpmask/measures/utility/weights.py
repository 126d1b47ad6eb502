"""Survey weights in measures that describe a table: a record counts as often as it weighs.

Weights become integers, multiples of a power of two so small that a table's total has 62 bits: sums of them are exact,
in whatever order they are added, so that weighted distribution functions and quantiles are the same for any
partitioning. The weighted quantile at j percent is the smallest value at which the weight of all values up to it
exceeds (W - W / n) j / 100, W being the weight of the n values: with equal weights the value at (n - 1) j // 100.
Variances of PIL take Kish's effective size, (sum w)^2 / sum w^2, in place of the records. Each table has its own
weights, the masked one those that are released. One pass over the weights before all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.order.float_order import whole_weights
from dpmask.lake.reading import Rows
from dpmask.measures.utility.table_pair import TablePair
from dpmask.results import NEUTRAL, Loss, Term
from dpmask.table.checks import require_weights
from dpmask.table.columns import floats, require_numeric
from dpmask.table.table import Table

_BITS = 61
_UNWEIGHTED = ", or measure without weights: weighted: false."
_KISH = "Kish 1965, Survey sampling"
_Found = TypeVar("_Found")


@dataclass(frozen=True, kw_only=True)
class WeightedLoss(Loss, abstract=True):
    """A loss of tables whose records may weigh."""

    weight: str | None = None
    heaviest: float = 0.0

    unreported: ClassVar[tuple[str, ...]] = ("heaviest",)
    terms: ClassVar[Mapping[str, Term]] = {
        "weight": Term("The column that records weigh by; none where all weigh the same.", NEUTRAL, _KISH),
        "heaviest": Term("The largest share that one record has in all weights.", NEUTRAL, _KISH),
    }

    def equal_records(self, rows: int) -> int:
        """Of so many records that all weigh the same, one would count as much as the heaviest of these."""
        return min(rows, int(1 / self.heaviest)) if self.heaviest else rows

    @property
    def weighed(self) -> str:
        """That records weigh, if they do."""
        return f" Records weigh by {self.weight}." if self.weight else ""


def one_weight(given: str | Sequence[str] | None, who: str, *, weighted: bool = True) -> str | None:
    """The column of weights, if they are taken; several are refused."""
    names = [given] if isinstance(given, str) else list(given or ())
    if len(names) > 1 and weighted:
        raise JobError(
            f"{who}: there are several weights, {', '.join(names)}. Name one: weight: {names[0]}{_UNWEIGHTED}"
        )
    return names[0] if names and weighted else None


def check_weight(schema: Any, given: str | Sequence[str] | None, who: str, *, weighted: bool = True) -> None:
    """Refuse several weights, and one that is no number."""
    name = one_weight(given, who, weighted=weighted)
    require_numeric(schema, [name] if name else [], who)


class Weights(NamedTuple):
    """What records of both tables weigh: the column, and the power of two that makes its numbers integers."""

    column: str
    scales: tuple[float, float]
    heaviest: float
    """The largest share that one record of the original has."""

    def beside(self, numbers: Sequence[str]) -> list[str]:
        """These columns, and the weight."""
        return list(dict.fromkeys([*numbers, self.column]))

    @property
    def of_rows(self) -> list[Callable[[Rows], tuple[Floats, Integers]]]:
        """For each table what gives the weights of its rows, as they are and as integers."""
        return [partial(_of_rows, self.column, scale) for scale in self.scales]

    def weighing(
        self, functions: Sequence[Callable[..., _Found]], numbers: Sequence[str]
    ) -> list[Callable[[list[Floats]], _Found]]:
        """Functions of each table's columns and weights, as ones of what ``beside`` names."""
        place = self.beside(numbers).index(self.column)
        each = zip(functions, self.scales, strict=True)
        return [partial(_weighing, function, len(numbers), place, scale) for function, scale in each]


def _of_rows(column: str, scale: float, rows: Rows) -> tuple[Floats, Integers]:
    weights = floats(rows, column)
    return weights, whole_weights(weights, scale)


def _weighing(
    function: Callable[..., _Found], count: int, place: int, scale: float, columns: Sequence[Floats]
) -> _Found:
    return function(columns[:count], weights=whole_weights(columns[place], scale))


def find_weights(tables: TablePair, column: str | None, who: str) -> Weights | None:
    """The weights of both tables, if they are taken; those that are no weights are refused."""
    if column is None:
        return None
    for schema, name in tables.named(column):
        require_numeric(schema, [name], who)
    advice = "", f" After masking it does not: bound it in the step that masks it{_UNWEIGHTED}"
    functions = [partial(_size, column, who, some) for some in advice]
    found = tables.reduce_floats([column], functions, _merge, f"{who}: weights")
    for total, _ in found:
        if not total > 0.0:
            raise InputError(f"{who}: the weights '{column}' are 0 in all records{_UNWEIGHTED}")
    each = zip(found, tables.rows, strict=True)
    first, second = (_scale(largest, rows) for (_, largest), rows in each)
    return Weights(column, (first, second), found[0][1] / found[0][0])


def weight_scale(table: Table, column: str, who: str) -> float:
    """The power of two that makes the weights of one table integers."""
    total, largest = table.reduce([column], partial(_size, column, who, ""), _merge, f"{who}: weights")
    if not total > 0.0:
        raise InputError(f"{who}: the weights '{column}' are 0 in all records{_UNWEIGHTED}")
    return _scale(largest, table.rows)


def _size(column: str, who: str, advice: str, columns: Sequence[Floats]) -> tuple[float, float]:
    """A block's total and largest weight."""
    try:
        require_weights(columns[0], column, who)
    except InputError as error:
        raise InputError(f"{error}{advice}") from None
    return float(columns[0].sum()), float(columns[0].max(initial=0.0))


def _merge(left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    return left[0] + right[0], max(left[1], right[1])


def _scale(largest: float, rows: int) -> float:
    return math.ldexp(1.0, _BITS - math.frexp(largest)[1] - rows.bit_length())
