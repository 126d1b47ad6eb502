"""Strata that a method masked by, as an intruder knows them: of originals, or of what an earlier step made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.constraints.strata import Strata, StratumColumn, check_strata, make_strata
from dpmask.constraints.zeros import AUTO, KEEP, ZEROS
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Integers
from dpmask.kernels.zeros import MANY_ZEROS
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats
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
    if given.zeros not in ZEROS:
        raise JobError(f"{who}: zeros must be {' or '.join(map(repr, ZEROS))}; got {given.zeros!r}.")
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


def known_zeros(pairs: Table, columns: Sequence[str], zeros: str, who: str) -> tuple[str, ...]:
    """The columns whose zeros stayed, as the intruder knows; ``auto``: where there are many, and all are still zero.

    Takes a pass for ``auto``, which refuses tables without a complete record: a plan makes only the first passes.
    """
    if zeros != AUTO:
        return tuple(columns) if zeros == KEEP else ()
    names = [*columns, *map(masked_name, columns)]
    found = pairs.select(names).reduce(partial(_count_zeros, tuple(columns)), np.add, f"{who}: zeros")
    values, before, after, complete = found
    if not complete.all():
        raise InputError(f"{who}: no record has a value in all of {', '.join(columns)}, before and after masking.")
    kept = (before > 0) & (before >= MANY_ZEROS * values) & (after == before)
    return tuple(name for name, one in zip(columns, kept.tolist(), strict=True) if one)


def _count_zeros(columns: Sequence[str], rows: Rows) -> Integers:
    """Values that were released, zeros among their originals, those of them that still are zero: x columns.

    Last, for each column alike, the records that have a value in all of them.
    """
    found, complete = [], np.ones(rows.num_rows, np.bool_)
    for column in columns:
        before, after = floats(rows, column), floats(rows, masked_name(column))
        there, zero = ~np.isnan(after), before == 0.0
        both = there & ~np.isnan(before)
        complete &= both
        found.append([both.sum(), (there & zero).sum(), (zero & (after == 0.0)).sum()])
    return np.array([*np.array(found).T, np.full(len(columns), complete.sum())], np.int64)
