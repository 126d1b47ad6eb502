"""A job from lake to release, embedded, on local files: what is released, measured, decided and said."""

import json

import numpy as np
import pyarrow as pa
import pytest
from conftest import JOB, SECRET, people

MASKED = JOB["mask"][0]["columns"]


def test_a_release_holds_every_record_with_its_types_and_other_columns(place):
    table = people()
    place.lake(table)
    ended = place.run()
    assert ended.code == 0, ended.err
    assert (
        ended.out.splitlines()[-1]
        == f"TRIAL, not a release: wrote 600 records in 4 files to {place.folder / 'release'}"
    )
    manifest, _ = place.released()
    released = place.by_original(table)
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
    assert "Warning: NoiseAddition: about 99.9% of the values of 'children' stay as they are" in ended.out
    assert manifest["rows"] == 600
    assert manifest["trial"] is True
    noise = released["income"].to_numpy() - table["income"].to_numpy()
    # N(0, 0.1 sd): five standard errors around the standard deviation of 600 draws
    assert noise.std() == pytest.approx(0.1 * table["income"].to_numpy().std(), rel=5 / np.sqrt(2 * 600))


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
    lines = [line.split() for line in held.out.splitlines()]
    assert [line[3:] for line in lines if line[:2] == ["loss", "value"]] == [
        ["<=", "0.5", "holds"],
        [">", "0", "holds"],
    ]
    assert [line.split()[3:] for line in refused.err.splitlines() if line.startswith("loss ")] == [
        ["<=", "0.0001", "broken"]
    ]


def test_measures_see_what_is_published(place):
    table = people()
    place.lake(table)
    measure = [{"measure": "il1s", "columns": ["income", "children"]}]
    assert place.run(measure=measure).code == 0
    released = place.by_original(table)
    for name in ("income", "children"):
        x, y = (t[name].cast(pa.float64()).to_numpy(zero_copy_only=False) for t in (table, released))
        expected = np.nanmean(np.abs(x - y)) / (np.sqrt(2) * np.nanstd(x, ddof=1))
        assert place.measured()["il1s"]["parts"][name] == pytest.approx(expected, rel=1e-12)


def test_the_private_folder_is_private(place):
    place.lake()
    assert place.run().code == 0
    assert (place.folder / "private").stat().st_mode & 0o077 == 0


def test_a_release_says_nothing_of_its_source(place, monkeypatch):
    monkeypatch.setenv("THE_KEY", SECRET)
    table = people().replace_schema_metadata({"source": "secret-agency"})
    codes = pa.array([n % 2 for n in range(600)], pa.int8())
    unused = pa.DictionaryArray.from_arrays(codes, pa.array(["north", "south", "unused-secret"]))
    table = table.set_column(table.schema.get_field_index("region"), "region", unused)
    place.lake(table, name="secret-lake")
    ended = place.run(source="secret-lake", seed=None, key="env:THE_KEY")
    assert ended.code == 0, ended.err
    for name, data in place.bytes().items():
        assert b"secret" not in data, name
        assert SECRET.encode() not in data, name
        assert str(place.folder).encode() not in data, name
    log = (place.folder / "private" / "log.txt").read_text() + ended.err + ended.out
    assert SECRET not in log
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


def test_the_result_as_json_also_on_failure(place):
    assert place.dpmask("run", "nowhere.yaml", "--json").json["exit_code"] == 2
    place.lake()
    good = place.dpmask("run", place.job(), "--json")
    assert good.json["status"] == "released"
    assert set(good.json["seconds"]) == {"read", "mask", "measure", "decide", "shuffle", "publish", "verify"}
    bad = place.dpmask("run", place.job(source="nowhere", target="other"), "--json")
    assert bad.code == bad.json["exit_code"] == 4
    assert json.loads((place.folder / "private/result.json").read_text()) == bad.json


def test_plan_writes_nothing_and_ends_as_run_would(place):
    place.lake()
    before = set(place.folder.rglob("*"))
    planned = place.dpmask("plan", place.job())
    assert planned.code == 0
    assert "600 rows in 4 files, 10 columns released" in planned.out
    assert "blocks (partitions): 4" in planned.out
    assert "accepted: region: invented people, made for a test" in planned.out
    assert "gate.linkage <= 1" in planned.out
    assert set(place.folder.rglob("*")) - before == {place.folder / "job.yaml"}
    assert place.dpmask("plan", place.job(policy=["il1s.value < 1"])).code == 2
    assert place.dpmask("plan", place.job(source="nowhere")).code == 4
