"""Measures of information loss against plain references, and by hand."""

import loss_reference
import numpy as np
import pandas as pd
import pytest
from loss_tools import NUMBERS, PIL, passes_of, small_samples, table
from parts import in_parts
from scipy.stats import ks_2samp

import dpmask


def agrees(found, frame, masked, columns):
    for n_ref, value, end in ((None, found.value, ""), (1000, found.at_reference, " at 1000 records")):
        groups = loss_reference.pil(frame[columns], masked[columns], n_ref)
        assert {name: found.parts[name + end] for name in groups} == pytest.approx(groups, rel=1e-9, abs=1e-9)
        assert value == pytest.approx(np.mean(list(groups.values())), rel=1e-9)


@pytest.mark.parametrize("name", ["census", "tarragona"])
def test_pil_of_reference_data(reference, name, limit):
    frame = pd.read_csv(reference / f"{name}.csv").astype(float)
    rng = np.random.default_rng(0)
    masked = frame + 0.1 * rng.normal(size=frame.shape) * frame.std().to_numpy()
    columns = list(frame)
    found = PIL(in_parts(frame, 3), in_parts(masked, 2), columns=columns)
    agrees(found, frame, masked, columns)
    same = PIL(frame, frame, columns=columns)
    assert (same.value, same.at_reference) == (0.0, 0.0)
    small_samples(limit)
    again, labels = passes_of(lambda: PIL(in_parts(frame, 3), in_parts(masked, 2), columns=columns))
    assert len(labels) == 8  # Dask frames are counted first; then three passes over each
    assert again.parts == pytest.approx(dict(found.parts), rel=1e-12)


def test_pil_by_hand():
    """One column of -1 and 1, 50 each, moved by 0.1: the mean alone moves, and quantiles by their atoms' width."""
    frame = pd.DataFrame({"a": [-1.0, 1.0] * 50})
    found = PIL(frame, frame + 0.1, columns=["a"])
    # mean: 0.1 / sqrt(1 / 100) = 1 standard error; variance: mu4 = mu2^2 and no change, dropped; one column: no pairs.
    # quantiles: h = 0.002, half the values lie on each: f = 0.5 / 0.004 = 125
    share = np.arange(5, 100, 5) / 100
    sd = np.sqrt(share * (1 - share) / 100) / 125
    losses = [100 * loss_reference.math.erf(0.1 / s / np.sqrt(2)) for s in sd]
    assert found.parts["means"] == pytest.approx(68.26894921370859, rel=1e-12)
    assert found.parts["quantiles"] == pytest.approx(np.mean(losses), rel=1e-12)
    assert set(found.parts) == {f"{name}{end}" for name in ("means", "quantiles") for end in ("", " at 1000 records")}
    assert found.value == pytest.approx((found.parts["means"] + found.parts["quantiles"]) / 2)


def test_pil_of_columns_that_cannot_vary():
    frame = pd.DataFrame({"constant": [0.1] * 7, "a": np.arange(7.0)})
    assert PIL(frame, frame, columns=["constant"]).value == 0.0
    moved = PIL(frame, frame + 1, columns=["constant"])
    assert moved.parts["means"] == moved.parts["quantiles"] == 100.0
    assert "variances" not in moved.parts
    gone = PIL(frame, frame.assign(a=3.0), columns=["a", "constant"])
    agrees(gone, frame, frame.assign(a=3.0), ["a", "constant"])


def test_every_measure_against_a_reference(limit):
    small_samples(limit)
    frame, masked = table(700)
    found = dpmask.utility.summarise(frame, masked, columns=list(frame))
    agrees(found["probabilistic_information_loss"], frame, masked, NUMBERS)
    for name in NUMBERS:
        x, y = (side[name].dropna() for side in (frame, masked))
        parts = found["moments"].parts
        x, y = (
            x - frame["far"][0] * (name == "far"),
            y - frame["far"][0] * (name == "far"),
        )  # numpy's mean rounds, far out
        assert parts[f"{name}: mean"] == pytest.approx((y.mean() - x.mean()) / x.std(ddof=0), rel=1e-9, abs=1e-10)
        assert parts[f"{name}: variance"] == pytest.approx(
            y.var() / x.var() * len(x) / (len(x) - 1) / len(y) * (len(y) - 1) - 1, rel=1e-9
        )
        exact = ks_2samp(x, y).statistic
        assert found["kolmogorov_smirnov"].parts[name] <= exact + 1e-12
        assert exact <= found["kolmogorov_smirnov"].upper + 1e-12
    for name in frame:
        assert found["total_variation"].parts[name] == pytest.approx(
            loss_reference.total_variation(frame[name], masked[name])
        )
        assert found["hellinger"].parts[name] == pytest.approx(loss_reference.hellinger(frame[name], masked[name]))
    near = [side[NUMBERS].assign(far=side["far"] - 1e7) for side in (masked, frame)]
    change = (near[0].corr() - near[1].corr()).to_numpy()[np.triu_indices(4, k=1)]
    assert list(found["correlations"].parts.values()) == pytest.approx(change, abs=1e-11)
    assert found["correlations"].largest == pytest.approx(np.abs(change).max())
    assert found["il1s"].value == pytest.approx(dpmask.utility.il1s(frame, masked, columns=NUMBERS).value, rel=1e-12)


def test_ks_is_scipys_where_the_sample_is_the_table():
    frame, masked = table(1500)
    found = dpmask.utility.kolmogorov_smirnov(frame, masked, columns=NUMBERS)
    for name in NUMBERS:
        assert found.parts[name] == pytest.approx(
            ks_2samp(frame[name].dropna(), masked[name].dropna()).statistic, abs=1e-12
        )
    assert found.upper == found.value == max(found.parts.values())
    assert "(exactly)" in found.explain()


def test_distances_by_hand():
    frame = pd.DataFrame({"sex": ["f", "f", "m", None], "age": [1, 2, 3, 4]})
    masked = pd.DataFrame({"sex": ["f", "m", "m", "x"], "age": [1, 2, 3, 9]})
    assert (
        dpmask.utility.total_variation(frame, masked, columns=["sex"]).value == 0.5
    )  # |.5-.25| + |.25-.5| + .25 + .25
    found = dpmask.utility.hellinger(frame, masked, columns=["sex"])
    assert found.value == pytest.approx(np.sqrt(1 - 2 * np.sqrt(0.5 * 0.25)))
    assert dpmask.utility.kolmogorov_smirnov(frame, masked, columns=["age"]).value == 0.25
    # means 2.5 and 3.75, variances 1.25 and 9.6875
    parts = dpmask.utility.moments(frame, masked, columns=["age"]).parts
    assert parts == pytest.approx({"age: mean": 1.25 / np.sqrt(1.25), "age: variance": 6.75})
    apart = pd.DataFrame({"a": [1.0, 2, 3], "b": [1.0, 2, 3]})
    assert dpmask.utility.correlations(apart, apart.assign(b=-apart["b"]), columns=["a", "b"]).value == pytest.approx(
        2.0
    )
    constant = dpmask.utility.correlations(apart, apart.assign(b=1.0), columns=["a", "b"])
    assert constant.parts == pytest.approx({"a, b": -1.0})


def test_untouched_tables_lose_nothing():
    frame, _ = table(300)
    for name, found in dpmask.utility.summarise(frame, frame, columns=list(frame)).items():
        assert found.value == 0.0, name
    assert dpmask.utility.propensity(frame, frame, columns=list(frame)).value == pytest.approx(0.0, abs=1e-15)


def test_pmse_without_a_difference_is_as_expected():
    """Two samples of one population: the mean of 40 chi-squared with 5 degrees of freedom has a relative error of 10 %."""
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(40):
        one, two = (pd.DataFrame(rng.normal(size=(800, 2)), columns=["a", "b"]) for _ in range(2))
        found = dpmask.utility.propensity(one, two, columns=["a", "b"])
        assert (found.sampled, found.parameters) == (1600, 5)
        ratios.append(found.ratio)
    assert np.mean(ratios) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 5 / 40))


def test_pmse_tells_what_changed():
    frame, masked = table(3000)
    same = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    apart = {name: dpmask.utility.propensity(same, masked, columns=[name]) for name in frame}
    assert apart["région"].ratio > 20  # a category that is new
    assert apart["holes"].ratio > 5  # more is missing
    assert apart["smooth"].ratio < 5
    assert dpmask.utility.propensity(frame, masked.assign(smooth=-masked["smooth"]), columns=["smooth"]).value > 0.24
    few = dpmask.utility.propensity(frame, masked, columns=NUMBERS, sample=100)
    assert few.sampled == 200
    assert few.to_dict() != dpmask.utility.propensity(frame, masked, columns=NUMBERS, sample=100, seed=1).to_dict()
    assert "200 original and masked records" in few.explain()
