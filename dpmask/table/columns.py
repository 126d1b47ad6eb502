"""Columns of a block, to floats and back to the type they came in."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmask.errors import JobError, nearest
from dpmask.kernels.arrays import Floats
from dpmask.lake.arrow import array_of, filled
from dpmask.lake.reading import Rows

_WORD = 8


def is_numeric(kind: Any) -> bool:
    """Whether numeric methods take columns of this type."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def rounding_step(kind: Any) -> Fraction:
    """The step between neighbouring values of a type: 1 for integers, 0 where there is none."""
    if pa.types.is_decimal(kind):
        return Fraction(10) ** -kind.scale
    return Fraction(1 if pa.types.is_integer(kind) else 0)


def float_kind(kind: Any) -> str:
    """The float that holds a type's values: its own, or float64 where it is none."""
    return str(np.dtype(kind.to_pandas_dtype())) if pa.types.is_floating(kind) else "float64"


def type_range(kind: Any) -> tuple[float, float]:
    """The smallest and the largest value of a numeric type."""
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return float(limits.min), float(limits.max)
    if pa.types.is_decimal(kind):
        largest = float(Decimal(10**kind.precision - 1).scaleb(-kind.scale))
    else:
        largest = float(np.finfo(kind.to_pandas_dtype()).max)
    return -largest, largest


def require_known(schema: Any, columns: Iterable[str], who: str) -> None:
    """Refuse a column that the table does not have."""
    names = schema.names
    known = set(names)
    for column in columns:
        if column not in known:
            raise JobError(f"{who}: there is no column '{column}' in the table. {nearest(column, names)}")


def require_numeric(schema: Any, columns: Iterable[str], who: str) -> None:
    """Refuse a column that is not there, or not a number."""
    columns = list(columns)
    require_known(schema, columns, who)
    for column in columns:
        kind = schema.field(column).type
        if not is_numeric(kind):
            raise JobError(f"{who}: column '{column}' must be numeric; it is {kind}. Take it out of columns.")


def is_category(kind: Any) -> bool:
    """Whether values of this type are only the same or not: text, true or false, stored categories, or all missing."""
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(text or pa.types.is_boolean(kind) or pa.types.is_dictionary(kind) or pa.types.is_null(kind))


def is_nested(kind: Any) -> bool:
    """Whether values of this type hold others, as lists do: records are not grouped by them."""
    return bool(pa.types.is_nested(kind))


def floats(rows: Rows, column: str) -> Floats:
    """One column as doubles, a missing value as NaN; without a copy where it is that already."""
    array = whole_array(rows.column(column))
    if array.type != pa.float64():
        array = pc.cast(array, pa.float64(), safe=False)
    if array.null_count:
        array = filled(array, np.nan)
    # straight from the buffer: Arrow's own way imports pandas for it
    return np.frombuffer(array.buffers()[1], np.float64, len(array), 8 * array.offset)


def room(count: int) -> Floats:
    """Room for so many doubles, from Arrow's memory.

    Arrow keeps what is freed for the next block; NumPy's goes back to the system, which clears every page of it anew.
    """
    return np.frombuffer(pa.allocate_buffer(8 * count), np.float64)


def with_floats(rows: Rows, column: str, values: Floats) -> Rows:
    """The rows with this column's values replaced, its type and its nulls kept. Integers and decimals are rounded."""
    field, valid = rows.schema.field(column), _validity(rows, column)
    if valid is not None and not pa.types.is_floating(field.type):
        values = np.where(np.isnan(values), 0.0, values)
    return _replaced(rows, field, of_type(values, field.type, valid))


def as_floats(rows: Rows, column: str, values: Floats) -> Rows:
    """The rows with this column's values replaced by doubles, whatever its type was; its nulls are kept."""
    array = pa.Array.from_buffers(pa.float64(), len(values), [_validity(rows, column), pa.py_buffer(values)])
    return _replaced(rows, _float_field(rows.schema.field(column)), array)


def _validity(rows: Rows, column: str) -> Any:
    """Which values are there, as Arrow's bits; None where all are."""
    old = rows.column(column)
    return whole_array(old.is_valid()).buffers()[1] if old.null_count else None


def _replaced(rows: Rows, field: Any, array: Any) -> Rows:
    return rows.set_column(rows.schema.get_field_index(field.name), field, array)


def float_schema(schema: Any, columns: Iterable[str]) -> Any:
    """The schema with these columns as doubles."""
    for column in columns:
        place = schema.get_field_index(column)
        schema = schema.set(place, _float_field(schema.field(place)))
    return schema


def joined_rows(parts: list[Rows]) -> Rows:
    """The rows of several blocks, one after another."""
    return pa.concat_tables(parts)


def _float_field(field: Any) -> Any:
    return pa.field(field.name, pa.float64(), field.nullable, field.metadata)


def with_missing(rows: Rows, column: str, values: Floats) -> Rows:
    """The rows with this column's values replaced, its type kept; NaN becomes null, whatever was there before."""
    field = rows.schema.field(column)
    return _replaced(rows, field, with_gaps(values, field.type))


def with_gaps(values: Floats, wanted: Any) -> Any:
    """Floats as an Arrow array of a numeric type, NaN as null."""
    missing = np.isnan(values)
    if not missing.any():
        return of_type(values, wanted)
    return of_type(np.where(missing, 0.0, values), wanted, array_of(~missing).buffers()[1])


def of_type(values: Floats, wanted: Any, valid: Any = None) -> Any:
    """Floats as an Arrow array of a numeric type; integers and decimals are rounded and held to their range."""
    kind = pa.float64()
    if pa.types.is_floating(wanted) and wanted != kind:
        largest = float(np.finfo(wanted.to_pandas_dtype()).max)
        values = np.clip(values, -largest, largest)
    if pa.types.is_integer(wanted):
        kind, values = wanted, _whole(values, wanted.to_pandas_dtype())
    if pa.types.is_decimal(wanted):
        values = _within(values, wanted)
    array = pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(values)])
    return pc.cast(array, wanted, safe=pa.types.is_decimal(wanted)) if kind != wanted else array


def stored(rows: Rows, column: str) -> NDArray[Any]:
    """The values of a numeric column as they are stored, to the last digit of a decimal. Anything stands for a null."""
    array = whole_array(rows.column(column))
    size = array.type.bit_width // 8
    kind = f"u{size}" if size <= _WORD else f"V{size}"
    return np.frombuffer(array.buffers()[1], kind, len(array), size * array.offset)


def with_stored(rows: Rows, column: str, places: NDArray[np.int64], values: NDArray[Any]) -> Rows:
    """The rows with other stored values of this column at some places, none of them null."""
    field, changed = rows.schema.field(column), stored(rows, column).copy()
    changed[places] = values
    buffers = [_validity(rows, column), pa.py_buffer(changed.view(np.uint8))]
    return _replaced(rows, field, pa.Array.from_buffers(field.type, len(changed), buffers))


def whole_array(chunked: Any) -> Any:
    """A column's values in one piece."""
    return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()


def _whole(values: Floats, kind: type[np.integer[Any]]) -> NDArray[Any]:
    """Rounded to the nearest integer, held to the type's range."""
    limits = np.iinfo(kind)
    rounded = np.rint(values)
    top = np.nextafter(float(limits.max), 0.0) if float(limits.max) > limits.max else float(limits.max)
    return np.clip(rounded, float(limits.min), top, out=rounded).astype(kind)


def _within(values: Floats, kind: Any) -> Floats:
    """Held to what a decimal type can hold."""
    limit = Decimal(10 ** max(kind.precision, 1) - 1).scaleb(-kind.scale)
    largest = float(limit)
    while Decimal(largest) > limit:  # a float may round up past what fits
        largest = float(np.nextafter(largest, 0.0))
    return np.clip(values, -largest, largest)
