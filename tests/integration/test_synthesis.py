"""Synthetic dependents: the same on frames and a real cluster, what they keep, and never an original."""

import numpy as np
import pandas as pd
import pytest
from parts import in_parts
from synthesis_tools import COLUMNS, METHODS, models, people

import dpmask
from dpmask.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize(("name", "partitions"), [("each", 3), ("joint", 10), ("ipso", 1)])
def test_released_values_do_not_depend_on_partitions(name, partitions, client):
    frame, parts, method = people(), in_parts(people(), partitions), METHODS[name]
    whole, fitted = method.fit(frame, seed=1), method.fit(parts, seed=1)
    expected, masked = whole.mask(frame), fitted.mask(parts).compute()
    np.testing.assert_allclose(masked["y"], expected["y"], rtol=1e-9, atol=1e-9)
    assert (masked["k"] == expected["k"]).all()
    assert (masked["other"] == frame["other"]).all()
    assert fitted.figures.models == whole.figures.models
    assert fitted.figures.reproduced == whole.figures.reproduced
    assert fitted.figures.loss == pytest.approx(whole.figures.loss, rel=1e-9)


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


def test_other_weights_draw_anew():
    """Two releases that differ in their weights alone: what noise adds to one says nothing of the other's."""
    frame = people()
    swapped = frame.assign(w=frame["w"].to_numpy()[::-1])  # as many, of the same range and sum
    method = dpmask.IPSO(variant="B", weight="w", **COLUMNS)
    bare = frame.drop(columns="w")  # masking needs no weights
    one, same, two = (method.fit(some, seed=1).mask(bare) for some in (frame, in_parts(frame, 7), swapped))
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
    assert alone.figures.models[0].smallest < 10  # with twenty more it would not be small
    fitted = models(weight="w").fit(frame, seed=1)
    assert fitted.figures.models[0].dissolved >= 1
    assert fitted.figures.models[0].smallest >= 10


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
    assert alone.figures.models[0].smallest < 10
    assert alone.figures.small > 0
    assert any("minimum_size" in warning for warning in alone.warnings())
    fitted = models().fit(frame, seed=1)
    assert fitted.minimum_size == 10  # 2 x 5 coefficients
    assert fitted.figures.models[0].smallest >= 10
    assert fitted.figures.models[0].dissolved == 1
    assert fitted.figures.small == 0
    assert fitted.mask(frame).loc[:2, "y"].max() < 500
    all_in_one = models(minimum_size=1000).fit(frame, seed=1)
    assert all(group.models == 1 for group in all_in_one.figures.models)
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
    assert method.fit(frame, seed=1).figures.on_planes <= 1e-4, "one or two of 20,000 lie there by chance"
