"""Refinement as a job: new types and columns of their roles, claims that verify counts, and what a policy may say."""

import json
from itertools import pairwise

import pyarrow.parquet as pq
import pytest
from conftest import people, refinement_step

STEP = refinement_step(20, 10)


def test_a_release_of_labels(place):
    place.lake(people(1000))
    measure = [{"measure": "groups", "quasi": [["age", "region"], ["children", "born"]]}]
    policy = ["groups.smallest >= 10", "refinement.smallest >= 10", "refinement.refinements >= 5"]
    ended = place.run(mask=[STEP], measure=measure, policy=policy)
    assert ended.code == 0, ended.err
    manifest, table = place.released()
    kinds = {column["name"]: (column["type"], column["role"], column["masked"]) for column in manifest["schema"]}
    assert kinds["age"] == kinds["born"] == ("string", "quasi", True)
    assert list(kinds) == [name for name in people(1).schema.names if name != "id"]
    frame = table.to_pandas()
    assert frame.groupby(["age", "region"], observed=True).size().min() >= 20
    assert frame.groupby(["children", "born"], dropna=False).size().min() >= 10
    assert frame["age"].str.fullmatch(r"\[\d+, \d+\)").all()
    assert frame["born"].str.fullmatch(r"\[\d{4}-\d\d-\d\d, \d{4}-\d\d-\d\d\)").all()
    assert frame["children"].isna().sum() == people(1000)["children"].null_count
    assert place.dpmask("verify", "release").code == 0
    solution = manifest["steps"][0]["solution"]
    assert set(solution) == {"cuts", "trees", "refinements"}
    assert set(frame["region"]) == set(solution["cuts"]["region"])
    assert {f"[{low:g}, {high:g})" for low, high in pairwise(solution["cuts"]["age"])} == set(frame["age"])
    assert all(0 <= float(f"{step['score']:.1e}") == step["score"] for step in solution["refinements"])
    internal = json.loads((place.folder / "private/result.json").read_text())["steps"][0]["figures"]["steps"]
    assert [step["attribute"] for step in internal] == [step["attribute"] for step in solution["refinements"]]
    report = next((place.folder / "private").rglob("report.html")).read_text(encoding="utf-8")
    assert "What was refined, in this order" in report


def test_verify_counts_the_groups_again(place):
    """A manifest that claims larger groups than there are does not verify."""
    place.lake()
    assert place.run(mask=[STEP], order="input").code == 0
    claims = place.released()[0]["claims"]
    assert claims == [
        {"columns": ["age", "region"], "smallest_group": 20},
        {"columns": ["children", "born"], "smallest_group": 10},
    ]
    from dpmask import read_lake
    from dpmask.masking.claims import broken_claims

    table = read_lake(str(place.folder / "release"))
    assert broken_claims(table, claims) == []
    assert len(broken_claims(table, [claims[0] | {"smallest_group": 500}])) == 1


@pytest.mark.parametrize("form", ["bounds", "midpoint"])
def test_intervals_as_numbers(place, form):
    place.lake()
    assert place.run(mask=[STEP | {"intervals": form}], order="input").code == 0
    manifest, table = place.released()
    kinds = {column["name"]: (column["type"], column["role"]) for column in manifest["schema"]}
    if form == "midpoint":
        assert (kinds["age"], kinds["born"]) == (("double", "quasi"), ("date32[day]", "quasi"))
        return
    assert "age" not in kinds
    assert (kinds["age_low"], kinds["born_high"]) == (("double", "quasi"), ("date32[day]", "quasi"))
    original = pq.read_table(place.folder / "lake").to_pandas()
    frame = table.to_pandas()
    assert ((frame["age_low"] <= original["age"]) & (original["age"] < frame["age_high"])).all()
    assert place.dpmask("verify", "release").code == 0


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"mask": [STEP | {"domains": {"age": [0, 100]}}]}, "column 'children' is int8: declare its domain"),
        ({"mask": [STEP | {"guide": {"column": "membre"}}]}, "Did you mean 'member'"),
        ({"mask": [STEP | {"guide": "luck"}]}, "guide must be"),
        ({"mask": [STEP | {"suppress_records": 0.9}]}, "suppress_records must be a number >= 0 and <= 0.5; got 0.9"),
        ({"mask": [STEP, {"method": "noise", "columns": ["age"], "scale": 1}]}, "column 'age' must be numeric"),
        ({"mask": [STEP | {"requirements": [{"columns": ["id"], "k": 2}], "taxonomies": {"id": None}, "domains": {}}]}, "identifier"),
        (
            {"mask": [STEP | {"intervals": "bounds"}], "measure": [{"measure": "groups", "quasi": ["age"]}]},
            "released as age_low, age_high",
        ),
    ],
)  # fmt: skip
def test_what_a_plan_refuses(place, changes, text):
    place.lake()
    ended = place.dpmask("plan", place.job(**changes))
    assert ended.code == 2
    assert text in ended.err


def test_a_plan_knows_the_columns(place):
    place.lake()
    planned = place.dpmask("plan", place.job(mask=[STEP | {"intervals": "bounds"}]), "--json")
    assert planned.code == 0, planned.err
    assert planned.json["columns"] == 13
    others = {"income", "rate", "money", "seen", "name", "member"}
    assert set(planned.json["accepted"]) == others


def test_bounds_are_attacked_as_the_intervals_that_they_are(place):
    """Numbers and dates, some of them missing: every rate is that of the same intervals released as labels."""
    place.lake()
    found = {}
    for form in ("label", "bounds"):
        ended = place.run(mask=[STEP | {"intervals": form}], target=form, private=f"private-{form}")
        assert ended.code == 0, ended.err
        result = json.loads((place.folder / f"private-{form}" / "result.json").read_text(encoding="utf-8"))
        values = next(one["values"] for one in result["measures"] if one["name"] == "gate")
        numbers = {name: values[name] for name in ("linkage", "smallest", "attacks")}
        attacked = place.dpmask(
            "attack", form, "--register", "lake", "--paired-by", f"private-{form}", "--json", "-"
        ).json["attacks"]
        found[form] = numbers, [one for one in attacked if one["attack"] != "interval_disclosure"]
    assert found["bounds"] == found["label"]
    quasi = next(one for one in attacked if one["attack"] == "linkage, quasi-identifiers")
    assert set(quasi["columns"]) == {"region", "age", "children", "born"}
    assert quasi["guessing"] < quasi["rate"] < 1


def test_bounds_that_a_later_step_masks_must_be_accepted(place):
    """They are no intervals of the original any more, and the gate says so before anything is masked."""
    place.lake()
    noise = {"method": "noise", "columns": ["age_low"], "scale": 0.1}
    changes = {"mask": [STEP | {"intervals": "bounds"}, noise], "accept": {}}
    refused = place.dpmask("plan", place.job(**changes), "--json").json["refused"]
    assert refused["age"].startswith("is released as age_low and age_high, which a later step masks")
    assert not {"born", "region"}.intersection(refused)
    ended = place.run(**changes)
    assert ended.code == 3
    assert "age: is released as age_low and age_high" in ended.err


def test_another_taxonomy_is_another_release(place):
    """The tree counts, not the name of its file."""
    place.lake()
    path = place.folder / "region.yaml"
    step = STEP | {"taxonomies": {"region": "region.yaml"}}
    path.write_text("land: [north, south, east]", encoding="utf-8")
    assert place.run(mask=[step]).code == 0
    assert "nothing was changed" in place.run(mask=[step]).out
    path.write_text("land: {coast: [north, east], inland: [south]}", encoding="utf-8")
    assert place.run(mask=[step]).code == 2


def test_values_that_a_taxonomy_lacks(place):
    """Told before anything is masked: by name where many records have them, otherwise by their number."""
    place.lake()
    ended = place.run(mask=[STEP | {"taxonomies": {"region": ["north", "east"]}}])
    assert ended.code == 4
    assert "the taxonomy lacks 'south' (200 records)." in ended.err
    assert not (place.folder / "release").exists()
