"""Ward's hierarchy is that of scipy, and groups of patches lose little."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from dpmask.kernels.ward import cut, means, merge_all


def squares(block, weights, groups):
    return (weights * (block - means(block, weights, groups)[:, groups]) ** 2).sum()


@pytest.mark.parametrize(("columns", "rows"), [(1, 2), (2, 17), (3, 100), (13, 500)])
def test_merges_are_those_of_scipy(columns, rows):
    block = np.random.default_rng(rows).lognormal(size=(columns, rows))
    merges, expected = merge_all(block, np.ones(rows)), linkage(block.T, "ward")
    np.testing.assert_allclose(merges.costs, expected[:, 2] ** 2 / 2, rtol=1e-9)
    for groups in (1, 2, rows // 5 or 1, rows):
        found, theirs = cut(merges, rows, groups), fcluster(expected, groups, "maxclust")
        assert len(np.unique(found)) == len(set(zip(found, theirs, strict=True))) == groups


def test_weights_count_as_equal_records():
    rng = np.random.default_rng(1)
    block, weights = rng.normal(size=(3, 60)), rng.integers(1, 5, 60)
    merges = merge_all(block, weights.astype(float))
    repeated = merge_all(np.repeat(block, weights, axis=1), np.ones(weights.sum()))
    np.testing.assert_allclose(merges.costs, repeated.costs[-59:], rtol=1e-9)
    np.testing.assert_allclose(repeated.costs[:-59], 0.0, atol=1e-25)
    np.testing.assert_array_equal(merges.gains, merges.costs[::-1])


@pytest.mark.parametrize("groups", [1, 4, 40, 100, 300])
def test_patches_lose_little(groups):
    rng = np.random.default_rng(2)
    block, weights = rng.normal(size=(4, 800)) * rng.lognormal(size=(4, 800)), rng.integers(1, 4, 800).astype(float)
    whole, patched = merge_all(block, weights, 800), merge_all(block, weights, 200)
    found = cut(patched, 800, groups)
    assert len(np.unique(found)) == groups
    total = squares(block, weights, np.zeros(800, np.int64))
    assert whole.costs.sum() == pytest.approx(total)
    assert squares(block, weights, cut(whole, 800, groups)) == pytest.approx(total - whole.gains[: groups - 1].sum())
    assert squares(block, weights, found) <= 1.15 * squares(block, weights, cut(whole, 800, groups)) + 1e-9


def test_one_record_and_equal_ones():
    assert len(merge_all(np.ones((2, 1)), np.ones(1)).costs) == 0
    assert cut(merge_all(np.ones((2, 1)), np.ones(1)), 1, 1).tolist() == [0]
    equal = merge_all(np.ones((2, 9)), np.ones(9), 4)
    assert equal.costs.tolist() == [0.0] * 8
    assert len(np.unique(cut(equal, 9, 3))) == 3
