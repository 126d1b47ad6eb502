"""Order statistics over blocks against numpy on the whole."""

import numpy as np
import pandas as pd
import pytest
from parts import in_parts

from dpmask.kernels.order.float_order import cut_evenly, from_keys, order_keys
from dpmask.table import quantiles as order
from dpmask.table.table import as_table

SHARES = [0.0, 0.05, 0.1, 1 / 3, 0.5, 0.77, 0.95, 1.0]


def columns(rows, seed=0):
    rng = np.random.default_rng(seed)
    crowd = rng.normal(size=rows)
    crowd[rng.random(rows) < 0.6] = 0.0
    crowd[::3] *= -1  # some zeros are -0.0
    holes = np.where(rng.random(rows) < 0.3, np.nan, rng.lognormal(size=rows))
    near = 1.0 + np.arange(rows) * 2.0**-52  # all in one cell of any even cut of the reals
    return pd.DataFrame({"crowd": crowd, "holes": holes, "whole": rng.integers(0, 5, rows), "near": rng.permuted(near)})


def present(frame, name):
    values = frame[name].dropna().to_numpy(np.float64) + 0.0
    return np.sort(values)


def test_keys_are_in_the_order_of_the_doubles():
    values = np.array([-np.inf, -1e300, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, np.nextafter(1.0, 2.0), 1e300, np.inf])
    keys = order_keys(values)
    assert (np.diff(keys) > 0).tolist() == (np.diff(values) > 0).tolist()
    assert (from_keys(keys) == values).all()


def test_even_cuts_lie_strictly_inside_and_end():
    low, high = -(1 << 63), (1 << 63) - 1
    cuts = cut_evenly(low, high, 1024)
    assert len(cuts) == 1023
    assert low < cuts[0] < cuts[-1] < high
    assert cut_evenly(5, 7, 1024).tolist() == [6]
    assert cut_evenly(5, 6, 1024).tolist() == []


@pytest.mark.parametrize("rows", [1, 2, 7, 1000])
def test_small_columns_are_answered_by_the_first_pass(rows):
    frame = columns(rows)
    found = order.order_statistics(as_table(frame, "test"), list(frame), range, "test")
    for name, one in zip(frame, found, strict=True):
        assert one.values.tolist() == present(frame, name).tolist()


@pytest.mark.parametrize(("sample", "collected"), [(1 << 14, 1 << 18), (200, 500), (200, 3), (1, 1)])
def test_ranks_and_quantiles_are_numpys(limit, sample, collected):
    """Also with a sample that misses nearly all, and next to no room: then the brackets are cut evenly."""
    limit(quantile_sample=sample, quantile_values=collected)
    frame = columns(20_000)
    table = as_table(in_parts(frame, 5), "test")
    ranks = [0, 1, 17, 4000, 4001, 12_345]
    found = order.order_statistics(table, list(frame), lambda count: ranks, "test")
    for name, one in zip(frame, found, strict=True):
        assert one.values.tobytes() == present(frame, name)[ranks].tobytes(), name
    for name, values in zip(frame, order.quantiles(table, list(frame), SHARES, "test"), strict=True):
        assert values.tobytes() == np.quantile(present(frame, name), SHARES).tobytes(), name


@pytest.mark.parametrize("partitions", [1, 3, 7, 20])
def test_they_do_not_depend_on_partitions(limit, partitions, client):
    limit(quantile_sample=300)
    frame = columns(5_000)
    table = as_table(in_parts(frame, partitions), "test")
    for name, values in zip(frame, order.quantiles(table, list(frame), SHARES, "test"), strict=True):
        assert values.tobytes() == np.quantile(present(frame, name), SHARES).tobytes(), name


def test_positions_count_below_and_through():
    frame = pd.DataFrame({"a": [3.0, 1.0, -0.0, np.nan, 1.0], "b": [2.0, np.inf, 2.0, -np.inf, 5.0]})
    found = order.value_positions(
        as_table(frame, "test"), ["a", "b"], [np.array([0.0, 1.0, 9.0]), np.array([2.0])], "t"
    )
    assert [part.tolist() for part in found[0]] == [[0, 1, 4], [1, 3, 4]]
    assert [part.tolist() for part in found[1]] == [[1], [3]]


def test_a_column_without_values_has_no_quantiles():
    frame = pd.DataFrame({"a": [np.nan, np.nan], "b": [1.0, 2.0]})
    found = order.quantiles(as_table(frame, "test"), ["a", "b"], [0.5], "test")
    assert [values.tolist() for values in found] == [[], [1.5]]


def test_splitters_cut_into_about_equal_parts():
    frame = columns(50_000)
    (cuts,) = order.sampled_splitters(as_table(frame, "test"), ["near"], 10, "test")
    shares = np.diff(np.searchsorted(present(frame, "near"), cuts)) / 50_000
    # a sample of 16384: five standard errors of the position of a cut, at each end of a part
    assert np.abs(shares - 0.1).max() < 5 * 2 * np.sqrt(0.25 / 16384)
    assert order.sampled_splitters(as_table(frame, "test"), ["near"], 1, "test")[0].tolist() == []
