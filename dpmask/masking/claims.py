"""What a release promises of its rows, smallest groups and constraints: anybody can count them again.

A claim is {"columns": [...]} with "smallest_group": a number, "constraints": [...], or both. A smallest group may be
that of any "known" number of the columns, and have "models": what each group gives away of a sensitive column at most,
with the "bands" or the "taxonomy" that its values are counted by. Where cells of "suppressed" columns were set to
missing, a missing one matches every value: a row is shared by all records that match it, and models are counted over
these (table/matching.py). With "households", the column of these, it is that of households whose members' rows are the
same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmask.constraints.sets import Constraints, breaks, parse_constraints
from dpmask.errors import InputError, JobError, printable
from dpmask.kernels.arrays import Floats
from dpmask.table.columns import float_kind, require_numeric
from dpmask.table.grouping import group_sizes
from dpmask.table.row_keys import require_groupable
from dpmask.table.table import Table

if TYPE_CHECKING:
    from dpmask.table.requirement_counts import CountedRequirement

_WHO = "verify"


def standing_claims(steps: Sequence[Any], released: Collection[str]) -> list[dict[str, Any]]:
    """The claims of all steps, without those, and models, whose columns a later step has changed or nobody released."""
    found = []
    for number, step in enumerate(steps):
        later = {column for other in steps[number + 1 :] for column in other.changes}
        claims = [claim for claim in step.claims() if not later.intersection(claim["columns"])]
        claims = [claim for claim in claims if claim.get("households") in (None, *released)]
        found += [_with_models(claim, set(released) - later) for claim in claims]
    return found


def _with_models(claim: dict[str, Any], columns: set[str]) -> dict[str, Any]:
    """The claim with only those models whose column is released as it is."""
    models = [one for one in claim.get("models", ()) if one["column"] in columns]
    rest = {name: value for name, value in claim.items() if name != "models"}
    return rest | ({"models": models} if models else {})


def suppressed_columns(claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns in which cells were set to missing, by the claims of a release."""
    return list(dict.fromkeys(name for claim in claims for name in claim.get("suppressed") or ()))


def broken_claims(table: Table, claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with the claims, counted from the table; nothing if all are true."""
    wrong = []
    for claim in claims:
        try:
            wrong += _wrong_with(table, claim)
        except (JobError, InputError) as error:
            wrong.append(f"has a claim that cannot be checked: {error}")
    return wrong


def _wrong_with(table: Table, claim: Mapping[str, Any]) -> list[str]:
    columns, least = claim["columns"], claim.get("smallest_group")
    named, wrong = printable(", ".join(columns), 200), []
    if claim.get("models") or claim.get("known"):
        found = _requirement(table, claim)
        such = f"; {found.broken:,} records are in groups that break a claim"
        wrong += [f"claims groups of {named} in which {printable(text, 200)}{such}" for text in found.unmet()]
    elif claim.get("households"):
        from dpmask.table.households import composition_sizes

        require_groupable(table.masked_schema, [claim["households"], *columns], _WHO)
        sizes = composition_sizes(table, claim["households"], columns, f"{_WHO}: households")
        if sizes.smallest < (least or 1):
            few = sizes.below(least or 1)
            wrong.append(
                f"claims that members of at least {least} households have the same rows of {named}, which is not so of "
                f"{few:,} households"
            )
    elif least is not None and (few := _sharing_fewer(table, columns, claim.get("suppressed") or (), least)):
        wrong.append(f"claims that at least {least} records share each row of {named}, which is not so of {few:,}")
    return wrong + [
        f"claims that every record satisfies '{printable(text, 200)}', which {count} do not"
        for text, count in _broken(table, columns, claim.get("constraints", ())).items()
    ]


def _sharing_fewer(table: Table, columns: Sequence[str], suppressed: Sequence[str], least: int) -> int:
    """How many records share their row with fewer than so many, themselves counted."""
    if suppressed:
        from dpmask.table.matching import matched_records

        found = matched_records(table, columns, suppressed, f"{_WHO}: groups").records
        return sum(count for matches, count in found.items() if matches < least)
    return group_sizes(table, columns, f"{_WHO}: groups").below(least)


def _requirement(table: Table, claim: Mapping[str, Any]) -> CountedRequirement:
    """What the groups of a claim with models are, counted again."""
    from dpmask.table.requirement import parse_requirements
    from dpmask.table.requirement_counts import count_requirement
    from dpmask.table.sensitive import check_models, checked_bands, sensitive_columns
    from dpmask.table.taxonomy import read_taxonomy

    models = claim.get("models") or []
    asked = [{key: value for key, value in one.items() if key not in {"bands", "taxonomy"}} for one in models]
    given = {"columns": claim["columns"], "k": claim.get("smallest_group") or 1, "models": asked}
    (one,) = parse_requirements([given | ({"known": claim["known"]} if claim.get("known") else {})], _WHO)
    trees = {model["column"]: read_taxonomy(model["taxonomy"], _WHO) for model in models if "taxonomy" in model}
    bands = checked_bands({model["column"]: model["bands"] for model in models if "bands" in model}, _WHO)
    require_groupable(table.masked_schema, one.columns, _WHO)
    check_models(table.masked_schema, one.models, trees, _WHO)
    sensitive = sensitive_columns(table, one.sensitive, bands, trees, _WHO)
    return count_requirement(table, one, sensitive, f"{_WHO}: groups", claim.get("suppressed") or ())


def _broken(table: Table, columns: Sequence[str], texts: Sequence[str]) -> dict[str, int]:
    """The constraints that some records break, and how many."""
    if not texts:
        return {}
    require_numeric(table.schema, columns, "constraints")
    kinds = [table.schema.field(name).type for name in columns]
    precision = max(float(np.finfo(float_kind(kind)).eps) for kind in kinds)
    written = [parse_constraints([text], columns) for text in texts]
    count = partial(_count_broken, written, precision)
    counts = table.reduce(columns, count, np.add, "verify: constraints")
    return {text: int(number) for text, number in zip(texts, counts, strict=True) if number}


def _count_broken(written: Sequence[Constraints], precision: float, columns: Sequence[Floats]) -> NDArray[np.int64]:
    values = np.array(columns)
    return np.array([int(breaks(one, precision, values).sum()) for one in written])
