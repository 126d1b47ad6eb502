"""A release as a Delta Lake table, by its protocol alone (https://github.com/delta-io/delta/blob/master/PROTOCOL.md).

Each release at a target is a version: it removes the files of the one before and adds its own. A version has no time,
host, user or path but those of its own files. Readers need nothing but reader version 1, or timestamps without zones.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from dpmask.errors import TargetError
from dpmask.lake.listing import hive_level
from dpmask.lake.storage import Place

_VERSION = re.compile(r"_delta_log/(\d{20})\.json")
_NO_NAMES = set(" ,;{}()\n\t=")
_LARGEST = 1 << 30
_NTZ = "timestampNtz"
_TYPES = {
    "int8": "byte", "int16": "short", "int32": "integer", "int64": "long", "float": "float", "double": "double",
    "string": "string", "large_string": "string", "binary": "binary", "large_binary": "binary", "bool": "boolean",
    "date32[day]": "date",
}  # fmt: skip
_DECIMAL = re.compile(r"decimal(?:32|64|128|256)\((\d+), (\d+)\)")
_TIMESTAMP = re.compile(r"timestamp\[(?:s|ms|us)(, tz=[^\]]+)?\]")
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=\w+, ordered=\d>")


def delta_type(kind: str) -> str | None:
    """What Delta Lake calls an Arrow type of this name; None if it has none that holds its values exactly."""
    if inner := _DICTIONARY.fullmatch(kind):
        return delta_type(inner[1])
    if decimal := _DECIMAL.fullmatch(kind):
        precision, scale = map(int, decimal.groups())
        return f"decimal({precision},{scale})" if 0 <= scale <= precision <= 38 else None  # noqa: PLR2004 - its most
    if moment := _TIMESTAMP.fullmatch(kind):
        return "timestamp" if moment[1] else "timestamp_ntz"
    return _TYPES.get(kind)


def unknown(kinds: Mapping[str, Any]) -> str | None:
    """Why a table cannot have columns of these names and types; None if it can."""
    for name, kind in kinds.items():
        if delta_type(str(kind)) is None:
            return f"Delta Lake has no type for column '{name}', which is {kind}. Cast it, drop it, or leave out table."
        if _NO_NAMES & set(name):
            return f"Delta Lake has no columns with spaces or any of ,;{{}}()= in their names, such as '{name}'."
    return None


class Log(NamedTuple):
    """The versions at a target: how many there are, the files that count now and did before the last, and that one."""

    versions: int
    files: list[str]
    before: list[str]
    identity: str | None
    last: bytes


def read_log(target: Place) -> Log:
    """What stands in the log at a target, if anything; one that is not as dpmask writes it is refused."""
    names = sorted(name for name in target.files() if name.startswith("_delta_log/") and not name.endswith(".part"))
    files, before, identity, data = list[str](), list[str](), None, b""
    for number, name in enumerate(names):
        version = _VERSION.fullmatch(name)
        if version is None or int(version[1]) != number:
            raise _foreign(target)
        data = (target / name).read(_LARGEST)
        try:
            actions = [json.loads(line) for line in data.decode().splitlines()]
            gone = {action["remove"]["path"] for action in actions if "remove" in action}
            added = [action["add"]["path"] for action in actions if "add" in action]
            identity = next(action["metaData"]["id"] for action in actions if "metaData" in action)
        except (ValueError, KeyError, TypeError, StopIteration, RecursionError):
            raise _foreign(target) from None
        before, files = files, [path for path in files if path not in gone] + added
    return Log(len(names), files, before, identity, data)


def _foreign(target: Place) -> TargetError:
    return TargetError(
        f"{target.url}: its Delta log has versions that dpmask did not write. Choose another target, or delete the log."
    )


def write(target: Place, manifest: Mapping[str, Any]) -> None:
    """One more version, unless the last is this release."""
    log = read_log(target)
    if log.versions and log.last == _version(manifest, log.before, log.identity):
        return
    data = _version(manifest, log.files, log.identity)
    (target / f"_delta_log/{log.versions:020d}.json").create(data)


def faults(target: Place, manifest: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with the log: its last version must be the one that this manifest makes."""
    try:
        log = read_log(target)
    except TargetError:
        return {"_delta_log": "has versions that dpmask did not write"}
    if not log.versions:
        return {"_delta_log": "is missing"}
    if log.last != _version(manifest, log.before, log.identity):
        return {"_delta_log": "describes another table than the manifest"}
    return {}


def _version(manifest: Mapping[str, Any], old: list[str], identity: str | None) -> bytes:
    """The bytes of the version that a manifest makes of a table with these files."""
    added = [_add(one) for one in manifest["files"]]
    kept = {one["path"] for one in added}
    removed = [{"path": path, "deletionTimestamp": 0, "dataChange": True} for path in old if path not in kept]
    fields = [
        {"name": one["name"], "type": delta_type(one["type"]), "nullable": True, "metadata": {}}
        for one in manifest["schema"]
    ]
    metadata = {
        "id": identity or str(uuid.UUID(manifest["run"])),
        "name": manifest["name"],
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": manifest.get("partition_by", []),
        "configuration": {},
    }
    actions: list[dict[str, Any]] = [{"protocol": _protocol(fields)}, {"metaData": metadata}]
    actions += [{"remove": one} for one in removed] + [{"add": one} for one in added]
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in actions).encode()


def _protocol(fields: list[dict[str, Any]]) -> dict[str, Any]:
    if all(field["type"] != "timestamp_ntz" for field in fields):
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [_NTZ], "writerFeatures": [_NTZ]}


def _add(file: Mapping[str, Any]) -> dict[str, Any]:
    """A file of the release; its path is a URL, in which the signs of the folders' own escapes are escaped again."""
    levels = file["path"].split("/")[2:-1]
    return {
        "path": quote(file["path"], safe="/=~"),
        "partitionValues": dict(hive_level(part) for part in levels),
        "size": file["bytes"],
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps({"numRecords": file["rows"], "nullCount": file["nulls"]}),
    }
