"""Which files a lake has: found by one listing of a folder, a glob or a file, with what the store says of each."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from dpmask.errors import AccessError, InputError, JobError, printable
from dpmask.lake.storage import Place, storage_errors, version_of

MANIFEST = "manifest.json"
PARQUET, CSV = (".parquet", ".parq", ".pq"), (".csv", ".csv.gz", ".csv.zst")
_PACKED = (".csv.bz2", ".csv.xz", ".csv.zip", ".parquet.gz")
_LOGS = {"_delta_log": "a Delta Lake", "metadata": "an Iceberg"}
_LARGEST_MANIFEST = 256 << 20
_AND = re.compile(r"\sand\s", re.IGNORECASE)
_FOLDER = re.compile(r"""\s*([^\s='"]+)\s*==?\s*('[^']*'|"[^"]*"|[^\s='"]+)\s*""")


class ListedFile(NamedTuple):
    """A file as its store lists it; ``name`` is relative to the lake's folder."""

    name: str
    size: int
    version: str


def folder_values(text: str) -> dict[str, str]:
    """What ``month = '2026-11' and country = 'at'`` says of the Hive folders of files."""
    found = [_FOLDER.fullmatch(part) for part in _AND.split(text)]
    if not all(found):
        raise JobError(f"{printable(text, 200)}: must name folders of files, as in month = '2026-11'.")
    return {match[1]: match[2].strip("'\"") for match in found if match}


def list_sources(sources: Sequence[str], where: Mapping[str, str] | None = None) -> list[ListedFile]:
    """The data files of all sources, one source after the other, with the names that they have in the lake.

    With ``where``, only those in folders with these keys and values.
    """
    listed = [list_files(Place(source), where)[1] for source in sources]
    return [one._replace(name=name_in(sources, number, one.name)) for number, some in enumerate(listed) for one in some]


def name_in(sources: Sequence[str], number: int, name: str) -> str:
    """What a file of the source of this number is called: by its own name, if there is but one."""
    return name if len(sources) == 1 else f"source[{number}]/{name}"


def list_files(source: Place, where: Mapping[str, str] | None = None) -> tuple[Place, list[ListedFile]]:
    """The lake's folder and its data files, in the order of their names.

    No file is passed over in silence: names that begin with _ or . are no data by rule, any other file is data or an
    error. A glob, or a file, names data: without a known ending it is read as Parquet.
    """
    found, root, chosen = _found(source)
    names = sorted(name for name in found if not any(part[0] in "_." for part in name.split("/")))
    if MANIFEST in names:
        names = _released(root / MANIFEST) or names
    if not names:
        raise InputError(f"{source.url}: holds no .parquet or .csv file.")
    if where:
        names = _in_folders(source, names, where)
    unknown = [name for name in names if not name.endswith((*PARQUET, *CSV))]
    if unknown and not (chosen and all("." not in posixpath.basename(name) for name in unknown)):
        raise _no_data(source, unknown)
    if len({name.endswith(CSV) for name in names}) > 1:
        raise InputError(f"{source.url}: holds Parquet and CSV files together. Point to one kind, with a glob.")
    return root, [_listed(root, name, found.get(name)) for name in names]


def _in_folders(source: Place, names: list[str], where: Mapping[str, str]) -> list[str]:
    """The files in folders with these keys and values."""
    folders = [dict(hive_level(part) for part in name.split("/")[:-1] if "=" in part) for name in names]
    found = [name for name, one in zip(names, folders, strict=True) if where.items() <= one.items()]
    if not found:
        wanted = "/".join(f"{key}={value}" for key, value in where.items())
        keys = ", ".join(dict.fromkeys(key for one in folders for key in one)) or "none"
        text = f"{source.url}: has no file in a folder {printable(wanted, 200)}; its folders have the keys: {keys}."
        raise InputError(printable(text, 400))
    return found


def hive_level(part: str) -> tuple[str, str]:
    """The key and the value of a Hive folder's name."""
    key, value = (unquote(text) for text in part.split("=", 1))
    return key, value


def _listed(root: Place, name: str, info: dict[str, Any] | None) -> ListedFile:
    place = root / name
    if place.is_special():
        raise InputError(f"{place.url}: is a pipe or a device; a lake has files.")
    with storage_errors(place):
        known = place.fs.info(place.path) if info is None else info
    return ListedFile(name, known["size"], version_of(known))


def _no_data(source: Place, unknown: list[str]) -> InputError:
    packed = next((name for name in unknown if name.endswith(_PACKED)), None)
    advice = (
        "It is compressed in a way that is not read: write it as Parquet, or as .csv.gz or .csv.zst."
        if packed
        else "Move what is no data elsewhere, or point to the data with a glob such as lake/*.parquet."
    )
    name = printable(packed or unknown[0], 200)
    return InputError(f"{source.url}: {name} is neither .parquet nor .csv ({len(unknown)} such files). {advice}")


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
        _refuse_table_formats(source, root, list(found))
    return found, root, chosen


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
            f"{source.url}: is part of {found.pop()} table, whose files also hold deleted and superseded records. "
            "Write its current state as plain Parquet and point to that."
        )


def _is_log(name: str) -> bool:
    return name.endswith(".metadata.json") or "_delta_log/" in name


def _released(manifest: Place) -> list[str] | None:
    """The files that a release's manifest names; None if it is the manifest of something else."""
    try:
        released = json.loads(manifest.read(_LARGEST_MANIFEST))
        if not released["format"].startswith("dpmask release"):
            return None
        names = [file["path"] for file in released["files"]]
        return sorted(name for name in names if not {"", "..", "."} & set(name.split("/")))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, JobError):
        return None


def glob_root(source: Place) -> str:
    """The folder in front of a pattern's first sign."""
    parts = source.full_url.split("/")
    fixed = next((number for number, part in enumerate(parts) if any(sign in part for sign in "*?[")), len(parts))
    return "/".join(parts[:fixed])
