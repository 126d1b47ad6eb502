"""Finding a lake's files and learning from their footers alone: schema, row counts, nulls and ranges."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from dpmask.errors import AccessError, InputError
from dpmask.lake import csv
from dpmask.lake.storage import Place, storage_errors, version_of

_PARQUET = (".parquet", ".parq", ".pq")
_TAIL = 1 << 16
_PACKED = (".csv.gz", ".csv.zst", ".csv.bz2", ".csv.xz", ".csv.zip")
_LOGS = {"_delta_log": "Delta Lake", "metadata": "Iceberg"}
_MAGIC = b"PAR1"
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_READERS = 16
MANIFEST = "manifest.json"


class Facts(NamedTuple):
    """One column by its footers: its nulls and its range, None where a footer does not have them."""

    nulls: int | None
    low: Any
    high: Any

    def __repr__(self) -> str:
        return f"<Facts: {self.nulls} nulls>"  # a range is the values of two records

    def joined(self, other: Facts) -> Facts:
        """The facts of both parts together."""
        nulls = None if self.nulls is None or other.nulls is None else self.nulls + other.nulls
        return Facts(nulls, _pick(min, self, other, "low"), _pick(max, self, other, "high"))


_EMPTY = object()
"""The range of no value at all, which joins with anything."""


def _pick(choose: Any, left: Facts, right: Facts, side: str) -> Any:
    a, b = getattr(left, side), getattr(right, side)
    if a is _EMPTY or b is _EMPTY:
        return b if a is _EMPTY else a
    return None if a is None or b is None else choose(a, b)


class DataFile(NamedTuple):
    """One file of a lake."""

    url: str
    name: str
    size: int
    version: str
    footer: str
    groups: tuple[int, ...]
    schema: Any
    hive: tuple[tuple[str, str | None], ...]
    facts: dict[str, Facts]


def is_empty_range(value: Any) -> bool:
    """Whether a range is that of a column without a value."""
    return value is _EMPTY


def find_files(source: Place) -> list[DataFile]:
    """Every data file of a folder, a glob or a single file, in the order of their names, with its footer read.

    No file is passed over in silence: names that begin with _ or . are no data by rule, any other file is data or an
    error. A glob, or a file, names data: without a known ending it is read as Parquet.
    """
    names, root, chosen = _names(source)
    if MANIFEST in names:
        names = _released(root / MANIFEST) or names
    if not names:
        raise InputError(f"{source.url}: holds no .parquet or .csv file.")
    unknown = [name for name in names if not name.endswith((*_PARQUET, ".csv"))]
    if unknown and not (chosen and all("." not in posixpath.basename(name) for name in unknown)):
        raise _no_data(source, unknown)
    if len({name.endswith(".csv") for name in names}) > 1:
        raise InputError(f"{source.url}: holds Parquet and CSV files together. Point to one kind, with a glob.")
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(lambda name: _read(root, name), names))


def _no_data(source: Place, unknown: list[str]) -> InputError:
    packed = next((name for name in unknown if name.endswith(_PACKED)), None)
    advice = (
        "Compressed CSV is not read: write it as Parquet."
        if packed
        else "Move what is no data elsewhere, or point to the data with a glob such as lake/*.parquet."
    )
    return InputError(
        f"{source.url}: {packed or unknown[0]} is neither .parquet nor .csv ({len(unknown)} such files). {advice}"
    )


def _names(source: Place) -> tuple[list[str], Place, bool]:
    """Names of files relative to a root folder, and whether a glob or a file chose them. Hidden ones are no data."""
    chosen = any(sign in source.path for sign in "*?[")
    with storage_errors(source.url):
        source.fs.invalidate_cache()
        if chosen:
            root = Place(glob_root(source))
            names = [posixpath.relpath(path, root.path) for path in source.fs.glob(source.path)]
            names = [name for name in names if not source.fs.isdir(posixpath.join(root.path, name))]
        elif source.fs.isfile(source.path):
            folder, name = posixpath.split(source.full_url)
            return [name], Place(folder), True
        else:
            if source.local and os.path.isdir(source.path) and not os.access(source.path, os.R_OK | os.X_OK):
                raise AccessError(f"{source.url}: no permission to read it. Check the rights of this user.")
            if not source.fs.exists(source.path):
                raise InputError(f"{source.url}: there is no such file or folder.")
            root, names = source, source.files()
        _refuse_table_formats(source, root, names)
    return sorted(name for name in names if not any(part[0] in "_." for part in name.split("/"))), root, chosen


def _refuse_table_formats(source: Place, root: Place, names: list[str]) -> None:
    """Refuse the files of a Delta or Iceberg table: its log knows which of them, and of their rows, still count."""
    found = {_LOGS[part] for name in names for part in name.split("/")[:-1] if part in _LOGS and _is_log(name)}
    folder = root.path.rstrip("/")
    while not found:
        logs = [path for log in _LOGS for path in source.fs.glob(posixpath.join(folder, log, "*.json"))]
        found = {_LOGS[posixpath.basename(posixpath.dirname(path))] for path in logs if _is_log(path)}
        if posixpath.basename(folder) != "data" and "=" not in posixpath.basename(folder):
            break
        folder = posixpath.dirname(folder)
    if found:
        raise InputError(
            f"{source.url}: is part of a {found.pop()} table, whose files also hold deleted and superseded records. "
            "Write its current state as plain Parquet and point to that."
        )


def _is_log(name: str) -> bool:
    return name.endswith(".metadata.json") or "_delta_log/" in name


def _released(manifest: Place) -> list[str] | None:
    """The files that a release's manifest names; None if it is the manifest of something else."""
    try:
        released = json.loads(manifest.read())
        return (
            sorted(file["path"] for file in released["files"])
            if released["format"].startswith("dpmask release")
            else None
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def glob_root(source: Place) -> str:
    """The folder in front of a pattern's first sign."""
    parts = source.full_url.split("/")
    fixed = next((number for number, part in enumerate(parts) if any(sign in part for sign in "*?[")), len(parts))
    return "/".join(parts[:fixed])


def _read(root: Place, name: str) -> DataFile:
    place = root / name
    with storage_errors(place.url):
        info = place.fs.info(place.path)
    hive = tuple(_hive(part) for part in name.split("/")[:-1] if "=" in part)
    if name.endswith(".csv"):
        schema, rows, digest = csv.inspect(place, info["size"])
        facts = {column: Facts(None, None, None) for column in schema.names}
        return DataFile(place.full_url, name, info["size"], version_of(info), digest, (rows,), schema, hive, facts)
    metadata, digest = _footer(place, info["size"])
    try:
        schema = metadata.schema.to_arrow_schema().remove_metadata()
    except (pa.ArrowException, OSError):
        raise _damaged(place) from None
    groups = tuple(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
    return DataFile(
        place.full_url, name, info["size"], version_of(info), digest, groups, schema, hive, _facts(metadata, schema)
    )


def _footer(place: Place, size: int) -> tuple[Any, str]:
    """The parsed footer and its hash, in one small read for most files."""
    with storage_errors(place.url):
        tail = place.fs.cat_file(place.path, start=max(0, size - _TAIL), end=size)
        length = int.from_bytes(tail[-8:-4], "little") + 8
        if tail[-4:] != _MAGIC or length > size:
            raise _damaged(place)
        if length > len(tail):
            tail = place.fs.cat_file(place.path, start=size - length, end=size)
    footer = tail[-length:]
    try:
        return pq.read_metadata(pa.BufferReader(footer)), hashlib.sha256(footer).hexdigest()
    except (pa.ArrowException, OSError):
        raise _damaged(place) from None


def _damaged(place: Place) -> InputError:
    return InputError(f"{place.url}: is damaged or not a Parquet file. Write it again, or take it out of the lake.")


def _hive(part: str) -> tuple[str, str | None]:
    key, value = (unquote(text) for text in part.split("=", 1))
    return key, None if value == _HIVE_NULL else value


def _facts(metadata: Any, schema: Any) -> dict[str, Facts]:
    """Nulls and ranges of the flat columns, over all row groups of the file."""
    flat = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    facts = dict.fromkeys(schema.names, Facts(None, None, None))
    for name in schema.names:
        if name in flat:
            total = Facts(0, _EMPTY, _EMPTY)
            for group in range(metadata.num_row_groups):
                chunk = metadata.row_group(group).column(flat[name])
                total = total.joined(_chunk_facts(chunk.statistics if chunk.is_stats_set else None, chunk.num_values))
            facts[name] = total
    return facts


def _chunk_facts(statistics: Any, values: int) -> Facts:
    if statistics is None:
        return Facts(None, None, None) if values else Facts(0, _EMPTY, _EMPTY)
    nulls = statistics.null_count if statistics.has_null_count else None
    if nulls == values:
        return Facts(nulls, _EMPTY, _EMPTY)
    if not statistics.has_min_max:
        return Facts(nulls, None, None)
    return Facts(nulls, statistics.min, statistics.max)
