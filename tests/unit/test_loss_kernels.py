"""The kernels behind information loss, against plain references."""

import numpy as np
import pytest

from dpmask.kernels.comoments import comoments, merge_comoments
from dpmask.kernels.order.edge_lookup import edge_counts, edge_counts_and_rows, edge_lookup
from dpmask.kernels.order.float_order import count_at, from_keys, order_keys, window
from dpmask.kernels.order.partial_sort import PartialSort, contents_of, key_ranges, merge_contents
from dpmask.kernels.regression.logistic import basis, fitted_chances
from dpmask.kernels.value_counts import MOST_VALUES, value_counts

POWERS = [(1, 1), (2, 0), (0, 2), (2, 1), (2, 2), (3, 1), (1, 3), (4, 0)]


def block(rows, seed=0, holes=True, offset=0.0):
    rng = np.random.default_rng(seed)
    values = rng.lognormal(size=(3, rows))
    values[1] += 0.5 * values[0]
    if holes:
        values[rng.random(values.shape) < 0.2] = np.nan
    return values + offset


def plain(values, p, q):
    """mu_pq about the means of the complete records of each pair."""
    found = np.empty((len(values), len(values)))
    for i, x in enumerate(values):
        for j, y in enumerate(values):
            both = ~np.isnan(x) & ~np.isnan(y)
            found[i, j] = np.mean((x[both] - x[both].mean()) ** p * (y[both] - y[both].mean()) ** q)
    return found


@pytest.mark.parametrize("holes", [True, False])
@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_comoments_equal_a_plain_reference(holes, pieces):
    values = block(9000, holes=holes)
    parts = [comoments(list(part), 4) for part in np.array_split(values, pieces, axis=1)]
    found = parts[0]
    for part in parts[1:]:
        found = merge_comoments(found, part)
    for p, q in POWERS:
        assert found.central(p, q) == pytest.approx(plain(values, p, q), rel=1e-11), (p, q)
    assert found.values.tolist() == (~np.isnan(values)).sum(axis=1).tolist()
    moments = found.moments
    assert moments.mean == pytest.approx(np.nanmean(values, axis=1), rel=1e-14)
    assert moments.sd == pytest.approx(np.nanstd(values, axis=1), rel=1e-13)
    assert (moments.low.tolist(), moments.high.tolist()) == (
        np.nanmin(values, axis=1).tolist(),
        np.nanmax(values, axis=1).tolist(),
    )
    if not holes:
        assert found.correlation == pytest.approx(np.corrcoef(values), rel=1e-12)


def test_comoments_do_not_cancel():
    """Sorted values far from zero, in pieces that lie far from each other: nothing is lost beyond the data's own digits."""
    values = np.sort(block(4000, holes=False, offset=2.0**30))
    exact = values - 2.0**30
    whole = comoments(list(values[:, :10]), 4)
    for start in range(10, 4000, 399):
        whole = merge_comoments(whole, comoments(list(values[:, start : start + 399]), 4))
    for p, q in POWERS:
        assert whole.central(p, q) == pytest.approx(plain(exact, p, q), rel=1e-11), (p, q)


@pytest.mark.parametrize("size", [100, 500, 5000])
def test_what_stands_where_the_other_value_is_missing_does_not_matter(size):
    """Such as a code for 'does not apply', larger than anything else."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=5000)
    values = np.array([x, x / 2 + rng.normal(size=5000), rng.normal(size=5000)])
    values[0, 100:3000:145], values[1, 100:3000:145] = 999_999_999.0, np.nan
    parts = [comoments(list(values[:, start : start + size]), 4) for start in range(0, 5000, size)]
    found = parts[0]
    for part in parts[1:]:
        found = merge_comoments(found, part)
    for p, q in POWERS:
        both = [found.central(p, q)[:2, :2], plain(values, p, q)[:2, :2]]
        assert both[0][0, 1] == pytest.approx(both[1][0, 1], rel=1e-10), (p, q)
        assert both[0][1, 0] == pytest.approx(both[1][1, 0], rel=1e-10), (p, q)
    there = ~np.isnan(values[1])
    assert found.correlation[0, 1] == pytest.approx(np.corrcoef(values[:2, there])[0, 1], rel=1e-12)


def test_a_constant_column_has_exactly_no_variance():
    parts = [comoments([np.full(n, 0.1), np.arange(n) * 0.3], 4) for n in (3, 1000, 7)]
    found = merge_comoments(merge_comoments(*parts[:2]), parts[2])
    assert found.central(2, 2)[0, 0] == found.central(1, 1)[0, 1] == 0.0
    assert np.isnan(found.correlation[0, 1])


def test_empty_parts_and_infinities():
    empty = comoments([np.array([np.nan, np.nan])], 2)
    some = comoments([np.array([1.0, np.inf, 3.0, -np.inf])], 2)
    for both in (merge_comoments(empty, some), merge_comoments(some, empty)):
        assert (both.values.tolist(), both.infinite.tolist(), both.moments.mean.tolist()) == ([2], [2], [2.0])
        assert both.moments.sd.tolist() == [1.0]


@pytest.mark.parametrize("edges", [0, 1, 2, 40, 3000])
@pytest.mark.parametrize("kind", ["normal", "heavy", "tied", "constant"])
def test_slots_are_those_of_a_search(edges, kind):
    rng = np.random.default_rng(edges)
    values = {
        "normal": rng.normal(size=40_000),
        "heavy": rng.pareto(0.3, 40_000),
        "tied": rng.integers(-3, 4, 40_000) * 1.0,
        "constant": np.full(40_000, -0.0),
    }[kind]
    values[:4] = np.nan, np.inf, -np.inf, -0.0
    cuts = np.unique(rng.choice(values[1:], edges))
    above = np.searchsorted(cuts, values, "right")
    expected = 2 * above - np.isin(values, cuts)
    expected[0] = 2 * len(cuts) + 1
    grid = edge_lookup(cuts)
    some = np.arange(2 * len(cuts) + 2) % 3 == 1
    counts, rows = edge_counts_and_rows(values, grid, some)
    assert (rows == np.flatnonzero(some[expected])).all()
    for found in (counts, edge_counts(values, grid)):
        assert (found == np.bincount(expected, minlength=2 * len(cuts) + 2)).all()


@pytest.mark.parametrize("cuts", [30, 500])
def test_counts_by_grid_and_by_sort(cuts):
    rng = np.random.default_rng(cuts)
    values = rng.normal(size=5000).round(2)
    values[:10] = np.nan
    at = np.concatenate([rng.permutation(values[10:])[:cuts], [-np.inf, np.inf, 0.0]])
    (found,) = count_at([order_keys(at)], [values])
    assert found.below.tolist() == [int((values < x).sum()) for x in at]
    assert found.through.tolist() == [int((values <= x).sum()) for x in at]


def test_zones_hold_what_lies_inside_and_count_their_ends():
    values = np.array([3.0, -1.0, np.nan, 0.0, 7.0, -np.inf, np.inf, 2.0, 3.0])
    key = [int(k) for k in order_keys(np.array([-1.0, 2.0, 3.0, 7.0]))]
    low, high = -(1 << 63), (1 << 63) - 1
    ranges = key_ranges([(low, key[0]), (key[0], key[2]), (key[3], high)])
    ((below, through, inside, _),) = contents_of([ranges], [values])
    assert from_keys(ranges.ends).tolist() == [-np.inf, -1.0, 3.0, 7.0, np.inf]
    assert (below.tolist(), through.tolist()) == ([0, 1, 4, 6, 7], [1, 2, 6, 7, 8])
    assert from_keys(inside).tolist() == [0.0, 2.0]
    assert [len(part) for part in contents_of([key_ranges([])], [values])[0][:3]] == [0, 0, 0]
    (twice,) = contents_of([ranges], [values], np.full(len(values), 2))
    assert (twice.below == 2 * below).all()
    assert (twice.through == 2 * through).all()
    assert (twice.inside == inside).all()
    assert twice.weights.tolist() == [2, 2]


@pytest.mark.parametrize("kind", ["continuous", "tied"])
def test_a_column_known_in_zones(kind):
    rng = np.random.default_rng(5)
    values = rng.normal(size=3000).round(9 if kind == "continuous" else 1)
    values[:5] = np.nan
    ordered = np.sort(values)[:-5]
    pairs = [tuple(sorted(pair)) for pair in order_keys(rng.choice(ordered, (6, 2))).tolist()]  # they overlap
    ranges = key_ranges([*pairs, pairs[0][:1] * 2])
    parts = [contents_of([ranges], [part]) for part in np.array_split(values, 4)]
    known = PartialSort(ranges, merge_contents(merge_contents(*parts[:2]), merge_contents(*parts[2:]))[0])
    low, high = (from_keys(np.array(ends)) for ends in zip(*pairs, strict=True))
    inside = np.array([((low <= x) & (x <= high)).any() for x in ordered])
    keys = order_keys(ordered)
    assert [known.covers(keys[row : row + 1]) for row in range(len(keys))] == inside.tolist()
    assert [known.at(rank) for rank in np.flatnonzero(inside)] == keys[inside].tolist()
    found = known.positions(keys[inside])
    assert (found.below == np.searchsorted(ordered, ordered[inside], "left")).all()
    assert (found.through == np.searchsorted(ordered, ordered[inside], "right")).all()
    cuts = np.unique(keys[::100])
    (counted,) = count_at([cuts], [values])
    kept = len(known.inside.keys)
    assert kept <= ranges.at_most(cuts, counted, len(ordered)) <= kept + 200 * len(ranges.ends)


def test_a_window_is_what_the_rounded_difference_says():
    rng = np.random.default_rng(1)
    centers = np.concatenate([rng.normal(size=20), [0.0, 0.3, -0.1, 1e300, 5e-324, -0.1]])
    for reach in (0.1, 1e-17, 3.0, 0.0):
        first, last = (from_keys(keys) for keys in window(centers, reach))
        assert (np.abs(first - centers) <= reach).all()
        assert (np.abs(last - centers) <= reach).all()
        assert (np.abs(np.nextafter(first, -np.inf) - centers) > reach).all()
        assert (np.abs(np.nextafter(last, np.inf) - centers) > reach).all()


def test_value_counts_by_hand():
    one, two = value_counts(np.array([5, 3, 5], np.uint64)), value_counts(np.array([9, 3], np.uint64))
    both = one.plus(two)
    assert (both.keys.tolist(), both.counts.tolist()) == ([3, 5, 9], [2, 2, 1])
    assert [part.tolist() for part in one.beside(two)] == [[1, 2, 0], [1, 0, 1]]
    assert not both.many
    assert both.plus(value_counts(np.arange(MOST_VALUES + 9, dtype=np.uint64))).many


def test_a_logistic_regression_is_scikit_learns():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3))
    x = np.column_stack([x, x[:, 0] + x[:, 1], np.ones(3000)])  # two columns that add nothing
    kind = (rng.random(3000) < 1 / (1 + np.exp(0.5 - x[:, 0] + 0.5 * x[:, 2]))).astype(float)
    columns = basis(x)
    assert columns.shape == (3000, 3)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x[:, :3], kind).predict_proba(x[:, :3])[:, 1]
    assert fitted_chances(columns, kind) == pytest.approx(theirs, abs=1e-5)


def test_kinds_that_can_be_told_apart_without_fail():
    x = np.linspace(-1, 1, 400)[:, None]
    kind = (x[:, 0] > 0).astype(float)
    chances = fitted_chances(basis(x), kind)
    assert np.mean((chances - 0.5) ** 2) == pytest.approx(0.25, abs=0.01)
