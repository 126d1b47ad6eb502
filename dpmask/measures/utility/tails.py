"""The upper tail: the share of a total that the largest values make up, before and after.

What is reported of incomes: the top 1 % have so much of it. The largest values count that make up a share of all
weight, or of the number of values (at least one value), w x summed over them and divided by that of all; of values that
are equal to the smallest of these a part, so that exactly that share counts. The masked table has the weights that are
released. Exact order statistics (dpmask.table.quantiles): three or four passes over each table, one for the weights and
one to sum. Values that are missing are left out. Where masking leaves a column no total, such as zeros alone, no share
of it is left: it counts as 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.warm_up import ORDER, KernelUse
from dpmask.measures.measure import Measure
from dpmask.measures.utility.summary import require_columns
from dpmask.measures.utility.weights import check_weight, one_weight, weight_scale
from dpmask.results import NEUTRAL, Exhibit, Loss, Term
from dpmask.table.checks import empty_column, require_no_infinities
from dpmask.table.columns import require_numeric
from dpmask.table.quantiles import Weigh, order_statistics
from dpmask.table.table import Frame, Table, as_table

_WHO = "tails"
_SHARE = 0.01
_PIKETTY = "Piketty and Saez 2003, Income inequality in the United States, 1913-1998"


@dataclass(frozen=True)
class Tail:
    """The tail of one column: the share of its total that the largest values make up."""

    column: str
    before: float
    after: float


_TAIL = {
    "column": Exhibit("text", "column"),
    "before": Exhibit("share", "before"),
    "after": Exhibit("share", "after"),
}


@dataclass(frozen=True, kw_only=True)
class Tails(Loss):
    """``value`` is the largest change of a share; ``parts`` has each column's own, with its sign."""

    share: float
    weight: str | None
    columns: tuple[Tail, ...] = ()

    public: ClassVar[bool] = False
    first: ClassVar[bool] = True
    about: ClassVar[Term] = Term(
        "The largest change of the share of a column's total that its largest values make up, after minus before.",
        "0 means that tails weigh what they did; larger means more information lost.",
        _PIKETTY,
    )
    terms: ClassVar[Mapping[str, Term]] = {
        "share": Term("The share of all values, or of their weight, that counts as the largest.", NEUTRAL, _PIKETTY),
        "weight": Term("The column that records weigh by; none where all weigh the same.", NEUTRAL, _PIKETTY),
        "before": Term("Share of the total that the largest values make up.", NEUTRAL, _PIKETTY),
        "after": Term("The same after masking.", NEUTRAL, _PIKETTY),
    }
    exhibits: ClassVar[Mapping[str, Exhibit]] = {"columns": Exhibit("rows", "Shares of the largest values", of=_TAIL)}

    def explain(self) -> str:
        """What the numbers mean."""
        worst = max(self.columns, key=lambda one: abs(one.after - one.before))
        return (
            f"The largest {100 * self.share:.3g} % of the values make up as much of the totals as before to "
            f"{self.value:.2%}: of {worst.column} {worst.before:.1%} before and {worst.after:.1%} after."
        )


def tails(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    share: float = _SHARE,
    weight: str | Sequence[str] | None = None,
    weighted: bool = True,
) -> Tails:
    """The shares of totals that the largest values make up.

    Parameters
    ----------
    share
        The share of the values that count as the largest.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"wealth": [1.0, 1.0, 2.0, 16.0]})
    >>> masked = pandas.DataFrame({"wealth": [1.0, 1.0, 9.0, 9.0]})
    >>> round(dpmask.utility.tails(original, masked, columns=["wealth"], share=0.25).value, 4)
    0.35
    """
    require_columns(columns, _WHO)
    own = one_weight(weight, _WHO, weighted=weighted)
    tables = as_table(original, _WHO), as_table(masked, _WHO)
    for table in tables:
        _check(table.masked_schema, columns=columns, share=share, weight=own)
    before = _shares(tables[0], list(columns), share, own)
    for name, one in zip(columns, before, strict=True):
        if math.isnan(one):
            raise InputError(f"{_WHO}: the total of column '{name}' is not above 0, so it has no shares. Take it out.")
    after = np.nan_to_num(_shares(tables[1], list(columns), share, own)).tolist()
    found = tuple(map(Tail, columns, before, after))
    parts = {one.column: one.after - one.before for one in found}
    return Tails(value=max(map(abs, parts.values())), parts=parts, share=share, weight=own, columns=found)


def _shares(table: Table, columns: list[str], share: float, weight: str | None) -> list[float]:
    """Of each column the share of its total that the largest values make up; not a number, if that is not above 0."""
    scale = weight_scale(table, weight, _WHO) if weight else 1.0
    weigh = Weigh(weight, scale) if weight else None
    ordered = order_statistics(table, columns, partial(_rank, share), _WHO, weigh)
    for name, one in zip(columns, ordered, strict=True):
        if not one.size:
            raise empty_column(_WHO, name)
    cuts = np.array([one.values[0] for one in ordered])
    names = list(dict.fromkeys([*columns, *([weight] if weight else [])]))
    place = names.index(weight) if weight else None
    sums = table.reduce(names, partial(_sums, cuts, place), np.add, f"{_WHO}: sum")
    found = []
    for one, (total, above, count, at, times) in zip(ordered, sums, strict=True):
        if not total > 0.0:
            found.append(math.nan)
            continue
        wanted = (one.size - _rank(share, one.size)[0]) / scale
        found.append(float((above + at * (wanted - count) / times) / total))
    return found


def _rank(share: float, size: int) -> list[int]:
    """The rank of the smallest value that is among the largest, of so many, or of so much weight."""
    return [size - max(math.ceil(Fraction(str(share)) * size), 1)]


def _sums(cuts: Floats, place: int | None, columns: Sequence[Floats]) -> Floats:
    """Columns x: the total, that of values above the cut and their weight, that of values at it and their weight."""
    weights = np.ones(len(columns[0])) if place is None else columns[place]
    require_no_infinities(list(columns[: len(cuts)]), _WHO)
    found = []
    for cut, values in zip(cuts, columns, strict=False):
        amounts = np.nan_to_num(values * weights)
        above, at = values > cut, values == cut
        found.append([amounts.sum(), amounts[above].sum(), weights[above].sum(), amounts[at].sum(), weights[at].sum()])
    return np.array(found, np.float64)


def _check(
    schema: Any, *, columns: Sequence[str], share: float = _SHARE, weight: Any = None, weighted: bool = True
) -> None:
    require_numeric(schema, columns, _WHO)
    check_weight(schema, weight, _WHO, weighted=weighted)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
        raise JobError(f"{_WHO}: share must be a number between 0 and 1; got {share!r}.")


MEASURE = Measure(
    function=tails,
    result=Tails,
    passes=5,
    roles={"weight": "weight"},
    paired=False,
    check=_check,
    kernels=KernelUse((), ORDER.all),
)
