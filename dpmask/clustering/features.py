"""Columns of any type as features that can be clustered together: numbers from 0 to 1, categories one-hot.

A number is scaled by its range; an interval label such as [20, 40) counts as the number in its middle; a category has a
feature for each value, which is 1 or 0. A missing value is a value of its own: a number that is missing somewhere has a
feature more, which tells where, and lies in the middle of the range itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.iteration import Records
from dpmask.engine.draws import Subkey, record_uniforms
from dpmask.engine.passes import Span
from dpmask.errors import InputError, JobError
from dpmask.lake.reading import Rows
from dpmask.table.columns import require_known
from dpmask.table.encoders.category import Coding, find_values, is_ordered, middles, value_coding
from dpmask.table.table import Table

Floats = NDArray[np.float64]

_MOST_FEATURES = 2000


class Number(NamedTuple):
    """A number, and the range it is scaled by."""

    column: str
    low: float
    high: float
    missing: bool

    @property
    def size(self) -> int:
        """How many features it has."""
        return 1 + self.missing

    def fill(self, rows: Rows, out: Floats) -> None:
        """Write the features of a block."""
        values = middles(rows, self.column)
        absent = np.isnan(values)
        out[0] = np.where(absent, 0.5, (values - self.low) / ((self.high - self.low) or 1.0))
        if self.missing:
            out[1] = absent


class Category(NamedTuple):
    """A category, and its values."""

    coding: Coding

    @property
    def size(self) -> int:
        """How many features it has."""
        return self.coding.size

    def fill(self, rows: Rows, out: Floats) -> None:
        """Write the features of a block; a value that was not there before has none."""
        codes = self.coding.codes(rows)
        out[:] = codes == np.arange(self.size)[:, None]


@dataclass(frozen=True)
class Features:
    """How a block's rows become features."""

    columns: tuple[str, ...]
    parts: tuple[Any, ...]
    """Number, Category, or whatever else has a size and fills in features."""

    @property
    def size(self) -> int:
        """How many features there are."""
        return sum(part.size for part in self.parts)

    def values(self, rows: Rows) -> Floats:
        """Features x rows."""
        block = np.empty((self.size, rows.num_rows))
        at = 0
        for part in self.parts:
            part.fill(rows, block[at : at + part.size])
            at += part.size
        return block

    def records(self, rows: Rows, span: Span) -> Records:
        """A block as records to cluster."""
        return Records(self.values(rows), None, None)

    def sample(self, key: Subkey, share: float, rows: Rows, span: Span) -> Records:
        """Each record of a block with this probability, by its own draw: the same records for any partitioning."""
        if share < 1.0:
            rows = rows.filter(record_uniforms(key, span.first, rows.num_rows) < share)
        return self.records(rows, span)


def find_features(table: Table, columns: Sequence[str], who: str, *, intervals: Sequence[str] = ()) -> Features:
    """The features of columns; ``intervals`` are texts that name intervals. Two passes at most."""
    schema = table.masked_schema
    require_known(schema, columns, who)
    numbers = [name for name in columns if name in intervals or is_ordered(schema.field(name).type)]
    others = [name for name in columns if name not in numbers]
    ranges = table.reduce_rows(numbers, partial(_ranges, tuple(numbers)), _wider, f"{who}: ranges") if numbers else {}
    found = find_values(table, others, {}, who) if others else {}
    parts: list[Number | Category] = []
    for name in columns:
        if name in ranges:
            low, high, missing, infinite = ranges[name]
            if infinite:
                raise InputError(
                    f"{who}: column '{name}' holds infinite values. Make them null, or drop those records."
                )
            parts.append(Number(name, low if low <= high else 0.0, high if low <= high else 0.0, missing))
        else:
            parts.append(Category(value_coding(name, found[name], who)))
    features = Features(tuple(columns), tuple(parts))
    if features.size > _MOST_FEATURES:
        raise JobError(
            f"{who}: the columns have more than {_MOST_FEATURES} values to tell apart. Take out the largest."
        )
    return features


_Range = tuple[float, float, bool, bool]


def _ranges(columns: tuple[str, ...], rows: Rows, span: Span) -> dict[str, _Range]:
    found = {}
    for name in columns:
        values = middles(rows, name)
        present = values[~np.isnan(values)]
        low, high = float(present.min(initial=np.inf)), float(present.max(initial=-np.inf))
        found[name] = low, high, len(present) < len(values), bool(np.isinf(present).any())
    return found


def _wider(left: dict[str, _Range], right: dict[str, _Range]) -> dict[str, _Range]:
    return {
        name: (min(a, c), max(b, d), one or two, wild or too)
        for name, (a, b, one, wild) in left.items()
        for c, d, two, too in [right[name]]
    }
