"""Groups of generalised columns: the register under released labels, shares beyond limits, uniques with the weight."""

import numpy as np
import pandas as pd
import pytest
from conftest import people, refinement_step
from scipy.optimize import minimize

import dpmask
from dpmask.errors import JobError

GROUPS = dpmask.risk.groups


def persons(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, rows),
            "code": rng.integers(0, 5, rows),
            "town": np.array(["a", "b", "c", "d", None], object)[np.minimum(rng.geometric(0.4, rows) - 1, 4)],
            "ill": np.array(["yes", "no"])[(rng.random(rows) < 0.8).astype(int)],
            "weight": rng.choice([1.0, 1.5, 2.0], rows),
        }
    )


def journalist(masked, register, columns):
    """The mean of min(f, F) / (f F), from the definition; the register has released labels already."""
    sizes = masked[columns].fillna("none").value_counts()
    theirs = register[columns].fillna("none").value_counts()
    return sum(min(f, theirs[key]) / theirs[key] for key, f in sizes.items() if key in theirs) / len(masked)


@pytest.mark.parametrize("form", ["label", "midpoint"])
def test_the_register_is_counted_under_released_labels(form):
    """Masking the register itself, as anybody can who reads the cuts, and a release of some of its records."""
    frame = persons()
    method = dpmask.TopDownRefinement(
        requirements=[(["age", "code", "town"], 3)],
        taxonomies={"code": {"any": {"low": ["0", "1"], "high": ["2", "3", "4"]}}},
        domains={"age": [0, 120]},
        intervals=form,
    )
    fitted = method.fit(frame, seed=1)
    register = fitted.mask(frame)
    released = register.iloc[::3].assign(ill=frame["ill"].iloc[::3])
    columns = ["age", "code", "town"]
    found = GROUPS(frame, released, quasi=columns, sets=fitted.label_sets())
    assert found.journalist == pytest.approx(journalist(released, register, columns), rel=1e-12)
    assert 0 < found.journalist < found.prosecutor
    blind = GROUPS(frame, released.assign(age=0), quasi=["code", "town"])
    assert blind.journalist < found.journalist


def test_bands_of_numbers_need_no_sets():
    original = pd.DataFrame({"age": [31.0, 34, 38, 52, 59, 60]})
    masked = pd.DataFrame({"age": ["[30, 40)", "[30, 40)", "[30, 40)", "[50, 60)", "[50, 60)", "[60, 70]"]})
    found = GROUPS(original, masked, quasi=["age"])
    assert found.journalist == found.prosecutor == 0.5


def test_a_column_that_tells_nothing_is_left_out():
    frame = persons().assign(age=lambda one: one["age"].astype(float).where(one["age"] > 10))
    method = dpmask.TopDownRefinement(requirements=[(["age", "ill"], 90)], domains={"age": [0, 120]})
    fitted = method.fit(frame, seed=1)
    masked = fitted.mask(frame)
    found = GROUPS(frame, masked, quasi=["age", "ill"], sets=fitted.label_sets())
    assert found.journalist == pytest.approx(found.prosecutor)


def test_shares_beyond_limits_and_uniques_by_hand():
    frame = pd.DataFrame(
        {
            "sex": list("ffmmmm"),
            "age": [1, 1, 1, 2, 2, 2],
            "ill": list("aabbbc"),
            "weight": [1.0, 2.0, 1.0, 1.0, 1.0, 3.0],
        }
    )
    # groups f1 (a, a), m1 (b), m2 (b, b, c)
    found = GROUPS(frame, frame, quasi=["sex", "age"], sensitive=["ill"], weight=["weight"], k=3)
    assert (found.uniform, found.inferred) == (0.5, 0.5)
    assert found.distant == 1.0  # f1 lies 2/3 from all, m1 1/2, m2 1/3
    assert found.parts["sex + age: ill: uniform"] == 0.5
    assert found.uniques_jointly == found.uniques == 1
    assert found.uniques_with_weight == 4  # f1 with 1, f1 with 2, m1, m2 with 3
    loose = GROUPS(frame, frame, quasi=["sex", "age"], sensitive=["ill"], most_closeness=0.6, most_confidence=0.5)
    assert (loose.distant, loose.inferred) == (2 / 6, 1.0)
    assert loose.uniques_with_weight is None
    several = GROUPS(frame, frame, quasi=[["sex"], ["age"]], sensitive=["ill"])
    assert (several.uniques, several.uniques_jointly) == (0, 1)
    with pytest.raises(JobError, match="most_confidence must be a number from 0 to 1; got 2"):
        GROUPS(frame, frame, quasi=["sex"], most_confidence=2)


def test_a_release_and_evaluate_know_the_cuts(place):
    place.lake(people())
    step = refinement_step(20, 10)
    ended = place.run(mask=[step], measure=[{"measure": "groups", "quasi": ["age", "region"]}])
    assert ended.code == 0, ended.err
    ended = place.dpmask(
        "evaluate", "lake", "release", "--paired-by", "private", "--quasi", "age,region", "--json", "-"
    )
    assert ended.code == 0, ended.err
    found = next(one for one in ended.json["measures"] if one["measure"] == "groups")["values"]
    assert found["journalist"] == pytest.approx(found["prosecutor"])
    assert found["journalist"] > 0
    linkage = next(one for one in ended.json["measures"] if one["measure"] == "distance_linkage")
    assert {"age", "region", "income"} <= set(linkage["parameters"]["columns"])  # generalised ones with the numbers


def test_propensity_is_that_of_an_unpenalised_regression():
    """Skewed numbers need large coefficients: found by a general optimiser from the likelihood alone."""
    rng = np.random.default_rng(1)
    original = pd.DataFrame({"a": rng.lognormal(0, 2, 400)})
    masked = original * np.exp(0.3 * rng.normal(size=original.shape)) + 0.3
    found = dpmask.utility.propensity(original, masked, columns=["a"])
    a = np.concatenate([original["a"], masked["a"]])
    a = (a - a.mean()) / a.std()
    design = np.column_stack([np.ones(800), a, a**2])
    kind = np.repeat([-1.0, 1.0], 400)
    best = minimize(
        lambda w: np.logaddexp(0, -kind * (design @ w)).sum(), np.zeros(3), method="BFGS", options={"gtol": 1e-6}
    )
    value = ((1 / (1 + np.exp(-design @ best.x)) - 0.5) ** 2).mean()
    assert found.value == pytest.approx(value, rel=1e-3)
