"""Synthetic values linked: against an intruder of a few lines who sees the release, a register and the parameters."""

import numpy as np
import pytest
from parts import in_parts
from synthesis_tools import people

import dpmask
from dpmask.errors import InputError, JobError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
KNOWN = {"columns": ["y", "k"], "independents": ["x", "g", "b"]}
NAMES = {"dependents": ["y", "k"], "independents": ["x", "g", "b"]}


@pytest.fixture(scope="module")
def frame():
    """People whose values are not rounded, so that planes are planes."""
    return people(400).astype({"k": float})


def ipso(frame, variant):
    return dpmask.IPSO(variant=variant, **NAMES).fit(frame, seed=1).mask(frame)


def the_intruder(register, released):
    """Only numpy: persons whose residual, and whose prediction, is nearest to that of their own record, and errors."""
    ones = [np.ones(len(register)), register["x"], register["g"] == "é", register["g"] == "c", register["b"]]
    z = np.array(ones, float).T
    y, after = (
        one[["y", "k"]].to_numpy() / register[["y", "k"]].std(ddof=0).to_numpy() for one in (register, released)
    )
    predicted = z @ np.linalg.lstsq(z, after, rcond=None)[0]
    return (
        linked(y - predicted, after - predicted, np.cov((y - predicted).T, ddof=0)),
        linked(predicted, after, np.cov((after - predicted).T, ddof=0)),
        np.sqrt(((predicted - y) ** 2).mean()),
    )


def linked(persons, records, covariance):
    turn = np.linalg.inv(np.linalg.cholesky(covariance + 1e-9 * np.eye(2)))
    gaps = (((persons[:, None] - records[None]) @ turn.T) ** 2).sum(axis=2)
    return np.mean(gaps.argmin(axis=1) == np.arange(len(persons)))


@pytest.mark.parametrize("variant", ["A", "B", "C"])
def test_it_reports_what_the_intruder_achieves(frame, variant):
    masked = ipso(frame, variant)
    found = dpmask.risk.residual_linkage(frame, masked, **KNOWN)
    residuals, predictions, error = the_intruder(frame, masked)
    assert found.predictions == pytest.approx(predictions, abs=0.005)
    assert found.error == pytest.approx(error, rel=1e-6)
    assert found.rate == max(found.parts.values())
    assert found.interval == (found.rate, found.rate)
    if variant != "A":  # there nothing is left of the released values
        assert found.residuals == pytest.approx(residuals, abs=0.005)


def test_predictions_alone_are_the_release(frame):
    """IPSO-A publishes B'z: who knows z knows the released value, though it is not near the known one."""
    found = dpmask.risk.residual_linkage(frame, ipso(frame, "A"), **KNOWN)
    assert found.predictions == 1.0
    assert found.as_released < 0.5
    assert dpmask.risk.residual_linkage(frame, ipso(frame, "C"), **KNOWN).rate < 0.2


@pytest.mark.parametrize("joint", [False, True])
def test_models_are_read_off_their_planes(frame, joint):
    known = {"clusters": 2, "joint": joint}
    method = dpmask.RegressionSynthesis(**NAMES, **known)
    found = dpmask.risk.residual_linkage(frame, method.fit(frame, seed=1).mask(frame), **KNOWN, **known)
    assert found.predictions > 0.95
    assert found.predictions > found.as_released
    noisy = dpmask.RegressionSynthesis(**NAMES, **known, residual_noise=True).fit(frame, seed=1).mask(frame)
    assert dpmask.risk.residual_linkage(frame, noisy, **KNOWN, **known, residual_noise=True).rate < 0.5


@pytest.mark.parametrize("joint", [False, True])
def test_planes_are_taken_as_found_wherever_a_refit_would_start(frame, joint):
    """Who has the models, as the method made them, predicts every released value: that is what is reported."""
    known = {"clusters": 3, "joint": joint}
    fitted = dpmask.RegressionSynthesis(**NAMES, **known).fit(frame, seed=1)
    masked, register = fitted.mask(frame), frame.sample(frac=1.0, random_state=0)
    predicted = [tuple(row) for row in fitted.mask(register)[["y", "k"]].to_numpy().tolist()]
    released = [tuple(row) for row in masked[["y", "k"]].to_numpy().tolist()]
    achieved = np.mean([1 / released.count(one) for one in predicted])
    rates = [dpmask.risk.residual_linkage(frame, masked, **KNOWN, **known, seed=seed).predictions for seed in range(3)]
    assert rates == pytest.approx([achieved] * 3)


def test_no_start_of_a_refit_is_the_weak_one(frame):
    """With residuals drawn there is no plane: refits from other starts link about as many, within the sampling."""
    known = {"clusters": 3, "residual_noise": True}
    masked = dpmask.RegressionSynthesis(**NAMES, **known).fit(frame, seed=1).mask(frame)
    rates = [dpmask.risk.residual_linkage(frame, masked, **KNOWN, **known, seed=seed).rate for seed in range(3)]
    assert max(rates) <= 1.15 * min(rates) + 0.02


def test_residuals_tell_where_little_was_changed(frame):
    """Noise that is small beside the residuals, on values that the independents predict: who subtracts finds more."""
    rng = np.random.default_rng(2)
    near = frame.assign(**{name: frame[name] + 0.02 * frame[name].std() * rng.normal(size=400) for name in ("y", "k")})
    found = dpmask.risk.residual_linkage(frame, near, **KNOWN)
    assert found.residuals > 3 * found.predictions
    assert found.rate >= found.as_released


def test_independents_that_are_withheld_are_not_subtracted(frame):
    """Equal values, zeros for all: residuals would tell records apart by independents that nobody sees."""
    zeros, masked = frame.copy(), frame.copy()
    zeros.loc[:199, ["y", "k"]] = masked.loc[:199, ["y", "k"]] = 0.0
    shown = dpmask.risk.residual_linkage(zeros, masked, **KNOWN)
    hidden = dpmask.risk.residual_linkage(zeros, masked.assign(x="*", g="*", b=True), **KNOWN)
    assert shown.residuals > 0.95
    assert hidden.residuals < 0.6
    assert hidden.predictions == shown.predictions


def test_missing_values_are_left_out(frame):
    masked = ipso(frame, "A")
    gaps = frame.copy()
    gaps.loc[:49, "x"] = np.nan
    found = dpmask.risk.residual_linkage(gaps, masked, **KNOWN)
    assert found.attacked == 350
    assert found.predictions == 1.0


@pytest.mark.parametrize("partitions", [1, 5])
def test_it_does_not_depend_on_partitions(frame, partitions):
    known = KNOWN | {"clusters": 2, "sample": 100}
    masked = dpmask.RegressionSynthesis(**NAMES, clusters=2).fit(frame, seed=1).mask(frame)
    alone = dpmask.risk.residual_linkage(frame, masked, **known)
    found = dpmask.risk.residual_linkage(in_parts(frame, partitions), in_parts(masked, partitions), **known)
    assert found.parts == alone.parts
    assert found.error == pytest.approx(alone.error, rel=1e-9)


def test_too_few_records(frame):
    with pytest.raises(InputError, match="more than 5 records must have a value"):
        dpmask.risk.residual_linkage(frame[:5], frame[:5], **KNOWN)


@pytest.mark.parametrize(
    "changes",
    [{"clusters": 0}, {"joint": 1}, {"residual_noise": 1}, {"sample": 0}, {"independents": []}, {"columns": "y"}],
)
def test_bad_arguments(frame, changes):
    name = next(iter(changes))
    with pytest.raises(JobError, match=f"residual_linkage: {name} must be"):
        dpmask.risk.residual_linkage(frame, frame, **(KNOWN | changes))


def test_columns_on_both_sides(frame):
    with pytest.raises(JobError, match="y must be either in columns or in independents"):
        dpmask.risk.residual_linkage(frame, frame, columns=["y"], independents=["x", "y"])
