"""A release as an Iceberg table (format 2), whose metadata lies beside its manifest.

Each release at a target is a table of one snapshot, with the number of the metadata file one higher than that before:
``metadata/vN.metadata.json``, and ``version-hint.text``, which names N and is written last. Times are 0, numbers follow
from the release. Lists of files are Avro, by pyiceberg, whose marks between blocks are random: they differ in 16 bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from dpmask.errors import JobError
from dpmask.lake.listing import METADATA, hive_level
from dpmask.lake.storage import Place
from dpmask.release.delta_table import delta_type

_HINT = "metadata/version-hint.text"
_NUMBER = re.compile(r"metadata/v(\d{1,9})\.metadata\.json")
_TYPES = {
    "byte": "int", "short": "int", "integer": "int", "long": "long", "float": "float", "double": "double",
    "string": "string", "binary": "binary", "boolean": "boolean", "date": "date", "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}  # fmt: skip
_FIRST_PARTITION = 1000
"""The number of the first partition field, by the specification."""


def _iceberg_type(kind: str) -> str | None:
    """What Iceberg calls an Arrow type of this name; None if it has none that holds its values exactly."""
    found = delta_type(kind) or ""
    return found.replace(",", ", ") if found.startswith("decimal") else _TYPES.get(found)


def unknown(kinds: Mapping[str, Any]) -> str | None:
    """Why a table cannot have columns of these types, or cannot be written here; None if it can."""
    _library()
    for name, kind in kinds.items():
        if _iceberg_type(str(kind)) is None:
            return f"Iceberg has no type for column '{name}', which is {kind}. Cast it, drop it, or leave out table."
    return None


def _library() -> Any:
    try:
        from pyiceberg import manifest
    except ImportError:
        raise JobError("table: iceberg needs pip install 'dpmask[iceberg]'.") from None
    return manifest


def write(target: Place, manifest: Mapping[str, Any]) -> None:
    """The table's metadata, unless it is there; that of the release before is deleted once the new one counts."""
    if not faults(target, manifest):
        return
    names = [name for name in target.files() if name.startswith("metadata/")]
    numbers = [int(found[1]) for name in names if (found := _NUMBER.fullmatch(name))]
    number = max(numbers, default=0) + 1
    url, files = _url(target), [f"metadata/{kind}-{manifest['release']}-{number}.avro" for kind in ("files", "snap")]
    _write_lists(target, manifest, *files)
    metadata = _metadata(manifest, url, f"{url}/{files[1]}")
    (target / f"metadata/v{number}{METADATA}").write(metadata)
    (target / _HINT).write(str(number).encode())
    target.remove([name for name in names if name != _HINT])


def faults(target: Place, manifest: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with the metadata: it must be that of this manifest, and name its files and no others."""
    names = target.files()
    if _HINT not in names:
        return {"metadata": "is missing"}
    number = (target / _HINT).read(100).decode("ascii", "replace")
    lists = [f"metadata/{kind}-{manifest['release']}-{number}.avro" for kind in ("files", "snap")]
    current = f"metadata/v{number}{METADATA}"
    if {name for name in names if name.startswith("metadata/")} != {_HINT, current, *lists}:
        return {"metadata": "has other files than dpmask writes for this release"}
    url = _url(target)
    if (target / current).read(1 << 28) != _metadata(manifest, url, f"{url}/{lists[1]}"):
        return {current: "describes another table than the manifest, or one in another place"}
    return {} if _listed(target, manifest, lists) else {lists[0]: "names other files than the manifest"}


def _url(target: Place) -> str:
    """Where the table is: Iceberg has absolute paths only."""
    return f"file://{target.path}" if target.local else target.full_url


def _spec(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    numbers = {one["name"]: number for number, one in enumerate(manifest["schema"], start=1)}
    return [
        {"name": key, "transform": "identity", "source-id": numbers[key], "field-id": _FIRST_PARTITION + place}
        for place, key in enumerate(manifest.get("partition_by", []))
    ]


def _snapshot_id(manifest: Mapping[str, Any]) -> int:
    return int(manifest["release"], 16) >> 1 or 1


def _schema(manifest: Mapping[str, Any]) -> dict[str, Any]:
    fields = [
        {"id": number, "name": one["name"], "type": _iceberg_type(one["type"]), "required": False}
        for number, one in enumerate(manifest["schema"], start=1)
    ]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def _metadata(manifest: Mapping[str, Any], url: str, listed: str) -> bytes:
    """The bytes of the metadata file."""
    run, snapshot, spec = manifest["run"], _snapshot_id(manifest), _spec(manifest)
    names = [{"field-id": number, "names": [one["name"]]} for number, one in enumerate(manifest["schema"], start=1)]
    summary = {
        "operation": "append",
        "total-records": str(manifest["rows"]),
        "total-data-files": str(len(manifest["files"])),
    }
    content = {
        "format-version": 2,
        "table-uuid": f"{run[:8]}-{run[8:12]}-{run[12:16]}-{run[16:20]}-{run[20:]}",
        "location": url,
        "last-sequence-number": 1,
        "last-updated-ms": 0,
        "last-column-id": len(names),
        "schemas": [_schema(manifest)],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": spec}],
        "default-spec-id": 0,
        "last-partition-id": _FIRST_PARTITION - 1 + len(spec),
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {"schema.name-mapping.default": json.dumps(names)},
        "current-snapshot-id": snapshot,
        "refs": {"main": {"snapshot-id": snapshot, "type": "branch"}},
        "snapshots": [
            {
                "snapshot-id": snapshot,
                "sequence-number": 1,
                "timestamp-ms": 0,
                "manifest-list": listed,
                "summary": summary,
                "schema-id": 0,
            }
        ],
        "snapshot-log": [{"snapshot-id": snapshot, "timestamp-ms": 0}],
        "metadata-log": [],
    }
    return json.dumps(content, ensure_ascii=False, indent=1).encode()


def _write_lists(target: Place, manifest: Mapping[str, Any], files: str, listed: str) -> None:
    """The list of data files, and the list of that one."""
    library, url, snapshot = _library(), _url(target), _snapshot_id(manifest)
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema

    io, schema = _io(target), Schema.model_validate(_schema(manifest))
    spec = PartitionSpec.model_validate({"spec-id": 0, "fields": _spec(manifest)})
    with library.write_manifest(2, spec, schema, io.new_output(f"{url}/{files}"), snapshot, "null") as out:
        for one in manifest["files"]:
            added = library.ManifestEntryStatus.ADDED
            entry = library.ManifestEntry.from_args(
                status=added, snapshot_id=snapshot, data_file=_data_file(library, url, one, schema, spec)
            )
            out.add_entry(entry)
    given = io.new_output(f"{url}/{listed}")
    with library.write_manifest_list(2, given, snapshot, None, 1, "null") as lists:
        lists.add_manifests([out.to_manifest_file()])


def _data_file(library: Any, url: str, file: Mapping[str, Any], schema: Any, spec: Any) -> Any:
    from pyiceberg.typedef import Record

    found = library.DataFile.from_args(
        content=library.DataFileContent.DATA,
        file_path=f"{url}/{file['path']}",
        file_format=library.FileFormat.PARQUET,
        partition=Record(*_partition(file, schema, spec)),
        record_count=file["rows"],
        file_size_in_bytes=file["bytes"],
        null_value_counts={schema.find_field(name).field_id: count for name, count in file["nulls"].items()},
    )
    found.spec_id = 0
    return found


def _partition(file: Mapping[str, Any], schema: Any, spec: Any) -> list[Any]:
    """The values of a file's folders, as Iceberg stores them."""
    from pyiceberg.conversions import partition_to_py

    values = [hive_level(part)[1] for part in file["path"].split("/")[2:-1]]
    kinds = [schema.find_field(field.source_id).field_type for field in spec.fields]
    return [None if value is None else partition_to_py(kind, value) for kind, value in zip(kinds, values, strict=True)]


def _io(target: Place) -> Any:
    from pyiceberg.io import load_file_io

    where = {"s3.endpoint": target.endpoint} if target.endpoint else {}
    return load_file_io({"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO", **where}, _url(target))


def _listed(target: Place, manifest: Mapping[str, Any], lists: list[str]) -> bool:
    """Whether the lists name the manifest's files, in their partitions, and no others."""
    library, url, io = _library(), _url(target), _io(target)
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema

    schema = Schema.model_validate(_schema(manifest))
    spec = PartitionSpec.model_validate({"spec-id": 0, "fields": _spec(manifest)})
    places = range(len(spec.fields))
    wanted = [
        (f"{url}/{one['path']}", one["bytes"], one["rows"], _partition(one, schema, spec)) for one in manifest["files"]
    ]
    try:
        manifests = list(library.read_manifest_list(io.new_input(f"{url}/{lists[1]}")))
        if [one.manifest_path for one in manifests] != [f"{url}/{lists[0]}"]:
            return False
        entries = [one.data_file for one in manifests[0].fetch_manifest_entry(io, discard_deleted=False)]
        found = [
            (one.file_path, one.file_size_in_bytes, one.record_count, [one.partition[place] for place in places])
            for one in entries
            if one.content == library.DataFileContent.DATA
        ]
    except Exception:  # whatever a damaged file makes its library raise
        return False
    return len(found) == len(entries) and found == wanted
