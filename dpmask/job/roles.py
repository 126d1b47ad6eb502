"""The columns of a job: roles by wildcards, and the table that a plan shows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from dpmask.errors import JobError
from dpmask.job.job_text import JobText
from dpmask.kernels.keys import counted, grouped
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats, is_nested, is_numeric
from dpmask.table.lake import Lake
from dpmask.table.row_keys import row_keys

_WILD = "*"
_DIGITS = 2
_RECORDS = 100_000


def expanded(text: JobText, roles: Any, names: Callable[[], Sequence[str]]) -> Any:
    """Roles whose lists may have patterns such as "wgt_*", with the columns that these stand for.

    ``names`` gives the columns of the source, and is asked only where there are patterns. A column that stands
    somewhere by its name is no pattern's.
    """
    listed = {role: list(columns) for role, columns in roles}
    if not any(_WILD in column for columns in listed.values() for column in columns):
        return roles
    known, named = names(), {column for columns in listed.values() for column in columns}
    for role, columns in listed.items():
        found: list[str] = []
        for number, column in enumerate(columns):
            wild = _WILD in column and column not in known  # a name may have a star
            some = [one for one in known if one not in named and fnmatchcase(one, column)] if wild else [column]
            if not some:
                raise JobError(text.error(("columns", role, number), f"no column that has no role is like '{column}'."))
            found += some
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
    """The share of zeros in the first records, of numbers."""
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


def weight_table(job: Any, first: Rows) -> list[PlannedWeight]:
    """What a plan shows of each weight that is released."""
    rows, found = first.slice(0, _RECORDS), []
    for name in (one for one in job.file.columns.weight if not is_nested(first.schema.field(one).type)):
        weights, numbered = row_keys(rows, [name]), job.file.columns.household
        numbers = grouped(weights).numbers()
        homes = grouped(row_keys(rows, numbered)).numbers() if numbered else np.arange(rows.num_rows)
        of = np.unique(np.array([numbers, homes]), axis=1)[0]  # each weight once for each household that has it
        alone = int((np.bincount(of)[numbers] == 1).sum())
        found.append(PlannedWeight(name, rows.num_rows, len(np.unique(numbers)), alone, _masked_by(job, name)))
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
            float((numbers == 0.0).mean()) if len(numbers) else None,
            None if is_nested(kind) else _distinct(rows, name),
            _rounded(low),
            _rounded(high),
            _masked_by(job, name),
        )


def _rounded(end: float | None) -> float | None:
    return None if end is None else float(f"{end:.{_DIGITS - 1}e}")


def _distinct(rows: Rows, name: str) -> int:
    return len(counted(row_keys(rows, [name]))[2])
