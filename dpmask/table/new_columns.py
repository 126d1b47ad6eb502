"""Columns that masking makes in place of others: of another type, or several for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmask.lake.reading import Rows


class Made(NamedTuple):
    """The name and the Arrow type of a column that is made."""

    name: str
    kind: Any

    def taken(self, values: Sequence[Any], places: NDArray[np.int64]) -> Any:
        """The column whose rows have the values at these places; None is missing."""
        if pa.types.is_date(self.kind):
            values = [None if value is None else int(np.floor(value)) for value in values]
        return pa.array(values, self.kind).take(pa.array(places))


def text_column(name: str) -> Made:
    """A column of texts."""
    return Made(name, pa.string())


def float_column(name: str) -> Made:
    """A column of floats."""
    return Made(name, pa.float64())


def date_column(name: str) -> Made:
    """A column of days."""
    return Made(name, pa.date32())


def replaced_schema(schema: Any, made: Mapping[str, Sequence[Made]]) -> Any:
    """The schema with columns of other types, or other columns, in the places of some."""
    fields = []
    for field in schema:
        if field.name in made:
            fields += [pa.field(one.name, one.kind) for one in made[field.name]]
        else:
            fields.append(field)
    return pa.schema(fields, metadata=schema.metadata)


def with_made(rows: Rows, made: Mapping[str, tuple[Sequence[Made], Sequence[Any]]]) -> Rows:
    """The rows with the made columns in the places of those they are made of."""
    for column, (fields, arrays) in made.items():
        place = rows.schema.get_field_index(column)
        rows = rows.remove_column(place)
        for number, (field, array) in enumerate(zip(fields, arrays, strict=True)):
            rows = rows.add_column(place + number, pa.field(field.name, field.kind), array)
    return rows
