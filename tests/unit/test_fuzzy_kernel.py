"""The fuzzy kernel equals its plain reference, and a few answers computed by hand."""

import itertools
import math

import fuzzy_reference as reference
import numpy as np
import pytest

from dpmask.kernels import vector_math
from dpmask.kernels.compile import compiled
from dpmask.kernels.fuzzy.center_sums import center_sums, largest_fuzziness, memberships, merge
from dpmask.kernels.fuzzy.labels import labels

MODELS = [
    {"fuzziness": 1.0},
    {"fuzziness": 1.5},
    {"fuzziness": 2.0},
    {"fuzziness": 1.05},
    {"fuzziness": 1.7},
    {"fuzziness": 4.0},
    {"entropy": 0.05},
    {"entropy": 3.0},
]
SHAPES = [(1, 1, 1), (2, 3, 100), (13, 10, 300), (4, 2, 128), (5, 7, 129), (8, 1, 40)]  # columns, clusters, rows
RELATIVE = 1e-11  # a few hundred roundings; the exponent 1/(m-1) = 20 multiplies those of a distance

ON_A_CENTER = 1e-9  # where records move onto centres up to rounding: memberships of (1e-16 squared)^(1/(m-1)) for m = 4


def problem(columns, clusters, rows, starts=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((columns, rows)), rng.standard_normal((starts, clusters, columns))


def with_gaps(block, seed=1):
    holes = np.random.default_rng(seed).random(block.shape) < 0.3
    block = np.where(holes, np.nan, block)
    block[:, 0] = np.nan
    return block


def assert_equals_reference(block, centers, partial=False, **options):
    sums = center_sums(block, centers, partial=partial, **options)
    close = RELATIVE if options.get("tolerance") is None else ON_A_CENTER
    for start, v in enumerate(centers):
        expected = reference.center_sums(block, v, **options)
        weight = expected.weight if partial else expected.weight[:, 0]
        scale = np.abs(expected.weighted).max()
        np.testing.assert_allclose(sums.weighted[start], expected.weighted, rtol=close, atol=close * scale)
        np.testing.assert_allclose(sums.weight[start], weight, rtol=close, atol=close * weight.max())
        assert sums.objective[start] == pytest.approx(expected.objective, rel=close)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tolerance", [None, 0.4, "each"])
@pytest.mark.parametrize("partial", [False, True])
def test_kernel_equals_reference(shape, model, weighted, tolerance, partial):
    block, centers = problem(*shape)
    rng = np.random.default_rng(2)
    weights = rng.uniform(0, 3, shape[2]) if weighted else None
    if tolerance == "each":
        tolerance = rng.uniform(0, 1, shape[2])
    block = with_gaps(block) if partial else block
    options = {**model, "tolerance": tolerance}
    assert_equals_reference(block, centers, partial=partial, weights=weights, **options)
    u = memberships(block, centers[0], partial=partial, **options)
    np.testing.assert_allclose(u, reference.memberships(block, centers[0], **options), atol=ON_A_CENTER)
    np.testing.assert_allclose(u.sum(axis=0), 1.0, rtol=1e-14)


def column(*values):
    return np.array([values], dtype=float)


def centers_at(*values):
    return np.array(values, dtype=float).reshape(1, len(values), -1)


def test_fuzziness_2_by_hand():
    # d of record 1: 1 and 9, u = .9, .1; of record 3 the other way round; record 0 lies on the first centre
    sums = center_sums(column(0, 1, 3), centers_at(0, 4), fuzziness=2.0)
    np.testing.assert_allclose(sums.weight, [[1 + 0.81 + 0.01, 0.01 + 0.81]], rtol=1e-15)
    np.testing.assert_allclose(sums.weighted[0, :, 0], [0.81 + 0.03, 0.01 + 2.43], rtol=1e-15)
    assert sums.objective[0] == pytest.approx(2 * (0.81 * 1 + 0.01 * 9), rel=1e-15)
    assert (sums.rows, sums.total_weight) == (3, 3.0)
    np.testing.assert_allclose(sums.centers(centers_at(0, 4))[0, :, 0], [0.84 / 1.82, 2.44 / 0.82], rtol=1e-15)


def test_fuzziness_1_5_by_hand():
    # record 1: q = 1 and (1/9)^2, u = 81/82 and 1/82
    sums = center_sums(column(1), centers_at(0, 4), fuzziness=1.5)
    np.testing.assert_allclose(sums.weight[0], [(81 / 82) ** 1.5, (1 / 82) ** 1.5], rtol=1e-14)
    assert sums.objective[0] == pytest.approx((81 / 82) ** 1.5 + 9 * (1 / 82) ** 1.5, rel=1e-14)


def test_fuzziness_3_by_hand():
    # record 1: q = 1 and (1/9)^(1/2), u = 3/4 and 1/4
    sums = center_sums(column(1), centers_at(0, 4), fuzziness=3.0)
    np.testing.assert_allclose(sums.weight[0], [27 / 64, 1 / 64], rtol=1e-14)
    assert sums.objective[0] == pytest.approx((27 + 9) / 64, rel=1e-14)


def test_entropy_by_hand():
    # d = 1 and 9, lambda = log(2)/8: q = 1 and 1/2, u = 2/3 and 1/3
    entropy = math.log(2) / 8
    sums = center_sums(column(1), centers_at(0, 4), entropy=entropy)
    np.testing.assert_allclose(sums.weight[0], [2 / 3, 1 / 3], rtol=1e-14)
    spread = (2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)) / entropy
    assert sums.objective[0] == pytest.approx(2 / 3 * 1 + 1 / 3 * 9 + spread, rel=1e-14)


def test_crisp_by_hand():
    sums = center_sums(column(1, 2, 3.5), centers_at(0, 4), fuzziness=1.0)  # 2 is as near to both: the first gets it
    np.testing.assert_array_equal(sums.weight, [[2, 1]])
    np.testing.assert_array_equal(sums.weighted[0, :, 0], [3, 3.5])
    assert sums.objective[0] == 1 + 4 + 0.25


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_tolerance_by_hand(model):
    record, center = np.array([[3.0], [4.0]]), np.zeros((1, 1, 2))
    sums = center_sums(record, center, tolerance=1.0, **model)  # one step of length 1 on the way of length 5
    np.testing.assert_allclose(sums.weighted[0, 0], [2.4, 3.2], rtol=1e-15)
    assert sums.objective[0] == pytest.approx(16.0, rel=1e-15)
    arrived = center_sums(record, center, tolerance=6.0, **model)
    np.testing.assert_array_equal(arrived.weighted[0, 0], [0, 0])
    assert arrived.objective[0] == 0.0


def test_partial_distances_by_hand():
    # one of two columns observed: the factor is 2 in the distance and in the weight
    record, center = np.array([[3.0], [np.nan]]), np.array([[[0.0, 7.0]]])
    sums = center_sums(record, center, fuzziness=2.0, partial=True)
    np.testing.assert_array_equal(sums.weight, [[[2.0, 0.0]]])
    np.testing.assert_array_equal(sums.weighted, [[[6.0, 0.0]]])
    assert sums.objective[0] == 18.0
    np.testing.assert_array_equal(sums.centers(center), [[[3.0, 7.0]]])


def test_a_record_without_values_counts_for_nothing():
    block, centers = np.array([[np.nan, 1.0], [np.nan, 2.0]]), np.array([[[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]]])
    for model in MODELS:
        both = center_sums(block, centers, partial=True, **model)
        one = center_sums(block[:, 1:], centers, partial=True, **model)
        assert (both.rows, both.total_weight) == (1, 1.0)
        assert both.objective == one.objective
        np.testing.assert_array_equal(both.weighted, one.weighted)
    np.testing.assert_allclose(memberships(block, centers[0], fuzziness=2.0, partial=True)[:, 0], 1 / 3, rtol=1e-15)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_records_on_centers_share_themselves(model):
    block, centers = column(5, 5, 1), centers_at(5, 0, 5, 5)
    u = memberships(block, centers[0], **model)
    assert not np.isnan(u).any()
    if "entropy" in model:
        assert u[0, 0] == u[2, 0] == u[3, 0]
    elif model["fuzziness"] == 1.0:
        np.testing.assert_array_equal(u[:, 0], [1, 0, 0, 0])
    else:
        np.testing.assert_array_equal(u[:, 0], [1 / 3, 0, 1 / 3, 1 / 3])
        on = center_sums(column(5), centers, **model)
        np.testing.assert_allclose(on.weight[0], np.array([1, 0, 1, 1]) * 3.0 ** -model["fuzziness"], rtol=1e-14)
        assert on.objective[0] == 0.0
    assert_equals_reference(block, centers, **model)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("options", [{}, {"tolerance": 0.3}, {"partial": True}], ids=str)
def test_weights_are_duplicated_records(model, options):
    block, centers = problem(3, 4, 200)
    block = with_gaps(block) if options.get("partial") else block
    times = np.random.default_rng(5).integers(0, 4, block.shape[1])
    weighted = center_sums(block, centers, weights=times.astype(float), **model, **options)
    repeated = center_sums(np.repeat(block, times, axis=1), centers, **model, **options)
    for left, right in zip(weighted[:3], repeated[:3], strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10)
    assert weighted.total_weight == repeated.total_weight


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("partial", [False, True])
def test_merging_is_adding(model, partial):
    block, centers = problem(5, 6, 1000)
    weights = np.random.default_rng(3).uniform(0, 2, 1000)
    block = with_gaps(block) if partial else block
    whole = center_sums(block, centers, weights=weights, tolerance=0.1, partial=partial, **model)
    cuts = [0, 0, 1, 127, 128, 700, 1000]
    parts = [
        center_sums(block[:, a:b], centers, weights=weights[a:b], tolerance=0.1, partial=partial, **model)
        for a, b in itertools.pairwise(cuts)
    ]
    merged = parts[0]
    for part in parts[1:]:
        merged = merge(merged, part)
    for left, right in zip(whole, merged, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)
    assert whole.rows == merged.rows


def test_starts_do_not_see_each_other():
    block, centers = problem(13, 10, 500, starts=5)
    together = center_sums(block, centers, fuzziness=1.7, tolerance=0.2)
    for start in range(5):
        alone = center_sums(block, centers[start : start + 1], fuzziness=1.7, tolerance=0.2)
        np.testing.assert_array_equal(together.weighted[start], alone.weighted[0])
        np.testing.assert_array_equal(together.weight[start], alone.weight[0])
        assert together.objective[start] == alone.objective[0]


@pytest.mark.parametrize("form", ["read-only", "strided", "rows first", "float32"])
def test_any_form_of_block_gives_the_same(form):
    block, centers = problem(4, 3, 300)
    block = block.astype(np.float32).astype(float)
    expected = center_sums(block, centers, fuzziness=1.7)
    given = block.copy()
    if form == "read-only":
        given.flags.writeable = False
    elif form == "strided":
        given = np.repeat(block, 2, axis=1)[:, ::2]
    elif form == "rows first":
        given = np.asfortranarray(block)
    else:
        given = block.astype(np.float32)
    for left, right in zip(expected, center_sums(given, centers, fuzziness=1.7), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("model", [*MODELS, {"fuzziness": 1.0001}, {"fuzziness": 1e2}, {"entropy": 1e9}], ids=str)
@pytest.mark.parametrize("size", [1e-250, 1e-170, 1e-100, 1e100, 1e160, 1e250])
def test_extreme_sizes_never_give_nan(model, size):
    block, centers = problem(3, 4, 200)
    u = memberships(block * size, centers[0] * size, **model)
    assert np.isfinite(u).all()
    np.testing.assert_allclose(u.sum(axis=0), 1.0, rtol=1e-14)
    sums = center_sums(block * size, centers * size, **model)
    assert np.isfinite(sums.weighted).all()
    assert np.isfinite(sums.weight).all()
    assert not np.isnan(sums.objective).any()
    if "fuzziness" in model:  # memberships do not depend on the unit
        amplified = 1e-13 / max(model["fuzziness"] - 1.0, 0.01)
        np.testing.assert_allclose(u, memberships(block, centers[0], **model), atol=amplified)


def test_a_distant_record_does_not_spoil_the_others():
    block, centers = column(1, 3, 1e200, -1e200, 1e-200), centers_at(0, 4)
    for model in MODELS:
        u = memberships(block, centers[0], **model)
        assert np.isfinite(u).all()
        np.testing.assert_array_equal(u[:, :2], memberships(column(1, 3), centers[0], **model))


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize(
    "centers", [(0, 1e150, -1e150, 4), (1 + 2e-16, 4e-90, 1e-85, 2e-85), (1e-120, -1e-60, 1e60, 7)]
)
def test_products_of_distances_may_leave_the_range_of_numbers(model, centers):
    block, v = column(1, 3, 0, 4e-90, 1e-60, 1e100), np.array(centers)[:, None]
    expected = reference.memberships(block.astype(np.longdouble), v.astype(np.longdouble), **model).astype(float)
    np.testing.assert_allclose(memberships(block, v, **model), expected, rtol=1e-10, atol=1e-15)
    assert_equals_reference(block[:, :2], v[None], **model)


def test_far_from_zero_nothing_cancels():
    block, centers = problem(3, 4, 200)
    near = memberships(block, centers[0], fuzziness=2.0)
    far = memberships(block + 2.0**26, centers[0] + 2.0**26, fuzziness=2.0)  # the sums round at 2^-27 = 7e-9
    np.testing.assert_allclose(far, near, atol=1e-6)


@pytest.mark.parametrize("clusters", [2, 10, 1000])
def test_largest_fuzziness_still_computes(clusters):
    limit = largest_fuzziness(clusters)
    block, centers = problem(2, clusters, 50)
    sums = center_sums(block, centers, fuzziness=limit)
    assert (sums.weight > 1e-295).all()
    expected = reference.center_sums(block.astype(np.longdouble), centers[0], fuzziness=limit)  # cannot underflow
    np.testing.assert_allclose(sums.weight[0], expected.weight[:, 0].astype(float), rtol=1e-10)
    np.testing.assert_allclose(sums.centers(centers)[0], expected.weighted / expected.weight, atol=1e-10)
    with pytest.raises(ValueError, match=r"largest fuzziness for \d+ clusters is"):
        center_sums(block, centers, fuzziness=limit * 1.01)
    assert largest_fuzziness(1) == math.inf


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"fuzziness": 2.0, "entropy": 1.0},
        {"fuzziness": 0.9},
        {"fuzziness": math.nan},
        {"entropy": 0.0},
        {"entropy": math.inf},
    ],
    ids=str,
)
def test_impossible_models_are_refused(bad):
    block, centers = problem(2, 3, 10)
    with pytest.raises(ValueError, match=r"fuzziness|entropy"):
        center_sums(block, centers, **bad)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"weights": np.ones(9)}, "weights: 9 numbers"), ({"tolerance": np.ones(11)}, "tolerance: 11")],
)
def test_wrong_lengths_are_refused(options, message):
    block, centers = problem(2, 3, 10)
    with pytest.raises(ValueError, match=message):
        center_sums(block, centers, fuzziness=2.0, **options)
    with pytest.raises(ValueError, match="centers have 2 columns"):
        center_sums(block[:1], centers, fuzziness=2.0)


def test_a_missing_value_is_not_overlooked():
    block, centers = problem(2, 3, 10)
    block[0, 4] = np.nan
    assert np.isnan(center_sums(block, centers, fuzziness=2.0).weighted).any()


def test_labels():
    block, centers = problem(5, 7, 1000)
    expected = reference.distances(block, centers[0]).argmin(axis=0)
    np.testing.assert_array_equal(labels(block, centers[0]), expected)
    gaps = with_gaps(block)
    expected = reference.distances(gaps, centers[0]).argmin(axis=0)
    np.testing.assert_array_equal(labels(gaps, centers[0], partial=True), expected)
    np.testing.assert_array_equal(labels(column(2, 2.1, 1.9), centers_at(0, 4)[0]), [0, 1, 0])


def test_an_empty_cluster_stays():
    centers = centers_at(0, 1e4)
    sums = center_sums(column(0.5, 1, -1), centers, fuzziness=1.01)
    np.testing.assert_array_equal(sums.empty, [[False, True]])
    np.testing.assert_allclose(sums.centers(centers)[0, :, 0], [0.5 / 3, 1e4])


def test_an_empty_block_adds_nothing():
    sums = center_sums(np.empty((3, 0)), np.zeros((2, 4, 3)), fuzziness=2.0, weights=np.empty(0), tolerance=np.empty(0))
    assert not sums.weighted.any()
    assert not sums.weight.any()
    assert not sums.objective.any()
    assert sums.rows == 0
    assert memberships(np.empty((3, 0)), np.zeros((4, 3)), fuzziness=2.0).shape == (4, 0)


def test_objective_falls_with_tolerance_and_along_iterations():
    block, centers = problem(4, 5, 500, starts=1)
    for model in MODELS:
        values = [center_sums(block, centers, tolerance=kappa, **model).objective[0] for kappa in (0.0, 0.1, 0.3, 1.0)]
        assert values == sorted(values, reverse=True)
        for options in ({}, {"tolerance": 0.2}, {"partial": True}):
            data, at, before = with_gaps(block) if options.get("partial") else block, centers, np.inf
            for _ in range(20):
                sums = center_sums(data, at, **model, **options)
                assert sums.objective[0] <= before + 1e-9 * abs(sums.objective[0])
                before, at = sums.objective[0], sums.centers(at)


@compiled(reassociate=False)
def log2(value):
    return vector_math.log2(value)


@compiled(reassociate=False)
def exp2(power):
    return vector_math.exp2(power)


def test_vector_functions_are_accurate():
    rng = np.random.default_rng(0)
    numbers = np.concatenate([2.0 ** rng.uniform(-1022, 1023, 3000), 1 + rng.uniform(-0.3, 0.4, 3000)])
    wide = np.log2(numbers.astype(np.longdouble))
    found = np.array([log2(x) for x in numbers])
    assert np.max(np.abs(found - wide) / np.abs(wide)) < 4.5e-16
    powers = rng.uniform(-1021, 1023, 5000)
    wide = np.exp2(powers.astype(np.longdouble))
    assert np.max(np.abs([exp2(x) for x in powers] - wide) / wide) < 4.5e-16
    assert [exp2(x) for x in (0.0, -1.0, 10.0, -1021.0, -1021.5, -1e300, -np.inf)] == [
        1,
        0.5,
        1024,
        2.0**-1021,
        0,
        0,
        0,
    ]
    assert [log2(x) for x in (1.0, 0.25, 2.0**-1022)] == [0, -2, -1022]
