"""Agreement of partitions: by hand, and against scikit-learn on random labels."""

import numpy as np
import pytest

from dpmask.kernels.partitions import adjusted_rand, f_measure, match_point


def contingency(natural, query):
    table = np.zeros((natural.max() + 1, query.max() + 1), np.int64)
    np.add.at(table, (natural, query), 1)
    return table


def test_adjusted_rand_by_hand():
    """Table 4 of Fung et al.: 220 pairs together in both, 288 and 297 in either, 561 in all; by chance 288 x 297 / 561."""
    expected = 288 * 297 / 561
    assert adjusted_rand(np.array([[19, 2], [3, 10]])) == pytest.approx(
        (220 - expected) / (292.5 - expected), rel=1e-12
    )


@pytest.mark.parametrize("seed", range(5))
def test_against_scikit_learn(seed):
    """The match point is the Rand index of all ordered pairs, a record with itself among them."""
    from sklearn.metrics import adjusted_rand_score, rand_score

    rng = np.random.default_rng(seed)
    natural = rng.integers(0, 4, 300)
    query = np.where(rng.random(300) < 0.2 * seed, rng.integers(0, 5, 300), natural)
    table = contingency(natural, query)
    assert adjusted_rand(table) == pytest.approx(adjusted_rand_score(natural, query), rel=1e-12, abs=1e-12)
    assert match_point(table) == pytest.approx((rand_score(natural, query) * 300 * 299 + 300) / 300**2, rel=1e-12)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([[5, 0], [0, 7]], 1.0),
        ([[0, 5], [7, 0]], 1.0),
        ([[12]], 1.0),
        (np.eye(4, dtype=np.int64), 1.0),
        ([[6, 6]], 0.0),
        ([[1]], 1.0),
    ],
)
def test_the_ends(table, expected):
    """Renamed clusters agree; one cluster for all tells nothing of two."""
    assert adjusted_rand(np.asarray(table, np.int64)) == expected


def test_an_empty_cluster_changes_nothing():
    table = np.array([[19, 2], [3, 10]])
    wider = np.pad(table, ((0, 1), (0, 2)))
    for measure in (f_measure, match_point, adjusted_rand):
        assert measure(wider) == measure(table)
