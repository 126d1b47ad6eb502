"""Models by fuzzy c-regression: the same for any partitions, right, and shaped by the records that count."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import write_lake
from parts import in_parts
from synthesis_tools import COLUMNS, models, people

import dpmask
from dpmask.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def whole_fit():
    return dpmask.FuzzyCRegression(clusters=3, max_passes=4).fit(people(), **COLUMNS)


def test_models_do_not_depend_on_partitions(partitions, whole_fit):
    fitted = dpmask.FuzzyCRegression(clusters=3, max_passes=4).fit(in_parts(people(), partitions), **COLUMNS)
    np.testing.assert_allclose(fitted.coefficients, whole_fit.coefficients, rtol=1e-9, atol=1e-9)
    assert (fitted.sizes == whole_fit.sizes).all()
    assert fitted.objective == pytest.approx(whole_fit.objective, rel=1e-9)


def test_a_sampled_start_does_not_depend_on_partitions(limit):
    """Larger tables start from a sample of their records: the same ones however they are cut, and as good a start."""
    plain = models(clusters=2).fit(people(), seed=1)
    limit(clustering_sample=300)
    method = dpmask.FuzzyCRegression(clusters=2, max_passes=100)
    one, two = (method.fit(table, **COLUMNS, weight="w") for table in (people(), in_parts(people(), 7)))
    np.testing.assert_allclose(one.coefficients, two.coefficients, rtol=1e-9, atol=1e-9)
    assert one.history[0].objective == pytest.approx(two.history[0].objective, rel=1e-9)
    assert models(clusters=2).fit(people(), seed=1).figures.loss == pytest.approx(plain.figures.loss, rel=1e-2)


@pytest.mark.parametrize("kind", ["embedded", "cluster"])
def test_persisted_and_read_again_give_the_same_bits(tmp_path, limit, request, kind):
    if kind == "cluster":
        request.getfixturevalue("client")
    write_lake(tmp_path / "lake", pa.Table.from_pandas(people()), files=3, row_group_size=200)
    lake = dpmask.read_lake(str(tmp_path / "lake"), block_rows=300)
    method = dpmask.FuzzyCRegression(clusters=4, max_passes=5)
    persisted = method.fit(lake, **COLUMNS)
    limit(memory_share=0.0)
    again = method.fit(lake, **COLUMNS)
    assert np.array_equal(persisted.coefficients, again.coefficients)
    assert persisted.history == again.history


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


def test_few_records_among_many_shape_the_models(limit):
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
    limit(clustering_sample=20)
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
