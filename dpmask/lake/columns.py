"""Columns of a block, to floats and back to the type they came in; to pandas and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmask.errors import InputError, JobError, nearest

Floats = NDArray[np.float64]
Rows = Any
"""The rows of one block: an Arrow table."""


def is_numeric(kind: Any) -> bool:
    """Whether numeric methods take columns of this type."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def rounding_unit(kind: Any) -> float:
    """The step between neighbouring values of a type: 1 for integers, 0 where there is none to speak of."""
    if pa.types.is_decimal(kind):
        return float(10.0**-kind.scale)
    return 1.0 if pa.types.is_integer(kind) else 0.0


def require_known(schema: Any, columns: Iterable[str], who: str) -> None:
    """Refuse a column that the table does not have."""
    for column in columns:
        if column not in schema.names:
            raise JobError(f"{who}: there is no column '{column}' in the table. {nearest(column, schema.names)}")


def require_numeric(schema: Any, columns: Iterable[str], who: str) -> None:
    """Refuse a column that is not there, or not a number."""
    columns = list(columns)
    require_known(schema, columns, who)
    for column in columns:
        kind = schema.field(column).type
        if not is_numeric(kind):
            raise JobError(f"{who}: column '{column}' must be numeric; it is {kind}. Take it out of columns.")


def floats(rows: Rows, column: str) -> Floats:
    """One column as doubles, a missing value as NaN."""
    chunked = rows.column(column)
    array = chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()
    if array.type != pa.float64():
        array = pc.cast(array, pa.float64(), safe=False)
    if array.null_count:
        array = pc.fill_null(array, np.nan)
    values: Floats = array.to_numpy(zero_copy_only=False)
    return values


def float_block(rows: Rows, columns: Sequence[str]) -> Floats:
    """Several columns as doubles, columns x rows, each column contiguous, a missing value as NaN."""
    block = np.empty((len(columns), rows.num_rows))
    for number, column in enumerate(columns):
        block[number] = floats(rows, column)
    return block


def with_floats(rows: Rows, column: str, values: Floats) -> Rows:
    """The rows with this column's values replaced, its type and its nulls kept. Integers and decimals are rounded."""
    place = rows.schema.get_field_index(column)
    field = rows.schema.field(place)
    old = rows.column(place)
    missing = None
    if old.null_count:
        missing = old.is_null().to_numpy()
        values = np.where(missing, 0.0, values)
    if pa.types.is_integer(field.type):
        values = _whole(values, field.type.to_pandas_dtype())
    if pa.types.is_decimal(field.type):
        array = _decimals(values, field.type, missing)
    else:
        array = pa.array(values, mask=missing, from_pandas=False)
        array = array if array.type == field.type else pc.cast(array, field.type, safe=False)
    return rows.set_column(place, field, array)


def _whole(values: Floats, kind: type[np.integer[Any]]) -> NDArray[Any]:
    """Rounded to the nearest integer, held to the type's range."""
    limits = np.iinfo(kind)
    rounded = np.rint(values)
    top = np.nextafter(float(limits.max), 0.0) if float(limits.max) > limits.max else float(limits.max)
    return np.clip(rounded, float(limits.min), top, out=rounded).astype(kind)


def _decimals(values: Floats, kind: Any, missing: Any) -> Any:
    largest = (10.0**kind.precision - 1) / 10.0**kind.scale
    within = np.clip(values, -largest, largest)
    return pc.cast(pa.array(within, mask=missing, from_pandas=False), kind, safe=False)


def from_pandas(frame: pd.DataFrame, columns: Sequence[str]) -> Rows:
    """These columns of a pandas frame as a block."""
    try:
        return pa.Table.from_pandas(frame[list(columns)], preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise InputError(f"One of the columns {', '.join(columns)} mixes types. Give each column one type.") from None


def to_pandas(rows: Rows, nullable: frozenset[str]) -> pd.DataFrame:
    """A block as a pandas frame. Integers and booleans that may be null become pandas' nullable types, never floats."""
    mapper = _types_mapper(rows.schema, nullable)
    columns = {}
    for name in rows.schema.names:
        columns[name] = rows.column(name).to_pandas(types_mapper=mapper(name), date_as_object=True)
    return pd.DataFrame(columns, columns=list(rows.schema.names))


_NULLABLE = {
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


def _types_mapper(schema: Any, nullable: frozenset[str]) -> Callable[[str], Callable[[Any], Any]]:
    def for_column(name: str) -> Callable[[Any], Any]:
        def mapped(kind: Any) -> Any:
            if kind in _NULLABLE:
                return _NULLABLE[kind] if name in nullable else None
            exact = (
                pa.types.is_date(kind)
                or pa.types.is_decimal(kind)
                or pa.types.is_time(kind)
                or pa.types.is_nested(kind)
            )
            return pd.ArrowDtype(kind) if exact else None

        return mapped

    return for_column
