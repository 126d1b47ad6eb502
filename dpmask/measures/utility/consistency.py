"""What masking did to zeros, to missing values and to edit rules: how many there were before, and how many after.

Which amounts are zero and which are missing is what analysts tabulate first, and a record that breaks an edit rule is
no record to them. A rule is a constraint, "net + tax = gross", or has a condition, "if status = single then
spouse_wage = 0"; conditions are those of the original record. Values are compared to the rounding of their types, and a
record that lacks a value breaks no rule on it. Records that masking dropped are left out. One pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpmask.constraints.conditions import ConditionalRule, split_rules
from dpmask.constraints.sets import Constraints, breaks, parse_constraints
from dpmask.errors import InputError
from dpmask.kernels.arrays import Flags, Integers
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure
from dpmask.results import MORE_LOSS, NEUTRAL, Exhibit, Loss, Term
from dpmask.table.columns import float_kind, floats, require_numeric
from dpmask.table.pairs import PRESENT, masked_name, pair
from dpmask.table.table import Frame

_WHO = "consistency"
_GUIDE = "dpmask explain consistency"
_DE_WAAL = "De Waal, Pannekoek and Scholtus 2011, Handbook of statistical data editing and imputation"


@dataclass(frozen=True)
class ColumnChange:
    """Zeros and missing values of a column."""

    column: str
    zero_share_before: float
    zero_share_after: float
    zeros_before: int
    zeros_after: int
    zeros_lost: int
    zeros_new: int
    missing_before: int
    missing_after: int
    missing_lost: int
    missing_new: int


@dataclass(frozen=True)
class RuleChange:
    """Records that an edit rule binds, and those that break it."""

    rule: str
    records: int
    broken_before: int
    broken_after: int


_COLUMN = {
    "column": Exhibit("text", "column"),
    "zero_share_before": Exhibit("share", "zeros before"),
    "zero_share_after": Exhibit("share", "after"),
    "zeros_before": Exhibit("number", "zeros before"),
    "zeros_after": Exhibit("number", "after"),
    "zeros_lost": Exhibit("number", "no longer zero"),
    "zeros_new": Exhibit("number", "newly zero"),
    "missing_before": Exhibit("number", "missing before"),
    "missing_after": Exhibit("number", "after"),
    "missing_lost": Exhibit("number", "no longer missing"),
    "missing_new": Exhibit("number", "newly missing"),
}
_RULE = {
    "rule": Exhibit("text", "edit rule"),
    "records": Exhibit("number", "records it binds"),
    "broken_before": Exhibit("number", "broken before"),
    "broken_after": Exhibit("number", "broken after"),
}


@dataclass(frozen=True, kw_only=True)
class Consistency(Loss):
    """``value`` is the largest share of a column's records whose zero, or gap, came or went."""

    records: int
    columns: tuple[ColumnChange, ...] = ()
    rules: tuple[RuleChange, ...] = field(default=())

    public: ClassVar[bool] = False
    first: ClassVar[bool] = True
    automatic: ClassVar[bool] = True
    judged: ClassVar[tuple[str, ...]] = (
        "value", "zeros_lost", "zeros_new", "missing_lost", "missing_new", "rules_broken",
    )  # fmt: skip
    about: ClassVar[Term] = Term(
        "The largest share of a column's records whose value became zero or missing, or no longer is.",
        "0 means that every zero and every missing value is where it was; larger means more information lost.",
        _DE_WAAL,
    )
    terms: ClassVar[Mapping[str, Term]] = {
        "zeros_lost": Term("Zeros that are no longer zero, in all columns.", MORE_LOSS, _GUIDE),
        "zeros_new": Term("Values that became zero, in all columns.", MORE_LOSS, _GUIDE),
        "missing_lost": Term("Missing values that are no longer missing, in all columns.", MORE_LOSS, _GUIDE),
        "missing_new": Term("Values that became missing, in all columns.", MORE_LOSS, _GUIDE),
        "rules_broken": Term("Records that break an edit rule after masking, over all rules.", MORE_LOSS, _DE_WAAL),
        "zero_share_before": Term("Zeros, as a share of the records.", NEUTRAL, _GUIDE),
        "zero_share_after": Term("Zeros after masking, as a share of the records.", NEUTRAL, _GUIDE),
        "records": Term("Records that were compared.", NEUTRAL, _GUIDE),
    }
    exhibits: ClassVar[Mapping[str, Exhibit]] = {
        "columns": Exhibit("rows", "Zeros and missing values", of=_COLUMN),
        "rules": Exhibit("rows", "Edit rules", of=_RULE),
    }

    @property
    def zeros_lost(self) -> int:
        """Zeros that are no longer zero."""
        return sum(one.zeros_lost for one in self.columns)

    @property
    def zeros_new(self) -> int:
        """Values that became zero."""
        return sum(one.zeros_new for one in self.columns)

    @property
    def missing_lost(self) -> int:
        """Missing values that are no longer missing."""
        return sum(one.missing_lost for one in self.columns)

    @property
    def missing_new(self) -> int:
        """Values that became missing."""
        return sum(one.missing_new for one in self.columns)

    @property
    def rules_broken(self) -> int:
        """Records that break a rule after masking."""
        return sum(one.broken_after for one in self.rules)

    def explain(self) -> str:
        """What the numbers mean."""
        before = sum(one.broken_before for one in self.rules)
        rules = f" Edit rules are broken {before:,} times before and {self.rules_broken:,} times after."
        return (
            f"Of {sum(one.zeros_before for one in self.columns):,} zeros {self.zeros_lost:,} are no longer zero and "
            f"{self.zeros_new:,} are new; of {sum(one.missing_before for one in self.columns):,} missing values "
            f"{self.missing_lost:,} are no longer missing and {self.missing_new:,} are new."
            + (rules if self.rules else "")
        )


def consistency(original: Frame, masked: Frame, *, columns: Sequence[str], rules: Sequence[str] = ()) -> Consistency:
    """What masking did to zeros, missing values and edit rules.

    Parameters
    ----------
    rules
        Edit rules over these columns, such as "net + tax = gross" or "if status = single then spouse_wage = 0".

    Returns
    -------
    Consistency
        Zeros and missing values of each column and records that break each rule, before and after.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"age": [9, 40], "wage": [0.0, 100.0]})
    >>> masked = pandas.DataFrame({"age": [9, 40], "wage": [50.0, 50.0]})
    >>> found = dpmask.utility.consistency(original, masked, columns=["wage"], rules=["if age < 15 then wage = 0"])
    >>> found.zeros_lost, found.rules_broken
    (1, 1)
    """
    conditional = split_rules(rules)[1]
    conditions = [name for rule in conditional for name in rule.columns]
    pairs = pair(original, masked, list(dict.fromkeys([*columns, *conditions])), _WHO, marks=True)
    schema = pairs.masked_schema
    _check(schema, columns=columns, rules=rules)
    require_numeric(schema, [masked_name(name) for name in columns], _WHO)
    bound = [_bound(text, columns) for text in rules]
    kinds = [schema.field(name).type for one in columns for name in (one, masked_name(one))]
    precision = max(float(np.finfo(float_kind(kind)).eps) for kind in kinds)
    names = [*columns, *map(masked_name, columns), *dict.fromkeys(c for c in conditions if c not in columns), PRESENT]
    count = partial(_count, tuple(columns), tuple(bound), precision)
    found = pairs.select(names).reduce(count, _Counts.plus, _WHO)
    return _result(columns, bound, found)


class _Bound(NamedTuple):
    """A rule: its text, its condition if it has one, and what it asks for."""

    text: str
    rule: ConditionalRule | None
    written: Constraints


def _bound(text: str, columns: Sequence[str]) -> _Bound:
    _, conditional = split_rules([text])
    rule = conditional[0] if conditional else None
    return _Bound(text, rule, parse_constraints([rule.constraint if rule else text], columns))


class _Counts(NamedTuple):
    records: int
    columns: Integers  # columns x what ColumnChange has
    rules: Integers  # rules x what RuleChange has

    def plus(self, other: _Counts) -> _Counts:
        return _Counts(self.records + other.records, self.columns + other.columns, self.rules + other.rules)


def _count(columns: tuple[str, ...], rules: tuple[_Bound, ...], precision: float, rows: Rows) -> _Counts:
    """A block's counts."""
    present = ~np.isnan(floats(rows, PRESENT))
    before = np.array([floats(rows, name) for name in columns])[:, present]
    after = np.array([floats(rows, masked_name(name)) for name in columns])[:, present]
    counted = [_came_and_went(test(before), test(after)) for test in (_is_zero, np.isnan)]
    broken = np.zeros((len(rules), 3), np.int64)
    for number, one in enumerate(rules):
        bound = np.ones(len(present), np.bool_) if one.rule is None else one.rule.applies(rows)
        bound = bound[present]
        sides = [int((breaks(one.written, precision, values) & bound).sum()) for values in (before, after)]
        broken[number] = [int(bound.sum()), *sides]
    return _Counts(int(present.sum()), np.concatenate(counted, axis=1), broken)


def _is_zero(values: Any) -> Flags:
    return np.asarray(values == 0.0)


def _came_and_went(before: Flags, after: Flags) -> Integers:
    """Columns x 4: how many there were, how many there are, how many went and how many came."""
    found = [before, after, before & ~after, after & ~before]
    return np.array([one.sum(axis=1) for one in found]).T


def _result(columns: Sequence[str], rules: Sequence[_Bound], found: _Counts) -> Consistency:
    if not found.records:
        raise InputError(f"{_WHO}: no record is in both tables.")
    changes = tuple(
        ColumnChange(name, *(counts[:2] / found.records).tolist(), *(int(one) for one in counts))
        for name, counts in zip(columns, found.columns, strict=True)
    )
    moved = [one.zeros_lost + one.zeros_new + one.missing_lost + one.missing_new for one in changes]
    parts = {name: count / found.records for name, count in zip(columns, moved, strict=True)}
    of_rules = tuple(
        RuleChange(one.text, *(int(n) for n in counts)) for one, counts in zip(rules, found.rules, strict=True)
    )
    return Consistency(value=max(parts.values()), parts=parts, records=found.records, columns=changes, rules=of_rules)


def _check(schema: Any, *, columns: Sequence[str], rules: Sequence[str] = ()) -> None:
    require_numeric(schema, columns, _WHO)
    plain, conditional = split_rules(rules)
    parse_constraints([*plain, *(rule.constraint for rule in conditional)], columns)
    for rule in conditional:
        for comparison in rule.comparisons:
            comparison.check(schema, rule.text)


_SECONDS = 7e-8
"""CPU of a record for each column and rule; from the ready jobs with 1e6 people."""


def _work(parameters: Mapping[str, Any], rows: int) -> float:
    return _SECONDS * rows * (len(parameters["columns"]) + len(parameters.get("rules", ())))


MEASURE = Measure(function=consistency, result=Consistency, check=_check, work=_work)
