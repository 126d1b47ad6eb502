"""Weighted totals of numbers by domains, before and after, each with its sampling error.

What survey statisticians publish: the total of w x over a domain. A change is judged beside what sampling alone leaves
open: the standard error of a weighted mean, s / sqrt(n'), with Kish's effective size n' = (sum w)^2 / sum w^2, relative
to the mean. Totals after masking take the released weights. One pass over the pairs; domains are those of the original
records; records that masking dropped count before only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpmask.constraints.strata import Strata, Stratum, check_strata, make_strata
from dpmask.errors import InputError
from dpmask.kernels.arrays import Floats
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, require_integers
from dpmask.measures.utility.weights import one_weight
from dpmask.results import MORE_LOSS, NEUTRAL, Exhibit, Loss, Term
from dpmask.table.checks import require_no_infinities, require_weights
from dpmask.table.columns import floats, require_numeric
from dpmask.table.pairs import masked_name, pair
from dpmask.table.table import Frame

_WHO = "totals"
_KISH = "Kish 1965, Survey sampling"
_FEWEST = 30
_SHOWN = 200


@dataclass(frozen=True)
class DomainTotal:
    """One number in one domain."""

    domain: str
    column: str
    records: int
    effective: float
    """Kish's effective size."""
    before: float
    after: float
    change: float
    """Relative to the total before; 0 where that is 0 and stays so."""
    error: float
    """The sampling error of the total before, relative to it."""


_TOTAL = {
    "domain": Exhibit("text", "domain"),
    "column": Exhibit("text", "column"),
    "records": Exhibit("number", "records"),
    "effective": Exhibit("number", "effective size"),
    "before": Exhibit("number", "total before"),
    "after": Exhibit("number", "after"),
    "change": Exhibit("number", "relative change"),
    "error": Exhibit("number", "sampling error"),
}


@dataclass(frozen=True, kw_only=True)
class Totals(Loss):
    """``value`` is the largest relative change of a total, ``median`` the median one, over domains and columns."""

    median: float
    beyond_error: float
    small: int
    weight: str | None
    domains: tuple[DomainTotal, ...] = ()

    public: ClassVar[bool] = False
    first: ClassVar[bool] = True
    judged: ClassVar[tuple[str, ...]] = ("value", "largest", "median", "beyond_error")
    about: ClassVar[Term] = Term(
        "The largest relative change of a weighted total, over domains and columns.",
        "0 means that all totals are what they were; larger means more information lost.",
        _KISH,
    )
    terms: ClassVar[Mapping[str, Term]] = {
        "median": Term("The median relative change of a total.", MORE_LOSS, _KISH),
        "beyond_error": Term("Share of the totals that changed by more than their sampling error.", MORE_LOSS, _KISH),
        "small": Term("Totals that are not judged, as too few records have a value there.", NEUTRAL, _KISH),
        "weight": Term("The column that records weigh by; none where all weigh the same.", NEUTRAL, _KISH),
    }
    exhibits: ClassVar[Mapping[str, Exhibit]] = {"domains": Exhibit("rows", "Totals by domain", of=_TOTAL)}

    @property
    def largest(self) -> float:
        """The largest relative change, which is the value."""
        return self.value

    def explain(self) -> str:
        """What the numbers mean."""
        weighed = f"weighted by {self.weight}" if self.weight else "unweighted"
        return (
            f"Totals by domain ({weighed}) changed by {self.value:.3%} at most and by {self.median:.3%} in the median; "
            f"{self.beyond_error:.1%} of them by more than their sampling error."
        )


def totals(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    by: Sequence[str | Mapping[str, Sequence[float] | str]] = (),
    weight: str | Sequence[str] | None = None,
    weighted: bool = True,
    fewest: int = _FEWEST,
) -> Totals:
    """Weighted totals by domains, before and after, beside their sampling errors.

    Parameters
    ----------
    columns
        The numeric columns to total.
    by
        Columns that make domains: "sex", {"age": [15, 25, 65]} for bands; by default the whole table is one.
    weight
        The column of survey weights; in a job that of the role, otherwise none by default.
    fewest
        Totals of domains in which fewer records have a value are shown, and not judged.

    Returns
    -------
    Totals
        The largest and the median change, and each total.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"sex": ["m", "m", "w"], "income": [10.0, 30.0, 20.0]})
    >>> masked = original.assign(income=[20.0, 20.0, 22.0])
    >>> round(dpmask.utility.totals(original, masked, columns=["income"], by=["sex"], fewest=1).value, 3)
    0.1
    """
    require_integers(_WHO, 1, fewest=fewest)
    own = one_weight(weight, _WHO, weighted=weighted)
    strata = make_strata(by, (), (), _WHO)
    names = list(dict.fromkeys([*columns, *([own] if own else []), *strata.columns]))
    pairs = pair(original, masked, names, _WHO)
    _check(pairs.masked_schema, columns=columns, by=by, weight=own)
    numbers = [*columns, *([own] if own else [])]
    require_numeric(pairs.masked_schema, [masked_name(name) for name in numbers], _WHO)
    reads = list(dict.fromkeys([*numbers, *map(masked_name, numbers), *strata.columns]))
    found = pairs.select(reads).reduce(partial(_sums, tuple(columns), own, strata), _add, _WHO)
    return _result(columns, own, fewest, strata, found)


def _sums(columns: tuple[str, ...], weight: str | None, strata: Strata, rows: Rows) -> dict[Stratum, Floats]:
    """For each domain of a block, columns x: records, sums of w, w^2, w x, w x^2, and of w' x'."""
    places, found = strata.of(rows)
    sums = np.zeros((len(found), len(columns), 6))
    before, after = (np.ones(rows.num_rows),) * 2
    if weight is not None:
        before, after = floats(rows, weight), floats(rows, masked_name(weight))
        require_weights(before, weight, _WHO)
    for number, name in enumerate(columns):
        values, masked = floats(rows, name), floats(rows, masked_name(name))
        require_no_infinities([values, masked], _WHO)
        there = ~np.isnan(values)
        w, x = np.where(there, before, 0.0), np.where(there, values, 0.0)
        released = np.nan_to_num(after * masked)
        for at, term in enumerate((there.astype(float), w, w**2, w * x, w * x**2, released)):
            sums[:, number, at] = np.bincount(places, term, minlength=len(found))
    return dict(zip(found, sums, strict=True))


def _add(left: dict[Stratum, Floats], right: dict[Stratum, Floats]) -> dict[Stratum, Floats]:
    return {**left, **{key: left[key] + sums if key in left else sums for key, sums in right.items()}}


def _result(
    columns: Sequence[str], weight: str | None, fewest: int, strata: Strata, found: Mapping[Stratum, Floats]
) -> Totals:
    domains = [
        _domain(strata.describe(stratum), name, numbers)
        for stratum in sorted(found, key=repr)
        for name, numbers in zip(columns, found[stratum], strict=True)
        if numbers[0]
    ]
    judged = [one for one in domains if one.records >= fewest]
    if not judged:
        raise InputError(f"{_WHO}: no domain has {fewest} records with a value. Take larger domains, or fewest: 1.")
    changes = np.abs([one.change for one in judged])
    beyond = [abs(one.change) > one.error for one in judged]
    worst = sorted(domains, key=lambda one: -abs(one.change))[:_SHOWN]
    return Totals(
        value=float(changes.max()),
        parts={name: max((abs(one.change) for one in judged if one.column == name), default=0.0) for name in columns},
        median=float(np.median(changes)),
        beyond_error=float(np.mean(beyond)),
        small=len(domains) - len(judged),
        weight=weight,
        domains=tuple(worst),
    )


def _domain(domain: str, column: str, numbers: Floats) -> DomainTotal:
    records, weight, squares, total, second, after = (float(one) for one in numbers)
    change = (after - total) / abs(total) if total else float(after != 0.0)
    effective = weight**2 / squares if squares else 0.0
    mean = total / weight if weight else 0.0
    variance = max(second / weight - mean**2, 0.0) if weight else 0.0
    error = (variance / effective) ** 0.5 / abs(mean) if mean and effective else 0.0
    return DomainTotal(domain, column, int(records), effective, total, after, change, error)


def _check(
    schema: Any, *, columns: Sequence[str], by: Sequence[Any] = (), weight: Any = None, weighted: bool = True, **_: Any
) -> None:
    own = one_weight(weight, _WHO, weighted=weighted)
    require_numeric(schema, [*columns, *([own] if own else [])], _WHO)
    check_strata(make_strata(by, (), (), _WHO), schema, _WHO)


MEASURE = Measure(function=totals, result=Totals, roles={"weight": "weight"}, check=_check)
