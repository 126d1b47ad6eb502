"""Strata that a method masked by, as an intruder knows them: of originals, or of what an earlier step made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from dpmask.constraints.strata import Strata, StratumColumn, check_strata, make_strata
from dpmask.errors import InputError, JobError
from dpmask.table.pairs import masked_name, pair
from dpmask.table.table import Frame, Table, as_table


class KnownStrata(NamedTuple):
    """What a method says of its strata, and which of their columns were masked before it."""

    by: Sequence[StratumColumn]
    zeros: str
    by_masked: Sequence[str]


def pair_with_strata(
    original: Frame, masked: Frame, columns: Sequence[str], given: KnownStrata, who: str
) -> tuple[Table, Strata]:
    """Both tables side by side, with the columns of the strata, and the strata as they are read from there.

    Strata may be of columns that were not released, unless they were masked before.
    """
    if given.zeros not in ("keep", "mask"):
        raise JobError(f"{who}: zeros must be 'keep' or 'mask'; got {given.zeros!r}.")
    strata = make_strata([given.by] if isinstance(given.by, str) else given.by, (), columns, who)
    names = [one.column for one in strata.classings if one.column not in columns]
    before = [name for name in names if name not in given.by_masked]
    after = [name for name in names if name in given.by_masked]
    for frame, some in ((original, names), (masked, after)):
        missing = set(some) - set(as_table(frame, who).masked_schema.names) if some else set()
        if missing:
            raise InputError(f"{who}: the strata are those of {', '.join(sorted(missing))}, which is not there.")
    pairs = pair(original, masked, [*columns, *after], who, marks=True, beside=before)
    classings = [
        replace(one, column=masked_name(one.column)) if one.column in after else one for one in strata.classings
    ]
    found = strata._replace(classings=tuple(classings))
    check_strata(found, pairs.masked_schema, who)
    return pairs, found
