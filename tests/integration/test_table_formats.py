"""Delta Lake and Iceberg tables as sources, written by their own libraries: the log says what counts."""

import datetime as dt
import json
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmask
from dpmask.errors import InputError, JobError

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestContent, ManifestEntry, ManifestEntryStatus
from pyiceberg.types import DoubleType, LongType

COLUMNS = {"identifier": ["id"], "quasi": ["age", "region"], "sensitive": ["income"], "plain": ["day"]}
MASK = [{"method": "noise", "columns": ["income", "age"], "scale": 0.1}]


def some(start, rows):
    """A part of a table of people."""
    ids = np.arange(start, start + rows)
    return pa.table(
        {
            "id": ids,
            "age": pa.array(ids % 90, pa.int32()),
            "income": np.random.default_rng(start).lognormal(9, 1, rows),
            "region": pa.array([None if i % 50 == 0 else ["north", "south east"][i % 2] for i in ids]),
            "day": pa.array([dt.date(2026, 1, 1 + i % 2) for i in ids.tolist()]),
        }
    )


def ids(lake):
    return sorted(lake.to_dask()["id"].compute().tolist())


def assert_same(frame, expected):
    assert frame.columns.tolist() == expected.schema.names
    for name in expected.schema.names:
        values = expected[name].to_pylist()
        assert frame[name].isna().tolist() == [value is None for value in values], name
        assert frame[name].dropna().astype(str).tolist() == [str(one) for one in values if one is not None], name


@pytest.fixture
def delta(place):
    """Three versions: written, appended to, and some records deleted, which rewrites a file."""
    folder = str(place.folder / "lake")
    write_deltalake(folder, some(0, 200), partition_by=["region", "day"])
    write_deltalake(
        folder, some(200, 100).append_column("more", pa.array(np.arange(100.0))), mode="append", schema_mode="merge"
    )
    DeltaTable(folder).delete("age < 10")
    return folder


def test_a_delta_table_is_what_its_log_says(delta):
    expected = DeltaTable(delta).to_pyarrow_table().sort_by("id")
    lake = dpmask.read_lake(delta, block_rows=70)
    assert lake.schema.names == expected.schema.names
    assert [lake.schema.field(name).type for name in ("age", "day", "region")] == [pa.int32(), pa.date32(), pa.string()]
    frame = lake.to_dask().compute().sort_values("id")
    assert frame["id"].tolist() == expected["id"].to_pylist()
    assert_same(frame, expected)
    assert ids(dpmask.read_lake(delta, version=0)) == list(range(200))
    assert ids(dpmask.read_lake(delta, version=1)) == list(range(300))
    with pytest.raises(InputError, match="the Delta Lake table has no version 9, or no longer"):
        dpmask.read_lake(delta, version=9)
    DeltaTable(delta).vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert ids(dpmask.read_lake(delta)) == sorted(expected["id"].to_pylist())
    with pytest.raises(InputError, match=r"does not exist\. The table's log names it; it may have been vacuumed"):
        dpmask.read_lake(delta, version=0)


def test_a_filter_chooses_files_of_a_delta_table(delta):
    found = dpmask.read_lake(delta, where="day = 2026-01-02 and region in ('south east') and more >= 0")
    expected = DeltaTable(delta).to_pyarrow_table().to_pandas()
    expected = expected[
        (expected["day"] == dt.date(2026, 1, 2)) & (expected["region"] == "south east") & (expected["more"] >= 0)
    ]
    assert ids(found) == sorted(expected["id"])
    assert {dict(file.hive)["day"] for file in found.files} == {"2026-01-02"}


def test_a_job_pins_the_version_it_reads(place, delta, monkeypatch):
    """The table goes on while the job runs: what was read is released, and the private record says what that was."""
    from dpmask.job import stages

    def appended_to(prepared):
        write_deltalake(delta, some(900, 5), mode="append", schema_mode="merge")
        real(prepared)

    real = stages._require_same_source
    monkeypatch.setattr(stages, "_require_same_source", appended_to)
    columns = {**COLUMNS, "drop": ["more"]}
    ended = place.run(columns=columns, mask=MASK)
    assert ended.code == 0, ended.err
    rows = place.released()[1].num_rows
    assert rows == len(ids(dpmask.read_lake(delta, version=2)))
    result = json.loads((place.folder / "private" / "result.json").read_text())
    assert result["source_version"] == "Delta Lake 2"
    assert not any(b"Delta Lake 2" in data for data in place.bytes().values())
    monkeypatch.undo()
    monkeypatch.chdir(place.folder)
    pinned = place.run(columns=columns, mask=MASK, version=2)
    assert (pinned.code, "nothing was changed" in pinned.out) == (0, True), pinned.err
    later = place.run(columns=columns, mask=MASK)
    assert (later.code, "holds another release" in later.err) == (2, True)
    inside = place.run(columns=columns, mask=MASK, target="lake/out")
    assert (inside.code, "source and target must be different folders" in inside.err) == (2, True)


def z85(data):
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    data += b"\0" * (-len(data) % 4)
    text = ""
    for (word,) in struct.iter_unpack(">I", data):
        text += "".join(letters[word // 85**power % 85] for power in range(4, -1, -1))
    return text


def change_log(folder, *actions):
    """Write one more version of a Delta table by hand."""
    log = Path(folder) / "_delta_log"
    number = len(list(log.glob("*.json")))
    (log / f"{number:020}.json").write_text("\n".join(map(json.dumps, actions)))


def features(*names):
    features = list(names)
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
    }


def test_deletion_vectors_are_followed(place):
    from pyroaring import BitMap64

    folder = str(place.folder / "lake")
    write_deltalake(folder, some(0, 200))
    (path,) = (one["path"] for one in pa.table(DeltaTable(folder).get_add_actions()).to_pylist())
    gone = [0, 3, 77, 199]
    data = struct.pack("<I", 1681511377) + BitMap64(gone).serialize()
    vector = {"storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": len(data), "cardinality": len(gone)}
    size = (place.folder / "lake" / path).stat().st_size
    old = {"path": path, "dataChange": True, "deletionTimestamp": 1}
    new = {
        "path": path,
        "partitionValues": {},
        "size": size,
        "modificationTime": 1,
        "dataChange": True,
        "deletionVector": vector,
    }
    new["stats"] = json.dumps({"numRecords": 200})
    change_log(folder, features("deletionVectors"), {"remove": old}, {"add": new})
    left = [number for number in range(200) if number not in gone]
    for block_rows in (30, 1000):
        lake = dpmask.read_lake(folder, block_rows=block_rows)
        assert (lake.rows, lake.to_dask()["id"].compute().tolist()) == (196, left)
    assert ids(dpmask.read_lake(folder, where="id < 80")) == [number for number in left if number < 80]
    ended = place.run(columns=COLUMNS, mask=MASK, order="input")
    assert ended.code == 0, ended.err
    assert place.released()[1].num_rows == 196


@pytest.mark.parametrize("feature", ["columnMapping", "typeWidening", "somethingNew"])
def test_features_that_are_not_read_are_refused_by_name(tmp_path, feature):
    folder = str(tmp_path / "lake")
    write_deltalake(folder, some(0, 20))
    lines = Path(folder, "_delta_log", f"{0:020}.json").read_text().splitlines()
    first = json.loads(next(line for line in lines if "metaData" in line))
    if feature == "columnMapping":
        first["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
        schema = json.loads(first["metaData"]["schemaString"])
        for number, field in enumerate(schema["fields"], 1):
            field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
        first["metaData"]["schemaString"] = json.dumps(schema)
    change_log(folder, features(feature), first)
    with pytest.raises(InputError, match=rf"uses the feature {feature}, which is not read"):
        dpmask.read_lake(folder)


@pytest.fixture
def iceberg(place):
    """A table whose columns were renamed, widened, added and dropped, and whose records were deleted."""
    catalog = InMemoryCatalog("test", warehouse=f"file://{place.folder}/warehouse")
    catalog.create_namespace("n")
    first = (
        some(0, 200)
        .rename_columns(["id", "years", "income", "region", "day"])
        .append_column("gone", pa.array(np.arange(200)))
    )
    table = catalog.create_table("n.people", first.schema)
    table.append(first)
    with table.update_schema() as change:
        change.rename_column("years", "age")
        change.delete_column("gone")
    with table.update_schema() as change:
        change.update_column("age", LongType())
        change.add_column("more", DoubleType())
        change.add_column("gone", DoubleType())  # another one of the same name
    new = some(200, 100).set_column(1, "age", pa.array(np.arange(200, 300) % 90, pa.int64()))
    table.append(new.append_column("more", pa.array(np.arange(100.0))).append_column("gone", pa.array(np.ones(100))))
    return table


def folder_of(table):
    return table.location().removeprefix("file://")


def test_an_iceberg_table_is_what_its_metadata_says(iceberg):
    folder, before = folder_of(iceberg), iceberg.current_snapshot().snapshot_id
    for number in (0, 1):
        expected = iceberg.scan().to_arrow().sort_by("id")
        frame = dpmask.read_lake(folder, block_rows=70).to_dask().compute().sort_values("id")
        assert frame.columns.tolist() == ["id", "age", "income", "region", "day", "more", "gone"]
        assert_same(frame, expected)
        if number == 0:
            iceberg.delete("age < 10")
    assert len(ids(dpmask.read_lake(folder, version=before))) == 300
    assert ids(dpmask.read_lake(iceberg.metadata_location)) == sorted(iceberg.scan().to_arrow()["id"].to_pylist())
    with pytest.raises(InputError, match="has no snapshot 7, or no longer"):
        dpmask.read_lake(folder, version=7)
    with pytest.raises(JobError, match="must be the only source"):
        dpmask.read_lake([folder, f"{folder}/../people"])


def with_deletes(table, files, content):
    """The table's newest snapshot with files of deletes, as other engines write them: its metadata by hand."""
    from pyiceberg.manifest import ManifestWriterV2, write_manifest_list

    class DeletesWriter(ManifestWriterV2):
        def content(self):
            return ManifestContent.DELETES

        @property
        def _meta(self):
            return {**super()._meta, "content": "deletes"}

    snapshot, folder = table.current_snapshot(), table.location()
    with DeletesWriter(
        table.spec(),
        table.schema(),
        table.io.new_output(f"{folder}/metadata/deletes-{content}.avro"),
        snapshot.snapshot_id,
        "null",
    ) as out:
        for path, rows in files:
            size = len(table.io.new_input(path).open().read())
            file = IcebergFile.from_args(
                content=content,
                file_path=path,
                file_format=FileFormat.PARQUET,
                partition={},
                record_count=rows,
                file_size_in_bytes=size,
                equality_ids=[1] if content == DataFileContent.EQUALITY_DELETES else None,
            )
            out.add_entry(
                ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED,
                    snapshot_id=snapshot.snapshot_id,
                    sequence_number=snapshot.sequence_number,
                    file_sequence_number=snapshot.sequence_number,
                    data_file=file,
                )
            )
    manifests = [*snapshot.manifests(table.io), out.to_manifest_file()]
    listed = f"{folder}/metadata/snap-{content}.avro"
    with write_manifest_list(
        2, table.io.new_output(listed), snapshot.snapshot_id, None, snapshot.sequence_number, "null"
    ) as out:
        out.add_manifests(manifests)
    metadata = json.loads(table.io.new_input(table.metadata_location).open().read())
    metadata["snapshots"][-1]["manifest-list"] = listed
    with table.io.new_output(f"{folder}/metadata/00099-by-hand.metadata.json").create(overwrite=True) as out:
        out.write(json.dumps(metadata).encode())


def test_position_deletes_are_followed_and_equality_deletes_refused(iceberg):
    folder, files = folder_of(iceberg), sorted(task.file.file_path for task in iceberg.scan().plan_files())
    rows = [pq.read_table(path.removeprefix("file://"))["id"].to_pylist() for path in files]
    gone = pa.table({"file_path": [files[0]] * 3 + [files[1]], "pos": pa.array([0, 5, 99, 1], pa.int64())})
    path = f"{iceberg.location()}/data/deletes.parquet"
    pq.write_table(gone, path.removeprefix("file://"))
    with_deletes(iceberg, [(path, 4)], DataFileContent.POSITION_DELETES)
    dropped = {rows[0][0], rows[0][5], rows[0][99], rows[1][1]}
    assert ids(dpmask.read_lake(folder, block_rows=40)) == sorted({*rows[0], *rows[1]} - dropped)
    with_deletes(iceberg, [(path, 4)], DataFileContent.EQUALITY_DELETES)
    with pytest.raises(
        InputError, match=r"the Iceberg table has equality deletes, which is not read. Rewrite its data"
    ):
        dpmask.read_lake(folder)


def test_which_metadata_is_current(iceberg, tmp_path):
    folder = Path(folder_of(iceberg))
    newest = sorted(folder.glob("metadata/*.metadata.json"))
    twin = newest[-1].with_name(newest[-1].name.replace("-", "-a", 1))
    twin.write_bytes(newest[-1].read_bytes())
    with pytest.raises(InputError, match="which metadata of the Iceberg table is current does not follow"):
        dpmask.read_lake(folder)
    (folder / "metadata" / "version-hint.text").write_text(newest[1].name)
    assert ids(dpmask.read_lake(folder)) == list(range(200))
    with pytest.raises(InputError, match=r"is part of an Iceberg table.*Point to the folder of the table"):
        dpmask.read_lake(folder / "data")


def test_a_job_on_an_iceberg_table(place, iceberg):
    ended = place.run(
        source=folder_of(iceberg), columns={**COLUMNS, "drop": ["more", "gone"]}, mask=MASK, where="age >= 10"
    )
    assert ended.code == 0, ended.err
    result = json.loads((place.folder / "private" / "result.json").read_text())
    assert result["source_version"] == f"Iceberg {iceberg.current_snapshot().snapshot_id}"
    assert place.released()[1].num_rows == iceberg.scan("age >= 10").to_arrow().num_rows
    inside = place.run(source=iceberg.metadata_location, target=f"{folder_of(iceberg)}/out")
    assert (inside.code, "source and target must be different folders" in inside.err) == (2, True), inside.err


def test_tables_in_a_bucket(s3):
    write_deltalake(f"{s3}/delta", some(0, 100), storage_options={"AWS_ALLOW_HTTP": "true"})
    assert ids(dpmask.read_lake(f"{s3}/delta")) == list(range(100))
    io = {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}
    catalog = InMemoryCatalog("test", warehouse=f"{s3}/warehouse", **io)
    catalog.create_namespace("n")
    table = catalog.create_table("n.people", some(0, 2).schema)
    table.append(some(0, 100))
    table.delete("id < 10")
    assert ids(dpmask.read_lake(table.location())) == list(range(10, 100))
