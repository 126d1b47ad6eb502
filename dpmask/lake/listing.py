"""Which files a lake has: found by one listing of a folder, a glob or a file, with what the store says of each."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from dpmask.errors import AccessError, InputError, JobError, printable
from dpmask.lake.filters import RowFilter
from dpmask.lake.hive import HIVE_NULL, named_kind
from dpmask.lake.storage import Place, version_of
from dpmask.lake.storage_errors import storage_errors
from dpmask.lake.table_log import TableLog

MANIFEST = "manifest.json"
PARQUET, CSV = (".parquet", ".parq", ".pq"), (".csv", ".csv.gz", ".csv.zst")
_PACKED = (".csv.bz2", ".csv.xz", ".csv.zip", ".parquet.gz")
_LOGS = {"_delta_log": "a Delta Lake", "metadata": "an Iceberg"}
METADATA = ".metadata.json"
_LARGEST_MANIFEST = 256 << 20
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


class ListedFile(NamedTuple):
    """A file as its store lists it; ``name`` is relative to the lake's folder."""

    name: str
    size: int
    version: str
    url: str = ""
    """Where it is, if not there: files of tables may lie elsewhere."""
    constants: tuple[tuple[str, str | None], ...] = ()
    """Of a table's file: values that all of its rows have."""
    deleted: Any = None
    """Of a table's file: the places of deleted rows, in order, if there are any."""


class Listing(NamedTuple):
    """The data files of a source, in order."""

    root: Place
    files: list[ListedFile]
    whole: frozenset[str] = frozenset()
    """The keys of its Hive folders whose values are all whole numbers."""
    log: TableLog | None = None
    """What the log of a table says, if it is one."""
    kinds: Mapping[str, Any] = MappingProxyType({})
    """Of a release: the types of the keys of its Hive folders, as its manifest has them."""
    ignored: tuple[str, ...] = ()
    """Parquet and CSV files that are no data by rule, as their names, or those of their folders, begin with _ or ."""

    def kind(self, key: str) -> Any:
        """The type of a key of its Hive folders."""
        return self.kinds.get(key) or hive_kind(key in self.whole)


def list_sources(
    sources: Sequence[str], where: RowFilter | None = None, version: int | None = None
) -> list[ListedFile]:
    """The data files of all sources, one source after the other, with the names that they have in the lake.

    With ``where``, only those in folders that may hold such rows.
    """
    listed = [list_files(Place(source), where, version).files for source in sources]
    return [one._replace(name=name_in(sources, number, one.name)) for number, some in enumerate(listed) for one in some]


def name_in(sources: Sequence[str], number: int, name: str) -> str:
    """What a file of the source of this number is called: by its own name, if there is but one."""
    return name if len(sources) == 1 else f"source[{number}]/{name}"


def list_files(source: Place, where: RowFilter | None = None, version: int | None = None) -> Listing:
    """The lake's folder and its data files, in the order of their names; a table's as its log has them.

    No file is passed over in silence: names that begin with _ or . are no data by rule, any other file is data or an
    error. A glob, or a file, names data: without a known ending it is read as Parquet; a file, whatever its name.
    """
    found, root, chosen = _found(source)
    released = _released(root / MANIFEST) if MANIFEST in found else None
    log = None if released else _log(source, root, found, chosen, version)
    if log is not None:
        return _of_table(root, log, where)
    names = sorted(name for name in found if (root / name).path == source.path or not _is_hidden(name))
    ignored = () if released else tuple(sorted(name for name in {*found} - {*names} if is_kind(name, PARQUET + CSV)))
    names = released.names if released else names
    if not names:
        hidden = f" but for {shown_ignored(ignored)}" if ignored else ""
        raise InputError(f"{source.url}: holds no .parquet or .csv file{hidden}.")
    folders = [dict(hive_level(part) for part in name.split("/")[:-1] if "=" in part) for name in names]
    kinds = released.kinds if released else {}
    listing = Listing(root, [], _whole_keys(folders), kinds=kinds, ignored=ignored)
    if where:
        kinds = {key: listing.kind(key) for folder in folders for key in folder}
        names = [name for name, met in zip(names, where.of_folders(kinds, folders), strict=True) if met]
    unknown = [name for name in names if not is_kind(name, PARQUET + CSV)]
    if unknown and not (chosen and all("." not in posixpath.basename(name) for name in unknown)):
        raise _no_data(source, unknown)
    if len({is_kind(name, CSV) for name in names}) > 1:
        raise InputError(f"{source.url}: holds Parquet and CSV files together. Point to one kind, with a glob.")
    return listing._replace(files=[_listed(root, name, found.get(name)) for name in names])


def is_kind(name: str, endings: tuple[str, ...]) -> bool:
    """Whether a file's name has one of these endings, in small letters or capitals."""
    return name.lower().endswith(endings)


def _is_hidden(name: str) -> bool:
    return any(part[0] in "_." for part in name.split("/"))


def shown_ignored(names: Sequence[str]) -> str:
    """Files that are no data by rule, in words."""
    many = len(names) > 1
    more = f" and {len(names) - 1} more, which are" if many else ", which is"
    return f"{printable(names[0], 200)}{more} ignored: names that begin with _ or a dot are no data"


def _of_table(root: Place, log: TableLog, where: RowFilter | None) -> Listing:
    """The files of a table; names are relative to its folder where they lie in it."""
    folder = f"{root.full_url.rstrip('/')}/"
    files = [
        ListedFile(one.url.removeprefix(folder), one.size, one.version, one.url, one.constants, one.deleted)
        for one in log.files
    ]
    keys = [dict(one.constants) for one in log.files]
    if where:
        kinds = {key: log.schema.field(key).type for constants in keys for key in constants}
        files = [file for file, met in zip(files, where.of_folders(kinds, keys), strict=True) if met]
    return Listing(root, files, log=log)


def _log(source: Place, root: Place, found: Mapping[str, Any], chosen: bool, version: int | None) -> TableLog | None:
    """The log of the table that a source is; its files alone would also give superseded records."""
    if not chosen:
        if any(name.startswith("_delta_log/") for name in found):
            from dpmask.lake.delta import delta_log

            return delta_log(source, version)
        if any(name.startswith("metadata/") and _is_log(name) for name in found):
            from dpmask.lake.iceberg import iceberg_log

            return iceberg_log(root, list(found), version)
    if source.path.endswith(METADATA):
        from dpmask.lake.iceberg import iceberg_log

        return iceberg_log(source, (), version)
    if version is not None:
        raise JobError(f"{source.url}: version is for Delta Lake and Iceberg tables, which it is not.")
    _refuse_files_of_tables(source, root, list(found))
    return None


def hive_kind(whole: bool) -> Any:
    """The type of a Hive key: int64 where all values are whole numbers that lose nothing so, else string."""
    return pa.int64() if whole else pa.string()


def is_whole(value: str | None) -> bool:
    """Whether a Hive folder's value is a whole number, or missing."""
    return value is None or bool(_WHOLE.fullmatch(value))


def _whole_keys(folders: Sequence[Mapping[str, str | None]]) -> frozenset[str]:
    values: dict[str, set[str | None]] = {}
    for folder in folders:
        for key, value in folder.items():
            values.setdefault(key, set()).add(value)
    return frozenset(key for key, some in values.items() if all(map(is_whole, some)))


def hive_level(part: str) -> tuple[str, str | None]:
    """The key and the value of a Hive folder's name; None if it is the name for a missing value."""
    key, value = (unquote(text) for text in part.split("=", 1))
    return key, None if value == HIVE_NULL else value


def _listed(root: Place, name: str, info: dict[str, Any] | None) -> ListedFile:
    place = root / name
    if place.is_special():
        raise InputError(f"{place.url}: is a pipe or a device; a lake has files.")
    with storage_errors(place):
        known = place.fs.info(place.path) if info is None else info
    return ListedFile(name, known["size"], version_of(known))


def _no_data(source: Place, unknown: list[str]) -> InputError:
    packed = next((name for name in unknown if is_kind(name, _PACKED)), None)
    advice = (
        "It is compressed in a way that is not read: write it as Parquet, or as .csv.gz or .csv.zst."
        if packed
        else "Move what is no data elsewhere, or point to the data with a glob such as lake/*.parquet."
    )
    name = printable(packed or unknown[0], 200)
    more = f" ({len(unknown)} such files)" if len(unknown) > 1 else ""
    return InputError(f"{source.url}: {name} is neither .parquet nor .csv{more}. {advice}")


def _found(source: Place) -> tuple[dict[str, Any], Place, bool]:
    """Files by their names relative to a root folder, and whether a glob or a file chose them."""
    chosen = any(sign in source.path for sign in "*?[")
    with storage_errors(source):
        source.fs.invalidate_cache()
        if chosen:
            root, infos = Place(glob_root(source)), source.fs.glob(source.path, detail=True)
        elif source.fs.isfile(source.path):
            folder, name = posixpath.split(source.full_url)
            return {name: source.fs.info(source.path)}, Place(folder), True
        else:
            if source.local and os.path.isdir(source.path) and not os.access(source.path, os.R_OK | os.X_OK):
                raise AccessError(f"{source.url}: no permission to read it. Check the rights of this user.")
            if not source.fs.exists(source.path):
                where = f" at {source.endpoint}" if source.endpoint else ""
                raise InputError(f"{source.url}: there is no such file or folder{where}.")
            root, infos = source, source.fs.find(source.path, detail=True)
        inside = f"{root.path.rstrip('/')}/"
        files = [(path, info) for path, info in infos.items() if info["type"] != "directory"]
        found = {path.removeprefix(inside): info for path, info in files if path.startswith(inside)}
    return found, root, chosen


def _refuse_files_of_tables(source: Place, root: Place, names: list[str]) -> None:
    """Refuse files of a Delta or Iceberg table: its log knows which of them, and of their rows, still count."""
    found = {_LOGS[part] for name in names for part in name.split("/")[:-1] if part in _LOGS and _is_log(name)}
    folder = root.path.rstrip("/")
    while not found:
        with storage_errors(source):
            logs = [path for log in _LOGS for path in source.fs.glob(posixpath.join(folder, log, "*.json"))]
        found = {_LOGS[posixpath.basename(posixpath.dirname(path))] for path in logs if _is_log(path)}
        if posixpath.basename(folder) != "data" and "=" not in posixpath.basename(folder):
            break
        folder = posixpath.dirname(folder)
    if found:
        raise InputError(
            f"{source.url}: is part of {found.pop()} table, whose files also hold deleted and superseded records. "
            "Point to the folder of the table itself: its log is read then."
        )


def _is_log(name: str) -> bool:
    return name.endswith(METADATA) or "_delta_log/" in name


class _Released(NamedTuple):
    """The files that a release's manifest names, and the types of the keys of their folders."""

    names: list[str]
    kinds: dict[str, Any]


def _released(manifest: Place) -> _Released | None:
    """What a release's manifest says; None if it is the manifest of something else, or has no files."""
    try:
        released = json.loads(manifest.read(_LARGEST_MANIFEST))
        if not released["format"].startswith("dpmask release"):
            return None
        names = [file["path"] for file in released["files"]]
        names = sorted(name for name in names if not {"", "..", "."} & set(name.split("/")))
        keys = released.get("partition_by", ())
        kinds = {one["name"]: named_kind(one["type"]) for one in released.get("schema", ()) if one["name"] in keys}
        return _Released(names, kinds) if names else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, JobError):
        return None


def glob_root(source: Place) -> str:
    """The folder in front of a pattern's first sign; that of a table whose metadata it is."""
    parts = source.full_url.split("/")
    if source.path.endswith(METADATA):
        return "/".join(parts[:-2])
    fixed = next((number for number, part in enumerate(parts) if any(sign in part for sign in "*?[")), len(parts))
    return "/".join(parts[:fixed])
