"""New columns in place of others: of another type, or several for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmask.lake.arrow import array_of, texts_of
from dpmask.lake.reading import Rows


class NewColumn(NamedTuple):
    """The name and the Arrow type of a new column."""

    name: str
    kind: Any

    def taken(self, values: Sequence[Any], places: NDArray[np.integer[Any]]) -> Any:
        """The column whose rows have the values at these places; None is missing."""
        return self._array(values).take(array_of(places))

    def _array(self, values: Sequence[Any]) -> Any:
        if pa.types.is_string(self.kind):
            return texts_of(values)
        if not pa.types.is_floating(self.kind) and not pa.types.is_date(self.kind):
            return pa.array(values, self.kind)
        missing = np.array([value is None for value in values], np.bool_)
        numbers = np.array([0.0 if value is None else value for value in values], np.float64)
        if pa.types.is_date(self.kind):
            numbers = np.floor(numbers).astype(np.int32)
        return array_of(numbers, missing).cast(self.kind)


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
    return pc.if_else(array_of(missing), pa.nulls(1, array.type)[0], array)


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
