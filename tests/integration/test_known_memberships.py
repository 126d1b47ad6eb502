"""Memberships of every shape undone by known records: against an intruder of a few lines, alone, rotated, with noise."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import dpmask
from dpmask.kernels.linkage.two_sided import bell_distance, triangle_distance, two_sided

COLUMNS = list("abc")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 3))
    return pd.DataFrame(np.exp(mixed / 3) * [1, 50, 3000], columns=COLUMNS)


def transformed(frame, function, *, rotated=False, noise=None):
    masked = dpmask.MembershipTransform(columns=COLUMNS, function=function).fit(frame, seed=1).mask(frame)
    if rotated:
        masked = dpmask.RandomRotation(columns=COLUMNS).fit(masked, seed=1).mask(masked)
    return (
        masked if noise is None else dpmask.NoiseAddition(columns=COLUMNS, scale=noise).fit(masked, seed=1).mask(masked)
    )


SHAPES = {"gaussian": lambda y: np.sqrt(-2 * np.log(np.maximum(y, 1e-300))), "triangular": lambda y: 1 - y}


def the_intruder(x, y, function, known):
    """Peak and widths by a search over the known records' fit; then the side on which more of the known lie."""
    away = SHAPES[function](y)

    def misfit(numbers):
        peak, left, right = numbers
        both = np.array([peak - left * away[known], peak + right * away[known]])
        return (np.abs(both - x[known]).min(axis=0) ** 2).sum()

    sd, start = x[known].std(), np.quantile(x[known], [0.3, 0.5, 0.7])
    fits = [
        minimize(
            misfit,
            [peak, s * sd, s * sd],
            method="Nelder-Mead",
            options={"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-12},
        )
        for peak in start
        for s in (1, 3)
    ]
    peak, left, right = min(fits, key=lambda one: one.fun).x
    below, above = peak - left * away, peak + right * away
    lower = (x[known] < peak).mean() >= 0.5
    first, second = (below, above) if lower else (above, below)
    impossible = (first < x.min() - 0.05 * sd) | (first > x.max() + 0.05 * sd)
    others = np.setdiff1d(np.arange(len(x)), known)
    return (np.abs(np.where(impossible, second, first) - x)[others] <= 0.05 * x.std()).mean()


@pytest.mark.parametrize("function", ["gaussian", "triangular"])
def test_it_reports_what_the_intruder_achieves(frame, function):
    masked = transformed(frame, function)
    found = dpmask.risk.known_records(frame, masked, columns=COLUMNS)
    rng = np.random.default_rng(5)
    achieved = [
        the_intruder(frame[name].to_numpy(), masked[name].to_numpy(), function, rng.choice(2000, 20, replace=False))
        for name in COLUMNS
        for _ in range(3)
    ]
    assert found.rate > 0.39
    assert found.rate >= 0.9 * np.mean(achieved)


@pytest.mark.parametrize("function", ["s", "z", "gaussian", "triangular"])
def test_a_rotation_does_not_help(frame, function):
    alone = dpmask.risk.known_records(frame, transformed(frame, function), columns=COLUMNS)
    turned = dpmask.risk.known_records(frame, transformed(frame, function, rotated=True), columns=COLUMNS)
    assert turned.rate == pytest.approx(alone.rate, abs=0.02)
    assert (alone.rate == pytest.approx(1.0)) == (function in "sz")


def test_more_known_records_take_more_of_the_noise_out(frame):
    masked = transformed(frame, "s", rotated=True, noise=0.2)
    rates = [dpmask.risk.known_records(frame, masked, columns=COLUMNS, known=known).rate for known in (4, 100)]
    found = dpmask.risk.known_records(frame, masked, columns=COLUMNS)
    assert rates[0] < rates[1]
    assert found.rate == max(found.parts[f"{known} known: rate"] for known in (6, 20, 100))
    assert found.top > 0.8 > found.records


def test_two_sided_by_hand():
    x = np.array([[1.0, 2, 3, 5, 9]])
    bell = two_sided(x, np.exp(-((x - 4) ** 2) / (2 * 2.5**2)), bell_distance, even=True)
    assert (bell.peak[0], bell.left[0], bell.right[0], bell.first[0]) == pytest.approx((4, 2.5, 2.5, -1))
    sides = np.where(x <= 4, x / 4, (10 - x) / 6)
    triangle = two_sided(x, sides, triangle_distance, even=False)
    assert (triangle.peak[0], triangle.left[0], triangle.right[0]) == pytest.approx((4, 4, 6))
    assert triangle.candidates(np.array([[0.5]])).ravel() == pytest.approx([2, 7])
