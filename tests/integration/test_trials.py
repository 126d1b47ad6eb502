"""Trials: a seed needs --trial, and what comes of it is called a release nowhere."""

import json

import pytest
from conftest import SECRET


@pytest.fixture
def trial(place):
    place.lake()
    ended = place.run()
    assert ended.code == 0, ended.err
    place.ended = ended
    return place


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_seed_needs_a_trial(place, command, monkeypatch):
    """Exit code 2, what to type, and nothing written."""
    place.lake()
    job = place.job()
    monkeypatch.setattr("conftest.as_trial", lambda arguments, folder: list(arguments))
    ended = place.dpmask(command, job)
    assert ended.code == 2
    assert "job.yaml: line" in ended.err
    assert "take this line out: a key is made and kept in the private folder" in ended.err
    assert "run it with --trial" in ended.err
    assert not (place.folder / "release").exists()
    assert not (place.folder / "private" / "key").exists()


def test_a_trial_says_so_everywhere(trial):
    assert trial.ended.out.splitlines()[-1].startswith("TRIAL, not a release: wrote 600 records")
    manifest, _ = trial.released()
    assert manifest["trial"] is True
    assert manifest["key"]["salt"] is None
    documents = [data.decode() for name, data in trial.bytes().items() if name.startswith("report/")]
    assert len(documents) == 2
    result = json.loads((trial.folder / "private" / "result.json").read_text())
    documents.append((trial.folder / "private" / manifest["run"] / "report.html").read_text())
    assert all("TRIAL, not a release." in text for text in documents)
    assert result["trial"] is True


def test_verify_does_not_call_it_a_release(trial):
    verified = trial.dpmask("verify", "release")
    assert (verified.code, "a trial, not a release" in verified.out) == (0, True)
    assert trial.dpmask("verify", "release", "--json").json["trial"] is True
    strict = trial.dpmask("verify", "release", "--strict")
    assert (strict.code, "is a trial, not a release" in strict.err) == (4, True)


def test_a_release_is_none(place):
    place.lake()
    ended = place.run(seed=None)
    assert ended.code == 0
    assert "TRIAL" not in ended.out + "".join(data.decode(errors="replace") for data in place.bytes().values())
    verified = place.dpmask("verify", "release", "--strict")
    assert (verified.code, "trial" in verified.out) == (0, False)


def test_a_trial_without_a_seed_makes_nothing_and_repeats_nothing(place, monkeypatch):
    """It draws as seed 0 does; with a key of the job it has draws of its own, not those of the release."""
    monkeypatch.setenv("THE_KEY", SECRET)
    place.lake()
    place.job(seed=None)
    assert place.dpmask("run", "job.yaml", "--trial").code == 0
    assert not (place.folder / "private" / "key").exists()
    assert place.run(seed=0, target="zero").code == 0
    assert place.bytes("zero") == place.bytes()
    keyed = {"seed": None, "key": "env:THE_KEY", "order": "input"}
    assert place.run("--trial", **keyed, target="tried").code == 0
    assert place.run(**keyed, target="released").code == 0
    assert place.released("tried")[1]["income"] != place.released("released")[1]["income"]


def test_a_trial_replaces_no_release(place):
    place.lake()
    assert place.run(seed=None).code == 0
    before = place.bytes()
    ended = place.run("--overwrite")
    assert (ended.code, "holds a release, which a trial does not replace" in ended.err) == (2, True)
    assert place.bytes() == before
