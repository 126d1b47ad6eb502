"""Kernels of memberships, rotations, swapping and correlated noise, against plain references and by hand."""

import numpy as np
import pytest

from dpmask.kernels.linkage.recovery import membership
from dpmask.kernels.membership import gaussian, s_shape, s_shape_undone, triangular, z_shape
from dpmask.kernels.noise import mixed, mixing_matrix
from dpmask.kernels.order.ranks import RankKnots, rank_intervals
from dpmask.kernels.rotation import haar_orthogonal, rotated
from dpmask.kernels.swapping import distance_sd, mean_distance, meeting_places, shard_of, shards_for, swapped

X = np.array([-1.0, 0, 1, 2, 3, 4, 5, np.nan])


def test_shapes_by_hand():
    np.testing.assert_array_equal(s_shape(X, 0.0, 4.0), [0, 0, 0.125, 0.5, 0.875, 1, 1, np.nan])
    np.testing.assert_array_equal(z_shape(X, 0.0, 4.0), [1, 1, 0.875, 0.5, 0.125, 0, 0, np.nan])
    np.testing.assert_array_equal(triangular(X, 0.0, 1.0, 4.0), [0, 0, 1, 2 / 3, 1 / 3, 0, 0, np.nan])
    np.testing.assert_allclose(gaussian(X, 1.0, 2.0), np.exp(-((X - 1) ** 2) / 8), rtol=1e-15)


def test_s_is_as_the_paper_prints_it():
    rng = np.random.default_rng(0)
    x, a, b = rng.uniform(-1, 11, 1000), 2.0, 9.5
    printed = np.select(
        [x <= a, x <= (a + b) / 2, x <= b],
        [0.0, 2 * ((x - a) / (b - a)) ** 2, 1 - 2 * ((x - b) / (b - a)) ** 2],
        1.0,
    )
    np.testing.assert_allclose(s_shape(x, a, b), printed, rtol=1e-12, atol=1e-15)
    bends = np.maximum(0, np.minimum((x - a) / (3 - a), (b - x) / (b - 3)))
    np.testing.assert_allclose(triangular(x, a, 3.0, b), bends, rtol=1e-14)


def test_s_and_z_add_up_to_one_and_are_undone():
    x = np.random.default_rng(1).uniform(3, 8, 10_000)
    s, z = s_shape(x, 3.0, 8.0), z_shape(x, 3.0, 8.0)
    np.testing.assert_allclose(s + z, 1.0, rtol=0, atol=1e-15)  # each has its own few roundings
    # digits are lost where S is flat: 1 - S is exact to 1e-16, its root to 1e-8
    np.testing.assert_allclose(3 + 5 * s_shape_undone(s), x, atol=1e-7)
    np.testing.assert_allclose(8 - 5 * s_shape_undone(z), x, atol=1e-7)


@pytest.mark.parametrize("shape", [s_shape, z_shape])
def test_two_known_values_give_the_bounds_away(shape):
    x = np.array([np.random.default_rng(2).uniform(10, 50, 200)])
    y = shape(x[0], 10.0, 50.0)[None]
    np.testing.assert_allclose(membership(x[:, :2], y[:, :2]).recovered(y), x, atol=1e-6)
    alike = membership(x[:, [0, 0]], y[:, [0, 0]]).recovered(y)  # twice the same tells no width
    np.testing.assert_allclose(alike, x[0, 0])


def test_rotations_are_orthogonal_and_haar():
    rng = np.random.default_rng(3)
    matrices = np.array([haar_orthogonal(rng.normal(size=(4, 4))) for _ in range(20_000)])
    unity = matrices @ matrices.transpose(0, 2, 1)
    assert np.abs(unity - np.eye(4)).max() < 1e-12
    # Haar moments of an entry: mean 0, E x^2 = 1/n, E x^4 = 3/(n (n + 2)); traces have mean 0 and variance 1; half reflect
    noise = 5 / np.sqrt(len(matrices))
    assert np.abs(matrices.mean(axis=0)).max() < noise
    np.testing.assert_allclose((matrices**2).mean(axis=0), 1 / 4, atol=noise / 2)
    np.testing.assert_allclose((matrices**4).mean(axis=0), 3 / 24, atol=noise / 2)
    traces = np.trace(matrices, axis1=1, axis2=2)
    assert abs(traces.mean()) < noise
    assert abs(traces.var() - 1) < 2 * noise
    assert abs((np.linalg.det(matrices) > 0).mean() - 0.5) < noise


def test_the_bare_q_of_a_decomposition_is_not_haar():
    """What the signs are for: LAPACK's own choice of them leaves a bias that the test above would see."""
    rng = np.random.default_rng(3)
    bare = np.array([np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(2000)])
    assert np.abs(bare.mean(axis=0)).max() > 0.2


def test_rotated_is_the_product_wherever_a_record_lies():
    rng = np.random.default_rng(4)
    columns, matrix = list(rng.normal(size=(5, 5000))), haar_orthogonal(rng.normal(size=(5, 5)))
    whole = np.array(rotated(columns, matrix))
    np.testing.assert_allclose(whole, (np.array(columns).T @ matrix).T, rtol=1e-13, atol=1e-14)
    tail = np.array(rotated([column[1234:] for column in columns], matrix))
    np.testing.assert_array_equal(tail, whole[:, 1234:])
    assert [len(one) for one in rotated([np.empty(0)] * 5, matrix)] == [0] * 5


def test_mixing_keeps_correlations_and_exact_dependencies():
    rng = np.random.default_rng(5)
    data = rng.normal(size=(3, 100)).cumsum(axis=0)
    data = np.vstack([data, data[0] + data[1]])
    correlations = np.corrcoef(data)
    lower = mixing_matrix(correlations)
    np.testing.assert_allclose(lower @ lower.T, correlations, atol=1e-9)
    assert (np.triu(lower, 1) == 0).all()
    assert lower[3, 3] == 0.0  # the sum of two others has no draw of its own
    normals = list(rng.normal(size=(4, 1000)))
    noise = np.array([mixed(normals, line) for line in lower]) * data.std(axis=1)[:, None]
    np.testing.assert_allclose(noise[3], noise[0] + noise[1], atol=1e-8)


def test_swapping_by_hand():
    # in the order of the places: 1, 3, 4, 2, 0; the last one stays
    assert swapped(np.array([0.9, 0.1, 0.5, 0.2, 0.3])).tolist() == [0, 3, 4, 1, 2]
    assert swapped(np.empty(0)).tolist() == []
    assert swapped(np.array([4.0])).tolist() == [0]
    # equal places in the order given, so that no sort decides
    assert swapped(np.zeros(4)).tolist() == [1, 0, 3, 2]


def test_values_meet_at_normal_distances():
    low, high = np.array([0.2, 0.4]), np.array([0.4, 0.4])
    found = meeting_places(low, high, np.array([0.5, 0.5]), np.array([0.0, 2.0]), 0.3)
    np.testing.assert_allclose(found, [0.3, 0.4 + 2 * 0.375 * 0.3 * np.sqrt(np.pi) / 2], rtol=1e-12)


@pytest.mark.parametrize("window", [0.01, 0.05, 0.1])
def test_partners_differ_in_rank_by_the_law(window):
    """Mean three eighths of the window, 97 % within it, either way: away from the ends of the column."""
    rng = np.random.default_rng(3)
    ranks = (np.arange(40_000) + 0.5) / 40_000
    source = swapped(meeting_places(ranks, ranks, rng.random(40_000), rng.normal(size=40_000), window))
    assert (source[source] == np.arange(40_000)).all()  # pairs change places
    moved = (ranks[source] - ranks)[np.abs(ranks - 0.5) < 0.5 - 3 * window]
    assert np.abs(moved).mean() == pytest.approx(mean_distance(window), rel=0.05)
    assert moved.std() == pytest.approx(distance_sd(window), rel=0.05)
    assert (np.abs(moved) <= window).mean() == pytest.approx(0.967, abs=0.01)
    assert abs(moved.mean()) < window / 20


def test_shards_are_about_equal_and_in_order():
    rng = np.random.default_rng(4)
    for window in (0.02, 1.0):
        places = meeting_places(
            rng.random(100_000), rng.random(100_000), np.zeros(100_000), rng.random(100_000), window
        )
        shards = shards_for(100_000, window, 5000)
        owner = shard_of(places, window, shards)
        assert owner.max() < shards
        assert np.bincount(owner).max() < 1.2 * 5000
        assert (np.diff(owner[np.argsort(places)]) >= 0).all()
    assert shards_for(100, 0.1, 5000) == 1


def test_ranks_by_knots():
    """Exact where there is a knot, in a straight line between them, at the ends beyond them."""
    column = np.array([1.0, 2, 2, 2, 4, 6, 8, 9])
    knots = RankKnots(8, np.array([2.0, 6, 8]), np.array([1, 5, 6]), np.array([4, 6, 7]))
    low, high = rank_intervals(np.array([2.0, 3, 8, 0, 99, np.nan, np.inf]), knots)
    np.testing.assert_allclose(low * 8, [1, 4.25, 6, 0.5, 7.5, np.nan, 7.5])
    np.testing.assert_allclose(high * 8, [4, 4.25, 7, 0.5, 7.5, np.nan, 7.5])
    every = np.unique(column)
    places = (np.searchsorted(column, every), np.searchsorted(column, every, "right"))
    low, high = rank_intervals(column, RankKnots(8, every, *places))
    assert (low * 8).tolist() == np.searchsorted(column, column).tolist()
    assert (high * 8).tolist() == np.searchsorted(column, column, "right").tolist()
