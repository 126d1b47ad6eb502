"""Columns declared plain that are not harmless: they identify people, alone or together, or give away what is masked.

Whether they identify is counted over all records. What they give away of masked columns is seen on a sample that is
chosen by a hash of their positions: 20,000, or fewer where there are more than a hundred columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.engine.tasks import Position
from dpmask.job.model import Job
from dpmask.kernels.arrays import Floats
from dpmask.kernels.dependence import explained_categories, explained_numbers, needed_for, neighbours
from dpmask.kernels.hash_sample import HashSample, hash_sample, merge_hash_samples, position_words
from dpmask.lake.arrow import array_of
from dpmask.lake.reading import Rows
from dpmask.release.gate import are_near_unique_together, is_near_unique
from dpmask.table.columns import is_nested
from dpmask.table.encoders.interval import is_ordered, numbers
from dpmask.table.grouping import GroupSizes, group_sizes
from dpmask.table.row_keys import row_keys
from dpmask.table.table import Table

_SAMPLE, _SAMPLED_VALUES, _FEWEST = 20_000, 2_000_000, 20
_FOLLOWS, _EXPLAINED = 0.9, 0.99
_SHOWN, _SUMMED = 3, 100


def telling_columns(job: Job, table: Table) -> dict[str, str]:
    """Columns declared plain that no step masks and nobody accepted, and what is wrong with each."""
    names = [name for name in job.file.columns.plain if name not in job.file.accept and not is_masked(job, name)]
    names = [name for name in names if not is_nested(table.masked_schema.field(name).type)]
    sizes = {name: group_sizes(table, [name], "gate: values") for name in names}
    alone = {name: f"{_counts(one)}: it identifies people." for name, one in sizes.items() if is_near_unique(one)}
    telling = _giving_away(job, table, names)
    harmless = {name: sizes[name] for name in names if name not in alone and name not in telling}
    problems = alone, telling, _together(table, harmless)
    return {name: " ".join(one[name] for one in problems if name in one) for name in names if _in_any(name, problems)}


def is_masked(job: Job, column: str) -> bool:
    """Whether any step masks a column, or the one that it comes from."""
    return any(name in method.masks for method in job.methods for name in (column, job.origin(column)))


def _in_any(name: str, problems: Iterable[Mapping[str, str]]) -> bool:
    return any(name in one for one in problems)


def _counts(sizes: GroupSizes) -> str:
    return (
        f"{sizes.distinct:,} different values in {sizes.records:,} records, {sizes.groups.get(1, 0):,} of them held by "
        "one record"
    )


def _together(table: Table, sizes: dict[str, GroupSizes]) -> dict[str, str]:
    """Columns that identify people together: those of most values first, until enough of them do."""
    names = sorted(sizes, key=lambda name: -sizes[name].distinct)
    if len(names) < 2 or not are_near_unique_together(_joint(table, names)):  # noqa: PLR2004
        return {}
    few = next(
        names[:count] for count in range(2, len(names) + 1) if are_near_unique_together(_joint(table, names[:count]))
    )
    for name in few[-2::-1]:  # without the last one they did not
        fewer = [one for one in few if one != name]
        few = fewer if len(fewer) > 1 and are_near_unique_together(_joint(table, fewer)) else few
    counts = _counts(_joint(table, few))
    return {
        name: f"Together with {_listed(one for one in few if one != name)} it identifies people: {counts}."
        for name in few
    }


def _joint(table: Table, names: Sequence[str]) -> GroupSizes:
    return group_sizes(table, names, "gate: values together")


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _SHOWN:,} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more


class _ComparedColumns(NamedTuple):
    """What is compared: plain columns, then the originals of masked ones, and which of all are numbers."""

    plain: Sequence[str]
    masked: Sequence[str]
    ordered: frozenset[str]
    most: int

    def sampled(self, rows: Rows, position: Position) -> HashSample:
        """A block's records with the smallest words; a missing value is the smallest of all."""
        words, positions = position_words(np.arange(rows.num_rows) + float(position.first), 0)
        some = np.argpartition(words, self.most)[: self.most] if len(words) > self.most else np.arange(len(words))
        few = rows.take(array_of(np.sort(some)))
        values = np.array([self._codes(few, name) for name in (*self.plain, *self.masked)])
        return hash_sample(words[np.sort(some)], positions[np.sort(some)], values, self.most)

    def _codes(self, rows: Rows, name: str) -> Floats:
        if name in self.ordered:
            values = numbers(rows, name)
            return np.where(np.isnan(values), -np.inf, values)
        return (row_keys(rows, [name]).first >> np.uint64(11)).astype(np.float64)


def _giving_away(job: Job, table: Table, plain: Sequence[str]) -> dict[str, str]:
    """Plain columns from which the original of a masked column follows, by itself or by several of them."""
    kinds = {field.name: field.type for field in table.masked_schema if not is_nested(field.type)}
    masked = [name for name in kinds if name not in plain and is_masked(job, name)]
    if not (plain and masked):
        return {}
    every = [*plain, *masked]
    most = min(_SAMPLE, max(_FEWEST, _SAMPLED_VALUES // len(every)))
    columns = _ComparedColumns(plain, masked, frozenset(name for name in every if is_ordered(kinds[name])), most)
    merge = partial(merge_hash_samples, most=most)
    sample = table.select(every).with_positions().reduce(columns.sampled, merge, "gate: plain columns")
    if len(sample.words) < _FEWEST:
        return {}
    values = dict(zip(every, sample.values, strict=True))
    found = {name: _given_away_alone(values, columns, name) for name in plain}
    return {name: problem for name, problem in (found | _given_away_together(values, columns)).items() if problem}


def _given_away_alone(values: Mapping[str, Floats], columns: _ComparedColumns, name: str) -> str:
    """Which masked column follows from a plain one, if any."""
    near = neighbours(values[name], ordered=name in columns.ordered)  # equal ones in the order of their words
    for of_numbers in (True, False):
        some = [one for one in columns.masked if (one in columns.ordered) is of_numbers]
        compared = np.array([values[one] for one in some]).reshape(len(some), len(near.order))
        shares = (explained_numbers if of_numbers else explained_categories)(near, compared)
        if shares.max(initial=0.0) >= _FOLLOWS:
            return f"It gives {some[int(shares.argmax())]} away, which is masked and follows from it, at least nearly."
    return ""


def _given_away_together(values: Mapping[str, Floats], columns: _ComparedColumns) -> dict[str, str]:
    """Plain numbers whose weighted sum a masked number is."""
    numeric = [name for name in columns.plain if name in columns.ordered and np.isfinite(values[name]).all()][:_SUMMED]
    found: dict[str, str] = {}
    for masked in columns.masked:
        if len(numeric) > 1 and masked in columns.ordered and np.isfinite(values[masked]).all():
            some = needed_for([values[name] for name in numeric], values[masked], _EXPLAINED)
            for one in some if len(some) > 1 else ():
                others = _listed(numeric[other] for other in some if other != one)
                found[numeric[one]] = f"With {others} it gives {masked} away, which is masked and nearly a sum of them."
    return found
