"""Releases in Hive folders and as Delta Lake and Iceberg tables: read back by their own libraries, crashes, refusals."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpmask

HOSTILE = ["north", "a/b=c:d%25", "..", "né 'é'", "x\ny*[?]{}#\\", "1", None]
COLUMNS = {"identifier": ["id"], "sensitive": ["income"], "plain": ["region", "year", "member"]}
MASK = [{"method": "noise", "columns": ["income"], "scale": 0.1}]


def people(rows=2000):
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "id": np.arange(rows),
            "region": pa.array([HOSTILE[i // 2 % 7] for i in range(rows)]),
            "year": pa.array((2024 + np.arange(rows) % 2).astype(np.int16)),
            "member": pa.array(rng.random(rows) < 0.5, mask=np.arange(rows) % 9 == 0),
            "income": rng.lognormal(9, 1, rows),
        }
    )


@pytest.fixture
def lake(place):
    place.lake(people(), files=3)
    return place


def rows_of(table):
    """The rows of a release in an order of their own."""
    names = ["income", "member", "region", "year"]
    return sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True), key=repr)


def run(place, *options, **changes):
    job = {"columns": COLUMNS, "mask": MASK, "block_rows": 500, **changes}
    return place.run(*options, **job)


def manifest_of(place):
    return json.loads((place.folder / "release" / "manifest.json").read_text())


def test_a_partitioned_release_is_read_back_with_its_column(lake):
    ended = run(lake, partition_by=["region", "year"])
    assert ended.code == 0, ended.err
    manifest, release = manifest_of(lake), lake.folder / "release"
    assert manifest["partition_by"] == ["region", "year"]
    assert {one["name"]: one["type"] for one in manifest["schema"]}["year"] == "int16"
    folders = {file["path"].split("/", 2)[2].rsplit("/", 1)[0] for file in manifest["files"]}
    assert "region=a%2Fb%3Dc%3Ad%2525/year=2024" in folders
    assert "region=x%0Ay%2A%5B%3F%5D%7B}%23%5C/year=2025" in folders
    assert "region=__HIVE_DEFAULT_PARTITION__/year=2025" in folders
    assert "region" not in pq.read_schema(release / manifest["files"][0]["path"]).names
    back = dpmask.read_lake(str(release))
    assert [str(back.schema.field(name).type) for name in ("region", "year")] == ["string", "int16"]
    frame = back.to_dask().compute()
    plain = run(lake, target="plain", private="other")
    assert plain.code == 0, plain.err
    assert rows_of(lake.released("plain")[1]) == rows_of(pa.Table.from_pandas(frame, preserve_index=False))
    assert len(dpmask.read_lake(str(release), where="region = '1' and year = 2025").files) == 1
    by_arrow = ds.dataset(
        release / "data" / manifest["release"],
        partitioning=ds.HivePartitioning(
            pa.schema([("region", pa.string()), ("year", pa.int16())]), segment_encoding="uri"
        ),
    ).to_table()
    assert rows_of(by_arrow) == rows_of(lake.released("plain")[1])


def delta_rows(folder):
    from deltalake import DeltaTable

    return rows_of(DeltaTable(folder).to_pyarrow_table())


def iceberg_rows(folder):
    from pyiceberg.table import StaticTable

    number = (folder / "metadata" / "version-hint.text").read_text()
    return rows_of(StaticTable.from_metadata(f"file://{folder}/metadata/v{number}.metadata.json").scan().to_arrow())


READERS = {"delta": delta_rows, "iceberg": iceberg_rows}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("partitions", [[], ["region", "year"]])
def test_a_release_is_a_table(lake, kind, partitions):
    pytest.importorskip("deltalake")
    pytest.importorskip("pyiceberg")
    release = lake.folder / "release"
    ended = run(lake, table=kind, partition_by=partitions)
    assert ended.code == 0, ended.err
    assert lake.dpmask("verify", "release").code == 0
    expected = rows_of(pa.Table.from_pandas(dpmask.read_lake(str(release)).to_dask().compute(), preserve_index=False))
    assert len(expected) == 2000
    assert READERS[kind](release) == expected
    before = lake.bytes()
    again = run(lake, table=kind, partition_by=partitions)
    assert (again.code, "nothing was changed" in again.out) == (0, True), again.err
    assert lake.bytes() == before
    assert not any(str(lake.folder / "lake").encode() in data for data in before.values())


def test_duckdb_reads_the_folders(place):
    duckdb = pytest.importorskip("duckdb")
    table = people()
    regions = pa.array([["north", "a/b", None][i % 3] for i in range(2000)])
    place.lake(table.set_column(1, "region", regions), files=3)
    assert run(place, partition_by="region").code == 0
    files = f"{place.folder}/release/data/*/*/*.parquet"
    found = duckdb.sql(f"select region, count(*) from read_parquet('{files}', hive_partitioning=true) group by 1")
    assert dict(found.fetchall()) == {"north": 667, "a/b": 667, None: 666}


@pytest.mark.parametrize("kind", READERS)
def test_another_release_replaces_the_table(lake, kind):
    pytest.importorskip("deltalake")
    pytest.importorskip("pyiceberg")
    release = lake.folder / "release"
    assert run(lake, table=kind, partition_by="region").code == 0
    first = READERS[kind](release)
    ended = run(lake, "--overwrite", table=kind, partition_by="year", seed=8)
    assert ended.code == 0, ended.err
    second = READERS[kind](release)
    assert len(second) == len(first)
    assert second != first
    if kind == "delta":
        from deltalake import DeltaTable

        assert DeltaTable(release).version() == 1
        assert DeltaTable(release).metadata().partition_columns == ["year"]
    ended = run(lake, "--overwrite", seed=9)
    assert ended.code == 0, ended.err
    assert not (release / "_delta_log").exists()
    assert not (release / "metadata").exists()


@pytest.mark.parametrize("kind", READERS)
def test_a_run_that_dies_before_the_log_leaves_the_old_table_and_the_next_completes_it(lake, kind, monkeypatch):
    pytest.importorskip("deltalake")
    pytest.importorskip("pyiceberg")
    from dpmask.release import publish

    class Died(Exception):
        pass

    def dies(*_):
        raise Died

    release = lake.folder / "release"
    assert run(lake, table=kind, partition_by="region").code == 0
    old = READERS[kind](release)
    with monkeypatch.context() as patched:
        patched.setattr(publish, "write_log", dies)
        assert run(lake, "--overwrite", table=kind, partition_by="region", seed=8).code != 0
    assert READERS[kind](release) == old
    assert lake.dpmask("verify", "release").code == 4
    ended = run(lake, table=kind, partition_by="region", seed=8)
    assert (ended.code, "nothing was changed" in ended.out) == (0, True), ended.err
    assert lake.dpmask("verify", "release").code == 0
    frame = dpmask.read_lake(str(release)).to_dask().compute()
    assert READERS[kind](release) == rows_of(pa.Table.from_pandas(frame, preserve_index=False)) != old


@pytest.mark.parametrize("kind", READERS)
def test_verify_finds_a_log_that_says_something_else(lake, kind):
    pytest.importorskip("pyiceberg")
    assert run(lake, table=kind, partition_by="region").code == 0
    release = lake.folder / "release"
    log = next(release.glob("_delta_log/*.json"), None) or next(release.glob("metadata/files-*.avro"))
    good = log.read_bytes()
    log.write_bytes(good.replace(b"north", b"south", 1))
    ended = lake.dpmask("verify", "release")
    assert ended.code == 4
    assert "another table than the manifest" in ended.err or "other files than the manifest" in ended.err
    log.write_bytes(good)
    extra = log.with_name("00000000000000000001.json" if kind == "delta" else "v9.metadata.json")
    extra.write_bytes(b"{}")
    assert lake.dpmask("verify", "release").code == 4
    extra.unlink()
    assert lake.dpmask("verify", "release").code == 0
    if kind == "delta":
        extra.write_bytes(b"{}")
        ended = run(lake, "--overwrite", table=kind, seed=9)
        assert (ended.code, "did not write" in ended.err) == (2, True), ended.err


def test_folders_and_logs_are_the_same_on_a_cluster(lake, cluster):
    given = {"partition_by": ["region"], "table": "delta"}
    assert run(lake, **given).code == 0
    ended = run(lake, "--scheduler", cluster.scheduler_address, **given, target="other", private="private2")
    assert ended.code == 0, ended.err
    assert lake.bytes("other") == lake.bytes()


@pytest.mark.parametrize("kind", READERS)
def test_folders_and_tables_on_s3(lake, s3, kind):
    pytest.importorskip("pyiceberg")
    given = {"partition_by": ["region"], "table": kind, "target": f"{s3}/release", "private": f"{s3}/private"}
    ended = run(lake, **given)
    assert ended.code == 0, ended.err
    frame = dpmask.read_lake(f"{s3}/release").to_dask().compute()
    assert set(frame["region"].dropna()) == set(HOSTILE) - {None}
    ended = run(lake, **given)
    assert (ended.code, "nothing was changed" in ended.out) == (0, True), ended.err


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"partition_by": ["id"]}, "column 'id' is dropped; folders are named by released values only"),
        ({"partition_by": ["regoin"]}, "the job releases no column 'regoin'. Did you mean 'region'"),
        ({"partition_by": ["income"]}, "column 'income' is double; folders are named by texts"),
        ({"partition_by": ["year", "year"]}, "column 'year' stands twice"),
        ({"partition_by": "year", "order": "within_files"}, "needs order: shuffled"),
        ({"table": "hudi"}, "table: "),
    ],
)
def test_what_cannot_be_is_refused_by_the_plan(lake, changes, text):
    job = lake.job(columns=COLUMNS, mask=MASK, **changes)
    for command in ("plan", "run"):
        ended = lake.dpmask(command, job)
        assert (ended.code, text in ended.err) == (2, True), ended.err
    assert not (lake.folder / "release").exists()


def test_values_and_types_without_a_name_are_refused(place):
    table = people().set_column(1, "region", pa.array(["", "north"] * 1000))
    place.lake(table.append_column("a b", pa.array(np.zeros(2000, np.uint8))), files=1)
    columns = {**COLUMNS, "plain": [*COLUMNS["plain"], "a b"]}
    ended = run(place, columns=columns, partition_by="region")
    assert (ended.code, "empty texts, which folders cannot distinguish" in ended.err) == (4, True), ended.err
    ended = run(place, columns=columns, partition_by="region", missing={"region": [""]})
    assert ended.code == 0, ended.err
    for kind in ("delta", "iceberg"):
        ended = run(place, columns=columns, table=kind, target="x")
        assert (ended.code, "has no type for column 'a b', which is uint8" in ended.err) == (2, True), ended.err
