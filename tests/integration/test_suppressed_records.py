"""Refinement that leaves records out: the same ones everywhere, gone from the release, and counted by whoever pairs it."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import people
from parts import in_parts, require_same_rows
from test_refined_release import STEP
from test_refinement import METHOD, table

import dpmask

DROPPING = replace(METHOD, suppress_records=0.05)
LEFT_OUT = STEP | {"suppress_records": 0.1}


@pytest.fixture(scope="module")
def embedded():
    frame = table()
    fitted = DROPPING.fit(frame, seed=1)
    return frame, fitted, fitted.mask(frame)


def test_what_is_left_keeps_its_index(embedded):
    frame, fitted, masked = embedded
    assert 0 < fitted.figures.dropped == len(frame) - len(masked) <= 0.05 * len(frame)
    assert masked["weight"].equals(frame.loc[masked.index, "weight"])
    for requirement in DROPPING.requirements:
        assert masked.groupby(list(requirement.columns), dropna=False).size().min() >= requirement.k
    assert f"{fitted.figures.dropped} of 3,000 records were left out" in fitted.statement()
    assert METHOD.fit(frame, seed=1).figures.dropped == 0


@pytest.mark.parametrize(("partitions", "changed"), [(7, {}), (3, {"refinement_cells": 100})])
def test_the_same_records_for_any_partitions_and_limits(embedded, partitions, changed, client, limit):
    frame, expected, masked = embedded
    parts = in_parts(frame, partitions)
    limit(**changed)
    found = DROPPING.fit(parts, seed=1)
    assert found.steps == expected.steps
    assert replace(found.figures, alternatives=()) == replace(expected.figures, alternatives=())
    columns = [*DROPPING.masks, "weight"]
    require_same_rows(found.mask(parts)[columns].compute(), masked[columns])


def test_a_value_that_only_dropped_records_have_is_not_named():
    """Town t is told at first, with k records; then a cut of the ages leaves too few of them in either part."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": ["s"] * 300 + ["t"] * 12, "age": rng.integers(0, 10, 312), "class": "a"})
    frame.loc[300:, "age"] = [1, 9] * 6
    frame.loc[frame["town"] == "t", "class"] = "b"
    frame.loc[(frame["town"] == "s") & (frame["age"] >= 5), "class"] = "c"
    method = dpmask.TopDownRefinement(
        requirements=[(["town", "age"], 10)], domains={"age": [0, 10]}, guide={"column": "class"}, suppress_records=0.05
    )
    fitted = method.fit(frame, seed=0)
    assert fitted.figures.dropped == 12
    assert "t" not in str([fitted.cuts["town"], fitted.figures.trees["town"], [step.value for step in fitted.steps]])
    assert set(fitted.mask(frame)["town"]) == set(fitted.cuts["town"]) == {"s"}


@pytest.fixture
def measures():
    return [
        {"measure": "groups", "quasi": [["age", "region"], ["children", "born"]]},
        {"measure": "distance_linkage", "columns": ["income", "rate"]},
        {"measure": "il1s", "columns": ["income"]},
        {"measure": "partition_agreement", "columns": ["age", "region"], "clusters": 3},
        {"measure": "propensity", "columns": ["income", "rate"]},
    ]


@pytest.mark.parametrize("order", ["shuffled", "input"])
def test_a_release_without_some_records(place, order, measures):
    place.lake()
    policy = ["refinement.suppressed <= 0.1", "groups.smallest >= 10"]
    ended = place.run(mask=[LEFT_OUT], order=order, measure=measures, policy=policy)
    assert ended.code == 0, ended.err
    manifest, released = place.released()
    result = json.loads((place.folder / "private/result.json").read_text())
    dropped = result["steps"][0]["figures"]["suppressed_records"]
    assert 0 < dropped <= 60
    assert manifest["rows"] == result["rows"] == released.num_rows == 600 - dropped
    assert f"wrote {600 - dropped} records" in ended.out
    assert f"{dropped} of 600 records were left out" in manifest["steps"][0]["statement"]
    frame = released.to_pandas()
    assert frame.groupby(["age", "region"], observed=True).size().min() >= 20
    assert frame.groupby(["children", "born"], dropna=False).size().min() >= 10
    assert place.dpmask("verify", "release").code == 0
    found = {one["name"]: one["values"] for one in result["measures"]}
    original, positions = people().to_pandas(), place.pairing(manifest)
    assert np.array_equal(original["income"].to_numpy()[positions], frame["income"].to_numpy())
    assert (np.diff(positions) > 0).all() == (order == "input")
    for column, cut in manifest["steps"][0]["solution"]["cuts"].items():
        if column in LEFT_OUT["domains"]:
            kept = original[column].iloc[positions].dropna()
            assert set(cut[1:-1]) <= set(kept.astype(str) if isinstance(cut[0], str) else kept)
    by_index = dpmask.risk.distance_linkage(original, frame.set_axis(positions), columns=["income", "rate"])
    assert found["distance_linkage"]["rate"] == pytest.approx(by_index.rate)
    assert 0.5 < by_index.rate <= 1 - dropped / 600
    assert found["distance_linkage"]["attacked"] == 600
    assert found["il1s"]["value"] == 0.0
    assert found["partition_agreement"]["records"] == 600 - dropped
    if order == "input":
        other_blocks_drop_the_same_records(place, released)
        return
    evaluate_pairs_it_by_the_private_folder(place, found["distance_linkage"], dropped)
    again = place.run(mask=[LEFT_OUT], measure=measures, policy=policy)
    assert f"there are already {600 - dropped} records" in again.out


def evaluate_pairs_it_by_the_private_folder(place, measured, dropped):
    asked = ["evaluate", "lake", "release", "--columns", "income,rate", "--json", "found.json"]
    ended = place.dpmask(*asked, "--paired-by", "private")
    assert ended.code == 0, ended.err
    found = json.loads((place.folder / "found.json").read_text())
    values = {one["measure"]: one["values"] for one in found["measures"]}
    assert values["distance_linkage"]["rate"] == measured["rate"]
    assert values["il1s"]["value"] == 0.0
    assert found["pairing"] == {"by": "private folder", "originals_without_masked": dropped}
    assert "private folder of its run" in place.dpmask("evaluate", "lake", "lake/part-0.parquet").err


def other_blocks_drop_the_same_records(place, released):
    assert place.run(mask=[LEFT_OUT], order="input", block_rows=333, target="two", private="p2").code == 0
    assert place.released("two")[1].equals(released)


def test_a_step_after_it_sees_the_rest(place):
    """Groups that a later step makes are of records that are released."""
    place.lake()
    later = {"method": "microaggregation", "columns": ["income"], "k": 5}
    assert place.run(mask=[LEFT_OUT, later]).code == 0
    manifest, released = place.released()
    assert released.num_rows < 600
    assert {"columns": ["income"], "smallest_group": 5} in manifest["claims"]
    assert place.dpmask("verify", "release").code == 0
    ended = place.run(mask=[later, LEFT_OUT], target="two", private="p2")
    assert ended.code == 2
    assert "must be the first" in ended.err


def test_a_lake_keeps_its_positions(place):
    place.lake()
    lake = dpmask.read_lake("lake", block_rows=200)
    options = {key: value for key, value in LEFT_OUT.items() if key != "method"}
    fitted = dpmask.TopDownRefinement(**options).fit(lake, seed=7)
    masked = fitted.mask(lake).compute()
    original = people().to_pandas()
    assert len(masked) == 600 - fitted.figures.dropped < 600
    assert (masked["income"] == original.loc[masked.index, "income"]).all()
    frame = fitted.mask(original)
    assert list(frame.index) == list(masked.index)
    lost = lake.masked_by(fitted)
    assert lost.rows == len(masked)
    for name, found in dpmask.utility.summarise(lake, lost, columns=["income", "rate"]).items():
        alone = getattr(dpmask.utility, name)(lake, lost, columns=["income", "rate"])
        assert found.to_dict() == alone.to_dict(), name
