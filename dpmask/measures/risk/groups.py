"""Groups of records that share their quasi-identifiers: who is alone, and what a group gives away of its members.

For each quasi-identifier, a set of columns taken jointly: k (the smallest group), uniques (groups of one), records in
groups of less than k; for each sensitive column distinct l, entropy l, confidence and t of the worst group
(kernels/groups.py has the formulas; numbers with many values are taken in 20 quantile bins of the original, in order,
so t is the ordered distance, or the equal one for categories). Prosecutor: an intruder who knows that the person is in
the release finds them with 1 / group size, on average groups / records. Journalist: an intruder who has the original
as a register picks one of the F persons a released record may be; at most the mean of min(f, F) / (f F).

Everything is exact, on the values to be published, and on the original beside them. Missing is a value like others.
Passes: three over the sensitive columns, and one over each quasi-identifier, in which rows meet by a hash of it.
Memory per task: one block, or its share of the different rows (about a million).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

from dpmask.engine.collection import exchange, itself
from dpmask.engine.limits import current_limits
from dpmask.errors import InputError, JobError
from dpmask.kernels.groups import (
    GroupCells,
    Groups,
    Sensitive,
    cells,
    join_cells,
    measure_groups,
    merge_groups,
    split_cells,
)
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, require_integers, timed
from dpmask.results import LESS_RISK, MORE_RISK, Risk, Term
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.encoders.interval import IntervalEncoder
from dpmask.table.encoders.value_codes import code_shares, value_encoders
from dpmask.table.row_keys import require_groupable, row_keys
from dpmask.table.table import Frame, Table, as_table

_WHO = "groups"
_CELL_BYTES = 24
_SAMARATI = "Samarati 2001, Protecting respondents' identities in microdata release"
_EL_EMAM = "El Emam 2013, Guide to the de-identification of personal health information"
_DIVERSITY = "Machanavajjhala et al. 2007, l-diversity: privacy beyond k-anonymity"


@dataclass(frozen=True, kw_only=True)
class GroupRisk(Risk):
    """The worst of all quasi-identifiers; ``parts`` has each one's own numbers, ``before`` those of the original."""

    smallest: int
    uniques: int
    below: int
    k: int
    prosecutor: float
    journalist: float
    distinct: float | None
    entropy: float | None
    confidence: float | None
    closeness: float | None
    before: Mapping[str, float] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = (
        "smallest",
        "uniques",
        "below",
        "prosecutor",
        "journalist",
        "distinct",
        "entropy",
        "confidence",
        "closeness",
    )
    shares: ClassVar[tuple[str, ...]] = ("prosecutor", "journalist")
    about: ClassVar[Term] = Term(
        "Groups of records with the same quasi-identifiers: the smallest one, those of one record, records in "
        "groups below k, and what a group gives away of its members' sensitive values.",
        "Smaller groups mean more risk; a larger confidence or t, and fewer different sensitive values, too.",
        "Sweeney 2002, k-anonymity; Machanavajjhala et al. 2007, l-diversity; Li, Li and Venkatasubramanian 2007, "
        "t-closeness",
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "smallest": Term("Records in the smallest group that shares its values (k).", LESS_RISK, _SAMARATI),
        "uniques": Term("Records that share their quasi-identifiers with no other.", MORE_RISK, _SAMARATI),
        "below": Term("Records in groups of fewer than k.", MORE_RISK, _SAMARATI),
        "prosecutor": Term("Mean chance to find a person who is known to be in the release.", MORE_RISK, _EL_EMAM),
        "journalist": Term(
            "Mean chance to find the person behind a released record in a register.", MORE_RISK, _EL_EMAM
        ),
        "distinct": Term("Fewest different sensitive values in a group: distinct l.", LESS_RISK, _DIVERSITY),
        "entropy": Term(
            "Fewest sensitive values in a group, weighed by how evenly they occur: entropy l.", LESS_RISK, _DIVERSITY
        ),
        "confidence": Term(
            "Largest share of one sensitive value in a group.",
            MORE_RISK,
            "Wang, Fung and Yu 2005, Template-based privacy preservation in classification problems",
        ),
        "closeness": Term(
            "Largest distance between a group's sensitive values and those of all: t.",
            MORE_RISK,
            "Li, Li and Venkatasubramanian 2007, t-closeness",
        ),
    }

    def explain(self) -> str:
        """What the numbers mean."""
        inferred = ""
        if self.confidence is not None:
            inferred = (
                f" Inside a group a sensitive value can be inferred with a confidence of up to {self.confidence:.4g}, "
                f"where there are at least {self.distinct:g} different ones (t = {self.closeness:.4g})."
            )
        return (
            f"The smallest group with the same quasi-identifiers has {self.smallest} of {self.attacked:,} records; "
            f"{self.uniques} are alone in theirs, {self.below} in one of fewer than {self.k}. "
            f"Smaller groups mean more risk.{inferred}"
        )


def _check(
    schema: Any,
    *,
    quasi: Sequence[str] | Sequence[Sequence[str]] | None = None,
    sensitive: Sequence[str] | None = None,
    **_: object,
) -> None:
    """Refuse columns that are not there, or that nothing can be grouped by."""
    for columns in _quasi_identifiers(quasi):
        require_groupable(schema, columns, _WHO)
    require_groupable(schema, sensitive or (), _WHO)


@timed
def groups(
    original: Frame,
    masked: Frame,
    *,
    quasi: Sequence[str] | Sequence[Sequence[str]] | None = None,
    sensitive: Sequence[str] | None = None,
    k: int = 10,
) -> GroupRisk:
    """Groups of records that share their quasi-identifiers, and what they give away of their members.

    Parameters
    ----------
    original, masked
        The tables: pandas or Dask frames, or lakes. Their records need not be paired.
    quasi
        One quasi-identifier, a list of columns, or several, a list of lists; in a job, by default the columns declared
        quasi.
    sensitive
        Columns whose values a group must not give away; in a job, by default those declared sensitive.
    k
        Groups of fewer records are counted in ``below``.

    Returns
    -------
    GroupRisk
        The worst of all quasi-identifiers, and each one's own numbers in ``parts``.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"age": [31, 34, 38, 52], "ill": ["yes", "no", "no", "no"]})
    >>> masked = original.assign(age=["30-39", "30-39", "30-39", "50-59"])
    >>> found = dpmask.risk.groups(original, masked, quasi=["age"], sensitive=["ill"])
    >>> found.smallest, found.uniques, found.confidence
    (1, 1, 1.0)
    """
    require_integers(_WHO, 1, k=k)
    before, after = as_table(original, _WHO), as_table(masked, _WHO)
    for table in (before, after):
        _check(table.masked_schema, quasi=quasi, sensitive=sensitive)
        if not table.rows:
            raise InputError(f"{_WHO}: the table has no record.")
    encoders = value_encoders([before, after], list(sensitive or ()), _WHO)
    columns = [_sensitive(table, encoders) for table in (before, after)]
    found = {}
    for names in _quasi_identifiers(quasi):
        others = {name: one for name, one in encoders.items() if name not in names}
        task = _Task(tuple(names), others, k, *({name: one[name] for name in others} for one in columns))
        found[" + ".join(names)] = list(others), task.measured(before, after)
    return _result(found, k)


def _quasi_identifiers(quasi: Sequence[str] | Sequence[Sequence[str]] | None) -> list[list[str]]:
    """The quasi-identifiers as lists of columns, however they were given."""
    given = [] if quasi is None or isinstance(quasi, str) else list(quasi)
    sets = [list(given)] if all(isinstance(one, str) for one in given) else given
    for columns in sets:
        bad = isinstance(columns, str) or not all(isinstance(name, str) for name in columns)
        if bad or not columns or len(set(columns)) < len(columns):
            raise JobError(
                f"{_WHO}: quasi must be a list of different columns, or a list of such lists; got {quasi!r}. "
                "In a job, declare columns as quasi."
            )
    return [list(map(str, columns)) for columns in sets]


def _sensitive(table: Table, encoders: Mapping[str, CodeEncoder]) -> dict[str, Sensitive]:
    found = {}
    for name, shares in code_shares(table, encoders, _WHO).items():
        ordered = isinstance(encoders[name], IntervalEncoder)
        nothing_missing = ordered and not shares[-1]  # then missing is no place in the order
        found[name] = Sensitive(shares[:-1] if nothing_missing else shares, ordered)
    return found


class _Both(NamedTuple):
    """The groups of the original and of the masked table."""

    before: Groups
    after: Groups


class _Task(NamedTuple):
    """One quasi-identifier: its columns, and the sensitive ones beside it with their shares before and after."""

    quasi: tuple[str, ...]
    encoders: Mapping[str, CodeEncoder]
    k: int
    before: dict[str, Sensitive]
    after: dict[str, Sensitive]

    def measured(self, original: Table, masked: Table) -> _Both:
        """All groups: rows meet in shards by the hash of their quasi-identifier."""
        columns = [*self.quasi, *self.encoders]
        rows = original.rows + masked.rows
        shards = -(-rows // current_limits().group_shard_rows)
        sources = [table.select(columns).transform(partial(_split, self, shards)) for table in (original, masked)]
        size = rows * (_CELL_BYTES + 8 * len(self.encoders))
        found = exchange(sources, partial(_gather, self), shards, f"{_WHO}: exchange", size=size)
        return found.reduce(itself, _merge, _WHO)


def _split(task: _Task, shards: int, rows: Rows) -> list[GroupCells]:
    codes = [one.encode(rows) for one in task.encoders.values()]
    return split_cells(cells(row_keys(rows, task.quasi), codes), shards)


def _gather(task: _Task, before: list[GroupCells], after: list[GroupCells]) -> _Both:
    original, masked = join_cells(before), join_cells(after)
    return _Both(
        measure_groups(original, list(task.before.values()), task.k, original),
        measure_groups(masked, list(task.after.values()), task.k, original),
    )


def _merge(left: _Both, right: _Both) -> _Both:
    return _Both(merge_groups(left.before, right.before), merge_groups(left.after, right.after))


def _result(found: dict[str, tuple[list[str], _Both]], k: int) -> GroupRisk:
    names = {label: names for label, (names, _) in found.items()}
    parts = [_parts({label: both[table] for label, (_, both) in found.items()}, names) for table in (0, 1)]
    after = [both.after for _, both in found.values()]
    spreads = [spread for one in after for spread in one.spreads]
    records = after[0].records
    return GroupRisk(
        smallest=min(one.smallest for one in after),
        uniques=max(one.uniques for one in after),
        below=max(one.below for one in after),
        k=k,
        prosecutor=max(one.groups / records for one in after),
        journalist=max(one.matched / records for one in after),
        distinct=min((one.distinct for one in spreads), default=None),
        entropy=min((one.entropy for one in spreads), default=None),
        confidence=max((one.confidence for one in spreads), default=None),
        closeness=max((one.closeness for one in spreads), default=None),
        guessing=1.0 / records,
        attacked=records,
        parts=parts[1],
        before=parts[0],
    )


def _parts(found: dict[str, Groups], sensitive: dict[str, list[str]]) -> dict[str, float]:
    """Each quasi-identifier's own numbers under readable names."""
    parts: dict[str, float] = {}
    for label, one in found.items():
        parts |= {
            f"{label}: smallest group": one.smallest,
            f"{label}: groups": one.groups,
            f"{label}: uniques": one.uniques,
            f"{label}: records in groups below k": one.below,
            f"{label}: prosecutor": one.groups / one.records,
            f"{label}: journalist": one.matched / one.records,
        }
        for name, spread in zip(sensitive[label], one.spreads, strict=True):
            parts |= {f"{label}: {name}: {key}": value for key, value in spread._asdict().items()}
    return parts


MEASURE = Measure(
    function=groups,
    result=GroupRisk,
    roles={"quasi": "quasi", "sensitive": "sensitive"},
    paired=False,
    check=_check,
)
