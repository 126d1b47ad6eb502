"""MDAV and the merging of small groups, against plain NumPy and Python."""

import numpy as np
import pytest

from dpmask.kernels.microaggregation import mdav, merge_small


def plain_mdav(records, k):
    """Records x columns. argmax and a stable sort take the first of those equally far."""
    left, groups, number = np.arange(len(records)), np.zeros(len(records), int), 0

    def farthest_from(point):
        return records[left[np.argmax(((records[left] - point) ** 2).sum(axis=1))]]

    def take_near(point):
        nonlocal left, number
        near = np.argsort(((records[left] - point) ** 2).sum(axis=1), kind="stable")[:k]
        groups[left[near]] = number
        left, number = np.delete(left, near), number + 1

    while len(left) >= 2 * k:
        both = len(left) >= 3 * k
        first = farthest_from(records[left].mean(axis=0))
        take_near(first)
        if both:
            take_near(farthest_from(first))
    groups[left] = number
    return groups


@pytest.mark.parametrize("k", [2, 3, 5, 10])
@pytest.mark.parametrize(("columns", "rows"), [(1, 57), (2, 60), (4, 123), (13, 200)])
def test_mdav_equals_the_plain_one(columns, rows, k):
    block = np.random.default_rng(rows + k).lognormal(size=(columns, rows))
    np.testing.assert_array_equal(mdav(block, k), plain_mdav(block.T, k))


@pytest.mark.parametrize("k", [2, 4, 8, 16])
@pytest.mark.parametrize("seed", range(10))
def test_of_records_equally_far_the_first_is_taken(k, seed):
    # sums over 4k and 2k small integers, divided by a power of two: ties are exact in floats, too
    block = np.random.default_rng(seed).integers(-2, 3, (3, 4 * k)).astype(float)
    np.testing.assert_array_equal(mdav(block, k), plain_mdav(block.T, k))


@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 6, 7, 9, 13, 14, 20, 21, 22, 41, 100])
def test_sizes_are_from_k_to_2k_minus_1(rows, k):
    block = np.random.default_rng(rows).integers(0, 4, (2, rows)).astype(float)
    groups = mdav(block, k)
    sizes = np.bincount(groups)
    assert sizes.sum() == rows
    if rows < 2 * k:
        assert (groups == 0).all()
    else:
        assert k <= sizes.min() <= sizes.max() <= 2 * k - 1


@pytest.mark.parametrize(("rows", "sizes"), [(9, [3, 3, 3]), (10, [3, 3, 4]), (8, [3, 5]), (6, [3, 3]), (5, [5])])
def test_equal_records_are_grouped_in_their_order(rows, sizes):
    block = np.repeat([[0.1], [0.7], [-3.3]], rows, axis=1)
    np.testing.assert_array_equal(mdav(block, 3), np.repeat(range(len(sizes)), sizes))


def test_mdav_by_hand():
    # the mean is 4.5, 11 is farthest; 10 and 11 are a group, then 0 and 1, farthest from 11; the rest is one group
    assert mdav(np.array([[0.0, 10, 2, 1, 11, 3]]), 2).tolist() == [1, 0, 2, 1, 0, 2]


def test_no_records():
    assert len(mdav(np.empty((3, 0)), 2)) == 0


def plain_merge(rows, sizes, scale, minimum):
    """Each group as its index, members, size and row: the rule of the docstring, word for word."""
    groups = [([i], int(n), row) for i, (n, row) in enumerate(zip(sizes, rows, strict=True)) if n > 0]
    while len(groups) > 1 and min(size for _, size, _ in groups) < minimum:
        small = min(groups, key=lambda group: group[1])
        others = [group for group in groups if group is not small]
        near = min(others, key=lambda group: (((group[2] - small[2]) / scale) ** 2).sum())
        size = small[1] + near[1]
        merged = (sorted(small[0] + near[0]), size, (small[1] * small[2] + near[1] * near[2]) / size)
        groups = sorted([group for group in others if group is not near] + [merged], key=lambda group: group[0][0])
    return groups


@pytest.mark.parametrize("minimum", [1, 2, 3, 8, 40])
@pytest.mark.parametrize("seed", range(6))
def test_merging_equals_the_plain_one(minimum, seed):
    rng = np.random.default_rng(seed)
    rows, sizes, scale = rng.normal(size=(40, 3)) * [1, 100, 0.01], rng.integers(0, 6, 40), np.array([1, 100, 0.01])
    before = rows.copy(), sizes.copy()
    found, expected = merge_small(rows, sizes, scale, minimum), plain_merge(rows, sizes, scale, minimum)
    assert found.sizes.tolist() == [size for _, size, _ in expected]
    np.testing.assert_allclose(found.rows, [row for _, _, row in expected], rtol=1e-12, atol=1e-14)
    assert [np.flatnonzero(found.place == i).tolist() for i in range(len(expected))] == [m for m, _, _ in expected]
    assert (found.place[sizes == 0] == -1).all()
    assert found.sizes.min() >= minimum
    np.testing.assert_array_equal(rows, before[0])
    np.testing.assert_array_equal(sizes, before[1])


def test_ties_by_hand():
    # 1 and 2 are the smallest: 1 goes first, and of 0 and 2, equally near, 0 is taken; then 2 goes to 3
    rows, sizes = np.array([[0.0], [1], [2], [3]]), np.array([3, 1, 1, 2])
    found = merge_small(rows, sizes, np.ones(1), 2)
    assert found.place.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(found.rows, [[1 / 4], [8 / 3]], rtol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_totals_equalities_and_bounds_are_kept(seed):
    rng = np.random.default_rng(seed)
    net, tax = rng.lognormal(9, 1, 60), np.maximum(rng.normal(0, 3000, 60), 0.0)
    rows, sizes = np.stack([net, tax, net + tax, np.full(60, 0.1)], axis=1), rng.integers(0, 4, 60)
    found = merge_small(rows, sizes, rows.std(axis=0) + 1e-9, 5)
    assert found.sizes.sum() == sizes.sum()
    np.testing.assert_allclose(found.sizes @ found.rows, sizes @ rows, rtol=1e-12)
    np.testing.assert_allclose(found.rows[:, 0] + found.rows[:, 1], found.rows[:, 2], rtol=1e-12)
    there = rows[sizes > 0]
    assert (found.rows >= there.min(axis=0)).all()
    assert (found.rows <= there.max(axis=0)).all()


def test_empty_groups_vanish_and_nobody_joins_them():
    rows, sizes = np.array([[0.0], [0.1], [5], [5.1]]), np.array([2, 0, 1, 0])
    found = merge_small(rows, sizes, np.ones(1), 2)
    assert found.place.tolist() == [0, -1, 0, -1]
    assert found.sizes.tolist() == [3]
    np.testing.assert_allclose(found.rows, [[5 / 3]])
    kept = merge_small(rows, np.array([2, 0, 3, 0]), np.ones(1), 2)
    assert kept.place.tolist() == [0, -1, 1, -1]
    np.testing.assert_array_equal(kept.rows, [[0.0], [5]])


def test_units_decide_who_is_near():
    rows, sizes = np.array([[0.0, 0], [0, 50], [3, 0]]), np.array([1, 5, 5])
    assert merge_small(rows, sizes, np.array([1.0, 1]), 2).place.tolist() == [0, 1, 0]
    assert merge_small(rows, sizes, np.array([1.0, 100]), 2).place.tolist() == [0, 0, 1]
