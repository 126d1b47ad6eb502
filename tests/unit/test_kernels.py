"""Kernels against hand-computed answers and plain references."""

import numpy as np
import pytest

from dpmask.kernels.deviation import deviations, merge_deviations
from dpmask.kernels.moments import column_moments, merge_moments
from dpmask.kernels.noise import add_noise


def test_moments_by_hand():
    moments = column_moments(np.array([[1.0, 2, 3, 6], [5, np.nan, 7, np.nan]]))
    assert moments.values.tolist() == [4, 2]
    assert moments.mean.tolist() == [3, 6]
    assert moments.squares.tolist() == [14, 2]
    assert moments.sd == pytest.approx([np.sqrt(3.5), 1])
    assert moments.low.tolist() == [1, 5]
    assert moments.high.tolist() == [6, 7]


def test_moments_count_infinities_and_survive_emptiness():
    moments = column_moments(np.array([[1.0, np.inf, -np.inf, np.nan], [np.nan] * 4]))
    assert moments.values.tolist() == [1, 0]
    assert moments.infinite.tolist() == [2, 0]
    empty = column_moments(np.empty((2, 0)))
    merged = merge_moments(merge_moments(empty, moments), empty)
    assert merged.values.tolist() == [1, 0]
    assert merged.mean.tolist() == [1, 0]


@pytest.mark.parametrize("offset", [0, 1e9])
def test_merged_moments_equal_those_of_the_whole(offset):
    rng = np.random.default_rng(0)
    block = rng.normal(size=(3, 1000)) + offset
    block[1, ::7] = np.nan
    merged = column_moments(block[:, :0])
    for part in np.array_split(block, 9, axis=1):
        merged = merge_moments(merged, column_moments(part))
    for number, values in enumerate(block):
        seen = values[~np.isnan(values)].astype(np.longdouble)
        assert merged.values[number] == len(seen)
        assert merged.mean[number] == pytest.approx(float(seen.mean()), rel=1e-14)
        # the reference is in extended precision
        assert merged.sd[number] == pytest.approx(float(seen.std()), rel=1e-13)


def test_noise_by_hand():
    noisy = add_noise(np.array([1.0, np.nan, 3]), np.array([0.5, 1, -2]), 10)
    assert noisy[[0, 2]].tolist() == [6, -17]
    assert np.isnan(noisy[1])


def test_deviations_by_hand():
    original, masked = [[1.0, 2, np.nan, 4]], [[2.0, 0, 5, np.nan]]
    found = deviations(np.array(original + masked))
    assert found.pairs.tolist() == [2]
    assert found.absolute.tolist() == [3]
    assert found.original.values.tolist() == [3]
    both = merge_deviations(found, found)
    assert both.absolute.tolist() == [6]
    assert both.pairs.tolist() == [4]
