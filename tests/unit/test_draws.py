"""Draws: AES-CTR against published vectors, and that a draw belongs to its record."""

import pickle

import numpy as np
import pytest
from conftest import SECRET

from dpmask.engine.draws import (
    chosen_records,
    keystream,
    make_key,
    record_normals,
    record_uniforms,
    record_words,
    shuffled,
    uniforms_at,
    words_at,
)
from dpmask.errors import JobError
from dpmask.kernels.shuffle import places_in_order

KEY = make_key("test", seed=1).subkey("purpose")


def test_keystream_is_aes_256_ctr():
    # NIST SP 800-38A, F.5.5 CTR-AES256.Encrypt: keystream = ciphertext xor plaintext, all four blocks
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = int("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", 16)
    plain = bytes.fromhex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
    )
    cipher = bytes.fromhex(
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
        "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
    )
    assert bytes(a ^ b for a, b in zip(keystream(key, counter, 64), plain, strict=True)) == cipher


@pytest.mark.parametrize(("first", "count"), [(0, 10), (1, 10), (7, 1), (8, 2), (3, 0)])
def test_a_draw_depends_on_its_position_alone(first, count):
    whole = record_words(KEY, 0, 20)
    assert np.array_equal(record_words(KEY, first, count), whole[first : first + count])


def test_positions_beyond_32_bits():
    far = 2**40 + 1
    assert np.array_equal(record_words(KEY, far, 3)[1:], record_words(KEY, far + 1, 2))


@pytest.mark.parametrize("first", [0, 1, 2**31 - 3, 2**32 - 3, 2**40 + 1, 2**62])
def test_draws_at_any_positions_are_the_records_own(first):
    order = np.random.default_rng(0).permutation(1001)
    positions = first + np.concatenate([order, order[:7]])
    np.testing.assert_array_equal(words_at(KEY, positions), record_words(KEY, first, 1001)[positions - first])
    np.testing.assert_array_equal(uniforms_at(KEY, positions), record_uniforms(KEY, first, 1001)[positions - first])


def test_draws_at_more_positions_than_a_tile_has():
    positions = np.random.default_rng(0).permutation(70_001)
    np.testing.assert_array_equal(words_at(KEY, positions), record_words(KEY, 0, 70_001)[positions])


def test_draws_at_no_or_one_position():
    assert len(words_at(KEY, np.empty(0, np.int64))) == len(uniforms_at(KEY, np.empty(0, np.int64))) == 0
    assert uniforms_at(KEY, np.array([5])).tolist() == record_uniforms(KEY, 5, 1).tolist()


def test_uniforms_and_normals_have_their_distributions():
    uniforms, normals = record_uniforms(KEY, 0, 200_000), record_normals(KEY, 0, 200_000)
    assert 0 < uniforms.min() < 1e-4
    assert 1 - 1e-4 < uniforms.max() < 1
    # five standard errors of each moment
    assert abs(uniforms.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 200_000)
    assert abs(normals.mean()) < 5 / np.sqrt(200_000)
    assert abs(normals.var() - 1) < 5 * np.sqrt(2 / 200_000)


def test_the_largest_word_is_not_one(monkeypatch):
    top = np.array([2**64 - 1, 0], dtype=np.uint64)
    monkeypatch.setattr("dpmask.engine.draws.record_words", lambda *_: top)
    uniforms = record_uniforms(KEY, 0, 2)
    assert uniforms[0] == 1 - 2**-53
    assert uniforms[1] == 2**-54
    assert np.isfinite(record_normals(KEY, 0, 2)).all()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000])
def test_shuffled_is_a_permutation(count):
    order = shuffled(KEY, 5, count)
    assert sorted(order) == list(range(count))


@pytest.mark.parametrize("count", [0, 1, 2, 9, 1000, 70_000])
def test_the_order_of_words_is_that_of_a_sort(count):
    words = record_words(KEY, 3, count)
    bits = np.uint64(max(count - 1, 1).bit_length())
    expected = np.argsort(words >> bits, kind="stable")
    assert np.array_equal(places_in_order(words), expected)
    assert np.array_equal(places_in_order(words.copy()), expected)


def test_words_that_are_all_alike_stay_in_place():
    assert places_in_order(np.full(500, 7, np.uint64)).tolist() == list(range(500))


def test_shuffled_is_uniform():
    # every record lands in the first place about equally often: chi-square with 9 degrees of freedom, 99.99 % point
    firsts = [shuffled(KEY, 10 * n, 10)[0] for n in range(5000)]
    counts = np.bincount(firsts, minlength=10)
    assert ((counts - 500) ** 2 / 500).sum() < 33.7


def test_purposes_and_keys_differ():
    one, other = KEY.subkey("a"), KEY.subkey("b")
    assert not np.array_equal(record_words(one, 0, 4), record_words(other, 0, 4))
    assert make_key("t", seed=1).fingerprint != make_key("t", seed=2).fingerprint
    assert make_key("t", key=SECRET).fingerprint != make_key("t", key=SECRET[::-1]).fingerprint


def test_a_key_shows_only_its_fingerprint_and_stays_with_the_driver():
    key = make_key("test", key=SECRET)
    assert key.secret.hex() not in repr(key) + repr(KEY)
    assert key.fingerprint in repr(key)
    with pytest.raises(TypeError, match="never leaves the driver"):
        pickle.dumps(key)
    assert pickle.loads(pickle.dumps(KEY)) == KEY
    assert KEY.secret.hex() not in repr(pickle.loads(pickle.dumps(KEY)))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "got neither"),
        ({"key": SECRET, "seed": 1}, "got both"),
        ({"key": "short"}, "at least 32 characters; got 5. Make one: openssl rand -hex 32"),
        ({"seed": "7"}, "seed must be an integer; got str"),
        ({"seed": True}, "seed must be an integer; got bool"),
    ],
)
def test_bad_keys_are_refused(arguments, text):
    with pytest.raises(JobError) as caught:
        make_key("NoiseAddition", **arguments)
    assert text in str(caught.value)
    assert "short" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "count"), [(1, 1), (10, 10), (10, 3), (100_000, 1), (100_000, 99_999), (300_000, 2_000)]
)
def test_a_sample_has_the_smallest_words(rows, count):
    found = chosen_records(KEY, rows, count)
    assert len(found) == count
    assert (np.diff(found) > 0).all()
    expected = np.sort(np.argsort(record_words(KEY, 0, rows), kind="stable")[:count])
    assert found.tolist() == expected.tolist()
