"""Linkage of one block against all distances, written out."""

import time

import numpy as np
import pytest

from dpmask.kernels.linkage import likelihood
from dpmask.kernels.linkage.nearest import (
    BEATEN,
    Masked,
    Metric,
    as_close,
    merge_found,
    principal,
    range_gaps,
    search,
    search_all,
    tree_of,
    true_radii,
)
from dpmask.kernels.linkage.neighbours import Sought, as_near
from dpmask.kernels.linkage.record_tree import LEAF, build_tree, in_parts
from dpmask.kernels.wilson import wilson

NONE = np.zeros(0)


def metric(points, rulers=(), turn=None):
    scale, least, cap = np.array(rulers, float).reshape(-1, 3).T.copy()
    return Metric(points, turn, scale, least, cap)


def written_out(one, known, points, masked, own):
    """All distances, one pair at a time: BEATEN where a record is closer than the own one, else how many are as close."""
    result = []
    low, high = one.masked(masked)
    for query in range(known.shape[1]):
        distances = []
        for row in range(low.shape[1]):
            total = 0.0
            for column in range(len(known)):
                x = known[column, query]
                if column < points:
                    gap = x - low[column, row]
                else:
                    at = column - points
                    outside = max(low[column, row] - x, x - high[at, row], 0.0) if not np.isnan(x) else 0.0
                    gap = min(max(outside * one.scale[at], one.least[at]), one.cap[at]) if outside > 0 else 0.0
                total += gap**2
            distances.append(total**0.5)
        true = distances[own[query]]
        same = np.isclose(distances, true, rtol=1e-9, atol=1e-11)
        result.append(BEATEN if (np.array(distances)[~same] < true).any() else int(same.sum()))
    return result


def example(rng, rows, points, kinds):
    """Coarse numbers, so that ties and equal rows are many."""
    known = rng.integers(0, 4, (points, rows)) / 2.0
    masked = rng.integers(0, 4, (points, rows)) / 2.0
    ranges, low, high = [], [], []
    for kind in kinds:
        ranges.append(rng.integers(0, 5, rows).astype(float))
        start = rng.integers(0, 5, rows).astype(float)
        low.append(start)
        high.append(start + (rng.integers(0, 3, rows) if kind != "category" else 0))
        if kind == "gaps":
            ranges[-1][rng.random(rows) < 0.3] = np.nan
    stacked = [np.array(part).reshape(len(kinds), rows) for part in (ranges, low, high)]
    return known, stacked[0], Masked(masked, stacked[1], stacked[2])


RULERS = {"category": (1.0, 0.0, 1.0), "interval": (0.7, 1e-3, np.inf), "gaps": (1.0, 0.0, np.inf)}


@pytest.mark.parametrize("rows", [1, 2, LEAF - 1, LEAF, LEAF + 1, 300])
@pytest.mark.parametrize(
    ("points", "kinds"),
    [
        (1, ()),
        (3, ()),
        (13, ()),
        (0, ("category",)),
        (0, ("category", "interval", "category")),
        (2, ("gaps", "interval", "category")),
    ],
)
@pytest.mark.parametrize("collapse", [True, False])
def test_answers_are_those_of_all_distances(rows, points, kinds, collapse):
    rng = np.random.default_rng(rows)
    points_known, ranges, masked = example(rng, rows, points, kinds)
    one = metric(points, [RULERS[kind] for kind in kinds])
    known = one.known(points_known, ranges)
    found = as_close(one, known, true_radii(one, known, masked), masked, collapse=collapse)
    assert found.tolist() == written_out(one, known, points, masked, np.arange(rows))


@pytest.mark.parametrize("rows_of_a_part", [2, 30, LEAF])
@pytest.mark.parametrize("zeros", [0.0, 0.7, 1.0])
def test_many_rows_are_sent_to_parts_first(rows_of_a_part, zeros):
    """Equal values are not torn apart: parts may be empty, or have nearly all rows."""
    rng = np.random.default_rng(7)
    points_known, ranges, masked = example(rng, 400, 3, ("category", "interval"))
    masked.points[:, rng.random(400) < zeros] = 0.0
    one = metric(3, [RULERS["category"], RULERS["interval"]])
    known = one.known(points_known, ranges)
    tree = build_tree(*one.masked(masked), one.scale, one.cap, collapse=False, part_rows=rows_of_a_part)
    found = search(tree, one, known, true_radii(one, known, masked))
    assert found.tolist() == written_out(one, known, 3, masked, np.arange(400))


def test_parts_lie_apart():
    """What a cut sends to either side: no part is much larger than others unless values are equal."""
    columns = np.random.default_rng(8).normal(size=(2, 4096)) * [[2.0], [1.0]]
    order, starts = in_parts(columns, np.ones(2), np.full(2, np.inf), np.arange(4096), 16)
    assert sorted(order) == list(range(4096))
    sizes = np.diff(starts)
    assert 128 < sizes.min() <= sizes.max() < 512
    first = columns[0, order]  # the one that spreads most is cut first
    assert first[: starts[8]].max() < first[starts[8] :].min()


def test_a_turned_metric():
    rng = np.random.default_rng(3)
    points, ranges, masked = example(rng, 200, 3, ("category",))
    one = metric(3, [RULERS["category"]], turn=np.array([[1.0, 0, 0], [0.5, 2, 0], [-1, 0.25, 3]]))
    known = one.known(points, ranges)
    np.testing.assert_allclose(known[:3], one.turn @ points)
    found = as_close(one, known, true_radii(one, known, masked), masked)
    assert found.tolist() == written_out(one, known, 3, masked, np.arange(200))
    assert 0 < (found > 0).sum() < 200


def test_by_hand():
    """Known 0, 1, 5; masked 0.4, 0.4, 5.2: the second is as near to 0 as the first; 1 and 5 go to their own."""
    known = np.array([[0.0, 1.0, 5.0]])
    masked = Masked(np.array([[0.4, 0.4, 5.2]]), np.empty((0, 3)), np.empty((0, 3)))
    one = metric(1)
    assert as_close(one, known, true_radii(one, known, masked), masked).tolist() == [2, 2, 1]
    masked.points[0] = [0.6, 0.4, 5.2]
    assert as_close(one, known, true_radii(one, known, masked), masked).tolist() == [BEATEN, BEATEN, 1]


def test_distances_that_differ_by_rounding_are_a_tie():
    known = np.array([[0.5, 0.0]])
    masked = Masked(np.array([[0.2, 0.8 + 2e-16]]), np.empty((0, 2)), np.empty((0, 2)))
    one = metric(1)
    radii = true_radii(one, known, masked)
    assert as_close(one, known, radii, masked).tolist()[0] == 2
    masked.points[0, 1] = 0.8 - 1e-8
    assert as_close(one, known, radii, masked).tolist()[0] == BEATEN


def test_blocks_merge_to_the_whole():
    rng = np.random.default_rng(5)
    points, ranges, masked = example(rng, 500, 4, ("category",))
    one = metric(4, [RULERS["category"]])
    known = one.known(points, ranges)
    radii = true_radii(one, known, masked)
    whole = as_close(one, known, radii, masked)
    found = np.zeros(500, np.int64)
    for start, end in ((0, 100), (100, 100), (100, 417), (417, 500)):
        part = Masked(*(side[:, start:end] for side in masked))
        found = merge_found(found, as_close(one, known, radii, part))
    assert found.tolist() == whole.tolist()
    assert (whole > 1).any()
    assert (whole == BEATEN).any()


def test_an_unknown_value_is_in_every_range():
    gaps = range_gaps(np.array([[np.nan, 3.0, 1.0]]), np.array([[1.0] * 3]), np.array([[2.0] * 3]), *np.ones((3, 1)))
    assert gaps.tolist() == [[0.0, 1.0, 0.0]]


@pytest.mark.parametrize("rows", [1, 64, 65, 1000, 5000])
def test_a_tree_has_every_record_once_and_inside_its_boxes(rows):
    rng = np.random.default_rng(rows)
    low = rng.integers(0, 9, (3, rows)).astype(float)
    high = low[2:] + 1
    tree = build_tree(low, high, np.ones(1), np.full(1, np.inf))
    assert tree.counts.sum() == rows
    assert (tree.counts > 0).sum() == len(np.unique(low, axis=1).T)
    seen = np.repeat(tree.low.transpose(0, 2, 1).reshape(-1, 3), tree.counts.ravel(), axis=0)
    assert sorted(map(tuple, seen)) == sorted(map(tuple, low.T))
    for node, right in enumerate(tree.right):
        if right >= 0:
            for child in (node + 1, right):
                assert (tree.box_low[node] <= tree.box_low[child]).all()
                assert (tree.box_high[node] >= tree.box_high[child]).all()
        else:
            leaf = -1 - right
            real = tree.counts[leaf] > 0
            assert (tree.box_low[node] == tree.low[leaf][:, real].min(axis=1)).all()
            assert tree.box_high[node, 2] == tree.high[leaf][0, real].max()


def test_round_numbers_are_told_apart_at_once():
    """A hash that looks at the last bits of a double sees nothing of a whole number: this would take minutes."""
    values = np.arange(200_000.0) * 1024
    begun = time.process_time()
    tree = build_tree(values[None], np.empty((0, len(values))), NONE, NONE)
    assert (tree.counts == 1).sum() == len(values)
    assert time.process_time() - begun < 20


def test_leaves_are_halves_of_halves():
    """Balanced whatever comes: sorted, equal, or with a far outlier."""
    for values in (np.arange(4096.0), np.zeros(4096), np.append(np.zeros(4095), 1e300)):
        tree = build_tree(values[None], np.empty((0, 4096)), NONE, NONE, collapse=False)
        assert len(tree.low) == 4096 // LEAF
        assert len(tree.right) == 2 * len(tree.low) - 1


def test_wilson_by_hand():
    # n = 100, half: (0.5 + z^2/200 -+ z sqrt(1/400 + z^2/40000)) / (1 + z^2/100), z = 1.959964
    assert wilson(0.5, 100) == pytest.approx((0.4038315, 0.5961685), abs=1e-7)
    low, high = wilson(0.0, 10)
    assert low == pytest.approx(0.0, abs=1e-15)
    assert high == pytest.approx(0.277533, abs=1e-6)
    assert wilson(1.0, 10) == pytest.approx((1 - high, 1.0))
    # true 5.5 %, limit 5 %: of 2000 attacked 100 linked is no proof that the limit holds
    assert wilson(0.05, 2000)[1] > 0.055


@pytest.mark.parametrize(("points", "ranges"), [(3, 3), (2, 1), (3, 0), (1, 0), (1, 3)])
def test_first_columns_are_found_in_the_tree_of_all(points, ranges):
    kinds = ("gaps", "interval", "category")
    known, places, masked = example(np.random.default_rng(6), 300, 3, kinds)
    rulers = [RULERS[kind] for kind in kinds]
    one = metric(points, rulers[:ranges])
    asked = one.known(known, places)
    radii = true_radii(one, asked, masked)
    tree = tree_of(metric(3, rulers), masked).of_first(points, ranges)
    assert search(tree, one, asked, radii).tolist() == as_close(one, asked, radii, masked).tolist()


@pytest.mark.parametrize("columns", [1, 3])
def test_a_search_ends_at_the_first_nearer_record(columns):
    rng = np.random.default_rng(7)
    known, records, owners = rng.integers(0, 5, (columns, 90)), rng.integers(0, 5, (columns, 200)), rng.permutation(200)
    known, records, own = known / 2.0, records / 2.0, owners[:90]
    sought = Sought(known, records[:, own], own.astype(float))
    expected = written_out(metric(columns), known, columns, Masked(records, *np.empty((2, 0, 200))), own)
    found = as_near(sought, records, np.arange(200.0))
    assert found.tolist() == expected
    parts = [as_near(sought, records[:, part], np.arange(200.0)[part]) for part in (slice(60), slice(60, None))]
    assert merge_found(*parts).tolist() == expected


@pytest.mark.parametrize("columns", [64, 200])
def test_nearest_of_many_columns_is_that_of_a_whole_scan(columns):
    """A product of matrices chooses who is looked at; ties, own records and missing values come out the same."""
    from dpmask.kernels.linkage import neighbours

    rng = np.random.default_rng(0)
    known = rng.normal(size=(columns, 40))
    others = rng.normal(size=(columns, 300))
    records = np.concatenate([known + 0.1 * rng.normal(size=known.shape), others, known[:, :5], known[:, :3]], axis=1)
    records[3, 7], records[:, 9] = np.nan, np.inf
    queries = neighbours.Queries(known, np.arange(40), np.arange(40.0))
    values = np.arange(records.shape[1]) % 40.0
    found = neighbours.nearest(queries, records, values, 0, 0.0)
    each = neighbours.nearest_of_all(queries.known, queries.positions, queries.truth, records, values, 0.0)
    for one, whole in zip(found, each, strict=True):
        np.testing.assert_array_equal(one, whole)


@pytest.mark.parametrize("rows", [0, 1, 7, 255, 256, 300])
def test_records_turn_to_the_same_bits_however_many_there_are(rows):
    rng = np.random.default_rng(rows)
    points, turn = rng.normal(size=(9, 600)), rng.normal(size=(9, 9))
    points[2, 3], points[4, 5] = np.nan, -0.0
    metric = Metric(9, turn, *(np.empty(0),) * 3)
    every = metric.known(points, np.empty((0, 600)))
    some = metric.known(points[:, :rows], np.empty((0, rows)))
    assert some.tobytes() == np.ascontiguousarray(every[:, :rows]).tobytes()


@pytest.mark.parametrize("ranges", [0, 2])
@pytest.mark.parametrize("scale", [0.5, 2.0, 4.0, 20.0])
def test_products_of_matrices_find_what_the_tree_finds(scale, ranges):
    """Of records that are told apart well, hardly, and not at all; equal ones, and the own one more than once."""
    rng = np.random.default_rng(0)
    points, rows, asked = 120, 1500, 300
    known, centers = rng.normal(size=(points, rows)), rng.normal(size=(ranges, rows))
    after, low = known + scale * rng.normal(size=known.shape), centers - 0.1 + 0.3 * rng.normal(size=centers.shape)
    for part in (known, after, centers, low):
        part[:, 7] = part[:, 8]
    masked = Masked(after, low, low + 0.4)
    one = metric(points, [(1.0, 0.0, np.inf)] * ranges, rng.normal(size=(points, points)) / 10)
    queries = one.known(known[:, :asked], centers[:, :asked])
    radii = true_radii(one, queries, Masked(*(part[:, :asked] for part in masked)))
    times = rng.integers(1, 4, rows)
    found = search_all(one, queries, radii, masked, times)
    assert (found == search(tree_of(one, masked, counts=times, collapse=False), one, queries, radii)).all()
    assert scale != 0.5 or (found > 0).mean() > 0.9
    assert scale != 20.0 or (found == BEATEN).mean() > 0.9


@pytest.mark.parametrize("unit", [1e-25, 1.0, 1e25])
def test_axes_and_units_change_no_answer(unit):
    """Records are turned to their longest axes, which single precision compares first, in any unit."""
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(120, 5))
    known = unit * (factors @ rng.normal(size=(5, 900)) + rng.normal(size=(120, 900)))
    known[:, 7] = known[:, 8]
    after, none = known + 0.4 * unit * rng.normal(size=known.shape), np.empty((0, 900))
    after[:, 7] = after[:, 8]
    plain, masked = metric(120, [], None), Masked(after, none, none)
    axes = principal(plain, np.cov(after))
    spread = axes.masked(masked)[0].std(axis=1)
    assert (np.diff(spread) > -0.01 * unit).all()
    answers = []
    for one in (plain, axes):
        queries = one.known(known, none)
        radii = true_radii(one, queries, masked)
        answers.append(search_all(one, queries, radii, masked, np.ones(900, np.int64)))
        assert (answers[-1] == search(tree_of(one, masked, collapse=False), one, queries, radii)).all()
    assert (answers[0] == answers[1]).all()
    assert answers[0][[7, 8]].tolist() == [2, 2]


def test_records_moved_far_weigh_less_among_many_points():
    rng = np.random.default_rng(2)
    known = rng.normal(size=(110, 3000))
    masked = known + 0.3 * rng.normal(size=known.shape)
    residual = likelihood.pair_moments(known, masked).covariance
    masked[:, ::20] += 30.0 * rng.normal(size=(110, 150))
    moved = likelihood.pair_moments(known, masked).covariance
    assert np.trace(moved - residual) < 0.05 * np.trace(np.cov(masked) - np.cov(known))
