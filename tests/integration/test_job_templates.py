"""One job file for every month: --set changes a value, ${NAME} is filled from the environment."""

import shutil

import pytest
from conftest import people, write_lake


@pytest.fixture
def months(place):
    for number, month in enumerate(("2026-10", "2026-11")):
        write_lake(place.folder / "lake" / month, people(seed=number))
    return place


TEMPLATE = {
    "name": "people ${MONTH}",
    "source": "lake/${MONTH}/",
    "target": "release/${MONTH}/",
    "private": "private/${MONTH}/",
}


def test_each_month_is_a_release_of_its_own(months, monkeypatch):
    job = months.job(**TEMPLATE)
    runs = set()
    for month in ("2026-10", "2026-11"):
        monkeypatch.setenv("MONTH", month)
        ended = months.dpmask("run", job)
        assert ended.code == 0, ended.err
        manifest, _ = months.released(f"release/{month}")
        assert manifest["name"] == f"people {month}"
        runs.add(manifest["run"])
    assert len(runs) == 2
    assert "nothing was changed" in months.dpmask("run", job).out


def test_set_changes_a_value_and_is_checked_as_the_file_is(months):
    job = months.job(source="lake/nowhere/", target="release", private="private")
    changes = ["--set", "source=lake/2026-11/", "--set", "mask[0].scale=0.2", "--set", "name=202611"]
    assert months.dpmask("plan", job, *changes, "--json").json["name"] == "202611", "a text stays a text"
    ended = months.dpmask("run", job, *changes)
    assert ended.code == 0, ended.err
    assert months.released()[0]["steps"][0]["parameters"]["scale"] == 0.2
    assert "job.yaml: line" in months.dpmask("plan", job, *changes, "--set", "mask[0].scale=-1").err
    added = months.dpmask("plan", job, *changes, "--set", "target=other", "--set", "measure=[]", "--json")
    assert added.code == 0, f"a key that the file lacks is added; {added.err}"
    ended = months.dpmask("plan", job, *changes, "--set", "mesure=[]")
    assert (ended.code, "mesure" in ended.err, "measure" in ended.err) == (2, True, True)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (["sources"], "--set sources: must be PATH=VALUE"),
        (["mask[7].k=3"], "has nothing at mask[7].k"),
        (["mask[0].k=[3"], "must be PATH=VALUE"),
        (["source=lake/${NO_SUCH_MONTH}"], "${NO_SUCH_MONTH} is not set in the environment"),
        (["private=$HOME/private"], "write ${HOME} for a variable of the environment"),
        (["target=$MONTH"], "write ${MONTH}"),
    ],
)
def test_what_cannot_be_filled_is_refused_before_anything_is_read(months, settings, text):
    shutil.rmtree(months.folder / "lake")
    ended = months.dpmask("run", months.job(), *(part for one in settings for part in ("--set", one)))
    assert ended.code == 2
    assert text in ended.err
    assert not (months.folder / "private").exists()


def test_a_secret_is_not_filled_into_a_text(months, monkeypatch):
    monkeypatch.setenv("OFFICE_KEY", "6b0d1c88a4e94f53b1f2d7a9c05e3f62")
    ended = months.dpmask("plan", months.job(seed=None, key="env:OFFICE_KEY", name="of ${OFFICE_KEY}"))
    assert ended.code == 2
    assert "the secret of env:OFFICE_KEY must not stand in a text" in ended.err
    assert "6b0d1c88" not in ended.err + ended.out


def test_a_sweep_takes_settings(months):
    measured = {"measure": [{"measure": "il1s", "columns": ["income"]}]}
    job = months.job(**measured, source="lake/nowhere/")
    ended = months.dpmask(
        "sweep",
        job,
        "--set",
        "source=lake/2026-10/",
        "--over",
        "mask[0].scale=0.1,0.2",
        "--risk",
        "gate.linkage",
        "--json",
    )
    assert ended.code == 0, ended.err
    assert [one["parameters"] for one in ended.json["points"]] == [{"mask[0].scale": 0.1}, {"mask[0].scale": 0.2}]
