"""Kernels of memberships, rotations, swapping and correlated noise, against plain references and by hand."""

import numpy as np
import pytest

from dpmask.kernels.linkage.recovery import membership
from dpmask.kernels.membership import gaussian, s_shape, s_shape_undone, triangular, z_shape
from dpmask.kernels.noise import mixed, mixing_matrix
from dpmask.kernels.order.float_order import order_keys
from dpmask.kernels.rotation import haar_orthogonal, rotated
from dpmask.kernels.swapping import Cuts, shard_of, swapped

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
    keys = np.array([50, 10, 40, 20, 30, 60])
    ties = np.zeros(6, np.uint64)
    # windows of two by rank: {10, 20}, {30, 40}, {50, 60}; all are chosen, so each two change places
    assert swapped(keys, ties, np.full(6, 0.5), 1.0, 2).tolist() == [5, 3, 4, 1, 2, 0]
    # 40 is not chosen: 30 finds no partner
    draws = np.array([0.1, 0.1, 0.9, 0.1, 0.1, 0.1])
    assert swapped(keys, ties, draws, 0.5, 2).tolist() == [5, 3, 2, 1, 4, 0]
    # one window: in the order of the draws, and the fifth of five stays
    draws = np.array([0.3, 0.1, 0.2, 0.9, 0.4, 0.25])
    assert swapped(keys, ties, draws, 0.5, 6).tolist() == [5, 2, 1, 3, 4, 0]


@pytest.mark.parametrize("window", [2, 7, 100, 1000])
def test_swapping_stays_within_the_window(window):
    rng = np.random.default_rng(window)
    values = rng.permutation(1000)
    source = swapped(values, rng.integers(0, 99, 1000, np.uint64), rng.random(1000), 0.7, window)
    assert (source[source] == np.arange(1000)).all()  # pairs change places
    assert np.abs(values[source] - values).max() < window
    moved = (source != np.arange(1000)).mean()
    assert moved <= 0.75
    assert moved > 0.6 or window == 2


def test_swapping_few_values():
    none = np.empty(0, np.int64)
    assert swapped(none, none.astype(np.uint64), np.empty(0), 1.0, 5).tolist() == []
    assert swapped(np.array([4]), np.zeros(1, np.uint64), np.zeros(1), 1.0, 5).tolist() == [0]


def test_equal_values_are_ranked_by_lot():
    """Ten equal values in two windows: which five swap with each other follows the ties, not the places."""
    rng = np.random.default_rng(8)
    ties = rng.permutation(10).astype(np.uint64)
    source = swapped(np.zeros(10, np.int64), ties, np.linspace(0.1, 0.9, 10), 1.0, 5)
    lower = ties < 5
    assert (lower[source] == lower).all()


def test_shards_follow_the_ranks():
    values = np.array([1.0, 2, 2, 2, 2, 3, 4, 5])
    keys = order_keys(values)
    # cuts at ranks 2, 3 and 6: two inside the crowd of twos, which has ranks 1 to 4
    cuts = Cuts(np.array([2, 3, 6]), order_keys(np.array([2.0, 4.0])), np.array([1, 6]), np.array([5, 7]))
    draws = np.array([0.5, 0.1, 0.3, 0.6, 0.9, 0.5, 0.0, 0.5])
    assert shard_of(keys, draws, cuts).tolist() == [0, 0, 1, 2, 2, 2, 3, 3]
    none = np.empty(0, np.int64)
    assert shard_of(keys, draws, Cuts(none, none, none, none)).tolist() == [0] * 8
