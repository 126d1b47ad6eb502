"""Memberships, rotations, swapping and correlated noise: the same for any partitions, bad input, several in a job."""

import json
import warnings

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from bad_incomes import BAD_INCOMES
from conftest import people
from parts import in_parts
from transform_tools import COMPLETE, HYBRID, SMALL_SHARDS

import dpmask
from dpmask.engine.limits import limits
from dpmask.errors import InputError, JobError

METHODS = {
    "s": dpmask.MembershipTransform(columns=["age", "income", "rate"], function="s"),
    "gaussian": dpmask.MembershipTransform(columns=["age", "income", "rate"], function="gaussian"),
    "rotation": dpmask.RandomRotation(columns=COMPLETE),
    "correlated": dpmask.NoiseAddition(columns=["income", "rate"], scale=0.3, correlated=True),
    "small windows": dpmask.RankSwapping(columns=["age", "rate"], share=0.8, window=0.02),
    "large windows": dpmask.RankSwapping(columns=["rate"], share=0.8, window=0.4),
}


@pytest.fixture(scope="module")
def alone(frame):
    """What each method makes of the whole frame in this process; made before a test connects to the cluster."""
    with limits(**SMALL_SHARDS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: method.fit(frame, seed=7).mask(frame) for name, method in METHODS.items()}


@pytest.mark.filterwarnings("ignore:RandomRotation. standard deviations")
def test_results_do_not_depend_on_partitions(frame, alone, limit, partitions):
    limit(**SMALL_SHARDS)
    given = in_parts(frame[["age", "income", "rate", "name"]], partitions)
    masked = {name: method.fit(given, seed=7).mask(given) for name, method in METHODS.items()}
    for (name, method), found in zip(METHODS.items(), dask.compute(*masked.values()), strict=True):
        assert found.index.equals(frame.index)
        assert (found.dtypes == masked[name].dtypes).all()
        for column in method.columns:
            if isinstance(method, dpmask.RankSwapping):
                assert found[column].equals(alone[name][column]), (name, column)
            else:
                np.testing.assert_allclose(found[column], alone[name][column], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: dpmask.RandomRotation(columns=["age"]), "columns must be two or more"),
        (lambda: dpmask.RankSwapping(columns=["age"], share=0, window=0.1), "share must be a number > 0 and <= 1"),
        (lambda: dpmask.RankSwapping(columns=["age"], share=1, window=1.5), "window must be a number > 0 and <= 1"),
        (lambda: dpmask.NoiseAddition(columns=["age"], scale=1, correlated="yes"), "correlated must be true or false"),
        (lambda: dpmask.KMeans(clusters=0), "KMeans: clusters must be an integer >= 1; got 0"),
        (lambda: dpmask.KMeans(clusters=2, nulls="keep"), "KMeans: nulls must be"),
    ],
)
def test_bad_parameters(make, text):
    with pytest.raises(JobError, match=text):
        make()


WHOLE = [
    dpmask.MembershipTransform(columns=["income", "größe"], function="s"),
    dpmask.RandomRotation(columns=["income", "größe"]),
    dpmask.RankSwapping(columns=["income", "größe"], share=0.5, window=0.5),
    dpmask.NoiseAddition(columns=["income", "größe"], scale=0.5, correlated=True),
]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda f: f.assign(income=np.where(f.index == 3, np.inf, 1.0)), InputError, "infinite values in 1 records"),
        *BAD_INCOMES,
    ],
)
@pytest.mark.parametrize("method", WHOLE, ids=lambda method: type(method).__name__)
def test_bad_frames(frame, method, change, error, text):
    given = frame[["income", "age"]].rename(columns={"age": "größe"})
    with pytest.raises(error, match=text):
        method.fit(change(given), seed=1)
    with pytest.raises(JobError, match=r"give either key= .a secret. or seed="):
        method.fit(given)


def test_correlated_noise_keeps_correlations():
    rng = np.random.default_rng(0)
    net = rng.lognormal(9, 1, 20_000)
    tax = 0.3 * net + rng.lognormal(7, 1, 20_000)
    given = pd.DataFrame({"net": net, "tax": tax, "gross": net + tax})
    found = {}
    for correlated in (False, True):
        method = dpmask.NoiseAddition(columns=list(given), scale=0.5, correlated=correlated)
        fitted = method.fit(given, seed=1)
        found[correlated] = fitted.mask(given)
        np.testing.assert_allclose(found[correlated].var() / given.var(), 1.25, rtol=0.03)
        assert "larger by the factor 1.25" in fitted.statement()
    before = given.corr().to_numpy()
    np.testing.assert_allclose(found[True].corr(), before, atol=0.01)
    assert np.abs(found[False].corr().to_numpy() - before).max() > 0.1
    np.testing.assert_allclose(found[True].eval("net + tax"), found[True]["gross"], rtol=1e-6)
    assert "which are kept" in fitted.statement()
    holes = given.assign(tax=given["tax"].where(given.index == 0))
    with pytest.raises(InputError, match="column 'tax' has a value in one record only"):
        method.fit(holes, seed=1)
    apart = given.assign(tax=given["tax"].where(given.index % 2 == 0), net=given["net"].where(given.index % 2 == 1))
    with pytest.raises(InputError, match="needs at least 2 complete records"):
        method.fit(apart, seed=1)


def test_a_job_with_the_hybrid(place):
    place.lake()
    ended = place.run(
        mask=HYBRID,
        measure=[
            {"measure": "misclassification", "columns": COMPLETE, "clusters": 3, "standardise": False},
            {"measure": "known_records", "columns": COMPLETE, "known": 4},
        ],
        order="input",
    )
    assert ended.code == 0, ended.err
    manifest, released = place.released()
    kinds = {column["name"]: column["type"] for column in manifest["schema"]}
    assert (kinds["age"], kinds["income"], kinds["children"]) == ("double", "double", "int8")
    assert str(released.schema.field("age").type) == "double"
    assert place.dpmask("verify", "release").code == 0
    told = json.dumps(manifest) + (place.folder / "release" / manifest["documents"][0]["path"]).read_text()
    assert "123" not in json.dumps(manifest["steps"])
    assert "bounds" not in manifest["steps"][0]["parameters"]
    for extreme in (released["income"], people()["income"]):
        assert str(max(extreme.to_pylist())) not in told
    # the rotation was of memberships: lengths are those of memberships, and squares of these are at most 1 each
    lengths = np.hypot(released["age"].to_numpy(), released["income"].to_numpy())
    assert lengths.max() <= np.sqrt(2)
    report = next((place.folder / "private").rglob("report.html")).read_text()
    assert "undo the rotation" in report
    assert "known_records" in report


def test_steps_are_checked_against_the_types_before_them(place):
    """Columns that a later step takes are those the earlier ones leave: footers of the source no longer count."""
    table = people()
    place.lake(table.set_column(1, "age", pa.array(np.full(600, 7, np.int32))))
    noisy = {"method": "noise", "columns": ["age"], "scale": 0.1}
    ended = place.dpmask("plan", place.job(mask=[HYBRID[1] | {"columns": ["age", "income"]}]))
    assert ended.code == 4
    assert "column 'age' is constant" in ended.err
    place.lake(table)
    ended = place.dpmask("plan", place.job(mask=[*HYBRID, noisy]))
    assert ended.code == 0, ended.err
    ended = place.dpmask("plan", place.job(mask=[*HYBRID, noisy | {"columns": ["name"]}]))
    assert ended.code == 2
    assert "column 'name' must be numeric" in ended.err
