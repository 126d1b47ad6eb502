"""Regions on a cluster and in a release: the same for any partitions, what measures know of them, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import refinement_step
from parts import in_parts, require_same_rows
from test_refinement import METHOD, table

import dpmask
from dpmask.errors import InputError, JobError

REGIONS = replace(METHOD, search="mondrian")


@pytest.fixture(scope="module")
def embedded():
    frame = table()
    fitted = REGIONS.fit(frame, seed=1)
    return frame, fitted, fitted.mask(frame)


@pytest.mark.parametrize(("partitions", "shard"), [(3, 10**6), (7, 500)])
def test_regions_do_not_depend_on_partitions_or_shards(embedded, partitions, shard, client, limit):
    frame, expected, masked = embedded
    limit(refinement_shard_rows=shard)
    parts = in_parts(frame, partitions)
    found = REGIONS.fit(parts, seed=1)
    assert found.figures.groups == expected.figures.groups
    assert found.figures.regions == expected.figures.regions
    assert found.figures.loss == pytest.approx(expected.figures.loss, rel=1e-12)
    columns = list(REGIONS.masks)
    require_same_rows(found.mask(parts)[columns].compute(), masked[columns])


def test_regions_lose_less_than_one_cut_and_are_large_enough(embedded):
    frame, fitted, masked = embedded
    assert fitted.figures.loss < fitted.figures.loss_of_one_cut == pytest.approx(METHOD.fit(frame, seed=1).figures.loss)
    for one in REGIONS.requirements:
        assert masked.groupby(list(one.columns), dropna=False).size().min() >= one.k
    assert "would lose" in fitted.explain()
    assert any("series" in one for one in fitted.weaknesses())
    assert any("overlap" in one for one in fitted.weaknesses())


def inside(label, value, tree):
    """Whether a value may have been released under a label, by its definition."""
    missing = pd.isna(value)
    if pd.isna(label):
        return missing
    if label in {"*", "any"}:
        return True
    if missing:
        return False
    if label.startswith("["):
        low, high = label[1:-1].split(", ")
        return pd.Timestamp(low) <= value < pd.Timestamp(high) if "-" in low else float(low) <= value < float(high)
    return value == label or value in tree.get(label, ())


def test_every_record_lies_in_its_own_box_and_in_no_other(embedded):
    """An intruder who knows all columns of a requirement finds the region of a record, and no record outside of it."""
    frame, _, masked = embedded
    columns = ["age", "kind", "région", "born"]
    tree = {"ab": "ab", "cd": "cd"}
    boxes = masked[columns].astype(object).drop_duplicates().to_dict("records")
    for row in frame[columns].astype(object).head(40).to_dict("records"):
        fits = [box for box in boxes if all(inside(box[name], row[name], tree) for name in columns)]
        assert len(fits) == 1


def test_linkage_by_regions_is_what_an_intruder_achieves(embedded):
    """Without sets and missing values the measure would miss people; with them it finds each in its region."""
    frame, fitted, masked = embedded
    columns = ["age", "kind", "région", "born"]
    sizes = masked.groupby(columns, dropna=False)["weight"].transform("size")
    found = dpmask.risk.distance_linkage(frame, masked, columns=columns, sets=fitted.label_sets())
    assert found.euclidean == pytest.approx((1 / sizes).mean(), rel=1e-9)
    assert found.rate >= (1 / sizes).mean() - 1e-12


def test_groups_take_the_worst_register_where_labels_overlap(embedded):
    frame, fitted, masked = embedded
    columns = ["age", "kind", "région", "born"]
    found = dpmask.risk.groups(frame, masked, quasi=columns, sets=fitted.label_sets())
    assert found.smallest == fitted.figures.smallest == masked.groupby(columns, dropna=False).size().min()
    assert found.journalist == pytest.approx(found.prosecutor)
    assert found.prosecutor == pytest.approx(fitted.figures.regions / len(frame))


@pytest.mark.parametrize(("column", "more"), [("age", {"domains": {"age": [0, 100]}}), ("région", {})])
def test_groups_of_one_column_that_does_not_overlap(column, more):
    frame = table(500).assign(age=range(500)).assign(age=lambda one: one["age"] % 50 + 0.5)
    fitted = dpmask.TopDownRefinement(requirements=[([column], 2)], search="mondrian", **more).fit(frame, seed=1)
    found = dpmask.risk.groups(frame, fitted.mask(frame), quasi=[column], sets=fitted.label_sets())
    assert found.journalist == pytest.approx(found.prosecutor) == fitted.figures.regions / len(frame)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"suppress_records": 0.1}, "suppress_records is for search: one_cut"),
        ({"suppress_cells": 0.1}, "suppress_cells is for search: one_cut"),
        ({"at_least": {"age": 2}}, "at_least is for search: one_cut"),
        ({"intervals": "midpoint"}, "releases intervals as labels"),
        ({"search": "greedy"}, "search must be"),
    ],
)
def test_what_does_not_go_with_regions_is_refused(changes, message):
    with pytest.raises(JobError, match=message):
        replace(REGIONS, **changes)


def test_kept_columns_stay_and_values_beyond_the_fit_are_refused():
    frame = table().drop(columns="kind")
    one = dpmask.TopDownRefinement(
        requirements=[(["age", "sex"], 5)], domains={"age": [0, 100]}, keep=["sex"], search="mondrian"
    )
    frame = frame.assign(sex=np.where(np.arange(len(frame)) % 3, "f", "m"))
    masked = one.fit(frame, seed=1).mask(frame)
    assert (masked["sex"] == frame["sex"]).all()
    assert masked.groupby(["age", "sex"], dropna=False).size().min() >= 5
    assert {"[0, 100)"} != set(masked["age"].dropna())
    rare = frame.assign(sex=np.where(np.arange(len(frame)) < 3, "x", frame["sex"]))
    with pytest.raises(InputError, match="sex kept as declared"):
        one.fit(rare, seed=1)
    other = REGIONS.fit(table(), seed=1)
    with pytest.raises(InputError, match="Fit to all of the data"):
        other.mask(table().assign(**{"région": "elsewhere"}))


def test_a_job_releases_regions_and_verify_counts_them(place):
    """Claims with a model are counted again; the report says what regions lose, and what they are not for."""
    place.lake()
    first, second = refinement_step(20, 10)["requirements"]
    models = [{"model": "distinct_l", "column": "name", "l": 3}]
    step = refinement_step(20, 10) | {"requirements": [first | {"models": models}, second], "search": "mondrian"}
    policy = ["refinement.smallest >= 10", "refinement.loss <= 0.9", "refinement.distinct_l >= 3", "groups.unmet <= 0"]
    measure = [{"measure": "groups", "requirements": step["requirements"]}]
    ended = place.run(mask=[step], measure=measure, policy=policy)
    assert ended.code == 0, ended.err
    manifest, released = place.released()
    assert manifest["steps"][0]["solution"]["search"] == "mondrian"
    assert manifest["steps"][0]["solution"]["regions"] > 2
    groups = released.to_pandas().groupby(["age", "region"], dropna=False)["name"]
    assert groups.size().min() >= 20
    assert groups.nunique().min() >= 3
    assert place.dpmask("verify", "release").code == 0
    figures = json.loads((place.folder / "private/result.json").read_text())["steps"][0]["figures"]
    assert figures["loss"] < figures["loss_of_one_cut"]
    report = next((place.folder / "private").rglob("report.html")).read_text(encoding="utf-8")
    for text in ("loss of the one-cut search", "What each column lost", "for a series take", "released values overlap"):
        assert text in report
    public = next((place.folder / "release").rglob("report.html")).read_text(encoding="utf-8")
    assert "Values of different regions may overlap" in public
    assert "loss of the one-cut search" not in public
