"""Kernels against hand-computed answers and plain references."""

import numpy as np
import pytest
from scipy.special import ndtri

from dpmask.kernels.deviation import gaps, merge_gaps
from dpmask.kernels.moments import column_moments, merge_moments
from dpmask.kernels.noise import add_noise
from dpmask.kernels.normal import normals_of, uniforms_of


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


def test_gaps_by_hand():
    original, masked = [[1.0, 2, np.nan, 4]], [[2.0, 0, 5, np.nan]]
    found = gaps(np.array(original + masked))
    assert found.pairs.tolist() == [2]
    assert found.absolute.tolist() == [3]
    both = merge_gaps(found, found)
    assert both.absolute.tolist() == [6]
    assert both.pairs.tolist() == [4]


def words_and_uniforms():
    rng = np.random.default_rng(0)
    edges = np.array([0, 1, 2**11, 2**63, 2**64 - 2**11 - 1, 2**64 - 1], np.uint64)
    small = (10.0 ** rng.uniform(0, 19.26, 50_000)).astype(np.uint64)
    words = np.concatenate([edges, rng.integers(0, 2**64 - 1, 200_000, dtype=np.uint64), small, ~small])
    uniforms = (words >> np.uint64(11)).astype(float) * 2.0**-53 + 2.0**-54
    return words, np.minimum(uniforms, 1 - 2.0**-53)


def test_uniforms_of_words():
    words, expected = words_and_uniforms()
    found = np.empty(len(words))
    uniforms_of(words, found)
    assert np.array_equal(found, expected)
    assert ((found > 0) & (found < 1)).all()


def test_normals_of_words_equal_the_inverse_distribution():
    words, uniforms = words_and_uniforms()
    found = np.empty(len(words))
    normals_of(words, found)
    np.testing.assert_allclose(found, ndtri(uniforms), rtol=3e-15)  # both are good to a few units in the last place


def test_a_normal_depends_on_its_word_alone():
    words, _ = words_and_uniforms()
    whole, part = np.empty(len(words)), np.empty(5001)
    normals_of(words, whole)
    normals_of(words[777 : 777 + 5001], part)
    assert np.array_equal(part, whole[777 : 777 + 5001])
