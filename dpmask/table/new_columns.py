"""New columns in place of others: of another type, or several for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmask.lake.reading import Rows


class NewColumn(NamedTuple):
    """The name and the Arrow type of a new column."""

    name: str
    kind: Any

    def taken(self, values: Sequence[Any], places: NDArray[np.integer[Any]]) -> Any:
        """The column whose rows have the values at these places; None is missing."""
        if pa.types.is_date(self.kind):
            values = [None if value is None else int(np.floor(value)) for value in values]
        return pa.array(values, self.kind).take(pa.array(places))


def text_column(name: str) -> NewColumn:
    """A column of texts."""
    return NewColumn(name, pa.string())


def float_column(name: str) -> NewColumn:
    """A column of floats."""
    return NewColumn(name, pa.float64())


def date_column(name: str) -> NewColumn:
    """A column of days."""
    return NewColumn(name, pa.date32())


def with_missing(array: Any, missing: NDArray[np.bool_]) -> Any:
    """The array of a column with these rows missing."""
    return pc.if_else(pa.array(missing), None, array)


def replaced_schema(schema: Any, new: Mapping[str, Sequence[NewColumn]]) -> Any:
    """The schema with columns of other types, or other columns, in the places of some."""
    fields = []
    for field in schema:
        if field.name in new:
            fields += [pa.field(one.name, one.kind) for one in new[field.name]]
        else:
            fields.append(field)
    return pa.schema(fields, metadata=schema.metadata)


def with_new_columns(rows: Rows, new: Mapping[str, tuple[Sequence[NewColumn], Sequence[Any]]]) -> Rows:
    """The rows with new columns in the places of those they replace."""
    for column, (fields, arrays) in new.items():
        place = rows.schema.get_field_index(column)
        rows = rows.remove_column(place)
        for number, (field, array) in enumerate(zip(fields, arrays, strict=True)):
            rows = rows.add_column(place + number, pa.field(field.name, field.kind), array)
    return rows
