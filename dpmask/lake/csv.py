"""CSV, for small tables: read whole, typed once."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from dpmask.errors import InputError
from dpmask.lake.storage import Place

_LARGEST = 512 << 20
_MISSING = ["", "NA", "N/A", "NULL", "null", "NaN", "nan", "."]
"""What stands for a missing number; text stays as it is."""


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
    try:
        if schema is not None:
            return _read(data, {field.name: field.type for field in schema})
        table = _read(data, {})
        codes = _codes(data, table.schema)
        return _read(data, codes) if codes else table
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        raise InputError(
            f"{place.url}: is not a regular CSV: a row has another number of fields, or a field another type."
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{place.url}: is not in UTF-8. Convert it.") from None


def _read(data: bytes, types: dict[str, Any]) -> Any:
    options = csv.ConvertOptions(column_types=types, null_values=_MISSING, strings_can_be_null=False)
    table = csv.read_csv(pa.BufferReader(data), csv.ReadOptions(use_threads=False), convert_options=options)
    if any(pa.types.is_binary(field.type) for field in table.schema):
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "a field is not text")
    return table


def _codes(data: bytes, schema: Any) -> dict[str, Any]:
    """Columns that look like integers but have leading zeros, as postcodes do: they are text."""
    whole = [field.name for field in schema if pa.types.is_integer(field.type)]
    texts = _read(data, dict.fromkeys(whole, pa.string()))
    zeros = {name: pc.any(pc.match_substring_regex(texts.column(name), r"^-?0\d")).as_py() for name in whole}
    return {name: pa.string() for name, found in zeros.items() if found}
