"""Noise filtered out: against an intruder of a few lines who sees the release, a register and the public parameters."""

import numpy as np
import pandas as pd
import pytest
from parts import in_parts

import dpmask
from dpmask.errors import JobError
from dpmask.kernels.linkage.filtering import noise_covariance, wiener

COLUMNS = [f"c{number}" for number in range(12)]


@pytest.fixture(scope="module")
def frame():
    """Twelve columns that follow two factors."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1500, 2)) @ rng.normal(size=(2, 12)) + 0.1 * rng.normal(size=(1500, 12))
    return pd.DataFrame(values * 10.0 ** np.arange(-3, 9) + 5, columns=COLUMNS)


def noisy(frame, scale, correlated):
    method = dpmask.NoiseAddition(columns=COLUMNS, scale=scale, correlated=correlated)
    return method.fit(frame, seed=1).mask(frame)


def the_intruder(register, released, scale, correlated):
    """Only numpy: the filtered values' root mean square error, and the share of persons whose nearest is their own."""
    y, sd = released.to_numpy(), released.std(ddof=0).to_numpy()
    z = (y - y.mean(axis=0)) / sd
    whole = np.cov(z.T, ddof=0)
    noise = (whole if correlated else np.eye(len(sd))) * scale**2 / (1 + scale**2)
    before = whole - noise
    guess = z @ np.linalg.solve(whole, before)
    error = before - before @ np.linalg.solve(whole, before)
    known = (register.to_numpy() - y.mean(axis=0)) / sd
    left, right = np.linalg.eigh(error + 1e-6 * np.trace(error) / len(sd) * np.eye(len(sd)))
    turn = right / np.sqrt(left)
    linked = [np.argmin((((guess - one) @ turn) ** 2).sum(axis=1)) == n for n, one in enumerate(known)]
    misses = (guess * sd + y.mean(axis=0) - register.to_numpy()) / register.std(ddof=0).to_numpy()
    return np.sqrt((misses**2).mean()), np.mean(linked)


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_it_reports_what_the_intruder_achieves(frame, scale, correlated):
    masked = noisy(frame, scale, correlated)
    given = {"columns": COLUMNS, "scale": scale, "correlated": correlated, "sample": 1500}
    found = dpmask.risk.noise_filter(frame, masked, **given)
    error, linked = the_intruder(frame, masked, scale, correlated)
    assert found.error == pytest.approx(error, rel=0.01)
    assert found.rate >= 0.98 * linked
    assert found.error_unfiltered == pytest.approx(scale, rel=0.05)
    assert found.rate == max(found.parts.values())
    assert found.interval == (found.rate, found.rate)


@pytest.mark.parametrize("correlated", [False, True])
def test_strata_and_zeros_are_known(frame, correlated):
    """An intruder who filters each town and each pattern of zeros by itself does no better than what is reported."""
    columns, rng = COLUMNS[3:7], np.random.default_rng(5)
    town = rng.choice(["a", "b"], len(frame))
    table = frame[columns].mul(np.where(town == "a", 1.0, 30.0), axis=0)
    table.loc[rng.random(len(table)) < 0.3, columns[0]] = 0.0
    table = table.assign(town=town)
    knows = {"columns": columns, "scale": 0.5, "correlated": correlated, "by": ["town"], "zeros": "keep"}
    masked = dpmask.NoiseAddition(**knows).fit(table, seed=1).mask(table)
    found = dpmask.risk.noise_filter(table, masked, **knows, sample=1500)
    linked, squares = 0.0, 0.0
    for _, some in table.groupby([table["town"], table[columns[0]] == 0]):
        there = [name for name in columns if some[name].any()]
        own, released = some[there], masked.loc[some.index, there]
        error, share = the_intruder(own, released, 0.5, correlated)
        linked += share * len(some)
        squares += (error * own.std(ddof=0).mean() / table[there].std(ddof=0).mean()) ** 2 * own.size
    assert found.rate >= 0.95 * linked / len(table)
    assert found.error <= 1.05 * np.sqrt(squares / table[columns].size)
    blind = dpmask.risk.noise_filter(table, masked, columns=columns, scale=0.5, correlated=correlated, sample=1500)
    assert found.rate > 1.2 * blind.rate
    assert found.error < blind.error
    parted = dpmask.risk.noise_filter(in_parts(table, 4), in_parts(masked, 4), **knows, sample=1500)
    assert (parted.rate, parted.disclosed) == (found.rate, found.disclosed)


def test_few_factors_leave_little_of_the_noise(frame):
    found = dpmask.risk.noise_filter(frame, noisy(frame, 1.0, False), columns=COLUMNS, scale=1.0)
    assert found.error < 0.45 * found.error_unfiltered
    assert found.disclosed > 2 * found.disclosed_unfiltered


def test_correlated_noise_is_linked_by_who_knows_the_correlations(frame):
    masked = noisy(frame, 1.0, True)
    given = {"columns": COLUMNS, "scale": 1.0, "correlated": True}
    assert dpmask.risk.noise_filter(frame, masked, **given).rate > 0.1


def test_the_filter_by_hand():
    """One column: x^ = y / 2 where noise is as large as the values. Equal columns share what they know."""
    one = wiener(np.zeros(1), np.array([[2.0]]), noise_covariance(np.array([[2.0]]), 1.0, False))
    np.testing.assert_allclose(one.gain, [[0.5]])
    released = np.array([[2.0, 1.0], [1.0, 2.0]])
    two = wiener(np.zeros(2), released, noise_covariance(released, 1.0, False))
    np.testing.assert_allclose(two.gain, np.full((2, 2), 1 / 3))
    np.testing.assert_allclose(two.estimates(np.array([[3.0], [0.0]])), [[1.0], [1.0]])


@pytest.mark.parametrize("partitions", [1, 5])
def test_it_does_not_depend_on_partitions(frame, partitions):
    masked, given = noisy(frame, 0.5, False), {"columns": COLUMNS, "scale": 0.5, "sample": 200}
    alone = dpmask.risk.noise_filter(frame, masked, **given)
    found = dpmask.risk.noise_filter(in_parts(frame, partitions), in_parts(masked, partitions), **given)
    assert (found.rate, found.disclosed) == (alone.rate, alone.disclosed)
    assert found.error == pytest.approx(alone.error, rel=1e-9)


@pytest.mark.parametrize("changes", [{"scale": 0}, {"scale": True}, {"correlated": 1}, {"sample": 0}])
def test_bad_arguments(frame, changes):
    name = next(iter(changes))
    with pytest.raises(JobError, match=f"noise_filter: {name} must be"):
        dpmask.risk.noise_filter(frame, frame, **({"columns": COLUMNS, "scale": 0.1} | changes))
