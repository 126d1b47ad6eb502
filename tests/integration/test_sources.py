"""What a lake may be: single files, globs, folders of partitions, CSV; every type and name, to its limits."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from conftest import JOB, people, write_lake

import dpmask
from dpmask.errors import InputError


@pytest.mark.parametrize("source", ["lake/part-0.parquet", "lake/part-[01].parquet", "lake/**/*.parquet"])
def test_single_files_and_globs(place, source):
    place.lake()
    assert place.run(source=source).code == 0
    assert place.released()[0]["rows"] == {"lake/part-0.parquet": 150, "lake/part-[01].parquet": 300}.get(source, 600)


def test_hive_folders_become_columns_and_leave_no_folder(place):
    table = people(300).drop_columns(["region"])
    for year, region in [("2023", "north%20east"), ("2024", "__HIVE_DEFAULT_PARTITION__"), ("2024", "south")]:
        write_lake(place.folder / "lake" / f"year={year}" / f"region={region}", table, files=1)
    columns = JOB["columns"] | {"plain": ["name", "member", "year"]}
    ended = place.run(columns=columns, order="input")
    assert ended.code == 0, ended.err
    manifest, released = place.released()
    assert released["year"].to_pylist() == [2023] * 300 + [2024] * 600
    assert released["region"].to_pylist() == ["north east"] * 300 + [None] * 300 + ["south"] * 300
    assert "year=" not in json.dumps(manifest)


@pytest.mark.parametrize(
    ("source", "rows"),
    [("lake/year=2024", 600), ("lake/year=2024/region=south", 300), ("lake/year=2024/*/*.parquet", 600)],
)
def test_hive_levels_that_a_source_lies_in_stay_columns(place, source, rows):
    table = people(300).drop_columns(["region"])
    for year, region in [("2023", "north"), ("2024", "north"), ("2024", "south")]:
        write_lake(place.folder / "lake" / f"year={year}" / f"region={region}", table, files=1)
    lake = dpmask.read_lake(place.folder / source)
    frame = lake.to_dask()[["year", "region"]].compute()
    assert (lake.rows, set(frame["year"])) == (rows, {2024})
    assert set(frame["region"]) == ({"south"} if "south" in source else {"north", "south"})


def test_a_column_that_a_file_has_is_not_taken_from_the_folders_above(place):
    write_lake(place.folder / "lake" / "age=7", people(300), files=2)
    lake = dpmask.read_lake(place.folder / "lake" / "age=7")
    assert lake.schema.names == people(1).schema.names
    assert lake.to_dask()["age"].compute().tolist() == people(300)["age"].to_pylist()


def test_csv_for_small_tables(place):
    table = people(100).select(["id", "age", "income", "name"])
    (place.folder / "lake").mkdir()
    pyarrow.csv.write_csv(table, place.folder / "lake" / "people.csv")
    columns = {"identifier": ["id"], "quasi": ["age"], "sensitive": ["income"], "plain": ["name"]}
    mask = [{"method": "noise", "columns": ["income", "age"], "scale": 0.1}]
    ended = place.run(columns=columns, mask=mask, block_rows=30, order="input")
    assert ended.code == 0, ended.err
    _, released = place.released()
    assert released["name"].to_pylist() == table["name"].to_pylist()
    assert released.schema.field("age").type == pa.int64()


def test_csv_codes_stay_text_and_missing_numbers_are_missing(place):
    (place.folder / "lake").mkdir()
    rows = "\n".join(f"{n:04d},{n if n % 7 else 'NA'},{'' if n % 5 else n}" for n in range(1, 60))
    (place.folder / "lake" / "people.csv").write_text("postcode,income,name\n" + rows)
    mask = [{"method": "noise", "columns": ["income"], "scale": 0.5}]
    columns = {"quasi": ["postcode"], "sensitive": ["income"], "plain": ["name"]}
    ended = place.run(columns=columns, mask=mask, order="input")
    assert ended.code == 0, ended.err
    _, released = place.released()
    assert released["postcode"].to_pylist()[:2] == ["0001", "0002"]
    assert released["income"].null_count == 8
    (place.folder / "lake" / "people.csv").write_bytes("postcode,income,name\n1,2,é\n".encode("latin-1"))
    refused = place.run(target="other")
    assert (refused.code, "is not in UTF-8" in refused.err) == (4, True)


def test_a_list_of_sources_is_one_table(place):
    table = people(600)
    for number, name in enumerate(("b", "a", "c")):
        write_lake(place.folder / name, table.slice(200 * number, 200), files=2)
    (place.folder / "c" / "part-1.parquet").rename(place.folder / "c" / "other.parquet")
    ended = place.run(source=["b", "a/*.parquet", "c/part-0.parquet", "c/other.parquet"], order="input")
    assert ended.code == 0, ended.err
    released = place.released()[1]
    assert released["name"].to_pylist() == table["name"].to_pylist()
    again = place.run(source=["b", "a/*.parquet", "c/part-0.parquet", "c/other.parquet"], order="input")
    assert "nothing was changed" in again.out
    both = dpmask.read_lake([place.folder / "b", place.folder / "a"])
    assert both.rows == 400


@pytest.mark.parametrize(
    ("source", "code", "text"),
    [
        (["lake", "lake/part-0.parquet"], 2, "part-0.parquet: two sources have it"),
        (["lake", "nowhere"], 4, "nowhere: there is no such file or folder"),
        (["lake", "private/lake"], 2, "source and private must be different folders"),
        (["lake", "memory://a.parquet"], 2, "lies in another kind of store than lake"),
        ([], 2, "source"),
        (["lake", "other"], 4, "source[1]/part-0.parquet: column 'age' is missing, which source[0]/part-0.parquet has"),
    ],
)
def test_lists_of_sources_that_are_refused(place, source, code, text):
    place.lake()
    write_lake(place.folder / "other", people(100).drop_columns(["age"]), files=1)
    ended = place.run(source=source)
    assert (ended.code, text in ended.err) == (code, True), ended.err


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.zst"])
def test_csv_as_it_comes_from_offices(place, ending):
    """Semicolons, an old encoding, compressed; and what is said where that is not declared."""
    (place.folder / "lake").mkdir()
    text = "id;größe;ort\n" + "".join(f"{n};{n * 1.5};Köln\n" for n in range(1, 60))
    kind = {".csv.gz": "gzip", ".csv.zst": "zstd"}.get(ending)
    data = text.encode("latin-1")
    with pa.output_stream(str(place.folder / "lake" / f"people{ending}"), compression=kind) as file:
        file.write(data)
    said = {
        "columns": {"identifier": ["id"], "sensitive": ["größe"], "plain": ["ort"]},
        "mask": [{"method": "noise", "columns": ["größe"], "scale": 0.5}],
    }
    undeclared = place.run(**said)
    assert (undeclared.code, "is not in UTF-8. Convert it, or declare csv: {encoding: latin-1}" in undeclared.err) == (
        4,
        True,
    )
    ended = place.run(**said, csv={"separator": ";", "encoding": "latin-1"}, order="input")
    assert ended.code == 0, ended.err
    assert place.released()[1]["ort"].to_pylist() == ["Köln"] * 59
    lake = dpmask.read_lake(place.folder / "lake", csv={"separator": ";", "encoding": "latin-1"}, block_rows=7)
    assert lake.to_dask()["id"].compute().tolist() == list(range(1, 60))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"separator": ";;"}, "separator must be one character"),
        ({"encoding": "klingon"}, "encoding must be one that Python knows"),
        ({"seperator": ";"}, "is not a key here. Did you mean 'separator'?"),
    ],
)
def test_a_wrong_declaration_of_csv(place, said, text):
    place.lake()
    ended = place.run(csv=said)
    assert (ended.code, text in ended.err) == (2, True)


def test_compressed_csv_beside_parquet_is_not_passed_over(place):
    (place.lake() / "more.csv.gz").write_bytes(b"something")
    ended = place.run()
    assert (ended.code, "holds Parquet and CSV files together" in ended.err) == (4, True)


def test_csv_that_is_not_what_its_name_says(place):
    (place.folder / "lake").mkdir()
    (place.folder / "lake" / "people.csv.gz").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(InputError, match=r"people\.csv\.gz: is damaged, or not compressed with gzip"):
        dpmask.read_lake(place.folder / "lake")
    (place.folder / "lake" / "people.csv.gz").rename(place.folder / "lake" / "people.csv.bz2")
    with pytest.raises(InputError, match=r"compressed in a way that is not read.*as \.csv\.gz or \.csv\.zst"):
        dpmask.read_lake(place.folder / "lake")


def test_values_at_the_limits_of_their_type_stay_inside(place):
    rng = np.random.default_rng(0)
    many = 2000
    table = pa.table(
        {
            "u8": pa.array(rng.choice([0, 255], many), pa.uint8()),
            "i64": pa.array(rng.choice([-(2**63), 2**63 - 1], many), pa.int64()),
            "u64": pa.array(rng.choice(np.array([0, 2**64 - 1], np.uint64), many), pa.uint64()),
            "f16": pa.array(rng.choice([-65504, 65504], many).astype(np.float16), pa.float16()),
            "f32": pa.array(rng.choice([-3.4e38, 3.4e38], many), pa.float32()),
            "d16": pa.array([f"{x}99999999999999.99" for x in rng.choice(["-", ""], many)]).cast(pa.decimal128(16, 2)),
            "d38": pa.array([f"{x}{'9' * 36}.99" for x in rng.choice(["-", ""], many)]).cast(pa.decimal128(38, 2)),
        }
    )
    place.lake(table)
    mask = [{"method": "noise", "columns": table.schema.names, "scale": 0.1}]
    ended = place.run(columns={"sensitive": table.schema.names}, mask=mask, order="input")
    assert ended.code == 0, ended.err
    _, released = place.released()
    for name in table.schema.names:
        assert released.schema.field(name).type == table.schema.field(name).type
        before, after = (np.array([float(v) for v in t[name].to_pylist()]) for t in (table, released))
        assert np.isfinite(after).all(), name
        # noise of a tenth of the spread, held to the type's range, keeps each value on its side
        middle = (before.max() + before.min()) / 2
        assert ((after > middle) == (before > middle)).all(), name


def test_values_held_to_their_type_are_said_in_the_statement(place):
    place.lake(pa.table({"x": pa.array([0] * 500 + list(range(500)), pa.uint32())}))
    mask = [{"method": "noise", "columns": ["x"], "scale": 0.2}]
    ended = place.run(columns={"sensitive": ["x"]}, mask=mask)
    assert "Warning: NoiseAddition: noise would take values of 'x' out of the range of its type" in ended.out
    statement = next(place.folder.glob("release/report/*/statement.md")).read_text()
    assert "Values of x were held to the range of their type" in statement


def test_nested_metadata_stays_behind(place):
    inner = pa.field("zip", pa.int64(), metadata={"comment": "secret-agency"})
    homes = pa.StructArray.from_arrays([pa.array(range(50))], fields=[inner])
    place.lake(pa.table({"x": np.arange(50.0), "home": homes}))
    mask = [{"method": "noise", "columns": ["x"], "scale": 0.1}]
    columns = {"sensitive": ["x"], "plain": ["home"]}
    ended = place.run(columns=columns, mask=mask, order="input")
    assert ended.code == 0, ended.err
    assert not any(b"secret-agency" in data for data in place.bytes().values())
    assert place.released()[1]["home"].to_pylist() == [{"zip": n} for n in range(50)]


def test_a_null_type_and_nested_columns_pass_as_plain(place):
    table = pa.table(
        {
            "x": np.arange(100.0),
            "tags": pa.array([[n, n + 1] for n in range(100)]),
            "home": pa.array([{"town": "a", "zip": n} for n in range(100)]),
            "nothing": pa.nulls(100),
        }
    )
    place.lake(table)
    mask = [{"method": "noise", "columns": ["x"], "scale": 0.1}]
    columns = {"sensitive": ["x"], "plain": ["tags", "home", "nothing"]}
    ended = place.run(columns=columns, mask=mask, order="input")
    assert ended.code == 0, ended.err
    _, released = place.released()
    assert released.drop_columns(["x"]).equals(table.drop_columns(["x"]))


def test_unicode_and_odd_names(place):
    names = ["größe in cm", "a.b", "名前", "x y:z", "id"]
    table = pa.table({name: np.arange(50.0) + n for n, name in enumerate(names)})
    place.lake(table, name="lake ü")
    mask = [{"method": "noise", "columns": names[:4], "scale": 0.1}]
    measure = [{"measure": "il1s", "columns": names[:4]}]
    ended = place.run(
        source="lake ü", name="Ünï", columns={"identifier": ["id"], "sensitive": names[:4]}, mask=mask, measure=measure
    )
    assert ended.code == 0, ended.err
    assert place.released()[1].schema.names == names[:4]


@pytest.mark.parametrize(
    ("log", "kind"),
    [("_delta_log/00000000000000000000.json", "a Delta Lake"), ("metadata/00001-a.metadata.json", "an Iceberg")],
)
@pytest.mark.parametrize("source", ["lake", "lake/data", "lake/data/*.parquet", "lake/data/year=2024"])
def test_files_of_a_table_with_a_log_are_refused(place, log, kind, source):
    """Read as loose files they would give deleted and superseded records away."""
    for year in (2023, 2024):
        write_lake(place.folder / "lake" / "data" / f"year={year}", people(100), files=1)
    write_lake(place.folder / "lake" / "data", people(100), files=1)
    (place.folder / "lake" / log).parent.mkdir()
    (place.folder / "lake" / log).write_text("{}")
    ended = place.run(source=source)
    text = (
        f"{kind.split(' ', 1)[1]} table cannot be read" if source == "lake" else f"is part of {kind} table, whose files"
    )
    assert (ended.code, text in ended.err) == (4, True), ended.err
    assert not (place.folder / "release").exists()


@pytest.mark.parametrize("name", ["part-9", "more.csv.bz2", "notes.txt", "year=2024/part.orc"])
def test_no_file_is_passed_over_in_silence(place, name):
    place.lake()
    file = place.folder / "lake" / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"something")
    ended = place.run()
    assert (ended.code, f"{name} is neither .parquet nor .csv" in ended.err) == (4, True), ended.err
    assert place.run(source="lake/part-*.parquet").code == 0


def test_a_glob_reads_files_without_an_ending_as_parquet(place):
    place.lake()
    for path in sorted((place.folder / "lake").glob("*.parquet")):
        path.rename(path.with_suffix(""))
    ended = place.run(source="lake/part-*")
    assert ended.code == 0, ended.err
    assert place.released()[0]["rows"] == 600


def test_files_that_are_ignored_by_rule_are_named(place):
    place.lake()
    for name in ("_part-9.parquet", ".part-8.csv", "_SUCCESS"):
        (place.folder / "lake" / name).write_bytes((place.folder / "lake" / "part-0.parquet").read_bytes())
    lake = dpmask.read_lake(place.folder / "lake")
    assert (lake.rows, [name.rpartition("/")[2] for name in lake.ignored]) == (600, [".part-8.csv", "_part-9.parquet"])
    assert ".part-8.csv and 1 more, which are ignored" in " ".join(place.dpmask("plan", place.job()).out.split())
    assert any("which are ignored" in one for one in json.loads(place.run("--json").out)["warnings"])
    assert dpmask.read_lake(place.folder / "lake" / "_part-9.parquet").rows == 150
    with pytest.raises(InputError, match=r"holds no .parquet or .csv file but .*_part-9.parquet, which is ignored"):
        dpmask.read_lake(place.folder / "lake" / "_part*")


@pytest.mark.parametrize("name", ["PEOPLE.PARQUET", "people.Csv", "PEOPLE.CSV.GZ"])
def test_endings_may_be_in_capitals(place, name):
    (place.folder / "lake").mkdir()
    table, path = people(100).select(["id", "age"]), place.folder / "lake" / name
    if name == "PEOPLE.PARQUET":
        pyarrow.parquet.write_table(table, path)
    else:
        with pa.output_stream(path, compression="gzip" if "GZ" in name else None) as sink:
            pyarrow.csv.write_csv(table, sink)
    assert dpmask.read_lake(place.folder / "lake").to_dask().compute()["age"].tolist() == table["age"].to_pylist()


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("s3:/bucket/folder", "has two slashes after its protocol"),
        ("s3://", "names no bucket"),
        ("memory://release", "what is in memory is gone"),
        ("http://127.0.0.1:9/lake", "can only be read"),
    ],
)
def test_a_target_that_cannot_be_one_is_refused_at_once(place, url, text):
    place.lake()
    ended = place.dpmask("plan", place.job(target=url))
    assert ended.code == 2
    assert text in ended.err


def test_a_web_server_that_does_not_answer_is_a_mistake(place):
    url = "http://127.0.0.1:9/lake"
    for command in (("plan", place.job(source=url)), ("verify", url), ("evaluate", url, url)):
        ended = place.dpmask(*command)
        assert ended.code == 2
        assert f"{url}: no store answers" in ended.err
