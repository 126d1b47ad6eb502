"""Totals that are kept: group means and weights calibrated, against plain references."""

import numpy as np
import pandas as pd
import pytest
from parts import in_parts
from scipy.optimize import minimize

import dpmask
from dpmask.errors import InputError, JobError
from dpmask.kernels.calibration import Shares, calibrated, calibration_sums, next_multipliers, steps_of
from dpmask.kernels.dominance import contributors


def dense(units, unit, total, share, totals):
    matrix = np.zeros((units, totals))
    np.add.at(matrix, (unit, total), share)
    return matrix


def test_one_step_is_the_linear_calibration():
    """The numbers with the smallest sum of (v' - v)^2 / |v|, as Lagrange's equations give them."""
    rng = np.random.default_rng(0)
    unit, total, share = np.repeat(np.arange(200), 3), rng.integers(0, 6, 600), rng.uniform(0.1, 1.0, 600)
    values = np.column_stack([rng.lognormal(3, 1, 200), rng.normal(0, 50, 200)])
    shares = Shares(200, 6, unit, total, share)
    matrix = dense(200, unit, total, share, 6)
    targets = (matrix.T @ values).T * rng.uniform(0.98, 1.02, (2, 6))
    targets[0, 5] = np.nan  # no target
    start = np.zeros((2, 6))
    found = next_multipliers(start, calibration_sums(values, shares, start), targets)
    for column, wanted in enumerate(targets):
        asked = ~np.isnan(wanted)
        own, size = matrix[:, asked], np.abs(values[:, column])
        solution = np.linalg.solve(own.T @ (size[:, None] * own), wanted[asked] - own.T @ values[:, column])
        np.testing.assert_allclose(found[column, asked], solution, rtol=1e-7, atol=1e-12)
    moved = values + np.abs(values) * steps_of(shares, found)
    reached = (matrix.T @ moved).T
    np.testing.assert_allclose(reached[~np.isnan(targets)], targets[~np.isnan(targets)], rtol=1e-9)
    assert found[0, 5] == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_totals_out_of_reach_come_as_near_as_a_search_finds(seed):
    """One column that reaches its targets is not moved by another that cannot, nor is that farther than it was."""
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.ones(3), 12)
    shares = Shares(12, 3, np.repeat(np.arange(12), 3), np.tile(np.arange(3), 12), matrix.ravel())
    values = rng.lognormal(3, 1, (12, 2))
    before = (matrix.T @ values).T
    targets = before * np.array([[1.02, 0.97, 1.01], [1.6, 0.9, 0.5]])
    found = calibrated(lambda multipliers: calibration_sums(values, shares, multipliers), targets)

    def error(multipliers, column):
        moved = values[:, column] * (1 + np.clip(matrix @ multipliers, -0.5, 0.5))
        return (((matrix.T @ moved) / targets[column] - 1) ** 2).sum()

    assert error(found[0], 0) < 1e-18
    searched = [minimize(error, start, (1,), "Nelder-Mead") for start in rng.normal(0, 1, (8, 3))]
    best = min(one.fun for one in searched)
    assert best < 0.9 * error(np.zeros(3), 1)
    assert error(found[1], 1) <= 1.01 * best


@pytest.mark.parametrize("seed", range(5))
def test_the_p_percent_rule_against_a_plain_count(seed):
    """Whoever makes up the second largest part takes it away: what is left shows the largest one to within p %."""
    rng = np.random.default_rng(seed)
    amounts, places = rng.lognormal(0, 3, 60) * rng.choice([-1, 1], 60), rng.integers(0, 8, 60)
    parts = [contributors(amounts[some], places[some], 9) for some in (slice(0, 20), slice(20, 21), slice(21, 60))]
    found = parts[0].plus(parts[1]).plus(parts[2])
    for percent in (1, 10, 50):
        shown = []
        for one in range(9):
            first, *others = sorted(np.abs(amounts[places == one]), reverse=True) or [0.0]
            shown.append(first > 0 and sum(others[1:]) < percent / 100 * first)
        assert found.sensitive(percent).tolist() == shown
    assert not found.sensitive(0).any()


@pytest.fixture(scope="module")
def units():
    """Tax units: amounts that are mostly zero, weights, regions; one region in which three have dividends."""
    rng = np.random.default_rng(2)
    rows = 600
    region = np.array(["north", "south", "east", "west"])[rng.integers(0, 4, rows)]
    dividends = np.where(rng.random(rows) < 0.6, 0, rng.lognormal(6, 1.5, rows)).round()
    few = np.flatnonzero((region == "west") & (dividends > 0))[3:]
    dividends[few] = 0
    wages = np.where(rng.random(rows) < 0.2, np.nan, rng.lognormal(8, 1, rows).round(2))
    return pd.DataFrame(
        {
            "region": region,
            "sex": rng.choice(["f", "m"], rows),
            "dividends": dividends.astype(int),
            "wages": wages,
            "weight": rng.lognormal(5, 1, rows).round(2),
        }
    )


def totals(frame, column):
    return (frame[column] * frame["weight"]).groupby([frame["sex"], frame["region"]]).sum()


OPTIONS = {"groups": [["dividends"], ["wages"]], "k": 4, "zeros": "keep", "weight": "weight"}


def test_calibrated_means(units):
    fitted = dpmask.Microaggregation(**OPTIONS, by=["sex"], totals=["sex", "region"]).fit(units, seed=1)
    masked = fitted.mask(units)
    plain = dpmask.Microaggregation(**OPTIONS, by=["sex"]).fit(units, seed=1).mask(units)
    contributes = units["dividends"].ne(0).groupby([units["sex"], units["region"]]).sum()
    asked = contributes >= 4
    assert 0 < (~asked).sum() < len(asked)
    gap = (totals(masked, "dividends") / totals(units, "dividends") - 1).abs()
    before = (totals(plain, "dividends") / totals(units, "dividends") - 1).abs()
    assert before[asked].max() > 0.05
    assert gap[asked].max() < 2e-3, "but for rounding to whole numbers"
    wages = (totals(masked, "wages") / totals(units, "wages") - 1).abs()
    assert wages.max() < 1e-9
    found = fitted.figures.groups
    left = int(((contributes > 0) & ~asked).sum())
    assert [(one.totals_kept, one.totals_left) for one in found] == [(int(asked.sum()), left), (8, 0)]
    assert found[0].totals_off == pytest.approx(gap[asked].max(), rel=1e-6)
    assert (masked["dividends"].eq(0) == units["dividends"].eq(0)).all()
    assert (masked["wages"].isna() == units["wages"].isna()).all()
    for name in ("dividends", "wages"):
        assert masked.groupby(["sex", name]).size().min() >= 4
        ratio = (masked[name] / plain[name]).dropna()
        assert ratio.between(0.49, 1.51).all()
    assert "totals by sex, region are those of the originals" in fitted.statement()
    assert plain["dividends"].tolist() != masked["dividends"].tolist()


@pytest.mark.filterwarnings("ignore")
def test_a_total_that_one_record_dominates_is_left_alone(units):
    """Kept exactly, it would show the record; what is kept does not."""
    rich = units.assign(dividends=units["dividends"].where(units.index != 7, 10_000_000))
    amounts = (rich["dividends"] * rich["weight"])[rich["sex"] == rich["sex"][7]].sort_values()
    assert amounts[:-2].sum() < 0.1 * amounts.iloc[-1]
    method = {"columns": ["dividends"], "k": 4, "zeros": "keep", "weight": "weight", "totals": ["sex"]}
    kept, left = (dpmask.Microaggregation(**method, p_percent=p).fit(rich, seed=1) for p in (0, 10))
    found = [one.figures.groups[0] for one in (kept, left)]
    assert [(one.totals_kept, one.totals_left, one.totals_sensitive) for one in found] == [(2, 0, 0), (1, 0, 1)]
    before, after = (totals(one, "dividends").groupby("sex").sum() for one in (rich, left.mask(rich)))
    assert abs(after / before - 1)[rich["sex"][7]] > 0.01
    assert "10 % rule" in left.statement()
    with pytest.raises(JobError, match="p_percent must be"):
        dpmask.Microaggregation(**{**method, "p_percent": -1})


def test_means_that_are_rounded_to_zero_stay_values():
    """Where zeros mean nothing, amounts do not become it: by means of both signs, nor by calibration."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"gain": np.where(rng.random(300) < 0.4, 0, rng.choice([-1, 1], 300)), "sex": "f"})
    fitted = dpmask.Microaggregation(columns=["gain"], k=40, zeros="keep").fit(table, seed=1)
    masked = fitted.mask(table)["gain"]
    assert ((masked == 0) == (table["gain"] == 0)).all()


def test_calibrated_means_of_any_partitioning(units):
    method = dpmask.Microaggregation(**OPTIONS, by=["sex"], totals=["region"], cell_size=60)
    one, many = (method.fit(some, seed=1).mask(some) for some in (units, in_parts(units, 5)))
    pd.testing.assert_frame_equal(one, many.compute(), check_dtype=False, rtol=1e-9)


def test_calibrated_weights(units):
    margins = [["sex", "region"], [{"dividends": [1, 500]}]]
    method = dpmask.CalibratedWeights(columns=["weight"], scale=0.3, margins=margins, totals=["wages"])
    fitted = method.fit(units, seed=1)
    masked = fitted.mask(units)
    ratio = masked["weight"] / units["weight"]
    assert ratio.nunique() == len(units)
    assert 0.25 < np.log(ratio).std() < 0.35, "noise of 0.3 of each weight"
    bands = np.searchsorted([1, 500], units["dividends"], side="right")
    for cells in ([units["sex"], units["region"]], [bands]):
        kept = [frame["weight"].groupby(cells).sum() for frame in (units, masked)]
        np.testing.assert_allclose(*kept, rtol=1e-9)
        wages = [(frame["weight"] * units["wages"]).groupby(cells).sum() for frame in (units, masked)]
        np.testing.assert_allclose(*wages, rtol=1e-9)
    assert fitted.figures.totals_off < 1e-9
    assert (fitted.figures.totals_kept, fitted.figures.totals_left) == (22, 0)
    many = method.fit(in_parts(units, 4), seed=1).mask(in_parts(units, 4)).compute()
    np.testing.assert_allclose(many["weight"], masked["weight"], rtol=1e-9)


def test_rounded_weights_stay_few(units):
    method = dpmask.CalibratedWeights(columns=["weight"], step=50, margins=[["sex"]])
    masked = method.fit(units, seed=1).mask(units)
    assert masked["weight"].nunique() <= 2 * len(np.unique(np.rint(units["weight"] / 50)))
    before, after = (frame.groupby("sex")["weight"].sum() for frame in (units, masked))
    np.testing.assert_allclose(before, after, rtol=1e-9)
    few = units.assign(sex=np.where(np.arange(len(units)) < 3, "x", units["sex"]))
    fitted = method.fit(few, seed=1)
    assert (fitted.figures.totals_kept, fitted.figures.totals_left) == (2, 1), "three records show their weights"


def test_what_is_refused(units):
    with pytest.raises(JobError, match=r"scale.*step"):
        dpmask.CalibratedWeights(columns=["weight"], margins=[["sex"]])
    with pytest.raises(JobError, match="lists of columns"):
        dpmask.CalibratedWeights(columns=["weight"], step=5, margins=["sex"])
    with pytest.raises(JobError, match="is masked by this step"):
        dpmask.CalibratedWeights(columns=["weight"], step=5, margins=[[{"weight": [5]}]])
    with pytest.raises(JobError, match=r"totals.*is masked by this step"):
        dpmask.Microaggregation(columns=["wages"], k=3, totals=[{"wages": [5]}])
    with pytest.raises(InputError, match="number >= 0"):
        dpmask.CalibratedWeights(columns=["wages"], step=5).fit(units, seed=1)
