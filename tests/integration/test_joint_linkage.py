"""The joint attack: against likelihood ratios written out, against plain attacks, and what it says of columns."""

import numpy as np
import pandas as pd
import pytest
from linkage_reference import gaps, likelihood_ratios, linked, standardised, t_moments
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm

import dpmask
from dpmask.kernels.linkage.likelihood import CERTAIN, agreement_weight, gap_weight, likelihood_ratio, pair_moments
from dpmask.kernels.linkage.scores import curve

LINK = dpmask.risk.distance_linkage
SETS = {"job": {"office": ["clerk", "teacher"], "*": None}}


def persons(rows=500, seed=0, noise=0.3):
    """Skewed and correlated numbers, an age that becomes an interval, a job that becomes a set, a sex that may change."""
    rng = np.random.default_rng(seed)
    gross = rng.lognormal(8, 1, rows)
    tax = gross * rng.uniform(0.1, 0.4, rows)
    original = pd.DataFrame(
        {
            "age": rng.integers(0, 90, rows),
            "job": np.array(["clerk", "teacher", "smith", "farmer"])[rng.integers(0, 4, rows)],
            "sex": np.array(["f", "m"])[rng.integers(0, 2, rows)],
            "gross": gross,
            "tax": tax,
            "hours": rng.normal(30, 10, rows),
        }
    )
    change = rng.random(rows) < 0.1
    masked = original.assign(
        age=[f"[{low}, {low + 30})" for low in original["age"] // 30 * 30],
        job=original["job"].map({"clerk": "office", "teacher": "office", "smith": "*", "farmer": "*"}),
        sex=np.where(change, np.where(original["sex"] == "f", "m", "f"), original["sex"]),
        gross=gross + noise * gross.std() * rng.normal(size=rows),
        tax=tax + noise * tax.std() * rng.standard_t(3, rows),
        hours=original["hours"] + 4 * noise * original["hours"].std() * rng.normal(size=rows),
    )
    return original, masked


COLUMNS = ["age", "job", "sex", "gross", "tax", "hours"]
MEMBERS = {"job": {"office": ["clerk", "teacher"], "*": ["smith", "farmer"]}}


@pytest.mark.parametrize(
    "columns", [COLUMNS, ["gross", "tax", "hours"], ["sex", "gross"]], ids=["all", "numbers", "two"]
)
def test_it_is_the_likelihood_ratio_of_all_pairs(columns):
    original, masked = persons()
    found = LINK(original, masked, columns=columns, sets={one: SETS[one] for one in SETS if one in columns})
    assert found.joint == pytest.approx(likelihood_ratios(original, masked, columns, MEMBERS), abs=2 / len(original))
    assert found.joint > 5 * found.guessing


def plain_attacks(original, masked, columns):
    """What anybody would try first: distances among those whose labels fit, all numbers alike, or by what moved."""
    numbers = [c for c in columns if masked[c].dtype.kind in "if"]
    x, y = (np.array([standardised(frame[c].to_numpy(float)) for c in numbers]).T for frame in (original, masked))
    own, outside = np.arange(len(x)), np.zeros((len(x), len(y)))
    for column in columns:
        if column not in numbers:
            gap = gaps(original, masked, column, MEMBERS) > 0
            outside += gap * (1e9 if not np.diag(gap).any() else 1.0)
    moves = np.cov((x - y).T, ddof=0)
    for matrix in (np.eye(len(numbers)), np.linalg.inv(moves), np.diag(1 / np.diag(moves))):
        apart = x[:, None] - y[None]
        squares = np.einsum("abi,ij,abj->ab", apart, matrix, apart)
        yield linked(squares, own).mean()
        yield linked(squares + outside, own).mean()


@pytest.mark.parametrize("noise", [0.05, 0.3, 1.0])
def test_no_plain_attack_finds_more(noise):
    original, masked = persons(noise=noise)
    found = LINK(original, masked, columns=COLUMNS, sets=SETS)
    assert found.rate >= max(plain_attacks(original, masked, COLUMNS)) - 0.01  # five records


def test_a_release_of_generalised_columns_and_groups_is_attacked_by_both():
    """Alone, labels fit many and numbers are shared by ten; together they lead to far more."""
    original, _ = persons(1500)
    method = dpmask.TopDownRefinement(
        requirements=[(["age", "sex"], 20)], domains={"age": [0, 100]}, taxonomies={"sex": None}
    )
    labels = method.fit(original, seed=1)
    masked = labels.mask(original)
    masked = dpmask.Microaggregation(columns=("gross", "tax", "hours"), k=10).fit(masked, seed=1).mask(masked)
    sets = labels.label_sets()
    columns = ["age", "sex", "gross", "tax", "hours"]
    found = LINK(original, masked, columns=columns, sets=sets)
    alone = [
        LINK(original, masked, columns=some, sets={c: sets[c] for c in some if c in sets}).rate
        for some in (columns[:2], columns[2:])
    ]
    assert found.joint > 2 * max(alone)
    assert found.rate >= found.joint


def test_of_many_columns_only_the_most_telling_are_left_out(limit):
    """Each attack without a column grows with the square of how many there are, and there are as many attacks."""
    rng = np.random.default_rng(5)
    names = [f"c{number}" for number in range(14)]
    original = pd.DataFrame(rng.normal(size=(200, 14)), columns=names)
    masked = original + rng.normal(size=(200, 14)) * np.linspace(0.5, 5.0, 14)
    every = LINK(original, masked, columns=names)
    assert set(every.contributions) == set(names)
    limit(left_out_work=14**3 - 1)
    fewer = LINK(original, masked, columns=names)
    assert len(fewer.contributions) == 13
    limit(left_out_work=100)
    some = LINK(original, masked, columns=names)
    assert len(some.contributions) == 10
    assert {*names[:5]} <= set(some.contributions), "the least masked"
    for found in (fewer, some):
        assert all(fall == every.contributions[name] for name, fall in found.contributions.items())
        assert (found.rate, found.worst_sets) == (every.rate, every.worst_sets)


def test_contributions_and_sets_name_the_columns_that_lead_to_records():
    rng = np.random.default_rng(4)
    original = pd.DataFrame(rng.normal(size=(400, 4)), columns=["age", "gross", "region", "noise"])
    masked = original + rng.normal(size=(400, 4)) * [0.02, 0.02, 0.02, 20.0]
    found = LINK(original, masked, columns=list(original))
    assert set(found.contributions) == set(original)
    assert list(found.contributions)[-1] == "noise"
    assert abs(found.contributions["noise"]) < 0.02
    assert found.crowd == 400
    sizes = [name.count(" + ") + 1 for name in found.worst_sets]
    assert sizes == [1, 2, 3]
    rates = list(found.worst_sets.values())
    assert rates == sorted(rates)
    assert "age + gross + region" in found.worst_sets
    pairs = {
        (one, two): LINK(original, masked, columns=[one, two]).joint
        for one, two in (("age", "gross"), ("age", "region"), ("gross", "region"))
    }
    assert rates[1] == pytest.approx(max(pairs.values()), abs=0.01)
    without = LINK(original, masked, columns=["gross", "region", "noise"]).joint
    assert found.contributions["age"] == pytest.approx(found.joint - without, abs=0.01)
    assert "age + gross + region" in found.explain()


def test_assignment_links_one_to_one():
    """2 is nearer to the masked 1.6 than 1 is, but has a better partner."""
    original = pd.DataFrame({"a": [1.0, 2.0, 8.0, 9.0]})
    masked = pd.DataFrame({"a": [1.6, 2.1, 8.0, 9.0]})
    found = LINK(original, masked, columns=["a"])
    assert found.assignment == 1.0
    assert found.rate == 1.0
    rng = np.random.default_rng(2)
    original = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    masked = original + 0.08 * rng.normal(size=(300, 2))
    found = LINK(original, masked, columns=["a", "b"])
    x, y = (np.array([standardised(frame[c].to_numpy()) for c in "ab"]).T for frame in (original, masked))
    squares = ((x[:, None] - y[None]) ** 2).sum(axis=2)
    places = linear_sum_assignment(squares)[1]
    assert found.assignment == pytest.approx((places == np.arange(300)).mean(), abs=0.05)  # the metrics differ a little
    assert found.rate == found.assignment > found.joint
    assert found.assignment_error == 0


@pytest.mark.parametrize("mask", ["noise", "groups"])
def test_assignment_in_crowds_finds_what_an_assignment_of_all_does(mask, limit):
    """Of more records than are assigned at once; the whole assignment is counted here, in the same metric."""
    rng = np.random.default_rng(5)
    original = pd.DataFrame(rng.normal(size=(2200, 3)), columns=list("abc"))
    masked = original + 0.08 * rng.normal(size=original.shape)
    if mask == "groups":
        masked = dpmask.Microaggregation(columns=tuple("abc"), k=4).fit(original, seed=1).mask(original)
    found = LINK(original, masked, columns=list("abc"))
    limit(assigned_records=3000)
    whole = LINK(original, masked, columns=list("abc"))
    assert whole.assignment_error == 0 < found.assignment_error < 0.03
    assert found.assignment == pytest.approx(whole.assignment, abs=1.5 * found.assignment_error)
    low, high = found.intervals["assignment"]
    assert (low, high) == pytest.approx(
        (found.assignment - found.assignment_error, found.assignment + found.assignment_error)
    )
    assert whole.assignment > 1.05 * whole.joint
    assert found.rate == found.assignment
    assert found.interval == (low, high)


def test_equal_masked_records_share_an_assignment():
    original = pd.DataFrame({"a": [1.0, 2.0, 8.0, 9.0]})
    masked = pd.DataFrame({"a": [1.5, 1.5, 8.5, 8.5]})
    found = LINK(original, masked, columns=["a"])
    assert (found.assignment, found.rate) == (0.5, 0.5)


def test_the_ratio_of_two_normal_densities():
    """y = x + e with variances 1 and s: Q = 1/s - 1/(1 + s), and x is expected at x (1 + s), as the guide works out."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 200_000))
    y = x + 0.5 * rng.normal(size=x.shape)
    turn = likelihood_ratio(pair_moments(x, y), np.array([0]))
    # a t distribution with 5 degrees of freedom fits normal residuals with a somewhat smaller scale
    scale = turn.masked[0, 0] ** 2 + 1 / 1.25
    s = 1 / scale
    assert 0.17 < s < 0.25
    assert turn.known[0, 0] / turn.masked[0, 0] == pytest.approx((1 / s) / (1 / s - 1 / 1.25), rel=0.01)


def test_agreement_weighs_as_fellegi_and_sunter_say():
    """Nine of ten true pairs agree, two of ten at random: 2 log(.9 x .8 / (.2 x .1))."""
    assert agreement_weight(0.1, 0.8) ** 2 == pytest.approx(2 * np.log(36))
    assert agreement_weight(0.8, 0.8) == pytest.approx(0.0, abs=1e-7)
    assert agreement_weight(0.0, 0.8) == CERTAIN


def amounts(rows=600, seed=3, lost=0.0):
    """Skewed amounts, most of them zero and a few missing, masked so that ranks and zeros stay about as they were."""
    rng = np.random.default_rng(seed)
    original = pd.DataFrame({name: rng.lognormal(8, 2, rows).round(2) for name in ("wages", "rent", "gains")})
    for name, share in {"rent": 0.5, "gains": 0.7}.items():
        original.loc[rng.random(rows) < share, name] = 0.0
    masked = original * rng.lognormal(0, 0.5, original.shape)
    masked.loc[rng.random(rows) < lost, "rent"] = 0.0
    for frame in (original, masked):
        frame.loc[::50, "gains"] = np.nan
    return original, masked


def normal_scores(values):
    """Of each value that of its rank, ties in the middle; SciPy's and pandas' own."""
    return pd.Series(values).rank().sub(0.5).div(np.isfinite(values).sum()).map(norm.ppf).to_numpy()


@pytest.mark.parametrize("lost", [0.0, 0.01], ids=["zeros kept", "few lost"])
def test_ranks_are_the_likelihood_ratio_of_scores_and_of_the_pattern_of_zeros(lost):
    """All pairs, written out; the column with missing values by its own weight, missing ones as such."""
    original, masked = amounts(lost=lost)
    found, rows = LINK(original, masked, columns=list(original)), len(original)
    x, y = (np.array([normal_scores(frame[name].to_numpy()) for name in frame]) for frame in (original, masked))
    slope, constant, residual = t_moments(x[:2].T, y[:2].T)
    spread = np.cov(y[:2], ddof=0) + np.eye(2) * (1e-6 * np.trace(np.cov(y[:2], ddof=0)) / 2 + 1e-12)
    apart = y[:2].T[None] - (x[:2].T @ slope.T + constant)[:, None]
    total = np.einsum("abi,ij,abj->ab", apart, np.linalg.inv(residual), apart)
    total -= np.einsum("ib,ij,jb->b", y[:2], np.linalg.inv(spread), y[:2])
    gap = np.nan_to_num(np.abs(np.subtract.outer(x[2], y[2])))
    total += gap**2 * gap_weight(np.diag(gap)) ** 2
    total += 1e12 * np.not_equal.outer(np.isnan(x[2]), np.isnan(y[2]))
    codes = [frame.eq(0).to_numpy() @ [1, 2, 4] for frame in (original, masked)]
    differ = np.not_equal.outer(*codes)
    cost = agreement_weight(np.diag(differ).mean(), (codes[0] != np.roll(codes[1], rows // 2)).mean()) ** 2
    total += cost * differ
    reference = linked(total - total.min(axis=1, keepdims=True) + 1.0, np.arange(rows)).mean()
    assert (cost == CERTAIN**2) == (lost == 0)
    assert found.ranks == pytest.approx(reference, abs=3 / rows)
    assert found.rate >= found.ranks > 1.2 * max(found.joint, found.euclidean, found.mahalanobis)


def test_curves_keep_order_and_ties():
    rng = np.random.default_rng(1)
    sample = np.concatenate([np.zeros(4000), rng.lognormal(5, 2, 6000)])
    way = curve(sample)
    values = np.concatenate([sample, [-1.0, 1e-9, 1e12, np.nan]])
    scores = way.of(values)
    assert np.isnan(scores[-1])
    order = np.argsort(values[:-1], kind="stable")
    assert (np.sign(np.diff(scores[:-1][order])) == np.sign(np.diff(values[:-1][order]))).all()
    assert np.abs(scores[: len(sample)] - normal_scores(sample)).max() < 0.05
    assert curve(np.array([1.0, 1.0, np.nan])) is None
