"""Rows on the grid of their types: integers stay integers, equalities hold exactly, bounds are kept."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dpmask.kernels.rounding_with_constraints import NoRoundingError, constrained_rounding, rounded_with_constraints

WHOLE, CENT, FLOAT = Fraction(1), Fraction(1, 100), Fraction(0)
NET_TAX = [(1, 1, -1)]  # net + tax - gross = 0


def grid_of(equalities, steps, *, kinds=None, lower=None, upper=None, constants=None):
    """A grid from coefficients written as text or numbers."""
    columns = len(steps)
    constants = [0] * len(equalities) if constants is None else constants
    exact = [([Fraction(c) for c in row], Fraction(a)) for row, a in zip(equalities, constants, strict=True)]
    low = np.full(columns, -np.inf) if lower is None else np.array(lower, float)
    high = np.full(columns, np.inf) if upper is None else np.array(upper, float)
    return constrained_rounding(exact, steps, kinds or ["float64"] * columns, low, high)


def released(rows, grid):
    return rounded_with_constraints(np.array(rows, float), grid, np.ones(len(grid.steps)))


def left_sides(equalities, rows, step=1):
    """The equalities' left sides in exact arithmetic, the values read as multiples of a step."""
    exact = [[Fraction(round(value / float(step))) * step for value in row] for row in rows.tolist()]
    return [[sum(Fraction(c) * v for c, v in zip(e, row, strict=True)) for e in equalities] for row in exact]


def test_net_tax_gross_by_hand():
    rows = [[10.4, 3.4, 13.8], [0.5, 1.5, 2.0], [-2.6, 0.2, -2.4], [7, 1, 8]]
    assert released(rows, grid_of(NET_TAX, [WHOLE] * 3)).tolist() == [[10, 3, 13], [0, 2, 2], [-3, 0, -3], [7, 1, 8]]


def test_several_equalities_and_redundant_ones():
    # a + b = c, c + d = e, and their sum once more
    equalities = [(1, 1, -1, 0, 0), (0, 0, 1, 1, -1), (1, 1, 0, 1, -1), (2, 2, -2, 0, 0)]
    grid = grid_of(equalities, [WHOLE] * 5)
    assert len(grid.dependent) == 2
    found = released(np.random.default_rng(0).normal(0, 1000, (500, 5)), grid)
    assert (found == np.rint(found)).all()
    assert not np.array(left_sides(equalities, found)).any()


def test_no_equality_only_rounds():
    rows = np.array([[1.4, 2.678], [-1.6, 0.001]])
    np.testing.assert_allclose(released(rows, grid_of([], [WHOLE, CENT])), [[1, 2.68], [-2, 0]], rtol=1e-15)


@pytest.mark.parametrize(
    ("steps", "dependent"),
    [
        ([WHOLE, WHOLE, CENT], 2),
        ([CENT, CENT, Fraction(1, 10_000)], 2),
        ([CENT, CENT, FLOAT], 2),
        ([FLOAT, CENT, CENT], 0),
        ([CENT, FLOAT, WHOLE], 1),
    ],
)
def test_decimals_and_coefficients_with_digits(steps, dependent):
    equality = ("1.16", "1.07", -1)
    grid = grid_of([equality], steps)
    assert grid.dependent.tolist() == [dependent]
    rows = np.random.default_rng(0).lognormal(5, 1, (300, 3))
    rows[:, 2] = 1.16 * rows[:, 0] + 1.07 * rows[:, 1]
    found = released(rows, grid)
    for j, step in enumerate(steps):
        multiples = found[:, j] / float(step) if step else np.zeros(300)
        np.testing.assert_allclose(multiples, np.rint(multiples), rtol=1e-12)
        assert j == dependent or np.abs(found[:, j] - rows[:, j]).max() <= float(step) / 2 + 1e-9
    if FLOAT not in steps:
        assert not np.array(left_sides([equality], found, min(steps))).any()
    np.testing.assert_allclose(1.16 * found[:, 0] + 1.07 * found[:, 1], found[:, 2], rtol=1e-14)


def test_cents_keep_their_sum_to_the_cent():
    rows = np.random.default_rng(0).lognormal(9, 1, (500, 3))
    found = released(rows, grid_of(NET_TAX, [CENT] * 3))
    assert not np.array(left_sides(NET_TAX, found, CENT)).any()
    np.testing.assert_allclose(found[:, :2], np.rint(rows[:, :2] * 100) / 100, rtol=1e-14)


def test_a_float_is_computed_rather_than_an_integer():
    # heads are whole, wages are floats: the wage bill takes what rounding leaves
    found = released([[2.4, 3.3, 5.7], [7.5, 0.125, 7.625]], grid_of(NET_TAX, [WHOLE, FLOAT, FLOAT]))
    assert found[:, 0].tolist() == [2, 8]
    assert (found[:, 0] + found[:, 1] == found[:, 2]).all()


def test_constants():
    grid = grid_of([(1, 1, 1)], [WHOLE] * 3, constants=[100])
    found = released(np.random.default_rng(0).dirichlet([1, 2, 3], 200) * 100, grid)
    assert (found == np.rint(found)).all()
    assert (found.sum(axis=1) == 100).all()


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_small_floats_hold_what_their_type_holds(kind):
    rows = np.random.default_rng(0).uniform(1, 9, (200, 3))
    rows[:, 2] = rows[:, 0] + rows[:, 1]
    found = released(rows, grid_of(NET_TAX, [FLOAT] * 3, kinds=[kind] * 3))
    np.testing.assert_array_equal(found, found.astype(kind).astype(float))
    np.testing.assert_allclose(found[:, 0] + found[:, 1], found[:, 2], rtol=np.finfo(kind).eps)


def test_the_widest_float_is_computed():
    """A float64 can take up what is left between two float32; a float32 would lose it."""
    kinds = ["float64", "float32", "float32"]
    found = released(np.random.default_rng(0).normal(size=(100, 3)), grid_of(NET_TAX, [FLOAT] * 3, kinds=kinds))
    np.testing.assert_array_equal(found[:, 1:], found[:, 1:].astype("float32"))
    np.testing.assert_allclose(found[:, 0], found[:, 2] - found[:, 1], rtol=1e-15)


@pytest.mark.parametrize("bound", [0.1, 0.7, -0.3, 123.456, 1e6 + 0.01, 16_777_217.0])
def test_a_bound_that_a_small_float_cannot_hold(bound):
    for side in ("lower", "upper"):
        found = released([[bound]], grid_of([], [FLOAT], kinds=["float32"], **{side: [bound]}))
        assert found[0, 0] == np.float32(found[0, 0])
        assert found[0, 0] >= bound if side == "lower" else found[0, 0] <= bound
        assert abs(found[0, 0] - bound) <= np.finfo("float32").eps * abs(bound)


def test_a_computed_small_float_stays_inside_its_bound():
    grid = grid_of(NET_TAX, [FLOAT] * 3, kinds=["float32"] * 3, lower=[0, 0, 0], upper=[np.inf, np.inf, 0.3])
    assert grid.dependent.tolist() == [2]
    rows = np.stack([np.linspace(0, 0.3, 50), 0.3 - np.linspace(0, 0.3, 50), np.full(50, 0.3)], axis=1)
    found = released(rows, grid)
    np.testing.assert_array_equal(found, found.astype("float32").astype(float))
    assert (found[:, 2] <= 0.3).all()
    np.testing.assert_allclose(found[:, 0] + found[:, 1], found[:, 2], atol=1e-7)


def test_bounds_are_kept_by_rounding_the_other_way():
    # gross <= 14: 10.6 + 3.6 = 14.2 rounds to 15, so one of the two must go down
    grid = grid_of(NET_TAX, [WHOLE] * 3, lower=[0, 0, 0], upper=[np.inf, np.inf, 14])
    assert released([[10.7, 3.6, 14.0]], grid).tolist() == [[11, 3, 14]]
    # bounds between the steps: 2.5 <= net <= 3.5 leaves 3
    between = grid_of([], [WHOLE], lower=[2.5], upper=[3.5])
    assert released([[2.5], [3.5], [3.2]], between).tolist() == [[3], [3], [3]]


def test_a_column_without_a_bound_is_computed_first():
    assert grid_of(NET_TAX, [WHOLE] * 3, lower=[0, -np.inf, 0]).dependent.tolist() == [1]
    assert grid_of(NET_TAX, [WHOLE] * 3, lower=[0, 0, 0]).dependent.tolist() == [2]


@pytest.mark.parametrize(
    ("equalities", "steps"),
    [
        ([(2, 3, -5)], [WHOLE] * 3),
        ([("1.16", "1.07", -1)], [CENT] * 3),
        ([(3, 0, -2), (0, 3, -2)], [WHOLE] * 3),
    ],
)
def test_where_no_column_can_be_computed(equalities, steps):
    with pytest.raises(NoRoundingError, match="without a remainder"):
        grid_of(equalities, steps)
    with pytest.raises(NoRoundingError, match="without a remainder"):
        grid_of([(1, 1, -1)], [WHOLE] * 3, constants=["0.5"])


def test_a_bound_that_no_row_keeps():
    grid = grid_of(NET_TAX, [WHOLE] * 3, lower=[0, 0, 5], upper=[2, 2, 9])
    with pytest.raises(NoRoundingError, match="breaks a bound"):
        released([[2, 2, 5]], grid)


def neighbours(row, grid):
    """The row with each free column rounded up or down, the others computed; the nearest first."""
    choices = np.array(list(itertools.product((0, 1), repeat=len(grid.free))))
    found = np.zeros((len(choices), len(row)))
    found[:, grid.free] = np.floor(row[grid.free]) + choices
    found[:, grid.dependent] = found @ grid.factors.T + grid.constants
    inside = found[((found >= grid.lower) & (found <= grid.upper)).all(axis=1)]
    return inside[np.argsort(((inside - row) ** 2).sum(axis=1))]


@pytest.mark.parametrize("seed", range(200))
def test_random_systems(seed):
    """Means of whole rows: what is released is whole, exact, inside, and as near as rounding up or down can be."""
    rng = np.random.default_rng(seed)
    columns, count = int(rng.integers(2, 7)), int(rng.integers(1, 3))
    free, factors = rng.integers(-9, 10, (3, columns)), rng.integers(-3, 4, (count, columns))
    points = np.concatenate([free, free @ factors.T], axis=1)
    equalities = np.concatenate([factors, -np.eye(count, dtype=int)], axis=1)
    equalities = np.concatenate([equalities, rng.integers(-2, 3, (count, count)) @ equalities])
    bounded = rng.random(columns + count) < 0.9
    lower, upper = np.where(bounded, points.min(axis=0), -np.inf), np.where(bounded, points.max(axis=0), np.inf)
    grid = grid_of(equalities.tolist(), [WHOLE] * (columns + count), lower=lower, upper=upper)
    assert len(grid.dependent) == count
    rows = rng.dirichlet([0.2, 0.2, 0.2], 20) @ points
    found = released(rows, grid)
    assert (found == np.rint(found)).all()
    assert not (found @ equalities.T).any()
    assert ((found >= lower) & (found <= upper)).all()
    for row, made in zip(rows, found, strict=True):
        if (np.rint(row) != made)[grid.free].any():  # one rounding broke a bound
            nearest = neighbours(row, grid)[:1]
            assert ((made - row) ** 2).sum() <= ((nearest - row) ** 2).sum(axis=1).min(initial=np.inf) + 1e-9
    np.testing.assert_array_equal(released(points, grid), points)
