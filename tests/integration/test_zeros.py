"""Zeros that stay by default: where many values are zero, in every method that may keep them, and what follows of it."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import write_lake

import dpmask
from dpmask.errors import JobError
from dpmask.testing.tables import in_partitions

pytestmark = pytest.mark.filterwarnings("ignore")
COLUMNS = ["wage", "age", "flag"]


def payroll(rows=1500, seed=3):
    """Wages of which 30 % are zero and 3 % missing, ages of which 2 % are, and a flag."""
    rng = np.random.default_rng(seed)
    wage = np.where(rng.random(rows) < 0.3, 0.0, rng.lognormal(7, 1, rows).round(2))
    wage[rng.random(rows) < 0.03] = np.nan
    age = np.where(rng.random(rows) < 0.02, 0, rng.integers(1, 90, rows))
    return pd.DataFrame({"wage": wage, "age": age, "flag": rng.integers(0, 2, rows)})


def made(name, zeros=None, columns=COLUMNS):
    options = {} if zeros is None else {"zeros": zeros}
    if name == "noise":
        return dpmask.NoiseAddition(columns=columns, scale=0.3, **options)
    if name == "swapping":
        return dpmask.RankSwapping(columns=columns, window=0.2, **options)
    groups = [[column] for column in columns]
    if name == "fuzzy":
        return dpmask.FuzzyMicroaggregation(groups=groups, k=10, minimum_size=5, **options)
    return dpmask.Microaggregation(groups=groups, k=5, **options)


METHODS = ("noise", "swapping", "fuzzy", "microaggregation")


@pytest.fixture(scope="module")
def people():
    return payroll()


@pytest.mark.parametrize("name", METHODS)
def test_many_zeros_stay_and_few_do_not(name, people):
    fitted = made(name).fit(people, seed=1)
    masked = fitted.mask(people)
    zero = people["wage"] == 0
    assert (masked.loc[zero, "wage"] == 0).all()
    assert (masked["wage"].isna() == people["wage"].isna()).all()
    assert (masked["wage"] != people["wage"])[people["wage"] > 0].mean() > 0.5
    if name == "noise":  # others may leave a zero among zeros
        assert (masked.loc[people["age"] == 0, "age"] != 0).any()
    assert "Zeros of wage stay zero: at least 5 % of the values are." in fitted.statement()
    assert "Zeros" not in made(name, "mask").fit(people, seed=1).statement()
    cut = in_partitions(people, 3)
    pd.testing.assert_frame_equal(made(name).fit(cut, seed=1).mask(cut).compute(), masked, check_dtype=False, rtol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_small_amounts_do_not_become_zeros(name):
    """Of integers, of either sign or of none, and of cents: rounding, means of -1 and 1, and types that end at zero."""
    rng = np.random.default_rng(4)
    some = {
        "few": rng.choice([0, 1, 2, 3, 50], 600, p=[0.4, 0.3, 0.1, 0.1, 0.1]),
        "signed": rng.choice([0, -1, 1, -2, 30], 600, p=[0.4, 0.2, 0.2, 0.1, 0.1]),
        "unsigned": rng.choice([0, 1, 2, 300], 600, p=[0.4, 0.3, 0.2, 0.1]).astype(np.uint16),
    }
    cents = [Decimal(int(one)).scaleb(-2) for one in rng.choice([0, 1, -1, 900], 600, p=[0.4, 0.2, 0.2, 0.2])]
    table = pd.DataFrame(some).assign(cents=pd.array(cents, dtype=pd.ArrowDtype(pa.decimal128(12, 2))))
    for zeros in ("keep", "auto"):
        masked = made(name, zeros, list(table)).fit(table, seed=1).mask(table)
        pd.testing.assert_frame_equal(masked == 0, table == 0, check_dtype=False)


@pytest.mark.parametrize("name", METHODS)
def test_without_many_zeros_nothing_is_new(name, people):
    """The same draws as with zeros: mask, which are those of versions that knew no other."""
    few = people.assign(wage=people["wage"] + 1.0)
    pd.testing.assert_frame_equal(*(made(name, zeros).fit(few, seed=1).mask(few) for zeros in (None, "mask")))
    assert "zeros" not in made(name, "mask").drawn_parameters()
    assert made(name, "mask").parameters()["zeros"] == "mask"
    assert made(name, "keep").drawn_parameters()["zeros"] == "keep"


def test_microaggregation_by_default_is_that_with_zeros_kept(people):
    kept, default = (
        made("microaggregation", zeros, ["wage"]).fit(people, seed=1).mask(people) for zeros in ("keep", None)
    )
    pd.testing.assert_frame_equal(kept, default)


@pytest.mark.parametrize("method", [dpmask.FuzzyMicroaggregation, dpmask.Microaggregation])
def test_zeros_that_constraints_contradict_stay_for_nobody_by_default(method, people):
    """A default refuses nothing: the group is masked as with zeros: mask, another one keeps its zeros."""
    both = people.dropna().assign(tax=lambda t: (t["wage"] / 4).round(2))
    options = {"groups": [["wage"], ["tax"]], "k": 5, "constraints": ["wage >= 100"]}
    fitted = method(**options).fit(both, seed=1)
    masked = fitted.mask(both)
    pd.testing.assert_series_equal(masked["wage"], method(**options, zeros="mask").fit(both, seed=1).mask(both)["wage"])
    assert (masked["wage"] >= 100).all()
    assert ((masked["tax"] == 0) == (both["tax"] == 0)).all()
    assert "Zeros of tax stay zero" in fitted.statement()
    with pytest.raises(JobError, match="wage"):
        method(**options, zeros="keep").fit(both, seed=1)


def test_zeros_that_stay_by_default_have_draws_of_their_own(people):
    """With the same draws, noise of two sizes would give the originals away."""
    wages = people[["wage"]].dropna()
    rest = wages["wage"] > 0
    default, masked = (
        made("noise", zeros, ["wage"]).fit(wages, seed=1).mask(wages)["wage"] for zeros in (None, "mask")
    )
    noise = [(one - wages["wage"])[rest] for one in (default, masked)]
    assert abs(np.corrcoef(*noise)[0, 1]) < 0.15


def test_correlated_noise_keeps_sums_instead(people):
    sums = people.dropna().assign(tax=lambda t: (t["wage"] - 500).clip(lower=0), net=lambda t: t["wage"] - t["tax"])
    columns = ["wage", "tax", "net"]
    masked = dpmask.NoiseAddition(columns=columns, scale=0.3, correlated=True).fit(sums, seed=1).mask(sums)
    assert (masked["tax"] == 0).mean() < 0.01
    np.testing.assert_allclose(masked["net"] + masked["tax"], masked["wage"], atol=1e-6)


def test_a_fit_keeps_its_choice_for_other_tables(people, tmp_path):
    """Saved, loaded, and on a table of which few values are zero."""
    key = "9f1c5e7a3b8d2460e1f7a9c3b5d80246"
    made("noise", columns=["wage"]).fit(people, key=key).save(tmp_path / "fit")
    fitted = dpmask.load(tmp_path / "fit", key=key)
    other = payroll(400, 9).assign(wage=lambda t: np.where(np.arange(400) < 5, 0.0, t["wage"].fillna(1) + 1))
    assert (fitted.mask(other)["wage"][:5] == 0).all()


@pytest.mark.parametrize("name", ["noise", "swapping"])
def test_the_intruder_knows_the_choice(name, people):
    """The attack that a method names finds as much as one that is told which zeros stayed."""
    masked = made(name, columns=["wage", "age"]).fit(people, seed=1).mask(people)
    ((measure, parameters),) = made(name, columns=["wage", "age"]).attacks().items()
    assert parameters["zeros"] == "auto"
    function = getattr(dpmask.risk, measure)

    def found(released, zeros):
        result = function(people, released, **{**parameters, "columns": ["wage"], "zeros": zeros}).to_dict()
        return {name: value for name, value in result.items() if name != "seconds"}

    assert found(masked, "auto") == found(masked, "keep") != found(masked, "mask")
    changed = made(name, "mask", ["wage"]).fit(people, seed=1).mask(people)
    assert found(changed, "auto") == found(changed, "mask")
    with pytest.raises(JobError, match="zeros must be 'keep' or 'mask' or 'auto'"):
        function(people, masked, **{**parameters, "zeros": "all"})


def test_a_job_and_its_plan_say_which_zeros_stay(place, people):
    write_lake(place.folder / "lake", pa.Table.from_pandas(people.assign(flag=people["flag"].astype(str))))
    job = {
        "columns": {"quasi": ["age", "flag"], "sensitive": ["wage"]},
        "mask": [{"method": "microaggregation", "columns": ["wage", "age"], "k": 5}],
    }
    planned = place.dpmask("plan", place.job(**job), "--json")
    assert planned.json["zeros_kept"] == {"microaggregation": ["wage"]}
    ended = place.run("--json", **job)
    assert ended.code == 0, ended.err
    assert "Zeros of wage stay zero" in ended.json["steps"][0]["statement"]
    (found,) = [one for one in ended.json["measures"] if one["name"] == "consistency"]
    (wage,) = [one for one in found["values"]["columns"] if one["column"] == "wage"]
    assert (wage["zeros_lost"], wage["zeros_before"]) == (0, int((people["wage"] == 0).sum()))
