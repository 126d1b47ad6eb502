"""The columns of a job: roles by wildcards, and the table that a plan shows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from dpmask.constraints.zeros import AUTO, KEEP
from dpmask.errors import JobError
from dpmask.job.job_text import JobText
from dpmask.kernels.keys import counted, grouped
from dpmask.kernels.zeros import MANY_ZEROS
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats, is_nested, is_numeric
from dpmask.table.lake import Lake
from dpmask.table.row_keys import row_keys

_WILD = "*"
_DIGITS = 2
_RECORDS = 100_000
_AMOUNTS = 3
"""Different values of a column of amounts, zero among them, at least: two are flags."""


def expanded(text: JobText, roles: Any, names: Callable[[], Sequence[str]]) -> Any:
    """Roles whose lists may have patterns such as "wgt_*", with the columns that these stand for.

    ``names`` gives the columns of the source, and is asked only where there are patterns. A column that stands
    somewhere by its name is no pattern's, and one that two patterns match is refused.
    """
    listed = {role: list(columns) for role, columns in roles}
    if not any(_WILD in column for columns in listed.values() for column in columns):
        return roles
    known, named = names(), {column for columns in listed.values() for column in columns}
    taken: dict[str, str] = {}
    for role, columns in listed.items():
        found: list[str] = []
        for number, column in enumerate(columns):
            if _WILD not in column or column in known:  # a name may have a star
                found.append(column)
                continue
            alike = [one for one in known if fnmatchcase(one, column)]
            twice = next((one for one in alike if one in taken), None)
            if not alike:
                raise JobError(text.error(("columns", role, number), f"the source has no column like '{column}'."))
            if twice is not None:
                both = f"'{column}' and '{taken[twice]}' both match column '{twice}'. Name it where it belongs."
                raise JobError(text.error(("columns", role, number), both))
            own = [one for one in alike if one not in named]
            taken |= dict.fromkeys(own, f"{role}: {column}")
            found += own
        listed[role] = found
    return roles.model_copy(update=listed)


class PlannedColumn(NamedTuple):
    """A column of the source, as far as footers and the first records show it."""

    name: str
    role: str
    type: str
    nulls: int | None
    """Missing values, where the footers say it."""
    zeros: float | None
    """The share of zeros in the values of the first records, of numbers."""
    distinct: int | None
    """Different values in the first records; None of those that cannot be counted."""
    low: float | None
    """The extremes of numbers, to two digits."""
    high: float | None
    masked_by: list[str]
    """The steps that mask it."""


class PlannedWeight(NamedTuple):
    """What a weight reveals, in the first records."""

    name: str
    records: int
    distinct: int
    """Different weights."""
    alone: int
    """Records that share their weight with nobody, or, where households are declared, with nobody else's household."""
    masked_by: list[str]
    """The steps that mask it."""
    of_households: bool
    """Whether households are declared."""


def weight_table(job: Any, first: Rows) -> list[PlannedWeight]:
    """What a plan shows of each weight that is released."""
    rows, found = first.slice(0, _RECORDS), []
    for name in (one for one in job.file.columns.weight if not is_nested(first.schema.field(one).type)):
        weights, numbered = row_keys(rows, [name]), job.file.columns.household
        numbers = grouped(weights).numbers()
        homes = grouped(row_keys(rows, numbered)).numbers() if numbered else np.arange(rows.num_rows)
        of = np.unique(np.array([numbers, homes]), axis=1)[0]  # each weight once for each household that has it
        alone = int((np.bincount(of)[numbers] == 1).sum())
        found.append(
            PlannedWeight(name, rows.num_rows, len(np.unique(numbers)), alone, _masked_by(job, name), bool(numbered))
        )
    return found


def _masked_by(job: Any, name: str) -> list[str]:
    return [step for step, method in zip(job.names, job.methods, strict=True) if name in method.masks]


def column_table(job: Any, lake: Lake, first: Rows) -> list[PlannedColumn]:
    """What a plan shows of each column, from the footers and the first records."""
    return list(_columns(job, lake, first.slice(0, _RECORDS)))


def _columns(job: Any, lake: Lake, rows: Rows) -> Iterator[PlannedColumn]:
    for field in lake.schema:
        name, kind = field.name, field.type
        numbers = floats(rows, name) if is_numeric(kind) else np.empty(0)
        seen = numbers[np.isfinite(numbers)]
        low, high = (seen.min(), seen.max()) if len(seen) else (None, None)
        yield PlannedColumn(
            name,
            job.role(name),
            str(kind),
            lake.facts[name].nulls,
            _zeros(numbers),
            None if is_nested(kind) else _distinct(rows, name),
            _rounded(low),
            _rounded(high),
            _masked_by(job, name),
        )


def _zeros(numbers: Any) -> float | None:
    there, zeros = int(np.count_nonzero(~np.isnan(numbers))), int(np.count_nonzero(numbers == 0.0))
    return zeros / max(there, 1) if len(numbers) else None


def kept_zeros(job: Any, columns: Sequence[PlannedColumn]) -> dict[str, list[str]]:
    """The columns whose zeros steps would keep by themselves, as far as the first records show, by step.

    A column whose zeros an earlier step masks may have others by then.
    """
    many = [one.name for one in columns if (one.zeros or 0.0) >= MANY_ZEROS and (one.distinct or 0) >= _AMOUNTS]
    found, changed = {}, set[str]()
    for name, method in zip(job.names, job.methods, strict=True):
        kept = [one for one in many if one in method.masks and one not in changed]
        if kept and method.on_zeros == AUTO:
            found[name] = kept
        changed.update(one for one in method.masks if method.on_zeros not in (KEEP, AUTO) or one not in kept)
    return found


def _rounded(end: float | None) -> float | None:
    return None if end is None else float(f"{end:.{_DIGITS - 1}e}")


def _distinct(rows: Rows, name: str) -> int:
    return len(counted(row_keys(rows, [name]))[2])
