"""The gate of a job: which columns must be declared, which attacks every run makes, and why a run was refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dpmask.errors import JobError, nearest
from dpmask.job.model import Job
from dpmask.job.plain_columns import is_masked
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.lake.footers import is_empty_range
from dpmask.lake.reading import Rows
from dpmask.masking.method import Method
from dpmask.measures.measure import MeasureRequest
from dpmask.release.gate import GATE, GateRisk, attacked_by_gate, gate_risk
from dpmask.table.columns import is_category, is_nested, is_numeric
from dpmask.table.encoders.interval import is_ordered, numbers
from dpmask.table.table import Table

ORDER = "order"
"""What ``accept`` calls the order of the rows."""
_ORDERS = {
    "input": "rows in the order of the source show which record is whose.",
    "within_files": "files follow the source, so a row's file shows what the source is sorted by.",
}
_AT_RISK = ("quasi", "sensitive", "weight")
_LINKAGE, _GROUPS = "distance_linkage", "groups"
_NAMES = {"quasi": "a quasi-identifier", "sensitive": "a sensitive column", "weight": "a weight"}


def released_columns(job: Job, schema: Any) -> list[str]:
    """The columns that a job releases of a source, or of a table with its columns, in their order."""
    kept = set(job.released)
    return [name for name in schema.names if job.origin(name) in kept]


def findings(job: Job, before: Any, after: Any) -> dict[str, str]:
    """What must be accepted, by the job file and the schemas before and after masking alone: name and reason.

    ``after`` has columns that are released as bounds as intervals, too: these are attacked.
    """
    found = {}
    if job.file.order != "shuffled":
        found[ORDER] = _ORDERS[job.file.order]
    for name in released_columns(job, after):
        problem = _problem(job, name, before, after)
        if problem:
            found[job.origin(name)] = problem
    return found


def _problem(job: Job, name: str, before: Any, after: Any) -> str | None:
    role, kind = job.role(name), after.field(name).type
    if not is_masked(job, name):
        if role in _AT_RISK:
            return f"{_NAMES[role]} that no step masks."
        return f"is {kind}, whose values the gate cannot count." if is_nested(kind) else None
    if name not in before.names:
        apart = is_at_risk(job, name) and job.origin(name) not in after.names
        return _apart(job, name, after) if apart else None
    if not _attackable(before.field(name).type, kind):
        return f"is masked, but the gate has no attack on {before.field(name).type} released as {kind}."
    return None


def is_at_risk(job: Job, column: str) -> bool:
    """Whether an intruder knows a column: by its role, or as it is masked, which nobody does to a harmless one."""
    return job.role(column) in _AT_RISK or (job.role(column) == "plain" and is_masked(job, column))


def _apart(job: Job, name: str, after: Any) -> str:
    """The problem of bounds that a later step masks: they are intervals of the original no longer."""
    parts = [one for one in after.names if job.origin(one) == job.origin(name)]
    return f"is released as {' and '.join(parts)}, which a later step masks: on such the gate has no attack."


def _attackable(before: Any, after: Any) -> bool:
    """Whether linkage compares values of these types: numbers, dates, categories, and such that were generalised."""
    if is_category(after):
        return is_ordered(before) or is_category(before)
    return is_ordered(before) and is_ordered(after) and is_numeric(before) == is_numeric(after)


def check_accepted(job: Job, found: Mapping[str, str]) -> None:
    """Refuse to accept what is not there, is not released or is protected: ``found`` needs it."""
    for name in job.file.accept:
        if name in found:
            continue
        problem = _needless(job, name)
        if problem:
            raise JobError(job.text.error(("accept", name), problem))


def _needless(job: Job, name: str) -> str | None:
    """Why there is nothing to accept; None for a plain column, about which the data decide."""
    if name in job.released:
        masked = is_masked(job, name)
        return "there is nothing to accept: a step masks this column. Take it out." if masked else None
    if name == ORDER:
        return "there is nothing to accept: the rows are shuffled. Take it out."
    if name in job.dropped:
        return "there is nothing to accept: this column is dropped. Take it out."
    return f"the job releases no such column. {nearest(name, [*job.released, ORDER])}"


def unaccepted(job: Job, found: Mapping[str, str]) -> dict[str, str]:
    """What was found and nobody accepted."""
    return {name: problem for name, problem in found.items() if name not in job.file.accept}


class GateMeasures(NamedTuple):
    """The measures that the gate takes; the job's own where it asks for the same."""

    columns: list[str]
    quasi: list[str]
    linkage: MeasureRequest | None
    groups: MeasureRequest | None

    def beside(self, own: Sequence[MeasureRequest]) -> list[MeasureRequest]:
        """Those that are to be taken besides."""
        return [one for one in (self.linkage, self.groups) if one is not None and one not in own]

    def risk(
        self,
        rows: int,
        results: Mapping[str, Any],
        attacks: Sequence[str],
        untried: Sequence[str],
        differencing: Any = None,
    ) -> GateRisk:
        """What the gate found, from all results; ``attacks`` names those of the methods, but for ``untried`` ones."""
        linkage = None if self.linkage is None else (self.columns, results[self.linkage.name])
        groups = None if self.groups is None else (self.quasi, results[self.groups.name])
        return gate_risk(rows, linkage, groups, {name: results[name] for name in attacks}, untried, differencing)


def gate_measures(job: Job, original: Table, after: Any, own: Sequence[MeasureRequest]) -> GateMeasures:
    """What the gate measures of a table masked to the schema ``after``."""
    columns = attacked_columns(job, original, after)
    attacked = {"columns": columns, "sample": attacked_by_gate(len(columns))}
    linkage = MeasureRequest(f"{GATE} linkage", _LINKAGE, attacked)
    sets = _quasi_sets(job, original, after)
    grouped = MeasureRequest(f"{GATE} groups", _GROUPS, {"quasi": sets, "sensitive": []})
    return GateMeasures(
        columns=columns,
        quasi=sets[0] if sets else [],
        linkage=_own(own, linkage, _same_linkage) if columns else None,
        groups=_own(own, grouped, _same_groups) if sets else None,
    )


def attacked_columns(job: Job, original: Table, after: Any) -> list[str]:
    """What the strongest intruder knows: released columns that are at risk and whose values differ."""
    schemas = original.masked_schema, after
    at_risk = [name for name in released_columns(job, after) if is_at_risk(job, name)]
    renamed = {name for name in at_risk if job.role(name) == "plain" and is_renamed(job.methods, name, *schemas)}
    return comparable_columns([name for name in at_risk if name not in renamed], original, after)


def is_renamed(methods: Sequence[Method[Any]], name: str, before: Any, after: Any) -> bool:
    """Whether a number became a text that stands for no set of values, such as a pseudonym."""
    if name not in before.names or not is_category(after.field(name).type):
        return False
    generalised = any(name in one for method in methods for one in method.required_groups)
    return is_ordered(before.field(name).type) and not generalised


def comparable_columns(names: Sequence[str], original: Table, after: Any) -> list[str]:
    """Of these columns of a masked table those that the original has, that linkage compares, and that differ there."""
    before = original.masked_schema
    found = [
        name for name in names if name in before.names and _attackable(before.field(name).type, after.field(name).type)
    ]
    constant = set(_constant(original, [name for name in found if is_ordered(before.field(name).type)]))
    return [name for name in found if name not in constant]


def _constant(table: Table, columns: Sequence[str]) -> Iterator[str]:
    """The numbers that are the same in every record, or missing: by the footers, or, without them, by a pass."""
    unknown = []
    for name in columns:
        facts = table.facts.get(name)
        if facts is None or facts.low is None or facts.nulls is None:
            unknown.append(name)
        elif is_empty_range(facts.low) or facts.low == facts.high or table.rows - facts.nulls < 2:  # noqa: PLR2004
            yield name
    if unknown:
        moments = table.select(unknown).reduce(_moments, merge_moments, "gate: ranges")
        each = zip(unknown, moments.low, moments.high, moments.values, strict=True)
        yield from (name for name, low, high, values in each if values < 2 or low == high)  # noqa: PLR2004


def _moments(rows: Rows) -> Moments:
    return column_moments([numbers(rows, column) for column in rows.schema.names])


def _quasi_sets(job: Job, original: Table, after: Any) -> list[list[str]]:
    """All released quasi-identifiers jointly, then the sets that a step was required to protect."""
    both = [name for name in released_columns(job, after) if name in original.masked_schema.names]
    usable = {name for name in both if not is_nested(after.field(name).type)}
    joint = [name for name in both if name in usable and job.role(name) == "quasi"]
    required = [list(one) for method in job.methods for one in method.required_groups if usable.issuperset(one)]
    sets = [joint, *required] if joint else required
    return [one for number, one in enumerate(sets) if set(one) not in map(set, sets[:number])]


def _own(own: Sequence[MeasureRequest], asked: MeasureRequest, same: Any) -> MeasureRequest:
    return next((one for one in own if one.measure == asked.measure and same(one.parameters, asked.parameters)), asked)


def _same_linkage(one: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    sample = one.get("sample")
    return set(one["columns"]) == set(asked["columns"]) and (sample is None or sample >= asked["sample"])


def _same_groups(one: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """The joint quasi-identifier first, and all others among those of the job."""
    given = list(one.get("quasi") or [])
    sets = [set(given)] if all(isinstance(name, str) for name in given) else [set(names) for names in given]
    return bool(sets) and sets[0] == set(asked["quasi"][0]) and all(set(names) in sets for names in asked["quasi"])
