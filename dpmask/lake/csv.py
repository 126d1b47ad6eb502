"""CSV, for small tables: read whole, typed once."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
from pyarrow import csv

from dpmask.errors import InputError
from dpmask.lake.storage import Place

_LARGEST = 512 << 20


def inspect(place: Place, size: int) -> tuple[Any, int, str]:
    """The schema that fits all of the file, its number of rows, and its hash."""
    if size > _LARGEST:
        raise InputError(
            f"{place.url}: a CSV of {size >> 20} MB; CSV is for tables up to {_LARGEST >> 20} MB. Write it as Parquet."
        )
    data = place.read()
    table = _parse(place, data, None)
    return table.schema, table.num_rows, hashlib.sha256(data).hexdigest()


def read(place: Place, schema: Any) -> Any:
    """The table, with the types found when the lake was opened."""
    return _parse(place, place.read(), schema)


def _parse(place: Place, data: bytes, schema: Any) -> Any:
    if not data.strip():
        raise InputError(f"{place.url}: is empty. A CSV needs a line of column names.")
    options = csv.ConvertOptions(column_types=schema, strings_can_be_null=True, null_values=[""])
    try:
        return csv.read_csv(pa.BufferReader(data), csv.ReadOptions(use_threads=False), convert_options=options)
    except pa.ArrowInvalid:
        raise InputError(
            f"{place.url}: is not a regular CSV: a row has another number of fields, or a field another type."
        ) from None
