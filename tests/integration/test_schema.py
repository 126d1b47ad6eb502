"""The JSON Schemas of the job file and of a run's result, for editors, checks and pipelines."""

import json
import subprocess
import sys

import pytest
from jsonschema import Draft202012Validator, ValidationError

from dpmask.job import stages
from dpmask.masking import METHODS

MEASURED = {"measure": [{"measure": "il1s", "columns": ["income"]}, {"measure": "groups"}]}


def schema(*of):
    ended = subprocess.run([sys.executable, "-m", "dpmask", "schema", *of], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def result():
    """Refuses what is not a result."""
    found = schema("result")
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


def test_of_the_job_it_is_json_and_nothing_else_is_printed():
    options = schema()["properties"]["mask"]["items"]["oneOf"]
    assert {option["title"] for option in options} == set(METHODS)


def test_every_field_of_a_result_is_described(result):
    for part in (result.schema, *result.schema["$defs"].values()):
        assert part["description"]
        assert all(field.get("description") for field in part["properties"].values()), part["title"]


def checked(result, place, ended, status):
    """The result as it is printed, which is the one in the private folder."""
    assert (ended.json["status"], ended.json["exit_code"]) == (status, ended.code)
    assert json.loads((place.folder / "private" / "result.json").read_text()) == ended.json
    result.validate(ended.json)
    return ended.json


def test_a_released_and_a_repeated_run(result, place):
    place.lake()
    steps = [
        {"method": "microaggregation", "columns": ["income"], "k": 3},
        {"method": "noise", "columns": ["age"], "scale": 0.1},
    ]
    said = {**MEASURED, "policy": ["il1s.value <= 9"], "mask": steps}
    found = checked(result, place, place.run("--json", **said), "released")
    assert {"release", "files", "release_bytes", "report", "seconds", "steps"} <= set(found)
    assert not {"error", "kind", "checkpoint"} & set(found)
    assert [step["figures"] is None for step in found["steps"]] == [False, True]
    assert "steps" not in checked(result, place, place.run("--json", **said), "already released")


def test_a_refused_run(result, place):
    place.lake()
    found = checked(result, place, place.run("--json", **MEASURED, policy=["il1s.value > 99"]), "refused")
    assert (found["kind"], found["policy"][0]["held"], "release" in found) == ("PolicyRefusal", False, False)


def test_a_failed_and_an_interrupted_run(result, place, monkeypatch):
    failed = checked(result, place, place.run("--json"), "failed")
    assert (failed["kind"], failed["stage"], "run" in failed) == ("InputError", "read", False)
    place.lake()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(stages, "publish", interrupted)
    found = checked(result, place, place.run("--json"), "interrupted")
    assert (found["stage"], "checkpoint" in found, "release" in found) == ("publish", True, False)


@pytest.mark.parametrize("wrong", [{"status": "done"}, {"rows": "many"}, {"more": 1}, {"steps": [{}]}])
def test_what_is_no_result_is_refused(result, place, wrong):
    found = place.run("--json").json
    with pytest.raises(ValidationError):
        result.validate(found | wrong)
