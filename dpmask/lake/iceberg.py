"""Iceberg tables, by the library ``pyiceberg``: the metadata says which files count, and which of their rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpmask.errors import InputError
from dpmask.lake.listing import METADATA
from dpmask.lake.storage import Place
from dpmask.lake.table_log import ICEBERG, LoggedFile, TableLog, no_version, plain_types, reading_log, refused

_HINT = "metadata/version-hint.text"
_NUMBER = re.compile(r"metadata/v?(\d+)[^/]*\.metadata\.json")
_NONE = np.empty(0, np.int64)
_MERGE = "Rewrite its data files, so that deletes are merged into them (rewrite_data_files)."


def iceberg_log(source: Place, names: Sequence[str], snapshot: int | None) -> TableLog:
    """The table of a metadata file, or of a folder with these files: at a snapshot, or as it is now."""
    with reading_log(source, ICEBERG):
        from pyiceberg.io.pyarrow import schema_to_pyarrow
        from pyiceberg.table import StaticTable

        metadata = source if source.path.endswith(METADATA) else source / _newest(source, names)
        where = {"s3.endpoint": source.endpoint} if source.endpoint else {}
        properties = {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO", **where}
        url = f"file://{metadata.path}" if metadata.local else metadata.full_url
        table = StaticTable.from_metadata(url, properties)
        state = table.current_snapshot() if snapshot is None else table.snapshot_by_id(snapshot)
        if state is None:
            if snapshot is not None:
                raise no_version(source, ICEBERG, snapshot)
            raise InputError(f"{source.url}: the Iceberg table has no rows.")
        scan = table.scan(snapshot_id=snapshot)
        schema = scan.projection()
        ids = {field.name: field.field_id for field in schema.fields}
        given = [field.name for field in schema.fields if getattr(field, "initial_default", None) is not None]
        if given:
            raise refused(source, ICEBERG, f"has a default for column '{given[0]}'", "Rewrite its data files.")
        return TableLog(
            ICEBERG,
            str(state.snapshot_id),
            plain_types(schema_to_pyarrow(schema, include_field_ids=False)),
            tuple(sorted(_files(source, scan), key=lambda file: file.url)),
            ids,
            _aliases(table, ids),
            _identities(table, ids),
        )


def _newest(source: Place, names: Sequence[str]) -> str:
    """The metadata file that is current, by the hint that stands beside it or by the numbers in their names."""
    if _HINT in names:
        hint = (source / _HINT).read(1000).decode().strip()
        found = [f"metadata/{one}" for one in (hint, f"v{hint}{METADATA}", f"{hint}{METADATA}")]
        current = [name for name in found if name in names]
    else:
        numbers = {name: int(match[1]) for name in names if (match := _NUMBER.fullmatch(name))}
        current = [name for name, number in numbers.items() if number == max(numbers.values())]
    if len(current) != 1:
        raise InputError(
            f"{source.url}: which metadata of the Iceberg table is current does not follow from its folder. Point to "
            "the file that its catalogue names: .../metadata/NUMBER-....metadata.json."
        )
    return current[0]


def _files(source: Place, scan: Any) -> Iterator[LoggedFile]:
    from pyiceberg.manifest import FileFormat

    places: dict[str, dict[str, Any]] = {}
    try:
        tasks = list(scan.plan_files())
    except ValueError as error:
        if "equality deletes" not in str(error):
            raise
        raise refused(source, ICEBERG, "has equality deletes", _MERGE) from None
    for task in tasks:
        if task.file.file_format != FileFormat.PARQUET:
            raise refused(source, ICEBERG, f"has {task.file.file_format.name} files", "Rewrite them as Parquet.")
        for one in task.delete_files:
            if one.file_format != FileFormat.PARQUET:
                raise refused(source, ICEBERG, f"has deletes as {one.file_format.name}", _MERGE)
            if one.file_path not in places:
                places[one.file_path] = _positions(Place(one.file_path))
        some = [places[one.file_path].get(task.file.file_path, _NONE) for one in task.delete_files]
        deleted = np.unique(np.concatenate([_NONE, *some]))
        size = task.file.file_size_in_bytes
        gone = deleted if len(deleted) else None
        yield LoggedFile(Place(task.file.file_path).full_url, size, f"{size}-{len(deleted)}", (), gone)


def _positions(place: Place) -> dict[str, Any]:
    """The rows that a file of position deletes names, by data file."""
    rows = pq.read_table(pa.BufferReader(place.read()), columns=["file_path", "pos"], use_threads=False)
    paths = rows["file_path"].unique().to_pylist()
    return {path: rows.filter(pc.equal(rows["file_path"], path))["pos"].to_numpy() for path in paths}


def _aliases(table: Any, ids: dict[str, int]) -> dict[str, tuple[str, ...]]:
    """What columns are called in files that do not number them: by the table's own mapping, else as they are."""
    mapping = table.name_mapping()
    if mapping is None:
        return {name: (name,) for name in ids}
    named = {field.field_id: tuple(field.names) for field in mapping.root}
    return {name: named.get(number, ()) for name, number in ids.items()}


def _identities(table: Any, ids: dict[str, int]) -> frozenset[str]:
    """Columns by whose values the table is or was partitioned: a file may leave them to the log."""
    from pyiceberg.transforms import IdentityTransform

    fields = [field for spec in table.specs().values() for field in spec.fields]
    sources = {field.source_id for field in fields if isinstance(field.transform, IdentityTransform)}
    return frozenset(name for name, number in ids.items() if number in sources)
