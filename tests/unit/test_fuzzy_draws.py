"""Starts that lie apart, centres drawn with memberships, and how close records are to centres."""

import fuzzy_reference as reference
import numpy as np
import pytest

from dpmask.kernels.fuzzy.center_sums import memberships
from dpmask.kernels.fuzzy.draws import Closeness, closeness, draw_centers, merge_closeness
from dpmask.kernels.fuzzy.labels import labels
from dpmask.kernels.fuzzy.starts import spread_out

MODELS = [
    {"fuzziness": 1.0},
    {"fuzziness": 1.05},
    {"fuzziness": 1.5},
    {"fuzziness": 2.0},
    {"fuzziness": 3.0},
    {"entropy": 0.5},
]
SHAPES = [(1, 1, 1), (2, 3, 100), (13, 10, 300), (4, 2, 128), (5, 7, 129)]  # columns, clusters, rows
every_model = pytest.mark.parametrize("model", MODELS, ids=str)
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def problem(columns, clusters, rows, seed=0):
    """Records, centres and draws; one centre lies on a record."""
    rng = np.random.default_rng(seed)
    block, centers = rng.standard_normal((columns, rows)), rng.standard_normal((clusters, columns))
    centers[clusters // 2] = block[:, rows // 2]
    return block, centers, rng.random(rows)


def plain_spread_out(values, weight, draws):
    """Greedy k-means++ by cumulative sums."""
    chosen, nearest = [], np.ones(values.shape[1])
    for line in draws:
        mass = np.cumsum(nearest * weight)
        if mass[-1] == 0.0:
            mass = np.cumsum(weight)
        tried = []
        for draw in line if chosen else line[:1]:
            record = int(np.flatnonzero(mass > draw * mass[-1])[0])
            distance = np.zeros(values.shape[1])
            for column in values:
                distance += (column - column[record]) ** 2
            distance = np.minimum(nearest, distance) if chosen else distance
            tried.append((np.cumsum(distance * weight)[-1], record, distance))
        _, record, nearest = min(tried, key=lambda one: one[0])
        chosen.append(record)
    return chosen


@pytest.mark.parametrize(("columns", "rows", "draws"), [(1, 1, 3), (1, 50, 10), (3, 1000, 40), (13, 300, 299)])
@pytest.mark.parametrize("seed", range(5))
def test_starts_equal_the_plain_ones(columns, rows, draws, seed):
    rng = np.random.default_rng(seed)
    values, weight = rng.lognormal(size=(columns, rows)), rng.integers(0, 4, rows) + (rows == 1)
    uniforms = rng.random((draws, 4))
    found = spread_out(values, weight.astype(float), uniforms).records
    assert found.tolist() == plain_spread_out(values, weight, uniforms)
    assert weight[found].all()


def test_starts_are_different_records_as_long_as_there_are_some():
    values = np.array([[0.1, 0.1, 0.7, 0.1, -3.3, 0.7]])
    for seed in range(50):
        draws = np.random.default_rng(seed).random((8, 2))
        found = spread_out(values, np.ones(6), draws).records
        assert sorted(values[0, found[:3]]) == [-3.3, 0.1, 0.7]
        assert found.tolist() == plain_spread_out(values, np.ones(6), draws)


def test_starts_by_hand():
    # the first by weight: 0.3 of 4 is in record 1; then squared distances 1, 0, 4, 81 times weights 1, 1, 2, 0
    values, weight = np.array([[0.0, 1, 3, 10]]), np.array([1.0, 1, 2, 0])
    assert spread_out(values, weight, np.array([[0.3], [0.1]])).records.tolist() == [1, 0]
    assert spread_out(values, weight, np.array([[0.3], [0.12]])).records.tolist() == [1, 2]
    # of both, record 2 leaves 1 and record 0 leaves 2 * 4
    assert spread_out(values, weight, np.array([[0.3, 0.9], [0.1, 0.12]])).records.tolist() == [1, 2]


@every_model
@every_shape
def test_draws_equal_cumulative_memberships(model, shape):
    block, centers, uniforms = problem(*shape)
    found = draw_centers(block, centers, uniforms, **model)
    passed = np.cumsum(memberships(block, centers, **model), axis=0)
    expected = (passed <= uniforms * passed[-1]).sum(axis=0)
    unsure = np.abs(passed - uniforms).min(axis=0) < 1e-12
    assert ((found == expected) | unsure).all()
    assert unsure.mean() < 0.01
    in_reference = np.cumsum(reference.memberships(block, centers, **model), axis=0)
    unsure = np.abs(in_reference - uniforms).min(axis=0) < 1e-9
    assert ((found == (in_reference <= uniforms).sum(axis=0)) | unsure).all()


def test_crisp_draws_are_labels():
    block, centers, uniforms = problem(5, 7, 1000)
    np.testing.assert_array_equal(draw_centers(block, centers, uniforms, fuzziness=1.0), labels(block, centers))


@every_model
def test_frequencies_are_memberships(model):
    """One record many times: chi-square with at most 4 degrees of freedom, its point of 1e-6."""
    _, centers, _ = problem(3, 5, 2)
    block = np.repeat([[0.2], [-0.1], [0.4]], 40_000, axis=1)
    u = memberships(block[:, :1], centers, **model)[:, 0]
    draws = np.random.default_rng(7).random(40_000)
    counts = np.bincount(draw_centers(block, centers, draws, **model), minlength=5)
    likely = 40_000 * u > 5
    assert (((counts - 40_000 * u) ** 2)[likely] / (40_000 * u[likely])).sum() < 33.4
    assert counts[~likely].sum() < 40_000 * u[~likely].sum() + 30


@pytest.mark.parametrize("model", MODELS[1:5], ids=str)
def test_a_record_on_centres_draws_among_these_alone(model):
    centers = np.array([[5.0, 5], [1, 2], [0, 0], [1, 2]])
    block = np.repeat([[1.0], [2.0]], 4, axis=1)
    assert draw_centers(block, centers, np.array([1e-17, 0.499, 0.501, 1 - 2**-53]), **model).tolist() == [1, 1, 3, 3]


def test_draws_do_not_depend_on_the_block():
    block, centers, uniforms = problem(13, 11, 1000)
    whole = draw_centers(block, centers, uniforms, fuzziness=1.5)
    for piece in (1, 100, 128, 999):
        parts = [slice(start, start + piece) for start in range(0, 1000, piece)]
        found = [draw_centers(block[:, part], centers, uniforms[part], fuzziness=1.5) for part in parts]
        np.testing.assert_array_equal(np.concatenate(found), whole)


def test_draws_that_do_not_fit():
    block, centers, uniforms = problem(3, 2, 10)
    with pytest.raises(ValueError, match="9 draws for 10 records"):
        draw_centers(block, centers, uniforms[:9], fuzziness=2.0)
    with pytest.raises(ValueError, match="3 columns, the block has 2"):
        draw_centers(block[:2], centers, uniforms, fuzziness=2.0)
    assert len(draw_centers(block[:, :0], centers, uniforms[:0], fuzziness=2.0)) == 0


def brute(block, centers, model):
    u = reference.memberships(block, centers, **model)
    weight = u ** model.get("fuzziness", 1.0)
    return Closeness(reference.distances(block, centers).min(axis=1), weight.max(axis=1), weight.sum(axis=1))


@every_model
@every_shape
def test_closeness_equals_brute_force(model, shape):
    block, centers, _ = problem(*shape)
    found, expected = closeness(block, centers, **model), brute(block, centers, model)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert found.nearest[shape[1] // 2] == 0.0


@every_model
def test_closeness_adds_up_over_blocks(model):
    block, centers, _ = problem(4, 6, 500)
    parts = [closeness(block[:, part], centers, **model) for part in (slice(0), slice(129), slice(129, 500))]
    merged = merge_closeness(merge_closeness(parts[0], parts[1]), parts[2])
    whole = closeness(block, centers, **model)
    np.testing.assert_array_equal(merged.nearest, whole.nearest)
    np.testing.assert_array_equal(merged.largest, whole.largest)
    np.testing.assert_allclose(merged.total, whole.total, rtol=1e-12)


def test_the_share_of_a_centre_without_records_is_nothing():
    assert Closeness(np.ones(2), np.array([1.0, 0]), np.array([4.0, 0])).share.tolist() == [0.25, 0.0]
    assert closeness(np.array([[0.0, 1, 2]]), np.array([[1.0], [50]]), fuzziness=1.0).share.tolist() == [1 / 3, 0.0]
