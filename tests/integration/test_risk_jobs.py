"""Risk measures in jobs: named in the policy, judged by their limits, checked before a row is read, never in public."""

import json

import pytest
from conftest import people

from dpmask.job.model import json_schema
from dpmask.measures import MEASURES, find_measure

STEP = {"measure": "distance_linkage", "columns": ["income", "age", "region"], "sample": 100}


def test_a_sampled_risk_is_judged_by_its_upper_limit(place):
    """A category among the columns, and a limit between the point and the upper end of its interval."""
    place.lake(people())
    assert place.run(measure=[STEP]).code == 0
    values = json.loads((place.folder / "private" / "result.json").read_text())["measures"][0]["values"]
    between = {}
    for name in ("rate", "by_known", "mahalanobis"):
        point, (low, high) = values[name], values["intervals"][name]
        assert low < point < high
        between[f"distance_linkage.{name} <= {(point + high) / 2:.6f}"] = high
    refused = place.run("--overwrite", measure=[STEP], policy=list(between))
    assert refused.code == 3
    for rule, high in between.items():
        assert f"{rule}: it is {high:.6g}" in refused.err
    assert place.run("--overwrite", measure=[STEP], policy=["distance_linkage.mahalanobis <= 1"]).code == 0
    manifest, _ = place.released()
    assert manifest["information_loss"] == []
    rule = {"rule": "distance_linkage.mahalanobis <= 1", "held": True, "columns": ["income", "age", "region"]}
    assert manifest["policy"][0] == rule


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ({"measure": "distance_linkage", "columns": ["bron"]}, "Did you mean 'born'"),
        ({"measure": "interval_disclosure", "columns": ["region"]}, "column 'region' must be numeric"),
        ({"measure": "probabilistic_linkage", "columns": ["region"]}, "column 'region' must be numeric"),
        ({"measure": "known_records", "columns": ["region"]}, "column 'region' must be numeric"),
        ({"measure": "attribute_inference", "columns": ["age"], "target": "age"}, "target another one"),
        ({"measure": "groups", "quasi": ["agee"]}, "Did you mean 'age'"),
        ({"measure": "groups", "quasi": ["id"]}, "column 'id' is an identifier"),
    ],
)
def test_columns_are_checked_before_a_row_is_read(place, step, text):
    place.lake()
    ended = place.dpmask("plan", place.job(measure=[step]))
    assert ended.code == 2
    assert text in ended.err
    assert "measure[0]" in ended.err


def test_every_measure_has_its_place():
    """A function, a result that says what a policy may judge, a page of the guide, an option of the schema."""
    from dpmask.guide import page

    options = json_schema()["properties"]["measure"]["items"]["oneOf"]
    assert {option["title"] for option in options} == set(MEASURES)
    for name in MEASURES:
        assert page(name).startswith(f"# {name}:")
        assert find_measure(name).name == name
    with pytest.raises(KeyError):
        find_measure("luck")
