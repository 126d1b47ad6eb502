"""Cells that a refinement sets to missing, through a job: released, claimed, counted again, and judged by a policy."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from parts import in_parts, require_same_rows
from suppression_reference import matches
from test_refined_release import STEP
from test_refinement import METHOD, table

import dpmask
from dpmask.masking.claims import broken_claims
from dpmask.table.table import as_table

PAY = {"model": "confidence", "column": "income", "most": 0.5}
REQUIRED = [STEP["requirements"][0] | {"models": [PAY]}, STEP["requirements"][1]]
CELLS = STEP | {"suppress_cells": 0.05, "requirements": REQUIRED}
MEASURES = [{"measure": "groups", "quasi": [["age", "region"], ["children", "born"]], "k": 10}]


def test_a_release_with_missing_cells(place):
    place.lake()
    rules = ["refinement.suppressed_cells <= 0.05", "refinement.suppressed_cells > 0", "groups.smallest >= 10"]
    rules.append("refinement.confidence <= 0.5")
    ended = place.run(mask=[CELLS], measure=MEASURES, policy=rules)
    assert ended.code == 0, ended.err
    manifest, table = place.released()
    result = json.loads((place.folder / "private/result.json").read_text())
    figures = result["steps"][0]["figures"]
    assert 0 < figures["suppressed_cells"] <= 0.05
    assert sum(figures["cells"].values()) == pytest.approx(figures["suppressed_cells"] * 4 * table.num_rows)
    claims = manifest["claims"]
    assert any("suppressed" in claim and "models" in claim for claim in claims)
    frame = table.to_pandas()
    for claim in claims:
        columns = frame[claim["columns"]]
        own = columns.astype(object).where(columns.notna(), "missing")
        wild = own.mask(columns.isna() & [name in claim.get("suppressed", []) for name in claim["columns"]])
        assert matches(wild).min() >= claim["smallest_group"]
    assert "cells were set to missing" in manifest["steps"][0]["statement"]
    assert "matches every value" in next((place.folder / "release/report").rglob("report.html")).read_text()
    assert place.dpmask("verify", "release").code == 0
    evaluate_counts_matches(place)
    other_blocks_suppress_the_same_cells(place)


def test_verify_counts_matches_again():
    """One person of a rare town: with the town missing they match all of their sex, as a value of its own nobody."""
    frame = pd.DataFrame({"town": ["x"] * 50 + ["y"] * 50 + ["rare"], "sex": ["f", "m"] * 50 + ["f"]})
    found = dpmask.TopDownRefinement(requirements=[(["town", "sex"], 5)], suppress_cells=0.05).fit(frame, seed=0)
    (claim,) = found.claims()
    assert claim == {"columns": ["town", "sex"], "smallest_group": 5, "suppressed": ["town"]}
    table = as_table(found.mask(frame), "verify")
    assert broken_claims(table, [claim]) == []
    assert broken_claims(table, [claim | {"smallest_group": 25}]) == []  # the men of x, or of y
    assert broken_claims(table, [claim | {"smallest_group": 26}])
    assert broken_claims(table, [claim | {"suppressed": []}])


def test_the_same_cells_for_any_partitions(client):
    frame = table()
    method = replace(METHOD, suppress_cells=0.02)
    expected = method.fit(frame, seed=1)
    assert expected.figures.cells
    parts = in_parts(frame, 7)
    found = method.fit(parts, seed=1)
    assert (found.steps, found.figures) == (expected.steps, expected.figures)
    columns = list(method.masks)
    require_same_rows(found.mask(parts)[columns].compute(), expected.mask(frame)[columns])


def other_blocks_suppress_the_same_cells(place):
    columns = ["age", "region", "children", "born"]
    rest = sorted(map(str, place.released()[1].select(columns).to_pylist()))
    ended = place.run(mask=[CELLS], block_rows=333, target="two", private="p2")
    assert ended.code == 0, ended.err
    assert sorted(map(str, place.released("two")[1].select(columns).to_pylist())) == rest


def evaluate_counts_matches(place):
    asked = ["evaluate", "lake", "release", "--quasi", "children,born", "--paired-by", "private"]
    ended = place.dpmask(*asked, "--json", "found.json")
    assert ended.code == 0, ended.err
    found = json.loads((place.folder / "found.json").read_text())
    assert next(one["values"] for one in found["measures"] if one["measure"] == "groups")["smallest"] >= 10


def test_a_bad_job(place):
    place.lake()
    bad = place.run(mask=[CELLS | {"suppress_records": 0.1}])
    assert bad.code == 2
    assert "one of them" in bad.err
