"""Synthetic dependents on frames, lakes, a real cluster and in jobs: the same everywhere, and never an original."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import write_lake
from parts import in_parts

import dpmask
from dpmask.clustering import fuzzy_c_regression, regression_start
from dpmask.errors import InputError, JobError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
COLUMNS = {"dependents": ["y", "k"], "independents": ["x", "g", "b"]}


def people(rows=1500, seed=0):
    """Two kinds of people with lines of their own, a category and a flag that shift them."""
    rng = np.random.default_rng(seed)
    x, kind = rng.normal(size=rows), rng.random(rows) < 0.5
    g, b = rng.choice(["a", "é", "c"], rows, p=[0.5, 0.3, 0.2]), rng.random(rows) < 0.4
    y = np.where(kind, 2 * x, 5 - x) + 1.5 * (g == "é") + b + 0.2 * rng.normal(size=rows)
    k = np.rint(500 + 100 * x + 40 * kind + 5 * rng.normal(size=rows)).astype(np.int64)
    w = rng.integers(1, 4, rows)
    return pd.DataFrame({"x": x, "g": g, "b": b, "y": y, "k": k, "w": w, "other": np.arange(rows)})


def models(**options):
    return dpmask.RegressionSynthesis(**COLUMNS | {"clusters": 3} | options)


METHODS = {
    "each": models(),
    "joint": models(joint=True, residual_noise=True, weight="w"),
    "ipso": dpmask.IPSO(variant="C", **COLUMNS),
}


@pytest.mark.parametrize("partitions", [1, 3, 7, 20])
def test_models_do_not_depend_on_partitions(partitions, client, whole_fit):
    fitted = dpmask.FuzzyCRegression(clusters=3, max_passes=4).fit(in_parts(people(), partitions), **COLUMNS)
    np.testing.assert_allclose(fitted.coefficients, whole_fit.coefficients, rtol=1e-9, atol=1e-9)
    assert (fitted.sizes == whole_fit.sizes).all()
    assert fitted.objective == pytest.approx(whole_fit.objective, rel=1e-9)


@pytest.fixture(scope="module")
def whole_fit():
    return dpmask.FuzzyCRegression(clusters=3, max_passes=4).fit(people(), **COLUMNS)


def test_a_sampled_start_does_not_depend_on_partitions(monkeypatch):
    """Larger tables start from a sample of their records: the same ones however they are cut, and as good a start."""
    plain = models(clusters=2).fit(people(), seed=1)
    monkeypatch.setattr(regression_start, "_SAMPLE", 300)
    method = dpmask.FuzzyCRegression(clusters=2, max_passes=100)
    one, two = (method.fit(table, **COLUMNS, weight="w") for table in (people(), in_parts(people(), 7)))
    np.testing.assert_allclose(one.coefficients, two.coefficients, rtol=1e-9, atol=1e-9)
    assert one.history[0].objective == pytest.approx(two.history[0].objective, rel=1e-9)
    assert models(clusters=2).fit(people(), seed=1).figures.loss == pytest.approx(plain.figures.loss, rel=1e-2)


@pytest.mark.parametrize(("name", "partitions"), [("each", 3), ("joint", 7), ("ipso", 1), ("ipso", 20)])
def test_released_values_do_not_depend_on_partitions(name, partitions, client):
    frame, parts, method = people(), in_parts(people(), partitions), METHODS[name]
    whole, fitted = method.fit(frame, seed=1), method.fit(parts, seed=1)
    expected, masked = whole.mask(frame), fitted.mask(parts).compute()
    np.testing.assert_allclose(masked["y"], expected["y"], rtol=1e-9, atol=1e-9)
    assert (masked["k"] == expected["k"]).all()
    assert (masked["other"] == frame["other"]).all()
    assert fitted.figures.groups == whole.figures.groups
    assert fitted.figures.reproduced == whole.figures.reproduced
    assert fitted.figures.loss == pytest.approx(whole.figures.loss, rel=1e-9)


@pytest.mark.parametrize("kind", ["embedded", "cluster"])
def test_held_and_read_again_give_the_same_bits(tmp_path, monkeypatch, request, kind):
    if kind == "cluster":
        request.getfixturevalue("client")
    write_lake(tmp_path / "lake", pa.Table.from_pandas(people()), files=3, row_group_size=200)
    lake = dpmask.read_lake(str(tmp_path / "lake"), block_rows=300)
    method = dpmask.FuzzyCRegression(clusters=4, max_passes=5)
    held = method.fit(lake, **COLUMNS)
    monkeypatch.setattr(fuzzy_c_regression, "fits_in_memory", lambda size: False)
    again = method.fit(lake, **COLUMNS)
    assert np.array_equal(held.coefficients, again.coefficients)
    assert held.history == again.history


def test_regression_finds_the_lines():
    frame = people()
    fitted = dpmask.FuzzyCRegression(clusters=2, max_passes=200).fit(
        frame, dependents=["y"], independents=["x", "g", "b"]
    )
    assert fitted.converged
    assert fitted.terms == ("1", "x", "g=é", "g=c", "b=true")
    lines = fitted.coefficients[np.argsort(fitted.coefficients[:, 1, 0]), :, 0]
    np.testing.assert_allclose(lines, [[5, -1, 1.5, 0, 1], [0, 2, 1.5, 0, 1]], atol=0.1)
    assert fitted.sizes.sum() == len(frame)
    shares = fitted.memberships(frame)
    assert list(shares.columns) == ["cluster_0", "cluster_1"]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (fitted.labels(frame) == shares.to_numpy().argmax(axis=1)).all()
    lazy = fitted.labels(in_parts(frame, 3))
    assert (lazy.compute() == fitted.labels(frame)).all()
    objectives = [step.objective for step in fitted.history]
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(objectives))


def test_a_weight_counts_a_record_so_often():
    """Models that have come to rest are those of a table that has each record so many times."""
    frame = people()
    repeated = frame.loc[frame.index.repeat(frame["w"])].reset_index(drop=True)
    method = dpmask.FuzzyCRegression(clusters=2, max_passes=300, change=1e-9)
    weighted = method.fit(frame, **COLUMNS, weight="w")
    plain = method.fit(repeated, **COLUMNS)
    assert weighted.converged
    np.testing.assert_allclose(weighted.coefficients, plain.coefficients, rtol=1e-6, atol=1e-6)
    assert weighted.objective == pytest.approx(plain.objective, rel=1e-9)
    assert weighted.sizes.sum() == len(frame)  # people, not weights
    assert list(weighted.labels(frame.drop(columns="w"))) == list(weighted.labels(frame))


def test_ipso_keeps_what_a_weighted_regression_sees():
    frame = people().assign(y=lambda some: some["y"] * some["w"])
    frame.loc[:99, "w"] = 0
    columns = {"dependents": ["y", "k"], "independents": ["x", "b"]}
    frame["k"] = frame["k"].astype(float)
    z = np.column_stack([np.ones(len(frame)), frame["x"], frame["b"]])
    root = np.sqrt(frame["w"].to_numpy())[:, None]
    for variant, kept in (("A", False), ("B", False), ("C", True)):
        masked = dpmask.IPSO(variant=variant, weight="w", **columns).fit(frame, seed=1).mask(frame.drop(columns="w"))
        y, other = frame[["y", "k"]].to_numpy(), masked[["y", "k"]].to_numpy()
        fits = [np.linalg.lstsq(root * z, root * values, rcond=None)[0] for values in (y, other)]
        np.testing.assert_allclose(fits[0] / y.std(axis=0), fits[1] / y.std(axis=0), atol=1e-10)
        rest, rest_masked = (root * (values - z @ fit) for values, fit in zip((y, other), fits, strict=True))
        scale = np.sqrt(np.outer(*[(rest**2).sum(axis=0)] * 2))
        gap = np.abs(rest.T @ rest - rest_masked.T @ rest_masked).max() / scale.max()
        assert (gap < 1e-10) == kept
        assert gap < (0.2 if variant == "B" else 1.01)


def test_no_record_is_complete():
    frame = people()
    odd = frame.index % 2 == 0
    for table in (
        frame.assign(x=frame["x"].where(odd), y=frame["y"].where(~odd)),
        frame.assign(
            x=np.where(frame.index == 5, 1.0, np.nan), y=frame["y"].where(frame.index != 5)
        ),  # no start sees it
    ):
        for name, told in (("each", "no record without missing values"), ("ipso", "records without missing values")):
            parameters = vars(METHODS[name]) | {"nulls": "keep"}
            with pytest.raises(InputError, match=told):
                type(METHODS[name])(**parameters).fit(table, seed=1)


def test_few_records_among_many_shape_the_models(monkeypatch):
    """The sample is a share of the records that count: a few complete ones, or ones with a weight, are all in it."""
    frame = people()
    few = frame.index % 100 == 7  # 15 of 1,500
    regression = dpmask.FuzzyCRegression(clusters=2, nulls="drop")
    # in each column most values are there, and in hardly any record all are
    lacking = frame.assign(
        x=frame["x"].where(few | (frame.index % 2 == 0)), y=frame["y"].where(few | (frame.index % 2 == 1))
    )
    weighed = frame.assign(w=np.where(few, frame["w"], 0))
    expected = [
        regression.fit(lacking, **COLUMNS, seed=1).coefficients,
        regression.fit(weighed, **COLUMNS, weight="w", seed=1).coefficients,
    ]
    monkeypatch.setattr(regression_start, "_SAMPLE", 20)
    assert (regression.fit(lacking, **COLUMNS, seed=1).coefficients == expected[0]).all()
    assert (regression.fit(weighed, **COLUMNS, weight="w", seed=1).coefficients == expected[1]).all()
    many = dpmask.FuzzyCRegression(clusters=16, nulls="drop")
    with pytest.raises(InputError, match="16 models need as many records without missing values; there are 15"):
        many.fit(lacking, **COLUMNS)
    with pytest.raises(InputError, match="as many records without missing values and with a weight; there are 15"):
        many.fit(weighed, **COLUMNS, weight="w")


def test_records_without_weight_change_nothing():
    """Not the models, and not when they come to rest: where two models meet memberships change for longest."""
    frame, columns = people(400), {"dependents": ["y"], "independents": ["x"], "weight": "w"}
    method = dpmask.FuzzyCRegression(clusters=2)
    alone = method.fit(frame, **columns)
    (a, b), (c, d) = alone.coefficients[:, :, 0]  # y = a + b x
    x = (c - a) / (b - d)
    near = 1e-4 * np.random.default_rng(0).normal(size=(2, len(frame)))
    meeting = frame.assign(x=x + near[0], y=a + b * x + near[1], w=0)
    beside = method.fit(pd.concat([frame, meeting], ignore_index=True), **columns)
    np.testing.assert_allclose(beside.coefficients, alone.coefficients, rtol=1e-9, atol=1e-9)
    assert beside.converged
    assert len(beside.history) == len(alone.history)


def test_other_weights_draw_anew():
    """Two releases that differ in their weights alone: what noise adds to one says nothing of the other's."""
    frame = people()
    swapped = frame.assign(w=frame["w"].to_numpy()[::-1])  # as many, of the same range and sum
    method = dpmask.IPSO(variant="B", weight="w", **COLUMNS)
    one, same, two = (method.fit(some, seed=1).mask(frame) for some in (frame, in_parts(frame, 7), swapped))
    np.testing.assert_allclose(one["y"], same["y"], rtol=1e-9, atol=1e-9)
    z = np.column_stack([np.ones(len(frame)), frame["x"], pd.get_dummies(frame["g"]).iloc[:, 1:], frame["b"]]).astype(
        float
    )
    rest = [values["y"] - z @ np.linalg.lstsq(z, values["y"], rcond=None)[0] for values in (one, two)]
    assert abs(np.corrcoef(*rest)[0, 1]) < 5 / np.sqrt(len(frame))


def test_extremes_are_not_shown():
    frame = people()
    shown = repr(METHODS["joint"].fit(frame, seed=1)) + repr(dpmask.FuzzyCRegression(clusters=2).fit(frame, **COLUMNS))
    for extreme in (frame["y"].max(), frame["y"].min(), frame["x"].max()):
        assert f"{extreme:.4f}"[:-1] not in shown


def test_records_without_weight_do_not_make_a_model_large():
    """Three records far away, and twenty of weight 0 beside them: the model is that of three."""
    frame = people()
    frame.loc[:22, "y"] += 1000.0
    frame["w"] = np.where(frame.index.isin(range(3, 23)), 0, 1)
    alone = models(minimum_size=1, weight="w").fit(frame, seed=1)
    assert alone.figures.groups[0].smallest < 10  # with twenty more it would not be small
    fitted = models(weight="w").fit(frame, seed=1)
    assert fitted.figures.groups[0].dissolved >= 1
    assert fitted.figures.groups[0].smallest >= 10


def test_every_value_is_its_model_s():
    """Without noise: three different lines at most in y for equal independents, and k whole numbers."""
    frame = people()
    frame["x"], frame["g"], frame["b"] = frame["x"].round(0), "a", True
    masked = models().fit(frame, seed=1).mask(frame)
    assert masked.groupby("x")["y"].agg(lambda values: values.round(9).nunique()).max() <= 3
    assert masked["k"].dtype == np.int64


def test_small_models_are_dissolved():
    frame = people()
    frame.loc[:2, "y"] += 1000.0  # three records that a model goes through
    alone = models(minimum_size=1).fit(frame, seed=1)
    assert alone.figures.groups[0].smallest < 10
    assert alone.figures.small > 0
    assert any("minimum_size" in warning for warning in alone.warnings())
    fitted = models().fit(frame, seed=1)
    assert fitted.minimum_size == 10  # 2 x 5 coefficients
    assert fitted.figures.groups[0].smallest >= 10
    assert fitted.figures.groups[0].dissolved == 1
    assert fitted.figures.small == 0
    assert sum(fitted.figures.groups[0].sizes) == len(frame)
    assert fitted.mask(frame).loc[:2, "y"].max() < 500
    all_in_one = models(minimum_size=1000).fit(frame, seed=1)
    assert all(len(group.sizes) == 1 for group in all_in_one.figures.groups)
    with pytest.raises(InputError, match="minimum_size"):
        models(minimum_size=2000).fit(frame, seed=1)


def test_reproduced_values_are_counted():
    frame = people()
    frame["y"] = 3 * frame["x"] + 1.0  # the independents give it away
    for method in (models(clusters=1), dpmask.IPSO(variant="A", **COLUMNS)):
        with pytest.warns(UserWarning, match="released as they were"):
            fitted = method.fit(frame, seed=1)
        assert fitted.figures.reproduced == 1.0
        assert fitted.figures.on_planes == 1.0
        assert any(
            "100.0% of a column's values" in weakness and "hyperplane" in weakness for weakness in fitted.weaknesses()
        )


def test_residual_noise_has_the_residuals_covariance():
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    noise = rng.multivariate_normal([0, 0], [[1.0, 0.8], [0.8, 2.0]], 20_000)
    frame = pd.DataFrame({"x": x, "y": x + noise[:, 0], "v": -x + noise[:, 1]})
    method = dpmask.RegressionSynthesis(
        dependents=["y", "v"], independents=["x"], clusters=1, joint=True, residual_noise=True
    )
    masked = method.fit(frame, seed=1).mask(frame)
    rest = masked[["y", "v"]].to_numpy() - np.outer(x, [1, -1])
    np.testing.assert_allclose(np.cov(rest.T), [[1.0, 0.8], [0.8, 2.0]], atol=0.06)
    assert abs(np.corrcoef(rest[:, 0], noise[:, 0])[0, 1]) < 0.03
    again = method.fit(frame, seed=2).mask(frame)
    assert (again["y"] != masked["y"]).all()
    assert method.fit(frame, seed=1).figures.on_planes == 0.0


@pytest.mark.parametrize("name", METHODS)
def test_bounds_hold_and_are_counted(name):
    frame = people()
    bounds = ["k >= 450.5", "0 <= y <= 4"]
    parameters = vars(METHODS[name]) | {"bounds": bounds}
    fitted = type(METHODS[name])(**parameters).fit(frame, seed=1)
    masked = fitted.mask(frame)
    assert masked["k"].min() == 451
    assert masked["y"].between(0, 4).all()
    said = {column["column"]: column for column in fitted.figures.to_dict()["columns"]}
    assert said["y"]["clipped"] == int(masked["y"].isin([0.0, 4.0]).sum())
    assert said["y"]["rounded"] == 0
    assert 0 < said["k"]["clipped"] <= int((masked["k"] == 451).sum())
    assert said["k"]["rounded"] > 0.9 * len(frame) - said["k"]["clipped"]
    assert fitted.claims() == [{"columns": ["y", "k"], "constraints": bounds}]


@pytest.mark.parametrize("name", METHODS)
def test_missing_values(name, tmp_path):
    frame = people()
    frame["k"] = frame["k"].astype("Int64")
    frame.loc[:9, "x"] = np.nan
    frame.loc[20:29, "y"] = np.nan
    frame.loc[40:44, "g"] = None
    with pytest.raises(InputError, match="column 'x' is missing in 10 records"):
        METHODS[name].fit(frame, seed=1)
    parameters = vars(METHODS[name]) | {"nulls": "keep"}
    fitted = type(METHODS[name])(**parameters).fit(frame, seed=1)
    masked = fitted.mask(frame)
    gone = frame["x"].isna() | frame["g"].isna()
    assert (masked["k"].isna() == gone).all()
    assert (masked["y"].isna() == (gone | frame["y"].isna())).all()
    plain = frame.drop(columns="k").assign(k=people()["k"])
    with pytest.raises(InputError, match="Int64"):
        fitted.mask(plain)
    write_lake(tmp_path / "lake", pa.Table.from_pandas(plain, preserve_index=False))
    lake = dpmask.read_lake(str(tmp_path / "lake"))
    released = fitted.mask(lake).compute()
    assert (released["k"].isna().to_numpy() == gone.to_numpy()).all()


def test_other_tables():
    frame = people()
    fitted = METHODS["ipso"].fit(frame, seed=1)
    with pytest.raises(InputError, match="has a level here") as caught:
        fitted.mask(frame.assign(g="zz"))
    assert "zz" not in str(caught.value)
    with pytest.raises(InputError, match="missing values"):
        fitted.mask(frame.assign(x=np.nan))
    with pytest.raises(InputError, match="infinite"):
        fitted.mask(frame.assign(y=np.inf))
    with pytest.raises(JobError, match="must be numeric"):
        fitted.mask(frame.assign(y="a"))


def test_bad_parameters_and_tables():
    frame = people()
    for method, wrong, told in (
        (models, {"dependents": ["y", "x"]}, "either in dependents or in independents"),
        (models, {"clusters": 0}, "clusters must be an integer >= 1"),
        (models, {"minimum_size": 0}, "minimum_size"),
        (models, {"joint": 1}, "joint must be true or false"),
        (models, {"nulls": "drop"}, "nulls must be 'refuse' or 'keep'"),
        (models, {"bounds": ["y = 3"]}, "got an equality"),
        (models, {"bounds": ["z >= 3"]}, "z"),
        (models, {"independents": []}, "independents"),
        (models, {"weight": "y"}, "weight must name a column other than"),
        (models, {"weight": 3}, "weight must name a column"),
    ):
        with pytest.raises(JobError, match=told):
            method(**wrong)
    with pytest.raises(JobError, match="variant must be 'A' or 'B' or 'C'"):
        dpmask.IPSO(variant="D", **COLUMNS)
    for table, told in (
        (frame.assign(y=1.0), "'y' is constant"),
        (frame.assign(x=np.inf), "infinite"),
        (frame.assign(x=np.nan), "no value in any record"),
        (frame.assign(g=[str(n) for n in range(len(frame))]), "more than 200 levels"),
        (frame.head(2), "records"),
        (frame.assign(g=pd.Timestamp("2020-01-01")), "must be numeric, text or true/false"),
    ):
        for method in METHODS.values():
            with pytest.raises((InputError, JobError), match=told):
                method.fit(table, seed=1)
    for weights, told in (
        (-1.0, "'w' must hold a number >= 0"),
        (np.nan, "'w' must hold a number >= 0"),
        (0.0, "'w' must be above 0 in a record"),
        ("a", "must be numeric"),
    ):
        with pytest.raises((InputError, JobError), match=told):
            METHODS["joint"].fit(frame.assign(w=weights), seed=1)
    with pytest.raises(JobError, match="'ww'"):
        models(weight="ww").fit(frame, seed=1)
    with pytest.raises(JobError, match="seed="):
        models().fit(frame)
    with pytest.raises(JobError, match="must stand once"):
        dpmask.FuzzyCRegression(clusters=2).fit(frame, dependents=["y"], independents=["x", "y"])
    constant = frame.assign(b=True, g=1.0)  # says nothing, and harms nothing
    assert models().fit(constant, seed=1).mask(constant)["y"].notna().all()


@pytest.mark.parametrize("method", ["regression_synthesis", "ipso"])
def test_in_a_job(place, method):
    place.lake(pa.Table.from_pandas(people(), preserve_index=False), row_group_size=200)
    own = {"clusters": 3, "residual_noise": True} if method == "regression_synthesis" else {"variant": "C"}
    job = {
        "columns": {"identifier": ["other"], "quasi": ["x", "g", "b"], "sensitive": ["y", "k"], "weight": ["w"]},
        "mask": [{"method": method, **COLUMNS, **own, "weight": "w", "bounds": ["k >= 0"]}],
        "measure": [{"measure": "il1s", "columns": ["y", "k"]}],
        "policy": [f"{method}.reproduced <= 0.5", f"{method}.small <= 0"],
    }
    ended = place.run("--json", **job)
    assert ended.code == 0, ended.err
    outcome = ended.json
    assert outcome["steps"][0]["figures"]["columns"][0]["column"] == "y"
    assert outcome["policy"][0]["held"]
    manifest, released = place.released()
    assert released.num_rows == 1500
    assert manifest["claims"] == [{"columns": ["y", "k"], "constraints": ["k >= 0"]}]
    assert "figures" not in json.dumps(manifest["steps"])
    assert place.dpmask("verify", "release").code == 0
    first = place.bytes()
    refused = place.run("--json", **job | {"policy": [f"{method}.smallest >= 5000"], "target": "other"})
    assert refused.code == 3
    again = place.run("--overwrite", **job | {"target": "again"})
    assert again.code == 0
    assert place.bytes("again") == first
