"""The kernel of fuzzy c-regression against plain NumPy, and answers worked out by hand."""

from itertools import pairwise

import numpy as np
import pytest
import regression_reference as reference

from dpmask.kernels.regression.gram import errors_at, gram_of, model_sums, shares_at, start_sums, values_at
from dpmask.kernels.regression.least_squares import inverted, lower_root, solve, solve_models


def block(rows, p=5, t=3, models=7, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(p, rows))
    z[0] = 1.0
    return z, rng.normal(size=(t, rows)), rng.normal(size=(models, p, t))


@pytest.mark.parametrize("fuzziness", [1.5, 2.0, 1.7, 3.0])
@pytest.mark.parametrize(("rows", "t", "models"), [(1, 3, 7), (255, 1, 4), (256, 2, 5), (1000, 3, 1)])
def test_sums_are_those_of_plain_numpy(rows, t, models, fuzziness):
    z, y, b = block(rows, t=t, models=models)
    error = reference.errors(z.T, y.T, b)
    u = reference.shares(error, fuzziness)
    sums = model_sums(z, y, b, fuzziness)
    weight = u**fuzziness
    np.testing.assert_allclose(sums.gram, np.einsum("ik,pk,qk->ipq", weight, z, z), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(sums.cross, np.einsum("ik,pk,tk->ipt", weight, z, y), rtol=1e-11, atol=1e-13)
    assert sums.objective == pytest.approx((weight * error).sum(), rel=1e-12)
    assert (sums.sizes == np.bincount(u.argmax(axis=0), minlength=models)).all()
    np.testing.assert_allclose(shares_at(z, y, b, fuzziness), u, rtol=1e-10)
    np.testing.assert_allclose(errors_at(z, y, b), error, rtol=1e-12)
    started = start_sums(z, y, u, fuzziness)
    np.testing.assert_allclose(started.gram, sums.gram, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(gram_of(y), y @ y.T, rtol=1e-12)


def test_a_weight_counts_a_record_so_often():
    z, y, b = block(300)
    weights = np.random.default_rng(1).integers(0, 4, 300)
    weighted = model_sums(z, y, b, 1.5, weights=weights.astype(float))
    repeated = model_sums(np.repeat(z, weights, axis=1), np.repeat(y, weights, axis=1), b, 1.5)
    np.testing.assert_allclose(weighted.gram, repeated.gram, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(weighted.cross, repeated.cross, rtol=1e-12, atol=1e-12)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-12)
    nearest = errors_at(z, y, b).argmin(axis=0)
    assert (weighted.sizes == np.bincount(nearest[weights > 0], minlength=7)).all()  # people, and not those of weight 0
    u = shares_at(z, y, b, 1.5)
    started = start_sums(z, y, u, 1.5, weights)
    np.testing.assert_allclose(started.cross, weighted.cross, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gram_of(y, weights), (y * weights) @ y.T, rtol=1e-12)


def test_by_hand():
    """Two lines through the origin, y = x and y = 3x; the record (1, 2) is 1 from both, (1, 1.5) is 0.5 and 1.5."""
    z, models = np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([[[0.0], [1.0]], [[0.0], [3.0]]])
    y = np.array([[2.0, 1.5]])
    np.testing.assert_allclose(errors_at(z, y, models), [[1.0, 0.25], [1.0, 2.25]])
    # m = 1.5: u is proportional to E^-2, so 16 to 16/81
    np.testing.assert_allclose(shares_at(z, y, models, 1.5), [[0.5, 81 / 82], [0.5, 1 / 82]], rtol=1e-14)
    sums = model_sums(z, y, models, 1.5)
    assert sums.objective == pytest.approx(2 * 0.5**1.5 + (81 / 82) ** 1.5 * 0.25 + (1 / 82) ** 1.5 * 2.25)
    assert sums.sizes.tolist() == [2, 0]  # the first of several
    np.testing.assert_allclose(values_at(z, models, np.array([1, 0])), [[3.0, 1.0]])


def test_a_record_on_a_model_belongs_to_it():
    z, y, b = block(300)
    y[:, 7] = b[2].T @ z[:, 7]
    u = shares_at(z, y, b, 1.5)
    assert u[2, 7] == pytest.approx(1.0)
    b[5] = b[2]
    assert shares_at(z, y, b, 1.5)[[2, 5], 7].tolist() == [0.5, 0.5]
    assert np.isfinite(model_sums(z, y, b, 1.5).gram).all()


def test_movement_is_found_wherever_it_is():
    z, y, b = block(1000)
    assert not model_sums(z, y, b, 1.5, b, 1e-4).moved
    other = b + 1e-3
    change = np.abs(shares_at(z, y, b, 1.5) - shares_at(z, y, other, 1.5)).max()
    assert model_sums(z, y, b, 1.5, other, change * 0.999).moved
    assert not model_sums(z, y, b, 1.5, other, change * 1.001).moved


def test_parts_add_up():
    z, y, b = block(1000)
    cut = [0, 0, 131, 700, 1000]
    parts = [model_sums(z[:, i:j].copy(), y[:, i:j].copy(), b, 1.5) for i, j in pairwise(cut)]
    whole = model_sums(z, y, b, 1.5)
    total = parts[0].plus(parts[1]).plus(parts[2].plus(parts[3]))
    np.testing.assert_allclose(total.gram, whole.gram, rtol=1e-12, atol=1e-14)
    assert total.objective == pytest.approx(whole.objective, rel=1e-13)
    assert (total.sizes == whole.sizes).all()


def test_singular_designs_fit_as_qr_does():
    z, y, _ = block(400, p=6)
    z[4], z[5] = z[1] + z[2], 0.0  # one column depends on two others, one is nothing
    weight = np.random.default_rng(1).random(400)
    solution = solve((weight * z) @ z.T, (weight * z) @ y.T)
    best = reference.weighted_fit(z.T, y.T, weight)
    np.testing.assert_allclose(z.T @ solution, z.T @ best, atol=1e-12)
    assert inverted((weight * z) @ z.T)[1] == 4


def test_scale_of_a_column_does_not_matter():
    z, y, _ = block(400)
    scaled = z.copy()
    scaled[1] *= 1e-8
    np.testing.assert_allclose(solve(scaled @ scaled.T, scaled @ y.T)[1] * 1e-8, solve(z @ z.T, z @ y.T)[1], rtol=1e-10)


def test_a_model_without_records_stays():
    gram, cross = np.zeros((2, 2, 2)), np.zeros((2, 2, 1))
    gram[0], cross[0] = np.eye(2), 1.0
    previous = np.full((2, 2, 1), 7.0)
    assert solve_models(gram, cross, previous)[:, 0, 0].tolist() == [1.0, 7.0]


def test_lower_root():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(4, 3))
    for matrix in (half.T @ half, half @ half.T):  # full rank, and rank 3 of 4
        root = lower_root(matrix)
        np.testing.assert_allclose(root @ root.T, matrix, atol=1e-13)
        assert (np.triu(root, 1) == 0).all()
    np.testing.assert_allclose(lower_root(half.T @ half), np.linalg.cholesky(half.T @ half), rtol=1e-10)
