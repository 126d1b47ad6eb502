"""Measures that describe a table, with survey weights: against plain references, and for any partitioning."""

import loss_reference
import numpy as np
import pandas as pd
import pytest
from loss_tools import NUMBERS, PIL, small_samples, table
from parts import in_parts

import dpmask
from dpmask.errors import InputError, JobError

CLOSE = {"rel": 1e-9, "abs": 1e-10}


@pytest.fixture(scope="module")
def weighed():
    """A table and its masked one, with weights of two digits, some of which are 0, and masked ones of their own."""
    frame, masked = table(500)
    rng = np.random.default_rng(3)
    weights = np.where(rng.random(500) < 0.05, 0.0, rng.lognormal(6, 1.2, 500).round(2))
    return frame.assign(w=weights), masked.assign(w=(weights * rng.uniform(0.8, 1.2, 500)).round(2))


def mean(values, weights):
    there = values.notna()
    return np.average(values[there], weights=weights[there])


@pytest.mark.parametrize("small", [False, True])
def test_every_measure_against_a_reference(weighed, small, limit):
    if small:  # the sample is not the table: all passes are made
        small_samples(limit)
    frame, masked = weighed
    w, v = frame["w"], masked["w"]
    columns = [*NUMBERS, "région"]
    found = dpmask.utility.summarise(in_parts(frame, 3), in_parts(masked, 2), columns=columns, weight="w")
    for n_ref, end in ((None, ""), (1000, " at 1000 records")):
        groups = loss_reference.pil(frame[NUMBERS], masked[NUMBERS], n_ref, w, v)
        parts = found["probabilistic_information_loss"].parts
        assert {name: parts[name + end] for name in groups} == pytest.approx(groups, **CLOSE)
    for name in NUMBERS:
        x, y = frame[name], masked[name]
        shift = x.min()  # digits, far from 0
        sd = mean((x - shift - mean(x - shift, w)) ** 2, w) ** 0.5
        change = (mean(y - shift, v) - mean(x - shift, w)) / sd
        assert found["moments"].parts[f"{name}: mean"] == pytest.approx(change, **CLOSE)
        variance = mean((y - shift - mean(y - shift, v)) ** 2, v) / sd**2 - 1
        assert found["moments"].parts[f"{name}: variance"] == pytest.approx(variance, **CLOSE)
        exact = loss_reference.kolmogorov_smirnov(x, y, w, v)
        if small:
            assert found["kolmogorov_smirnov"].parts[name] <= exact + 1e-12
            assert exact <= found["kolmogorov_smirnov"].upper + 1e-12
        else:
            assert found["kolmogorov_smirnov"].parts[name] == pytest.approx(exact, abs=1e-12)
    for name in columns:
        for measure in ("total_variation", "hellinger"):
            expected = getattr(loss_reference, measure)(frame[name], masked[name], w, v)
            assert found[measure].parts[name] == pytest.approx(expected, **CLOSE)
    pairs = {
        f"{one}, {two}": loss_reference.correlation(loss_reference.complete(masked[one], masked[two], v))
        - loss_reference.correlation(loss_reference.complete(frame[one], frame[two], w))
        for n, one in enumerate(NUMBERS[:3])
        for two in NUMBERS[n + 1 : 3]
    }
    assert {name: found["correlations"].parts[name] for name in pairs} == pytest.approx(pairs, **CLOSE)
    plain = dpmask.utility.il1s(frame, masked, columns=NUMBERS)
    assert found["il1s"].value == pytest.approx(plain.value, rel=1e-12), "IL1s is unweighted, as it is defined"


def test_equal_weights_are_none(weighed):
    frame, masked = (side.assign(w=0.1) for side in weighed)
    columns = [*NUMBERS, "région"]
    plain = dpmask.utility.summarise(frame, masked, columns=columns)
    for name, found in dpmask.utility.summarise(frame, masked, columns=columns, weight="w").items():
        assert dict(found.parts) == pytest.approx(dict(plain[name].parts), rel=1e-9, abs=1e-9), name
        assert ("w" in found.explain().split()[-1]) == (name != "il1s")


@pytest.mark.parametrize("small", [False, True])
def test_any_partitioning_gives_the_same(weighed, small, limit):
    if small:
        small_samples(limit)
    frame, masked = weighed
    each = [
        dpmask.utility.summarise(in_parts(frame, n), in_parts(masked, m), columns=[*NUMBERS, "région"], weight="w")
        for n, m in ((1, 1), (7, 4))
    ]
    for name in each[0]:
        exact = name in {"kolmogorov_smirnov", "total_variation", "hellinger"}
        one, two = (dict(side[name].parts) for side in each)
        assert one == (two if exact else pytest.approx(two, rel=1e-9, abs=1e-9)), name


def test_weights_that_are_none_are_refused(weighed):
    frame, masked = weighed
    moments = dpmask.utility.moments
    with pytest.raises(InputError, match=r"number >= 0.*After masking.*weighted: false"):
        moments(frame, masked.assign(w=masked["w"] - 500), columns=["smooth"], weight="w")
    with pytest.raises(InputError, match="are 0 in all records"):
        moments(frame.assign(w=0.0), masked, columns=["smooth"], weight="w")
    with pytest.raises(JobError, match=r"several weights, w, far.*weight: w"):
        moments(frame, masked, columns=["smooth"], weight=["w", "far"])
    with pytest.raises(JobError, match="région"):
        moments(frame, masked, columns=["smooth"], weight="région")
    off = moments(frame, masked, columns=["smooth"], weight="w", weighted=False)
    assert off == moments(frame, masked, columns=["smooth"])
    assert off.weight is None


def test_a_heavy_record_shows_fewer_digits(weighed):
    """A public number is rounded by what one record changes: with weights the heaviest."""
    frame, masked = weighed
    found = PIL(frame, masked, columns=NUMBERS, weight="w")
    assert found.heaviest == pytest.approx(frame["w"].max() / frame["w"].sum())
    assert found.equal_records(10**6) == int(1 / found.heaviest)
    assert "heaviest" not in found.to_dict()
    assert pd.Series(found.to_dict())["weight"] == "w"
