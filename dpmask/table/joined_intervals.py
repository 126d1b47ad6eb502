"""A column that was released as its lower and upper bounds, as the one column of intervals that it is.

What is compared with the original must have its name: measures read the bounds as interval labels such as [20, 40).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import pyarrow as pa

from dpmask.lake.reading import Rows
from dpmask.table.encoders.interval import interval_text, is_date, numbers
from dpmask.table.new_columns import text_column
from dpmask.table.table import Table


@dataclass(frozen=True)
class JoinedIntervals:
    """A step that adds the intervals of one column to a table that has their bounds."""

    column: str
    low: str
    high: str
    dropped: None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The bounds."""
        return self.low, self.high

    @property
    def changes(self) -> tuple[str, ...]:
        """The column that it adds."""
        return (self.column,)

    def check(self, table: Table) -> None:
        """It fits every table with the bounds."""

    def masked_schema(self, schema: Any) -> Any:
        """The schema with the intervals before their bounds."""
        return schema.insert(schema.get_field_index(self.low), pa.field(self.column, pa.string()))

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """The rows with the intervals; missing bounds are a missing one."""
        date = is_date(rows.schema.field(self.low).type)
        low, high = (np.unique(numbers(rows, name), return_inverse=True) for name in self.inputs)
        pairs, places = np.unique(low[1] * len(high[0]) + high[1], return_inverse=True)
        ends = zip(low[0][pairs // len(high[0])].tolist(), high[0][pairs % len(high[0])].tolist(), strict=True)
        texts = [None if isnan(one) or isnan(other) else interval_text(one, other, date) for one, other in ends]
        return rows.append_column(self.column, text_column(self.column).taken(texts, places))


def joined_intervals(methods: Iterable[Any]) -> list[JoinedIntervals]:
    """The columns that methods release as two bounds, but for those whose bounds a later one masks."""
    found: dict[str, JoinedIntervals] = {}
    for method in methods:
        masked = set(method.masks)
        found = {column: one for column, one in found.items() if not masked.intersection(one.inputs)}
        bounds: dict[str, list[str]] = {}
        for name, column in method.origins.items():
            bounds.setdefault(column, []).append(name)
        found |= {column: JoinedIntervals(column, low, high) for column, (low, high) in bounds.items()}
    return list(found.values())


def with_intervals(table: Table, joined: Iterable[JoinedIntervals]) -> Table:
    """The table with these columns besides."""
    for one in joined:
        table = table.masked_by(one)
    return table


def schema_with_intervals(schema: Any, joined: Iterable[JoinedIntervals]) -> Any:
    """Its schema."""
    for one in joined:
        schema = one.masked_schema(schema)
    return schema
