"""Projection onto linear constraints and bounds, against closed forms and against trying every set of active bounds."""

import itertools

import numpy as np
import pytest

from dpmask.kernels.projection import InconsistentConstraintsError, feasible_set, project


def closed_form(v, m, a, g):
    """The spec's formula with a pseudo-inverse."""
    inverse = np.diag(1.0 / g)
    return v - inverse @ m.T @ np.linalg.pinv(m @ inverse @ m.T) @ (m @ v - a)


def every_active_set(v, m, a, g, low, high):
    """The best feasible point among the solutions with each column free, at its lower, or at its upper bound."""
    best, best_distance = None, np.inf
    for choice in itertools.product((None, 0, 1), repeat=len(v)):
        fixed = [(s, (low, high)[side][s]) for s, side in enumerate(choice) if side is not None]
        if not np.isfinite([value for _, value in fixed]).all():
            continue
        rows = np.concatenate([m, np.eye(len(v))[[s for s, _ in fixed]]])
        values = np.concatenate([a, [value for _, value in fixed]])
        w = closed_form(v, rows, values, g) if len(rows) else v
        holds = np.allclose(rows @ w, values, rtol=1e-12, atol=1e-10)
        if holds and (w >= low - 1e-10).all() and (w <= high + 1e-10).all():
            distance = g @ (w - v) ** 2
            if distance < best_distance - 1e-14:
                best, best_distance = w, distance
    return best


def test_one_row_is_eq_5():
    alpha, a = np.array([1.16, 1.07, -1.0]), 0.0
    v = np.array([[15.4, 38.5, 54.9], [68.6, 217.7, 313.4]])
    expected = v - alpha * ((v @ alpha - a) / (alpha @ alpha))[:, None]
    found = project(v, feasible_set(alpha[None], np.array([a])))
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    np.testing.assert_allclose(found @ alpha, a, atol=1e-12)


@pytest.mark.parametrize("rows", [0, 1, 2, 4, 5])
@pytest.mark.parametrize("seed", range(5))
def test_equalities_equal_the_closed_form(rows, seed):
    rng = np.random.default_rng(seed)
    m, a = rng.standard_normal((rows, 5)), rng.standard_normal(rows)
    centers, metric = rng.standard_normal((2, 3, 5)), rng.uniform(0.1, 9, (2, 3, 5))
    found = project(centers, feasible_set(m, a), metric)
    for at in np.ndindex(2, 3):
        np.testing.assert_allclose(found[at], closed_form(centers[at], m, a, metric[at]), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(m @ found[at], a, atol=1e-12)


def test_projecting_twice_changes_nothing():
    rng = np.random.default_rng(0)
    m = rng.standard_normal((2, 6))
    feasible = feasible_set(m, m @ rng.uniform(0, 1, 6), np.full(6, -0.5), np.full(6, 2.0))
    once = project(rng.standard_normal((10, 6)), feasible)
    np.testing.assert_allclose(project(once, feasible), once, atol=1e-13)


def test_redundant_rows_are_absorbed():
    m, a = np.array([[1.0, 1, -1, 0], [0, 1, 1, 1]]), np.array([0.0, 5])
    more = np.concatenate([m, 1e-6 * m[:1], m[:1] + 3e5 * m[1:]])
    values = np.concatenate([a, 1e-6 * a[:1], a[:1] + 3e5 * a[1:]])
    v = np.random.default_rng(0).standard_normal((4, 4))
    assert feasible_set(more, values).rows.shape == (2, 4)
    np.testing.assert_allclose(project(v, feasible_set(more, values)), project(v, feasible_set(m, a)), atol=1e-9)


def test_small_units_are_not_redundant():
    # the second column is measured in millions: its coefficient is tiny, but the rows say different things
    m, a = np.array([[1.0, 1e-6, 0.0], [1e-7, 0.0, 1e-7]]), np.array([2.0, 3e-7])
    found = project(np.zeros((1, 3)), feasible_set(m, a))
    np.testing.assert_allclose(m @ found[0], a, rtol=1e-10)


@pytest.mark.parametrize(
    ("m", "a", "row"),
    [
        ([[1, 1, -1], [1, 1, -1]], [0, 1], 1),
        ([[1, 0, 0], [0, 1, 0], [1, 1, 0]], [1, 2, 4], 2),
        ([[0, 0, 0]], [1], 0),
        ([[1e6, 0, 0], [1e-6, 0, 0]], [1e6, 2e-6], 1),
    ],
)
def test_contradictions_name_the_row(m, a, row):
    with pytest.raises(InconsistentConstraintsError) as caught:
        feasible_set(np.array(m, float), np.array(a, float))
    assert caught.value.row == row


def test_nearly_equal_constants_are_rounding():
    m = np.array([[0.1, 0.2, -1.0], [1.0, 2.0, -10.0]])
    assert len(feasible_set(m, np.array([0.3, 3.0])).rows) == 1


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [([1, 0], [0, 1], "column 0"), ([2, 2], [5, 5], "together"), ([-9, -9], [0, 0], "together")],
)
def test_bounds_without_a_point_are_refused(low, high, message):
    with pytest.raises(InconsistentConstraintsError, match=message):
        feasible_set(np.array([[1.0, 1.0]]), np.array([1.0]), np.array(low, float), np.array(high, float))


def test_bounds_by_hand():
    # net + tax = gross with net >= 0: (-3, 5, 2) satisfies the sum; the nearest with net = 0 has tax = gross = 3.5
    feasible = feasible_set(np.array([[1.0, 1, -1]]), np.zeros(1), np.array([0.0, -np.inf, -np.inf]))
    np.testing.assert_allclose(project(np.array([-3.0, 5, 2]), feasible), [0, 3.5, 3.5], atol=1e-14)
    np.testing.assert_allclose(project(np.array([1.0, 5, 6]), feasible), [1, 5, 6], rtol=1e-15)


def test_bounds_alone_clip():
    feasible = feasible_set(np.empty((0, 3)), np.empty(0), np.zeros(3), np.array([1, np.inf, 2.0]))
    np.testing.assert_array_equal(project(np.array([[-1.0, 5, 3], [0.5, -2, 1]]), feasible), [[0, 5, 2], [0.5, 0, 1]])


@pytest.mark.parametrize("seed", range(40))
def test_bounds_equal_every_active_set(seed):
    rng = np.random.default_rng(seed)
    columns, rows = int(rng.integers(2, 6)), int(rng.integers(0, 3))
    rows = min(rows, columns - 1)
    m, inside = rng.integers(-2, 3, (rows, columns)).astype(float), rng.uniform(-1, 1, columns)
    a = m @ inside
    low = np.where(rng.random(columns) < 0.7, inside - rng.uniform(0, 0.5, columns), -np.inf)
    high = np.where(rng.random(columns) < 0.7, inside + rng.uniform(0, 0.5, columns), np.inf)
    g = rng.uniform(0.2, 5, columns)
    feasible = feasible_set(m, a, low, high)
    for v in rng.standard_normal((10, columns)) * 2:
        found = project(v, feasible, g)
        expected = every_active_set(v, m, a, g, low, high)
        assert g @ (found - v) ** 2 == pytest.approx(g @ (expected - v) ** 2, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(found, expected, atol=1e-7)
        np.testing.assert_allclose(m @ found, a, atol=1e-11)
        assert (found >= low).all()
        assert (found <= high).all()


@pytest.mark.parametrize("seed", range(20))
def test_many_columns_keep_equalities_and_bounds(seed):
    """Too many for every active set: the answer is feasible and no feasible neighbour is nearer."""
    rng = np.random.default_rng(seed)
    m, inside = rng.standard_normal((3, 13)), rng.uniform(0.5, 2, 13)
    a, low = m @ inside, np.zeros(13)
    feasible = feasible_set(m, a, low)
    v = rng.standard_normal(13) * 3
    found = project(v, feasible)
    np.testing.assert_allclose(m @ found, a, atol=1e-11)
    assert (found >= 0).all()
    for _ in range(200):
        other = project(rng.standard_normal(13) * 3, feasible)
        toward = found + 1e-3 * (other - found)
        assert np.sum((toward - v) ** 2) >= np.sum((found - v) ** 2) - 1e-12


def test_standardised_and_original_units_agree():
    rng = np.random.default_rng(3)
    mean, sd = np.array([20000.0, 5000, 25000, 40]), np.array([9000.0, 2000, 11000, 12])
    m, a, low = np.array([[1.0, 1, -1, 0]]), np.zeros(1), np.zeros(4)
    z = rng.standard_normal((50, 4)) * 2
    in_z = project(z, feasible_set(m, a, low, mean=mean, sd=sd)) * sd + mean
    in_x = project(z * sd + mean, feasible_set(m, a, low), 1.0 / sd**2)
    np.testing.assert_allclose(in_z, in_x, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(in_x @ m[0], 0.0, atol=1e-10)
    assert (in_x >= 0).all()


def test_a_column_nobody_weighs_on_takes_the_correction():
    found = project(
        np.array([1.0, 2.0, 9.0]), feasible_set(np.array([[1.0, 1, -1]]), np.zeros(1)), np.array([4.0, 4, 0])
    )
    np.testing.assert_allclose(found, [1, 2, 3], atol=1e-8)


def test_a_set_of_a_single_point():
    feasible = feasible_set(np.array([[1.0, 1.0, 0.0]]), np.zeros(1), np.zeros(3))  # a + b = 0, a >= 0, b >= 0
    np.testing.assert_array_equal(project(np.array([[3.0, -1, 2], [-1, -1, -1]]), feasible), [[0, 0, 2], [0, 0, 0]])
    tenths = feasible_set(np.array([[1.0, 1.0]]), np.array([0.3]), np.array([0.1, 0.2]))  # 0.1 + 0.2 is not 0.3 exactly
    np.testing.assert_allclose(project(np.array([5.0, -7.0]), tenths), [0.1, 0.2], atol=1e-15)


def test_a_column_that_equalities_determine_is_outside_by_rounding_only():
    """a = 0, a + b = c, a >= 0: rounding takes a just below 0 where b and c are large, and nothing is left to choose."""
    found = feasible_set(np.array([[1.0, 1, -1], [1, 0, 0]]), np.zeros(2), np.array([0.0, -np.inf, -np.inf]))
    points = np.random.default_rng(1).normal(size=(2000, 3)) * 1e6
    moved = project(points, found, np.array([1.0, 0.3, 0.7]))
    assert ((moved[:, 0] >= 0) & (moved[:, 0] < 1e-9)).all()
    np.testing.assert_allclose(moved[:, 1], moved[:, 2], rtol=1e-12)
