"""Repeated linkage: an intruder who has the originals masks them again, and links each person by what became of them.

Of a method that draws nothing, or next to nothing, the key hides nothing: whoever has a register of the originals
repeats it with the public parameters and gets the released values, for each person their own. This measure takes that
as certain: in the columns that are ``repeated`` the intruder knows the released value of everybody, in the others the
original one. So it needs no second masking, and no repetition links more. Of q released rows equally near each is
linked with probability 1/q, as in ``distance_linkage``. Two ways to link:

* ``nearest``: of the released rows that are equal in all repeated columns the one nearest in the others, in the metric
  of what masking moved (Mahalanobis, as in ``distance_linkage``);
* ``assignment``: who also knows that no two people have one row, on a sample (linkage_one_to_one.py).

``rate`` is the better of both. It reports nothing new of columns whose released labels follow from the original alone:
``distance_linkage`` reads these as sets. Passes and memory: those of ``distance_linkage`` with one intruder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpmask.engine.draws import make_key
from dpmask.engine.limits import current_limits
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Integers
from dpmask.kernels.linkage.nearest import Metric
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.kernels.wilson import wilson
from dpmask.lake.arrow import array_of
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, timed
from dpmask.measures.risk.distance_linkage import DistanceLinkage, check_columns, compared_values, sampled_positions
from dpmask.measures.risk.linkage_attack import LinkageAttack, linked
from dpmask.measures.risk.linkage_metrics import first_columns, first_pass, mahalanobis
from dpmask.measures.risk.linkage_one_to_one import added_by_assignment
from dpmask.measures.risk.linkage_values import GROUP, GroupNumbers, Values
from dpmask.results import MORE_RISK, RATE, Headline, Interval, Risk, Term
from dpmask.table.columns import floats
from dpmask.table.label_sets import LabelSets
from dpmask.table.pairs import POSITION, PRESENT, masked_name, pair
from dpmask.table.row_keys import row_keys
from dpmask.table.table import Frame, Table, as_table

_WHO = "repeated_linkage"
_NIN = "Nin, Herranz and Torra 2008, On the disclosure risk of multivariate microaggregation"


@dataclass(frozen=True, kw_only=True)
class RepeatedLinkage(Risk):
    """``rate`` by the better of ``nearest`` and ``assignment``: the intruder knows what repeated columns became."""

    rate: float
    nearest: float
    assignment: float
    assignment_error: float
    repeated: Sequence[str]
    sampled: bool

    judged: ClassVar[tuple[str, ...]] = ("rate", "nearest", "assignment")
    shares: ClassVar[tuple[str, ...]] = ("rate", "nearest", "assignment")
    headlines: ClassVar[Sequence[Headline]] = [
        Headline("linked", "rate", "of records can be linked to their own by masking the originals again"),
    ]
    about: ClassVar[Term] = Term(
        "The share of records that are linked by an intruder who has all originals and masks them again: what a method "
        "without draws makes of a record is then known.",
        MORE_RISK,
        _NIN,
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "nearest": Term("The same, taking the nearest released row; as near ones share.", MORE_RISK, _NIN),
        "assignment": Term("The same, if each record is assigned a row of its own, jointly best.", MORE_RISK, _NIN),
    }

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """Wilson's where records were sampled; that of the rate is the worst's."""
        each = {name: getattr(self, name) for name in ("nearest", "assignment")}
        found = {name: wilson(rate, self.attacked) if self.sampled else (rate, rate) for name, rate in each.items()}
        low, high = found["assignment"]
        found["assignment"] = max(low - self.assignment_error, 0.0), min(high + self.assignment_error, 1.0)
        return {"rate": max(found.values(), key=lambda interval: interval[1]), **found}

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"An intruder who masks the originals again with the same parameters, and so knows what {_listed(self)} "
            f"became, links {self.rate:.2%} of {self.attacked:,} records to their own ({self.nearest:.2%} by the "
            f"nearest row, {self.assignment:.2%} one to one), where guessing links {self.guessing:.2g}. Larger means "
            "more risk."
        )


def _listed(found: RepeatedLinkage) -> str:
    return ", ".join(found.repeated)


@timed
def repeated_linkage(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    repeated: Sequence[str],
    sets: LabelSets | None = None,
    sample: int | None = None,
    limit: int = 100_000,
    seed: int = 0,
) -> RepeatedLinkage:
    """How many records are linked by an intruder who masks the originals again, where masking draws nothing.

    Parameters
    ----------
    original, masked
        The tables: frames are paired by index, lakes by position.
    columns
        What the intruder knows: numbers and dates, which may be masked by interval labels, or categories.
    repeated
        Those of the columns for which masking draws nothing, or next to nothing: the intruder knows what became of
        each record there. In a job, those that its methods name.
    sets
        What labels of generalised columns stand for, as of ``distance_linkage``; not needed for repeated ones.
    sample
        How many records are attacked; by default all of them, or 20,000 of more than ``limit``.
    limit
        Up to how many records all are attacked.
    seed
        Chooses the records attacked.

    Returns
    -------
    RepeatedLinkage
        The rate of the better of two ways to link, and both.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"income": [1.0, 2.0, 5.0, 9.0, 12.0, 30.0]})
    >>> masked = dpmask.Microaggregation(columns=["income"], k=2).fit(people, seed=7).mask(people)
    >>> dpmask.risk.repeated_linkage(people, masked, columns=["income"], repeated=["income"]).rate
    0.5
    """
    again = _repeated(columns, repeated)
    others = [column for column in columns if column not in again]
    asked = DistanceLinkage(columns=columns, sets={}, sample=sample, limit=limit)
    table = as_table(masked, _WHO)
    values = _values(as_table(original, _WHO), table, others, sets or {})
    pairs = pair(original, masked, asked.columns, _WHO, marks=True)
    everybody = pairs.select([*others, *map(masked_name, asked.columns), POSITION, PRESENT])
    in_groups = partial(_grouped_pairs, tuple(others), again, None)
    key, attacked = make_key(_WHO, seed=seed), asked.attacked(pairs.rows)
    chosen = sampled_positions(key.subkey("linkage"), pairs.rows, attacked)
    few = sampled_positions(key.subkey("linkage"), pairs.rows, current_limits().assigned_records)  # of those
    either = None if chosen is None or few is None else np.unique(np.concatenate([chosen, few]))
    first = everybody if values else everybody.transform(in_groups)
    moves, records = first_pass(values or [GroupNumbers()], first, either)
    if not moves.rows:
        raise InputError(f"{_WHO}: no record of the original is in the masked table. Give both the same index.")
    metric = _in_groups(mahalanobis(first_columns(values), moves) if values else first_columns(values))
    records, values = records.transform(in_groups) if values else records, [*values, GroupNumbers()]
    sought = None if either is None else np.unique(np.concatenate(records.map(_numbers, "repeated: groups")))
    rows = table.select(asked.columns).transform(partial(_grouped, tuple(others), again, sought))
    grouped = everybody.transform(partial(_grouped_pairs, tuple(others), again, sought))
    links = linked(LinkageAttack(values, [metric], chosen), records, attacked, rows, _WHO)
    nearest = float(links.right[0]) / attacked
    added = added_by_assignment(values, metric, nearest, few, records, grouped, moves.rows / pairs.rows)
    assignment = min(max(nearest + added.gain, 0.0), 1.0)
    return RepeatedLinkage(
        rate=max(nearest, assignment),
        nearest=nearest,
        assignment=assignment,
        assignment_error=added.error,
        repeated=again,
        sampled=chosen is not None,
        guessing=moves.rows / pairs.rows / table.rows,
        attacked=attacked,
    )


def _repeated(columns: Sequence[str], repeated: Sequence[str]) -> tuple[str, ...]:
    if isinstance(repeated, str) or not repeated:
        raise JobError(f"{_WHO}: repeated must be a list of one or more of the columns; got {repeated!r}.")
    unknown = [name for name in repeated if name not in columns]
    if unknown:
        raise JobError(f"{_WHO}: repeated names '{unknown[0]}', which is not among columns. Add it there.")
    return tuple(repeated)


def _values(
    original: Table, masked: Table, others: Sequence[str], sets: Mapping[str, Mapping[str, Sequence[object] | None]]
) -> list[Values]:
    """How the columns that are not repeated are compared."""
    if not others:
        return []
    given = {column: one for column, one in sets.items() if column in others and one}
    return compared_values(original, masked, DistanceLinkage(columns=others, sets=given, sample=None, limit=1))


def _in_groups(metric: Metric) -> Metric:
    """The metric with groups as one more range."""
    scale, least, cap = (np.array([one]) for one in GroupNumbers().rulers[0])
    return metric._replace(
        scale=np.append(metric.scale, scale), least=np.append(metric.least, least), cap=np.append(metric.cap, cap)
    )


def _grouped(others: Sequence[str], repeated: Sequence[str], sought: Integers | None, rows: Rows) -> Rows:
    """A block's masked records with the numbers of their groups in place of the repeated columns.

    Of groups that are not ``sought`` nobody is near to anybody who is attacked.
    """
    rows, groups = _sought(rows, _groups(rows, repeated), sought)
    return rows.select(list(others)).append_column(GROUP, array_of(groups))


def _grouped_pairs(others: Sequence[str], repeated: Sequence[str], sought: Integers | None, rows: Rows) -> Rows:
    """The same of pairs: the released group is known."""
    rows, groups = _sought(rows, _groups(rows, [masked_name(column) for column in repeated]), sought)
    kept = rows.select([*others, *map(masked_name, others), POSITION, PRESENT])
    return kept.append_column(GROUP, array_of(groups)).append_column(masked_name(GROUP), array_of(groups))


def _sought(rows: Rows, groups: Integers, sought: Integers | None) -> tuple[Rows, Integers]:
    if sought is None:
        return rows, groups
    places = np.minimum(np.searchsorted(sought, groups), len(sought) - 1)
    kept = np.flatnonzero(sought[places] == groups)
    return rows.take(array_of(kept)), groups[kept]


def _groups(rows: Rows, columns: Sequence[str]) -> Integers:
    """52 bits of a key: two of a million groups share a number with a probability of 1 in 9,000."""
    return (row_keys(rows, columns).first >> np.uint64(12)).astype(np.int64)


def _numbers(rows: Rows) -> Integers:
    return np.unique(floats(rows, GROUP).astype(np.int64))


def _check(schema: Any, *, columns: Sequence[str], repeated: Sequence[str] = (), **_: object) -> None:
    """Refuse columns that linkage does not compare, and repeated ones that are not among them."""
    check_columns(schema, columns, _WHO)
    _repeated(columns, repeated)


_VALUE_SECONDS, _ATTACK_SECONDS = 1.2e-7, 6e-6
"""CPU of a column: of each record, and of each one attacked."""


def _work(parameters: Mapping[str, Any], rows: int) -> float:
    attacked = min(parameters.get("sample") or 20_000, rows)
    return (_VALUE_SECONDS * rows + _ATTACK_SECONDS * attacked) * len(parameters["columns"])


MEASURE = Measure(
    function=repeated_linkage,
    result=RepeatedLinkage,
    passes=4,
    check=_check,
    work=_work,
    kernels=KernelUse((Task("linkage"),), (Task("large trees"), Task("crowds"))),
)
