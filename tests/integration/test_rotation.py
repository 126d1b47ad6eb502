"""Rotations: of the table and the key, alone and after another step; what they look at, and what they refuse."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from conftest import people
from transform_tools import COMPLETE, HYBRID

import dpmask
from dpmask.errors import InputError
from dpmask.job.fit import draws_of, fitted_steps
from dpmask.job.job_text import JobText
from dpmask.job.model import understood
from dpmask.job.prepare import prepare

AFTER = [{"method": "membership_transform", "columns": COMPLETE, "function": "s"}, HYBRID[1]]


def test_a_rotation_refuses_missing_values(frame):
    with pytest.raises(InputError, match=r"column 'rate' is missing in \d+ records, which cannot be rotated"):
        dpmask.RandomRotation(columns=["age", "rate"]).fit(frame, seed=1)
    complete = frame[["age"]].assign(other=np.sin(frame["age"]) + frame["age"])
    fitted = dpmask.RandomRotation(columns=["age", "other"]).fit(complete, seed=1)
    rows = pa.Table.from_pandas(complete.assign(age=complete["age"].where(complete["age"] > 20)))
    with pytest.raises(InputError, match="missing or infinite values, which cannot be rotated"):
        fitted.mask_rows(rows, 0)


def test_a_rotation_is_of_the_table_and_the_key(frame):
    method = dpmask.RandomRotation(columns=COMPLETE)
    with pytest.warns(UserWarning, match="differ by more than a factor of 10"):
        fitted = method.fit(frame, seed=1)
    np.testing.assert_allclose(fitted.matrix @ fitted.matrix.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(fitted.mask(frame)[COMPLETE], frame[COMPLETE] @ fitted.matrix, rtol=1e-12)
    assert str(fitted.matrix[0, 0])[:6] not in repr(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        others = [method.fit(frame, seed=2), method.fit(frame.iloc[1:], seed=1)]
    assert all(np.abs(one.matrix - fitted.matrix).max() > 1e-3 for one in others)


def test_a_rotation_of_memberships_is_of_the_table(place, monkeypatch):
    """With one key, another table of as many records has another matrix, though the rotation sees no original."""
    monkeypatch.chdir(place.folder)
    matrices = []
    for seed in (0, 1, 0):
        place.lake(people(seed=seed))
        prepared = prepare(understood(JobText(place.job(mask=HYBRID))), overwrite=True, trial=True)
        _, (_, rotation) = fitted_steps(prepared, draws_of(prepared), prepared.job.methods)
        matrices.append(rotation.matrix)
    assert np.array_equal(matrices[0], matrices[2])
    assert np.abs(matrices[0] - matrices[1]).max() > 1e-3


def test_a_rotation_after_another_step_warns_of_few_outliers(place):
    """All of them in one stretch of the table: no look at some of its records would find them."""
    rng = np.random.default_rng(1)
    table = pa.table({name: rng.normal(size=5000) for name in COMPLETE})
    income = table["income"].to_numpy().copy()
    income[700:705] = 1e4
    place.lake(table.set_column(1, "income", pa.array(income)))
    noise = {"method": "noise", "columns": COMPLETE, "scale": 0.001}
    ended = place.run(mask=[noise, AFTER[1]], columns={"quasi": ["age"], "sensitive": ["income"]})
    assert ended.code == 0, ended.err
    assert "differ by more than a factor of 10" in ended.out + ended.err


@pytest.mark.parametrize(
    ("income", "text"),
    [
        (lambda n: pa.array(np.where(n == 1100, np.nan, n.astype(float))), "'income' is missing in 1 records"),
        (lambda n: pa.array(n.astype(float), mask=n == 1100), "'income' is missing in 1 records"),
        (lambda n: pa.array(n.astype(float)), "'income' is constant"),
    ],
)
def test_what_a_rotation_after_another_step_refuses(place, income, text):
    """Missing values, and a column that a step made constant."""
    numbers = np.arange(3000)
    place.lake(pa.table({"age": numbers % 90, "income": income(numbers)}))
    bounds = {"bounds": {"income": [1e6, 2e6]}} if "constant" in text else {}
    roles = {"quasi": ["age"], "sensitive": ["income"]}
    ended = place.run(mask=[AFTER[0] | bounds, AFTER[1]], columns=roles)
    assert ended.code == 4
    assert text in ended.err
    assert not (place.folder / "release").exists()
