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
        same = np.mean(
            [one == other for one, other in zip(released[name].to_pylist(), table[name].to_pylist(), strict=True)]
        )
        rounded_away = name == "children"
        assert (same > 0.99) == (name not in MASKED or rounded_away), name
        assert same == 1 or name in MASKED, name
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


def test_steps_draw_for_themselves(place):
    """Two steps of the same noise add variances; draws used twice would add standard deviations: four times the variance."""
    table = people()
    place.lake(table)
    step = {"method": "noise", "columns": ["income"], "scale": 0.1}
    assert place.run(mask=[step, step], order="input").code == 0
    noise = place.released()[1]["income"].to_numpy() - table["income"].to_numpy()
    # five standard errors of a variance of 1000 draws
    assert noise.var() == pytest.approx(2 * (0.1 * table["income"].to_numpy().std()) ** 2, rel=5 * np.sqrt(2 / 1000))


def noise_of(place, table, target, **changes):
    assert place.run(target=target, order="input", **changes).code == 0
    return place.released(target)[1]["income"].to_numpy() - table["income"].to_numpy()


def test_releases_of_one_key_do_not_share_their_noise(place):
    """Another scale, name or size of the table draws anew: no two releases can be solved for the original."""
    table = people()
    place.lake(table)
    step = {"method": "noise", "columns": ["income", "age"], "scale": 0.1}
    first = noise_of(place, table, "one", mask=[step])
    others = {
        "scale": noise_of(place, table, "two", mask=[step | {"scale": 0.3}]),
        "columns": noise_of(place, table, "three", mask=[step | {"columns": ["income"]}]),
        "name": noise_of(place, table, "four", mask=[step], name="other"),
    }
    for what, other in others.items():
        # 1000 pairs: five standard errors of a correlation of 0
        assert abs(np.corrcoef(first, other)[0, 1]) < 5 / np.sqrt(1000), what
    last_year = people(seed=9)
    place.lake(last_year)
    others = noise_of(place, last_year, "six", mask=[step])
    assert abs(np.corrcoef(first, others)[0, 1]) < 5 / np.sqrt(1000), "another table, the same job and key"
    again = place.run(target="five", mask=[step], name="again")
    assert "Warning: This key has made another release" in again.out


def test_columns_and_order_draw_for_themselves(place):
    table = people()
    place.lake(table)
    mask = [{"method": "noise", "columns": ["income", "rate"], "scale": 0.1}]
    assert place.run(mask=mask, block_rows=10**6).code == 0
    released = by_original(place, table)
    noise = [
        released[n].cast(pa.float64()).to_numpy(zero_copy_only=False)
        - table[n].cast(pa.float64()).to_numpy(zero_copy_only=False)
        for n in ("income", "rate")
    ]
    run = place.released()[0]["run"]
    order = np.argsort(
        pq.read_table(place.folder / "private" / run / "pairing" / "part-00000.parquet")["position"].to_numpy()
    )
    present = ~np.isnan(noise[1])
    for one, other in ((noise[0], noise[1]), (noise[0], order.astype(float))):
        assert abs(np.corrcoef(one[present], other[present])[0, 1]) < 5 / np.sqrt(present.sum())


def test_the_private_folder_is_private(place):
    place.lake()
    assert place.run().code == 0
    assert (place.folder / "private").stat().st_mode & 0o077 == 0


def test_a_source_that_changes_under_way_is_not_released(place, monkeypatch):
    from dpmask.job import stages

    lake = place.lake()
    account = stages.account

    def meanwhile(*arguments):
        write_lake(lake, people(seed=5))
        return account(*arguments)

    monkeypatch.setattr(stages, "account", meanwhile)
    ended = place.run()
    assert ended.code == 4
    assert "changed while the run was under way" in ended.err
    assert not (place.folder / "release").exists()


def test_a_run_that_publishes_is_left_alone(place):
    """A second run of the standing job must not take the files of a run that is publishing for leftovers."""
    place.lake()
    assert place.run().code == 0
    (place.folder / "release" / ("publishing-" + "a" * 32)).touch()
    theirs = place.folder / "release" / "data" / ("b" * 16) / "part-00000.parquet"
    theirs.parent.mkdir()
    theirs.write_bytes(b"new")
    ended = place.run()
    assert ended.code == 2
    assert "another run is publishing here" in ended.err
    assert theirs.exists()


def test_a_damaged_manifest_is_replaced_only_with_the_word(place):
    place.lake()
    assert place.run().code == 0
    (place.folder / "release" / "manifest.json").write_text("{}")
    refused = place.run()
    assert (refused.code, "--overwrite" in refused.err) == (2, True)
    assert place.dpmask("plan", "job.yaml").code == 2
    assert place.dpmask("plan", "job.yaml", "--overwrite").code == 0
    assert place.run("--overwrite").code == 0
    assert place.dpmask("verify", "release").code == 0


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


def test_nested_metadata_stays_behind(place):
    inner = pa.field("zip", pa.int64(), metadata={"comment": "secret-agency"})
    homes = pa.StructArray.from_arrays([pa.array(range(50))], fields=[inner])
    place.lake(pa.table({"x": np.arange(50.0), "home": homes}))
    mask = [{"method": "noise", "columns": ["x"], "scale": 0.1}]
    ended = place.run(columns={"sensitive": ["x"], "plain": ["home"]}, mask=mask, order="input")
    assert ended.code == 0, ended.err
    assert not any(b"secret-agency" in data for data in place.bytes().values())
    assert place.released()[1]["home"].to_pylist() == [{"zip": n} for n in range(50)]


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


def test_csv_codes_stay_text_and_missing_numbers_are_missing(place):
    (place.folder / "lake").mkdir()
    rows = "\n".join(f"{n:04d},{n if n % 7 else 'NA'},{'' if n % 5 else n}" for n in range(1, 60))
    (place.folder / "lake" / "people.csv").write_text("postcode,income,name\n" + rows)
    mask = [{"method": "noise", "columns": ["income"], "scale": 0.5}]
    ended = place.run(
        columns={"quasi": ["postcode"], "sensitive": ["income"], "plain": ["name"]}, mask=mask, order="input"
    )
    assert ended.code == 0, ended.err
    _, released = place.released()
    assert released["postcode"].to_pylist()[:2] == ["0001", "0002"]
    assert released["income"].null_count == 8
    (place.folder / "lake" / "people.csv").write_bytes("postcode,income,name\n1,2,é\n".encode("latin-1"))
    refused = place.run(target="other")
    assert (refused.code, "is not in UTF-8" in refused.err) == (4, True)


def test_values_held_to_their_type_are_said_in_the_statement(place):
    place.lake(pa.table({"x": pa.array([0] * 500 + list(range(500)), pa.uint32())}))
    mask = [{"method": "noise", "columns": ["x"], "scale": 0.2}]
    ended = place.run(columns={"sensitive": ["x"]}, mask=mask)
    assert "Warning: NoiseAddition: noise would take values of 'x' out of the range of its type" in ended.out
    statement = next(place.folder.glob("release/report/*/statement.md")).read_text()
    assert "Values of x were held to the range of their type" in statement


def test_a_run_that_comes_second_takes_its_files_back(place, monkeypatch):
    from dpmask.lake.storage import Place

    place.lake()
    assert place.run(seed=8, target="other", private="p2").code == 0
    create = Place.create

    def beaten(self, data):
        shutil.copytree(place.folder / "other", place.folder / "release", dirs_exist_ok=True)
        create(self, data)

    monkeypatch.setattr(Place, "create", beaten)
    ended = place.run()
    assert ended.code == 2
    assert "another run has just published here" in ended.err
    assert place.bytes() == place.bytes("other")


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
