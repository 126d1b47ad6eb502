"""How nearly one column follows from another: against loops over all records, and where the answer is known."""

from itertools import pairwise

import numpy as np
import pytest

from dpmask.kernels.dependence import Neighbours, explained_categories, explained_numbers, needed_for, neighbours


def chatterjee(order, values):
    """The formula of the paper, for values with ties, a record at a time."""
    count = len(values)
    at_most = [sum(other <= one for other in values) for one in values]
    at_least = [sum(other >= one for other in values) for one in values]
    jumps = sum(abs(at_most[after] - at_most[before]) for before, after in pairwise(order))
    return 1 - count * jumps / (2 * sum(one * (count - one) for one in at_least))


def differing(order, codes):
    """The share of neighbours that differ, beside that of all pairs."""
    count = len(codes)
    pairs = [codes[i] != codes[j] for i in range(count) for j in range(i)]
    near = [codes[after] != codes[before] for before, after in pairwise(order)]
    return 1 - np.mean(near) / np.mean(pairs)


def test_both_are_what_a_loop_finds():
    rng = np.random.default_rng(1)
    values = rng.integers(0, 6, (4, 60)).astype(float)
    order = rng.permutation(60)
    near = Neighbours(order, np.full(59, True))
    assert explained_numbers(near, values) == pytest.approx([chatterjee(order, one) for one in values])
    assert explained_categories(near, values) == pytest.approx([differing(order, one) for one in values])


@pytest.mark.parametrize(
    ("plain", "least", "most"),
    [
        (lambda x, rng: 3 * x + 7, 0.99, 1),
        (lambda x, rng: (x - 2) ** 2 * np.sign(x - 2), 0.99, 1),
        (lambda x, rng: np.floor(x * 20), 0.9, 1),
        (lambda x, rng: rng.normal(size=len(x)), -0.05, 0.05),
        (lambda x, rng: np.floor(x), 0.0, 0.85),
    ],
)
def test_copies_rescaled_or_rounded_are_found_and_others_are_not(plain, least, most):
    rng = np.random.default_rng(2)
    values = rng.gamma(2.0, size=5000)
    near = neighbours(plain(values, rng), ordered=True)
    assert least <= explained_numbers(near, values[None])[0] <= most


def test_a_code_of_the_same_partition_is_found():
    rng = np.random.default_rng(3)
    town = rng.integers(0, 30, 5000)
    code, land = rng.permutation(30)[town], town // 10
    near = [neighbours(one.astype(float), ordered=False) for one in (code, land, np.arange(5000))]
    assert [explained_categories(one, town[None].astype(float))[0] > 0.9 for one in near] == [True, False, False]


def test_codes_in_any_order_give_a_number_away():
    """Texts of bands: their order means nothing, so only records of one band are compared."""
    rng = np.random.default_rng(5)
    values = rng.lognormal(9, 1, 5000)
    bands = np.unique(np.floor(values / 150), return_inverse=True)[1]
    code = rng.permutation(bands.max() + 1)[bands].astype(float)
    as_code, as_number = (explained_numbers(neighbours(code, ordered=one), values[None])[0] for one in (False, True))
    assert as_code > 0.99
    assert as_number < 0.95


def test_a_constant_tells_nothing_and_follows_from_nothing():
    order = neighbours(np.arange(50.0), ordered=True)
    assert explained_numbers(order, np.ones((1, 50)))[0] == 0
    assert explained_categories(order, np.ones((1, 50)))[0] == 0
    assert needed_for([np.arange(50.0)], np.ones(50), 0.9) == []


def test_only_what_a_sum_needs_is_named():
    rng = np.random.default_rng(4)
    columns = list(rng.normal(size=(4, 300)))
    total = 2 * columns[1] - columns[3] + 0.01 * rng.normal(size=300)
    assert needed_for(columns, total, 0.99) == [1, 3]
    assert needed_for(columns[:3], total, 0.99) == []


@pytest.mark.filterwarnings("error")
def test_missing_values_are_a_value_of_their_own():
    """A column that is missing where the masked one is, and gives it away elsewhere."""
    values = np.where(np.arange(600) % 5 == 0, -np.inf, np.random.default_rng(1).normal(size=600))
    assert explained_numbers(neighbours(values * 2, ordered=True), values[None])[0] > 0.95
    assert explained_categories(neighbours(values, ordered=True), np.isinf(values)[None].astype(float))[0] > 0.95
