"""Columns that others are predicted from, as numbers: categories become one column for each level but the base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmask.engine.passes import Span
from dpmask.errors import InputError, JobError
from dpmask.lake.reading import Rows
from dpmask.table.columns import Floats, floats, is_numeric, require_known
from dpmask.table.table import Table

_MOST_LEVELS = 200
Counts = dict[str, dict[str, int]]


@dataclass(frozen=True, repr=False)
class Predictors:
    """Numeric columns as they are; of a category each level but the most frequent one, its base."""

    columns: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]]  # of the categories among them, the base first

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers are called, in order."""
        found: list[str] = []
        for column in self.columns:
            found += [f"{column}={level}" for level in self.levels[column][1:]] if column in self.levels else [column]
        return tuple(found)

    @property
    def sources(self) -> tuple[str, ...]:
        """The column that each number comes from."""
        counts = [max(len(self.levels[name]) - 1, 0) if name in self.levels else 1 for name in self.columns]
        return tuple(name for name, count in zip(self.columns, counts, strict=True) for _ in range(count))

    def values(self, rows: Rows, who: str) -> Floats:
        """A block's numbers, names x rows; NaN where a value is missing."""
        return np.concatenate(
            [
                self._one_hot(rows, column, who) if column in self.levels else floats(rows, column)[None]
                for column in self.columns
            ]
        )

    def _one_hot(self, rows: Rows, column: str, who: str) -> Floats:
        texts = _texts(rows, column)
        codes = pc.index_in(texts, value_set=pa.array(self.levels[column], pa.string()))
        if codes.null_count > texts.null_count:
            raise InputError(
                f"{who}: column '{column}' has a level here that was not there when the method was fitted. Fit it to a "
                "table that has all levels."
            )
        code = pc.fill_null(codes, -1).to_numpy(zero_copy_only=False)
        block = (code[None] == np.arange(1, len(self.levels[column]))[:, None]).astype(np.float64)
        block[:, code < 0] = np.nan
        return block


def require_predictors(schema: Any, columns: Sequence[str], who: str) -> None:
    """Refuse a column that is not there, or neither a number nor a category."""
    require_known(schema, columns, who)
    for column in columns:
        kind = schema.field(column).type
        if not is_numeric(kind) and not _is_category(kind):
            raise JobError(f"{who}: column '{column}' must be numeric, text or true/false; it is {kind}. Take it out.")


def find_predictors(table: Table, columns: Sequence[str], who: str) -> Predictors:
    """The levels of the categories among these columns, found in one pass; none is needed without categories."""
    require_predictors(table.masked_schema, columns, who)
    categories = [name for name in columns if not is_numeric(table.masked_schema.field(name).type)]
    if not categories:
        return Predictors(tuple(columns), {})
    counted = table.reduce_rows(categories, partial(_counted, tuple(categories)), _added, f"{who}: levels")
    for name, counts in counted.items():
        if len(counts) > _MOST_LEVELS:
            raise JobError(
                f"{who}: column '{name}' has more than {_MOST_LEVELS} levels. Join the rare ones, or take it out of "
                "independents."
            )
    levels = {
        name: tuple(sorted(counts, key=lambda level: (-counts[level], level))) for name, counts in counted.items()
    }
    return Predictors(tuple(columns), levels)


def _is_category(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_category(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind))


def _texts(rows: Rows, column: str) -> Any:
    array = rows.column(column).combine_chunks()
    return pc.cast(array, pa.string())


def _counted(columns: tuple[str, ...], rows: Rows, span: Span) -> Counts:
    return {name: _some(_count(_texts(rows, name))) for name in columns}


def _count(texts: Any) -> dict[str, int]:
    counts = pc.value_counts(texts)
    pairs = zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
    return {level: count for level, count in pairs if level is not None}


def _added(left: Counts, right: Counts) -> Counts:
    both = {name: dict(counts) for name, counts in left.items()}
    for name, counts in right.items():
        for level, count in counts.items():
            both[name][level] = both[name].get(level, 0) + count
    return {name: _some(counts) for name, counts in both.items()}


def _some(counts: dict[str, int]) -> dict[str, int]:
    """No more of them than it takes to know that there are too many."""
    return dict(list(counts.items())[: _MOST_LEVELS + 1])
