"""A job from lake to release, embedded, on local files."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from conftest import JOB, people, write_lake

MASKED = JOB["mask"][0]["columns"]


def by_original(place, table):
    """Released rows put back into the source's order, with the private pairing."""
    manifest, released = place.released()
    run = place.folder / "private" / manifest["run"] / "pairing"
    positions = np.concatenate([pq.read_table(path)["position"].to_numpy() for path in sorted(run.iterdir())])
    assert sorted(positions) == list(range(table.num_rows))
    return released.take(pa.array(np.argsort(positions)))


def test_a_release_holds_every_record_with_its_types_and_other_columns(place):
    table = people()
    place.lake(table)
    ended = place.run()
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[-1] == f"Released 1,000 records in 8 files to {place.folder / 'release'}"
    manifest, _ = place.released()
    released = by_original(place, table)
    kept = [name for name in table.schema.names if name != "id"]
    assert released.schema.names == kept
    for name in kept:
        assert released.schema.field(name).type == table.schema.field(name).type, name
        assert released[name].is_null().equals(table[name].is_null()), name
        same = released[name].to_pylist() == table[name].to_pylist()
        rounded_away = name == "children"
        assert same == (name not in MASKED or rounded_away), name
    assert "Warning: NoiseAddition: about 100.0% of the values of 'children' stay as they are" in ended.out
    assert manifest["rows"] == 1000
    assert manifest["key"]["experiment"] is True
    noise = released["income"].to_numpy() - table["income"].to_numpy()
    # N(0, 0.1 sd): five standard errors around the standard deviation of 1000 draws
    assert noise.std() == pytest.approx(0.1 * table["income"].to_numpy().std(), rel=5 / np.sqrt(2 * 1000))


def test_rows_are_shuffled_inside_each_file_or_left_as_they_are(place):
    table = people()
    place.lake(table)
    assert place.run().code == 0
    manifest, shuffled = place.released()
    assert shuffled["seen"].to_pylist() != table["seen"].to_pylist()
    rows = manifest["files"][0]["rows"]
    assert sorted(shuffled["seen"].to_pylist()[:rows]) == sorted(table["seen"].to_pylist()[:rows])
    assert place.run(order="input", target="plain").code == 0
    _, plain = place.released("plain")
    assert plain["name"].to_pylist() == table["name"].to_pylist()


def test_a_second_run_says_already_released_and_changes_nothing(place):
    place.lake()
    assert place.run().code == 0
    before = {path: path.stat().st_mtime_ns for path in place.folder.glob("release/**/*")}
    again = place.run()
    assert again.code == 0
    assert again.out.splitlines()[-1].startswith("Already released 1,000 records")
    assert {path: path.stat().st_mtime_ns for path in place.folder.glob("release/**/*")} == before


def test_touched_sources_are_masked_again_and_found_equal(place):
    lake = place.lake()
    assert place.run().code == 0
    before = place.bytes()
    for path in lake.iterdir():
        path.write_bytes(path.read_bytes())
    again = place.run()
    assert again.code == 0
    assert "Already released" in again.out
    assert place.bytes() == before


def test_a_changed_value_is_another_release(place):
    place.lake()
    assert place.run().code == 0
    before = place.bytes()
    place.lake(people(seed=1))
    refused = place.run()
    assert refused.code == 2
    assert "another release" in refused.err
    assert "--overwrite" in refused.err
    assert place.bytes() == before
    assert place.run("--overwrite").code == 0
    after = place.bytes()
    assert not {name for name in before if name != "manifest.json"} & set(after), "old files are deleted"
    assert place.dpmask("verify", "release").code == 0


def test_leftovers_of_a_dead_run_are_cleared(place):
    place.lake()
    folder = place.folder / "release" / "data" / ("0" * 16)
    folder.mkdir(parents=True)
    (folder / "part-00000.parquet").write_bytes(b"half a file")
    (folder / ("part-00001.parquet." + "a" * 32 + ".part")).write_bytes(b"less")
    assert place.run().code == 0
    assert not folder.exists()
    assert place.dpmask("verify", "release").code == 0


def test_the_policy_stops_a_release(place):
    place.lake()
    measure = [{"measure": "il1s", "columns": ["income"], "as": "loss"}]
    refused = place.run(measure=measure, policy=["loss.value <= 0.0001"])
    assert refused.code == 3
    assert "loss.value <= 0.0001: it is 0.0" in refused.err
    assert not (place.folder / "release").exists()
    assert not list(place.folder.glob("private/*/staging"))
    result = json.loads((place.folder / "private" / "result.json").read_text())
    assert (result["status"], result["exit_code"]) == ("refused", 3)
    assert "broken" in next(place.folder.glob("private/*/report.html")).read_text()
    held = place.run(measure=measure, policy=["loss.value <= 0.5", "loss.value > 0"])
    assert held.code == 0
    assert "policy: loss.value <= 0.5 holds" in held.out


def test_measures_see_what_is_published(place):
    table = people()
    place.lake(table)
    measure = [{"measure": "il1s", "columns": ["income", "children"]}]
    assert place.run(measure=measure).code == 0
    manifest, _ = place.released()
    released = by_original(place, table)
    for name in ("income", "children"):
        x, y = (t[name].cast(pa.float64()).to_numpy(zero_copy_only=False) for t in (table, released))
        expected = np.nanmean(np.abs(x - y)) / (np.sqrt(2) * np.nanstd(x, ddof=1))
        assert manifest["information_loss"][0]["values"]["parts"][name] == pytest.approx(expected, rel=1e-12)


def test_steps_are_applied_in_order_with_draws_of_their_own(place):
    table = people()
    place.lake(table)
    step = {"method": "noise", "columns": ["income"], "scale": 0.1}
    assert place.run(mask=[step], order="input").code == 0
    assert place.run(mask=[step, step], order="input", target="twice").code == 0
    once = place.released()[1]["income"].to_numpy() - table["income"].to_numpy()
    twice = place.released("twice")[1]["income"].to_numpy() - table["income"].to_numpy()
    assert twice.var() == pytest.approx(2 * once.var(), rel=0.3)
    assert np.corrcoef(once, twice - once)[0, 1] == pytest.approx(0, abs=0.16)


def test_the_result_as_json_also_on_failure(place):
    assert place.dpmask("run", "nowhere.yaml", "--json").json["exit_code"] == 2
    place.lake()
    good = place.dpmask("run", place.job(), "--json")
    assert good.json["status"] == "released"
    assert set(good.json["seconds"]) == {"read", "mask", "measure", "decide", "publish", "verify"}
    bad = place.dpmask("run", place.job(source="nowhere", target="other"), "--json")
    assert bad.code == bad.json["exit_code"] == 4
    assert json.loads((place.folder / "private/result.json").read_text()) == bad.json


def test_plan_writes_nothing_and_ends_as_run_would(place):
    place.lake()
    before = set(place.folder.rglob("*"))
    planned = place.dpmask("plan", place.job())
    assert planned.code == 0
    assert "1,000 rows in 4 files, 10 columns released" in planned.out
    assert "blocks (partitions): 8" in planned.out
    assert "that no step masks: born, region, seen" in planned.out.replace("region, born", "born, region")
    assert set(place.folder.rglob("*")) - before == {place.folder / "job.yaml"}
    assert place.dpmask("plan", place.job(policy=["il1s.value < 1"])).code == 2
    assert place.dpmask("plan", place.job(source="nowhere")).code == 4


@pytest.mark.parametrize("source", ["lake/part-0.parquet", "lake/part-[01].parquet", "lake/**/*.parquet"])
def test_single_files_and_globs(place, source):
    place.lake()
    assert place.run(source=source).code == 0
    assert place.released()[0]["rows"] == {"lake/part-0.parquet": 250, "lake/part-[01].parquet": 500}.get(source, 1000)


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


def test_a_release_says_nothing_of_its_source(place, monkeypatch):
    monkeypatch.setenv("THE_KEY", "a very secret secret of many letters")
    table = people().replace_schema_metadata({"source": "secret-agency"})
    codes = pa.array([n % 2 for n in range(1000)], pa.int8())
    unused = pa.DictionaryArray.from_arrays(codes, pa.array(["north", "south", "unused-secret"]))
    table = table.set_column(table.schema.get_field_index("region"), "region", unused)
    place.lake(table, name="secret-lake")
    ended = place.run(source="secret-lake", seed=None, key="env:THE_KEY")
    assert ended.code == 0, ended.err
    for name, data in place.bytes().items():
        assert b"secret" not in data, name
        assert str(place.folder).encode() not in data, name
    log = (place.folder / "private" / "log.txt").read_text() + ended.err + ended.out
    assert "very secret" not in log
    _, released = place.released()
    assert released["region"].chunk(0).dictionary.to_pylist() == ["north", "south"]
    assert (
        place.dpmask(
            "plan",
            place.job(
                source="release",
                target="x",
                private="y",
                key="env:THE_KEY",
                seed=None,
                columns=JOB["columns"] | {"identifier": []},
            ),
        ).code
        == 0
    )


def test_the_same_source_in_another_folder_gives_the_same_bytes(place):
    lake = place.lake()
    assert place.run().code == 0
    shutil.copytree(lake, place.folder / "copy")
    assert place.run(source="copy", target="other", private="p2").code == 0
    assert place.bytes("other") == place.bytes()


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
    ended = place.run(columns={"sensitive": ["x"], "plain": ["tags", "home", "nothing"]}, mask=mask, order="input")
    assert ended.code == 0, ended.err
    _, released = place.released()
    assert released.drop_columns(["x"]).equals(table.drop_columns(["x"]))
