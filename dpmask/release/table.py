"""A release that is a Delta Lake or an Iceberg table, too (``table`` of a job): the log beside its manifest.

The log is written after the manifest and before files of an older release are deleted, so whoever reads the table meets
the old one or the new. It follows from the manifest and from what the table was before, and from the place of an
Iceberg table, whose paths are absolute. So the manifest has no hash of it: ``verify`` compares it with the manifest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dpmask.lake.storage import Place
from dpmask.release import delta_table

_PATHS = {"delta": re.compile(r"_delta_log/\d{20}\.json"), "iceberg": re.compile(r"metadata/[^/]+")}


def _format(name: str) -> Any:
    """The module that writes such tables; that of Iceberg needs an extra."""
    if name == "delta":
        return delta_table
    from dpmask.release import iceberg_table

    return iceberg_table


def unknown_to(table: str, kinds: Mapping[str, Any]) -> str | None:
    """Why a table cannot have columns of these names and types; None if it can."""
    return _format(table).unknown(kinds)


def require_log(target: Place) -> None:
    """Refuse a target whose Delta log was written by others: their versions must not be lost."""
    delta_table.read_log(target)


def log_paths(names: Iterable[str], manifest: Mapping[str, Any]) -> set[str]:
    """Those of the files at the target that are the log of the table that the release is; none, if it is none."""
    pattern = _PATHS.get(manifest.get("table") or "")
    return {name for name in names if pattern and pattern.fullmatch(name)}


def write_log(target: Place, manifest: Mapping[str, Any]) -> None:
    """Let the table be this release, if it is to be a table; the caller has the target to itself."""
    if manifest.get("table"):
        _format(manifest["table"]).write(target, manifest)


def log_faults(target: Place, manifest: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with the log of the table, by file."""
    return _format(manifest["table"]).faults(target, manifest)
