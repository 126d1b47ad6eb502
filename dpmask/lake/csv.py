"""CSV, for small tables: read whole, typed once; plain, or compressed with gzip or zstd."""

from __future__ import annotations

import codecs
import hashlib
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from dpmask.errors import InputError, JobError
from dpmask.lake.storage import Place

_LARGEST = 512 << 20
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_MISSING = ["", "NA", "N/A", "NULL", "null", "NaN", "nan", "."]
"""What stands for a missing number; text stays as it is."""


@dataclass(frozen=True)
class Dialect:
    """How the fields of a CSV are parted, and how its text is encoded."""

    separator: str = ","
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if len(self.separator) != 1 or not self.separator.isascii() or self.separator in '"\r\n':
            raise JobError(
                f"csv: separator must be one character, such as ; or a tab, and no quote; got {self.separator!r}."
            )
        try:
            codecs.lookup(self.encoding)
        except (LookupError, ValueError):
            raise JobError(
                f"csv: encoding must be one that Python knows, such as latin-1; got {self.encoding!r}."
            ) from None


def inspect(place: Place, size: int, dialect: Dialect) -> tuple[Any, int, str]:
    """The schema that fits all of the file, its number of rows, and its hash."""
    if size > _LARGEST:
        raise _too_large(place)
    data = place.read()
    table = _parse(place, data, None, dialect)
    return table.schema, table.num_rows, hashlib.sha256(data).hexdigest()


def read(place: Place, schema: Any, dialect: Dialect) -> Any:
    """The table, with the types found when the lake was opened."""
    return _parse(place, place.read(), schema, dialect)


def _too_large(place: Place) -> InputError:
    return InputError(f"{place.url}: CSV is for tables up to {_LARGEST >> 20} MB, this is larger. Write it as Parquet.")


def _parse(place: Place, data: bytes, schema: Any, dialect: Dialect) -> Any:
    data = _unpacked(place, data)
    if not data.strip():
        raise InputError(f"{place.url}: is empty. A CSV needs a line of column names.")
    try:
        if schema is not None:
            return _read(data, {field.name: field.type for field in schema}, dialect)
        table = _read(data, {}, dialect)
        codes = _codes(data, table.schema, dialect)
        return _read(data, codes, dialect) if codes else table
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        raise InputError(
            f"{place.url}: is not a regular CSV: a row has another number of fields, a field another type, or two "
            f"columns one name. Fields are parted by {dialect.separator!r}; another one is declared with csv: "
            "{separator: ...}."
        ) from None
    except UnicodeError:
        raise InputError(
            f"{place.url}: is not in {dialect.encoding.upper()}. Convert it, or declare csv: {{encoding: latin-1}} or "
            "what it is."
        ) from None


def _unpacked(place: Place, data: bytes) -> bytes:
    kind = next((kind for ending, kind in _COMPRESSIONS.items() if place.path.lower().endswith(ending)), None)
    if kind is None:
        return data
    try:
        with pa.input_stream(pa.BufferReader(data), compression=kind) as stream:
            unpacked = bytes(stream.read(_LARGEST + 1))
    except (pa.ArrowException, OSError):
        raise InputError(f"{place.url}: is damaged, or not compressed with {kind}. Write it again.") from None
    if len(unpacked) > _LARGEST:
        raise _too_large(place)
    return unpacked


def _read(data: bytes, types: dict[str, Any], dialect: Dialect) -> Any:
    table = csv.read_csv(
        pa.BufferReader(data),
        csv.ReadOptions(use_threads=False, encoding=dialect.encoding),
        csv.ParseOptions(delimiter=dialect.separator),
        csv.ConvertOptions(column_types=types, null_values=_MISSING, strings_can_be_null=False),
    )
    names = table.schema.names  # raises if they are not UTF-8
    if len(set(names)) < len(names):
        raise pa.ArrowInvalid("two columns have one name")
    if any(pa.types.is_binary(field.type) for field in table.schema):
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "a field is not text")
    return table


def _codes(data: bytes, schema: Any, dialect: Dialect) -> dict[str, Any]:
    """Columns that look like integers but have leading zeros, as postcodes do: they are text."""
    whole = [field.name for field in schema if pa.types.is_integer(field.type)]
    texts = _read(data, dict.fromkeys(whole, pa.string()), dialect)
    zeros = {name: pc.any(pc.match_substring_regex(texts.column(name), r"^-?0\d")).as_py() for name in whole}
    return {name: pa.string() for name, found in zeros.items() if found}
