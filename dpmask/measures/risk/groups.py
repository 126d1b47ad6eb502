"""Groups of records that share their quasi-identifiers: who is alone, and what a group gives away of its members.

For each quasi-identifier, a set of columns taken jointly: k (the smallest group), uniques (groups of one), records in
groups of less than k; for each sensitive column distinct l, entropy l, confidence and t of the worst group
(kernels/groups.py has the formulas; numbers with many values are taken in 20 quantile bins of the original, in order,
so t is the ordered distance, or the equal one for categories). Prosecutor: an intruder who knows that the person is in
the release finds them with 1 / group size, on average groups / records. Journalist: an intruder who has the original
as a register picks one of the F persons a released record may be; at most the mean of min(f, F) / (f F). Persons of the
register are counted under the labels that their values are released as: cuts, taxonomies, bands of numbers; where
labels overlap, as those of regions do, each group is taken to match its own members alone, which is the worst.

Everything is exact, on the values to be published, and on the original beside them. Missing is a value like others, but
in columns whose cells were suppressed it matches every value: a record's group are then all that match it, for its size
and for what it gives away (table/matching.py).
Passes: three over the sensitive columns, and one over each quasi-identifier, in which rows meet by a hash of it.
Memory per task: one block, or its share of the different rows (about a million).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpmask.errors import InputError, JobError
from dpmask.kernels.groups import Bounds, SensitiveShares
from dpmask.measures.measure import Measure, require_integers, timed
from dpmask.measures.risk.group_counts import (
    BothGroups,
    GroupTask,
    matched_groups,
    overlapping,
    released_labels,
)
from dpmask.measures.risk.group_risk import GroupRisk, group_risk, with_matches, with_requirements
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.encoders.interval import IntervalEncoder
from dpmask.table.encoders.value_codes import code_shares, value_encoders
from dpmask.table.label_sets import LabelSets, only_of
from dpmask.table.matching import matched_records
from dpmask.table.requirement import Edges, Requirement, Requirements, Trees, parse_requirements
from dpmask.table.requirement_counts import CountedRequirement, count_requirement
from dpmask.table.row_keys import require_groupable
from dpmask.table.sensitive import check_models, checked_bands, sensitive_columns
from dpmask.table.table import Frame, Table, as_table
from dpmask.table.taxonomy import read_taxonomy

_WHO = "groups"


def _check(
    schema: Any,
    *,
    quasi: Sequence[str] | Sequence[Sequence[str]] | None = None,
    sensitive: Sequence[str] | None = None,
    weight: Sequence[str] | None = None,
    requirements: Requirements | None = None,
    taxonomies: Trees | None = None,
    **_: object,
) -> None:
    """Refuse columns that are not there, or that nothing can be grouped by."""
    require_groupable(schema, weight or (), _WHO)
    for one in parse_requirements(requirements, _WHO) if requirements else ():
        require_groupable(schema, one.columns, _WHO)
        check_models(schema, one.models, taxonomies or {}, _WHO)
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
    weight: Sequence[str] | None = None,
    suppressed: Sequence[str] | None = None,
    sets: LabelSets | None = None,
    requirements: Requirements | None = None,
    bands: Edges | None = None,
    taxonomies: Trees | None = None,
    k: int = 10,
    least_distinct: int = 2,
    most_confidence: float = 0.8,
    most_closeness: float = 0.3,
) -> GroupRisk:
    """Groups of records that share their quasi-identifiers, and what they give away of their members.

    Parameters
    ----------
    quasi
        One quasi-identifier, a list of columns, or several, a list of lists; in a job, by default the columns declared
        quasi.
    sensitive
        Columns whose values a group must not give away; in a job, by default those declared sensitive.
    weight
        Survey weights, which identify records, too: ``uniques_with_weight``; in a job, by default those declared so.
    suppressed
        Columns of the masked table in which a missing cell was suppressed, and so matches every value: a record counts
        with all that agree with it wherever both have a value. In a job, by default what its steps suppressed.
    sets
        What labels of generalised columns stand for, as in ``distance_linkage``: the register of the journalist is
        counted by them. In a job, by default what its steps say; intervals such as ``[20, 40)`` need none.
    requirements
        Requirements of a refinement, {columns, k, models, known}, counted in the masked table, whoever masked it:
        ``unmet``, and the worst figure of each limit in ``parts``. Without ``quasi``, their columns are.
    bands, taxonomies
        Where the bands of sensitive numbers of their models begin, deciles by default, and trees of categories.
    k
        Groups of fewer records are counted in ``below``.
    least_distinct, most_confidence, most_closeness
        Records in groups with fewer different sensitive values, a larger confidence or a larger t than this are
        counted in ``uniform``, ``inferred`` and ``distant``.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"age": [31, 34, 38, 52], "ill": ["yes", "no", "no", "no"]})
    >>> masked = original.assign(age=["30-39", "30-39", "30-39", "50-59"])
    >>> found = dpmask.risk.groups(original, masked, quasi=["age"], sensitive=["ill"])
    >>> found.smallest, found.uniques, found.confidence
    (1, 1, 1.0)
    """
    require_integers(_WHO, 1, k=k, least_distinct=least_distinct)
    bounds = Bounds(
        least_distinct, _share("most_confidence", most_confidence), _share("most_closeness", most_closeness)
    )
    before, after = as_table(original, _WHO), as_table(masked, _WHO)
    required = parse_requirements(requirements, _WHO) if requirements else ()
    quasi = quasi or [list(one.columns) for one in required]
    quasis, weights = _quasi_identifiers(quasi), list(weight or ())
    _check(after.masked_schema, requirements=required or None, taxonomies=taxonomies, quasi=quasi)
    for table in (before, after):
        _check(table.masked_schema, quasi=quasi, sensitive=sensitive, weight=weight)
        if not table.rows:
            raise InputError(f"{_WHO}: the table has no record.")
    jointly = list(dict.fromkeys(name for names in quasis for name in names))
    labels = released_labels(before, after, jointly, only_of(sets or {}, jointly), _WHO)
    vague = overlapping(after, labels, _WHO)
    encoders = value_encoders([before, after], list(sensitive or ()), _WHO)
    columns = [_sensitive(table, encoders) for table in (before, after)]

    def measured(names: list[str], beside: Mapping[str, CodeEncoder]) -> BothGroups:
        first, second = ({name: one[name] for name in beside} for one in columns)
        mapped = tuple(labels[name] for name in names if name in labels)
        known = vague.isdisjoint(names)
        return GroupTask(tuple(names), beside, k, bounds, first, second, mapped, known).measured(before, after)

    found = {}
    for names in quasis:
        others = {name: one for name, one in encoders.items() if name not in names}
        found[" + ".join(names)] = list(others), measured(names, others)
    alone = {label: both.after.uniques for label, (_, both) in found.items()}
    together = alone.get(" + ".join(jointly))
    result = group_risk(
        found,
        k,
        measured(jointly, {}).after.uniques if together is None else together,
        measured([*jointly, *weights], {}).after.uniques if weights else None,
    )
    wild = [name for name in jointly if name in set(suppressed or ())]
    if wild:
        of = {name: (encoder, columns[1][name]) for name, encoder in encoders.items()}
        matched = {
            label: matched_groups(after, names, wild, {name: of[name] for name in others}, bounds, _WHO)
            for (label, (others, _)), names in zip(found.items(), quasis, strict=True)
        }
        one = matched.get(" + ".join(jointly))
        all_of = matched_records(after, jointly, wild, _WHO) if one is None else one.records
        unique = all_of, matched_records(after, [*jointly, *weights], wild, _WHO) if weights else all_of
        result = with_matches(result, matched, {label: names for label, (names, _) in found.items()}, unique)
    if not required:
        return result
    return with_requirements(result, _counted(after, required, bands, taxonomies, suppressed or ()))


def _counted(
    table: Table,
    required: Sequence[Requirement],
    bands: Any,
    taxonomies: Mapping[str, Any] | None,
    suppressed: Sequence[str],
) -> list[CountedRequirement]:
    names = list(dict.fromkeys(name for one in required for name in one.sensitive))
    trees = {name: read_taxonomy(tree, _WHO) for name, tree in (taxonomies or {}).items() if name in names}
    columns = sensitive_columns(table, names, checked_bands(bands, _WHO), trees, _WHO)
    return [count_requirement(table, one, columns, _WHO, suppressed) for one in required]


def _share(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise JobError(f"{_WHO}: {name} must be a number from 0 to 1; got {value!r}.")
    return float(value)


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


def _sensitive(table: Table, encoders: Mapping[str, CodeEncoder]) -> dict[str, SensitiveShares]:
    found = {}
    for name, shares in code_shares(table, encoders, _WHO).items():
        ordered = isinstance(encoders[name], IntervalEncoder)
        nothing_missing = ordered and not shares[-1]  # then missing is no place in the order
        found[name] = SensitiveShares(shares[:-1] if nothing_missing else shares, ordered)
    return found


_SET_SECONDS, _SENSITIVE_SECONDS = 3e-7, 9e-7
"""CPU of a record for each quasi-identifier, and for each sensitive column; from the ready jobs with 1e6 people."""


def _work(parameters: Mapping[str, Any], rows: int) -> float:
    given = parameters.get("quasi") or ()
    sets = 1 if any(isinstance(one, str) for one in given) else len(given)
    return (_SET_SECONDS * sets + _SENSITIVE_SECONDS * len(parameters.get("sensitive") or ())) * rows


MEASURE = Measure(
    function=groups,
    result=GroupRisk,
    roles={"quasi": "quasi", "sensitive": "sensitive", "weight": "weight"},
    paired=False,
    check=_check,
    work=_work,
)
