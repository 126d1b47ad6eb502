"""Models as a job: judged by name, claimed in the manifest, counted again by verify, explained in the report."""

import json

import pytest
from conftest import refinement_step

from dpmask import read_lake
from dpmask.masking.claims import broken_claims

MODELS = [
    {"model": "distinct_l", "column": "name", "l": 3},
    {"model": "confidence", "column": "name", "values": {"né1": 0.3}, "most": 0.6},
    {"model": "confidence", "column": "rate", "values": {None: 0.5}},
    {"model": "t_closeness", "column": "income", "t": 0.4, "distance": "ordered"},
]


def step(**more):
    given = refinement_step(20, 10)
    first, second = given["requirements"]
    return given | {"requirements": [first | {"models": MODELS}, second | {"known": 1}]} | more


def test_a_release_under_models(place):
    place.lake()
    policy = [
        "refinement.distinct_l >= 3",
        "refinement.confidence <= 0.6",
        "refinement.t_closeness <= 0.4",
        "groups.unmet <= 0",
    ]
    requirements = step()["requirements"]
    ended = place.run(
        mask=[step(importance={"age": 2})], measure=[{"measure": "groups", "requirements": requirements}], policy=policy
    )
    assert ended.code == 0, ended.err
    manifest, table = place.released()
    first, second = manifest["claims"]
    assert (first["smallest_group"], second) == (
        20,
        {"columns": ["children", "born"], "smallest_group": 10, "known": 1},
    )
    assert [one["model"] for one in first["models"]] == [one["model"] for one in MODELS]
    frame = table.to_pandas()
    groups = frame.groupby(["age", "region"], observed=True)
    assert groups["name"].nunique().min() >= 3
    assert groups["name"].agg(lambda names: names.value_counts(normalize=True).iloc[0]).max() <= 0.6
    assert place.dpmask("verify", "release").code == 0
    lake = read_lake(str(place.folder / "release"))
    assert broken_claims(lake, manifest["claims"]) == []
    broken = broken_claims(lake, [first | {"models": [first["models"][0] | {"l": 17}]}])
    assert "distinct_l of name is " in broken[0]
    assert broken_claims(lake, [second | {"smallest_group": 900}]) != []
    assert "cannot be checked" in broken_claims(lake, [first | {"models": [{"model": "x", "column": "name"}]}])[0]
    figures = json.loads((place.folder / "private/result.json").read_text())["steps"][0]["figures"]
    assert {one["column"] for one in figures["stops"]} >= {"age"}
    assert figures["distinct_l"] >= 3
    report = next((place.folder / "private").rglob("report.html")).read_text(encoding="utf-8")
    for text in ("Why each column stopped", "What would allow one refinement more", "t_closeness of income"):
        assert text in report
    public = next((place.folder / "release").rglob("report.html")).read_text(encoding="utf-8")
    assert "Why each column stopped" not in public
    assert "distinct_l of name, l 3" in public


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({"policy": ["refinement.entropy_l >= 2"]}, 2, "has no 'entropy_l'"),
        ({"policy": ["refinement.distinct_l >= 17"]}, 3, "distinct_l"),
        ({"mask": [step(at_least={"age": 60})]}, 4, "'age' is left with"),
    ],
)
def test_what_stops_a_release(place, changes, code, text):
    place.lake()
    ended = place.run(**{"mask": [step()]} | changes)
    assert (ended.code, text in ended.err + ended.out) == (code, True), ended.err


def test_models_of_columns_that_are_masked_later_are_not_claimed(place):
    place.lake()
    noise = {"method": "noise", "columns": ["income"], "scale": 0.1}
    assert place.run(mask=[step(), noise]).code == 0
    models = place.released()[0]["claims"][0]["models"]
    assert [one["column"] for one in models] == ["name", "name", "rate"]
    assert place.dpmask("verify", "release").code == 0
