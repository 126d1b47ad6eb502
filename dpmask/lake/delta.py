"""Delta Lake tables, by the library ``deltalake``: the log says which files count, and which of their rows."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from dpmask.errors import InputError
from dpmask.lake.storage import Place
from dpmask.lake.table_log import DELTA, LoggedFile, TableLog, no_version, plain_types, reading_log, refused

_READ = {"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
_UNSUPPORTED = re.compile(r"Feature '(\w+)' is not supported")
_MAPPING = "delta.columnMapping.mode"


def delta_log(source: Place, version: int | None) -> TableLog:
    """The table in a folder, at a version or as it is now."""
    with reading_log(source, DELTA):
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            table = DeltaTable(source.full_url, version=version, storage_options=_options(source))
        except DeltaError as error:
            unknown = _UNSUPPORTED.search(str(error))
            if unknown:
                raise _refused(source, unknown[1]) from None
            if version is None:
                raise
            raise no_version(source, DELTA, version) from None
        _check_features(source, table)
        schema, keys = plain_types(pa.schema(table.schema())), table.metadata().partition_columns
        files = tuple(_files(source, table, keys, _deleted(table)))
        return TableLog(DELTA, str(table.version()), schema, files, {}, {}, frozenset())


def _options(source: Place) -> dict[str, str]:
    """What the library must know of an S3 server; credentials it finds by itself."""
    found = {"AWS_ENDPOINT_URL": source.endpoint} if source.endpoint else {}
    return found | ({"AWS_ALLOW_HTTP": "true"} if source.endpoint.startswith("http://") else {})


def _check_features(source: Place, table: Any) -> None:
    """Refuse by name what changes how files are read, and is not handled here."""
    unknown = sorted(set(table.protocol().reader_features or ()) - _READ - {"columnMapping"})
    if table.metadata().configuration.get(_MAPPING, "none") != "none":
        unknown.append("columnMapping")
    if unknown:
        raise _refused(source, unknown[0])


def _refused(source: Place, feature: str) -> InputError:
    remedy = "Write its current state as a table without it, or as plain Parquet."
    return refused(source, DELTA, f"uses the feature {feature}", remedy)


def _deleted(table: Any) -> dict[str, Any]:
    """The places of rows that deletion vectors take out, by the paths of their files."""
    found: dict[str, Any] = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for number, uri in enumerate(batch.column(0).to_pylist()):
            kept = batch.column(1)[number].values.to_numpy(zero_copy_only=False)
            found[Place(unquote(uri)).path] = np.flatnonzero(~kept)
    return found


def _files(source: Place, table: Any, keys: list[str], deleted: dict[str, Any]) -> list[LoggedFile]:
    actions = pa.table(table.get_add_actions(flatten=False)).to_pylist()
    files = []
    for one in sorted(actions, key=lambda one: one["path"]):
        path, partition = unquote(one["path"]), one.get("partition") or {}
        place = Place(path) if "://" in path else source / path
        gone = deleted.pop(place.path, None)
        constants = tuple((key, None if partition.get(key) is None else str(partition[key])) for key in keys)
        version = f"{one['size_bytes']}-{one['modification_time']}-{0 if gone is None else len(gone)}"
        files.append(LoggedFile(place.full_url, one["size_bytes"], version, constants, gone))
    if deleted:
        raise refused(source, DELTA, "has deletion vectors of files that it does not have", "Repair it.")
    return files
