"""Anderson acceleration on problems with known answers."""

import numpy as np
import pytest
from simple_loop import cluster, plus_plus

from dpmask.clustering.iteration import descend
from dpmask.kernels.fuzzy.acceleration import Anderson


def quadratic(eigenvalues, seed=0):
    """J = x'Ax/2 - b'x with a gradient step as F, its minimum, and J."""
    rng = np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.standard_normal((len(eigenvalues),) * 2))
    a, b = q @ np.diag(eigenvalues) @ q.T, rng.standard_normal(len(eigenvalues))
    step = 1.0 / max(eigenvalues)
    return lambda x: x - step * (a @ x - b), np.linalg.solve(a, b), lambda x: float(x @ a @ x / 2 - b @ x)


def iterate(f, objective, point, passes, anderson):
    trace = []
    for _ in range(passes):
        image = f(point)
        trace.append((objective(point), np.linalg.norm(image - point)))
        point = anderson.propose(point, image, objective(point))
    return point, trace


def test_linear_problem_of_the_history_s_size_is_solved_at_once():
    f, solution, objective = quadratic([1.0, 0.5, 0.2, 0.05, 0.01])
    point, _ = iterate(f, objective, np.zeros(5), 12, Anderson())
    np.testing.assert_allclose(point, solution, rtol=1e-6)
    plain = np.zeros(5)
    for _ in range(12):
        plain = f(plain)
    assert np.linalg.norm(plain - solution) > 1.0


@pytest.mark.parametrize("guide", [1.0, -1.0])
def test_an_objective_that_rises_in_plain_steps_is_no_guide(guide):
    """Plain iteration takes some 2,000 passes here, and twice as many where it steps back at each of them."""
    f, solution, objective = quadratic([1.0, 0.5, 0.2, 0.05, 0.01])
    found = descend(lambda x: (f(x), guide * objective(x)), np.zeros(5), 1e-9, 100)
    assert found.converged
    assert found.passes < 20
    np.testing.assert_allclose(found.centers, solution, rtol=1e-6)
    assert found.objective == found.history[-1].objective == pytest.approx(guide * objective(solution))


def test_it_beats_plain_iteration_on_a_larger_problem():
    f, solution, objective = quadratic(np.geomspace(1e-2, 1, 40))
    point, _ = iterate(f, objective, np.zeros(40), 100, Anderson())
    plain = np.zeros(40)
    for _ in range(100):
        plain = f(plain)
    assert np.linalg.norm(point - solution) < 1e-3 * np.linalg.norm(plain - solution)


def test_a_rise_is_taken_back():
    anderson = Anderson()
    first = anderson.propose(np.zeros(2), np.ones(2), 10.0)
    np.testing.assert_array_equal(first, [1, 1])  # nothing to combine yet
    anderson.propose(first, np.array([1.5, 1.6]), 9.0)
    back = anderson.propose(np.array([7.0, 7.0]), np.array([8.0, 8.0]), 9.5)
    assert not anderson.accepted
    assert anderson.rejected == 1
    np.testing.assert_array_equal(back, [1.5, 1.6])  # the plain step from the last good point
    after = anderson.propose(back, np.array([1.7, 1.8]), 8.0)
    assert anderson.accepted
    np.testing.assert_array_equal(after, [1.7, 1.8])  # the history is gone


def test_not_a_number_is_taken_back():
    anderson = Anderson()
    anderson.propose(anderson.propose(np.zeros(2), np.ones(2), 10.0), np.array([1.5, 1.6]), 9.0)
    back = anderson.propose(np.array([7.0, 7.0]), np.full(2, np.nan), np.nan)
    np.testing.assert_array_equal(back, [1.5, 1.6])


def test_a_saddle_is_left():
    """J = x^2 - y^2 + y^4/2 has a saddle at 0 and minima at y = +-1; the start is almost on the way into the saddle."""

    def f(v):
        return v - 0.2 * np.array([2 * v[0], -2 * v[1] + 2 * v[1] ** 3])

    def objective(v):
        return float(v[0] ** 2 - v[1] ** 2 + v[1] ** 4 / 2)

    point, _ = iterate(f, objective, np.array([1.0, 1e-4]), 40, Anderson())
    np.testing.assert_allclose(point, [0, 1], atol=1e-8)


def test_the_caller_s_array_may_change_afterwards():
    f, solution, objective = quadratic([1.0, 0.1, 0.02])
    anderson, point = Anderson(), np.zeros(3)
    for _ in range(15):
        point[:] = anderson.propose(point, f(point), objective(point))
    np.testing.assert_allclose(point, solution, rtol=1e-6)


@pytest.mark.parametrize("model", [{"fuzziness": 1.5}, {"fuzziness": 2.0}, {"entropy": 1.0}], ids=str)
def test_the_same_minimum_in_fewer_passes(census, model):
    """From a start in the minimum's own basin; from afar either iteration may end in another minimum."""
    minimum = cluster(census, plus_plus(census, 6, 1, seed=4), accelerate=False, **model)
    for seed in range(3):
        start = minimum.centers + 0.2 * np.random.default_rng(seed).standard_normal(minimum.centers.shape)
        fast = cluster(census, start.copy(), shift=1e-8, **model)
        plain = cluster(census, start.copy(), shift=1e-8, accelerate=False, **model)
        assert fast.objective[0] == pytest.approx(minimum.objective[0], rel=1e-12)
        np.testing.assert_allclose(fast.centers, minimum.centers, atol=1e-6)
        assert fast.passes < 0.6 * plain.passes
