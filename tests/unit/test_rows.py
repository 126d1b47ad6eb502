"""Equal rows, counted: in a block against a Counter, over a table against pandas."""

from collections import Counter

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from dpmask.kernels import rows as kernel
from dpmask.kernels.rows import bits_of, distinct_rows, row_hashes
from dpmask.lake import grouping
from dpmask.lake.grouping import GroupSizes, group_sizes
from dpmask.lake.table import as_table


def counted(columns, counts=None):
    found, totals = distinct_rows(columns, counts)
    result = dict(zip(zip(*(column.tolist() for column in found), strict=True), totals.tolist(), strict=True))
    assert len(result) == len(totals), "a row came twice"
    return result


def plain(columns):
    return dict(Counter(zip(*(column.tolist() for column in columns), strict=True)))


def numbers(columns, rows, seed=0):
    return [bits_of(column) for column in np.random.default_rng(seed).integers(-2, 3, (columns, rows)) / 10]


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (1, 1000), (3, 1000), (5, 2000), (2, 0)])
def test_rows_equal_a_counter(columns, rows):
    block = numbers(columns, rows)
    assert counted(block) == plain(block)


def test_rows_that_count_more_than_once():
    block, weights = numbers(2, 500), np.random.default_rng(1).integers(1, 9, 500)
    expected = Counter()
    for row, weight in zip(zip(*(column.tolist() for column in block), strict=True), weights.tolist(), strict=True):
        expected[row] += weight
    assert counted(block, weights) == expected


def test_counts_of_parts_add_up():
    block = numbers(3, 900)
    parts = [
        distinct_rows([column[part] for column in block]) for part in (slice(0, 400), slice(400, 900), slice(0, 0))
    ]
    joined = [np.concatenate(columns) for columns in zip(*(columns for columns, _ in parts), strict=True)]
    assert counted(joined, np.concatenate([counts for _, counts in parts])) == plain(block)


def test_zeros_and_nan_are_one_value_each():
    other_nan = np.array([0x7FF8000000000001], np.uint64).view(float)[0]
    values = np.array([0.0, -0.0, np.nan, -np.nan, other_nan, 1.0, np.inf, -np.inf, 5e-324])
    assert sorted(distinct_rows([bits_of(values)])[1].tolist()) == [1, 1, 1, 1, 2, 3]
    assert values.view(np.uint64)[1] == 1 << 63, "what was given is unchanged"


def test_no_columns_of_any_row():
    found, counts = distinct_rows([np.empty(0, np.uint64)])
    assert len(found[0]) == len(counts) == 0


@pytest.mark.parametrize("hashes", [1, 2, 7])
def test_rows_whose_hashes_collide(monkeypatch, hashes):
    block = numbers(3, 1000)
    monkeypatch.setattr(kernel, "row_hashes", lambda columns: row_hashes(columns) % np.uint64(hashes))
    assert counted(block) == plain(block)


def test_hashes_spread():
    """Neighbouring numbers in neighbouring columns: no two hashes alike, every bit set in about half of them."""
    grid = np.array(np.meshgrid(np.arange(200.0), np.arange(100.0))).reshape(2, -1)
    hashes = row_hashes([bits_of(column) for column in grid])
    assert len(np.unique(hashes)) == 20_000
    share = np.unpackbits(hashes.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert np.abs(share - 0.5).max() < 5 * np.sqrt(0.25 / 20_000)
    swapped = row_hashes([bits_of(column) for column in grid[::-1]])
    assert (hashes == swapped).sum() == 100, "only (a, a) stays itself"


def frame(rows=3000):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 9, rows),
            "rate": np.where(rng.random(rows) < 0.1, np.nan, rng.integers(-1, 2, rows) / 10 * 1.0),
            "größe": rng.integers(0, 4, rows).astype("float32"),
            "name": [f"n{i}" for i in range(rows)],
        }
    )


def by_pandas(table, columns):
    sizes = table.groupby(columns, dropna=False).size()
    return Counter(sizes.tolist())


@pytest.mark.parametrize("columns", [["age"], ["rate"], ["age", "rate", "größe"]], ids=str)
def test_group_sizes_equal_pandas(columns):
    table = frame()
    found, expected = group_sizes(as_table(table, "test"), columns, "groups"), by_pandas(table, columns)
    assert found.groups == expected
    assert found.records == 3000
    assert found.distinct == sum(expected.values())
    assert found.smallest == min(expected)
    for k in (1, 2, 30, 2.5, 10_000):
        assert found.below(k) == sum(size * count for size, count in expected.items() if size < k)


@pytest.mark.parametrize("partitions", [1, 3, 7, 20])
def test_group_sizes_do_not_depend_on_partitions(client, monkeypatch, partitions):
    monkeypatch.setattr(grouping, "_ROWS_PER_TARGET", 400)
    table, columns = frame(), ["age", "rate", "größe"]
    parts = dd.from_pandas(table, npartitions=partitions)
    with_empty = dd.concat([parts.partitions[:1], dd.from_pandas(table[:0], npartitions=1), parts.partitions[1:]])
    assert group_sizes(as_table(with_empty, "test"), columns, "groups").groups == by_pandas(table, columns)


def test_large_integers_keep_their_digits():
    table = pd.DataFrame({"id": [2**60, 2**60 + 1, 2**60, -1, 2**63 - 1, 2**63 - 2]})
    assert group_sizes(as_table(table, "test"), ["id"], "groups").groups == {1: 4, 2: 1}


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_integers_of_which_some_are_missing(partitions):
    """An integer is the same one in a block where nothing is missing."""
    table = pd.DataFrame({"a": pd.array([5, 5, 7, 5, None, 5, 7, None, 2**60, 2**60 + 1], "Int64")})
    found = group_sizes(as_table(dd.from_pandas(table, npartitions=partitions), "test"), ["a"], "groups")
    assert found.groups == {1: 2, 2: 2, 4: 1}


def test_one_record_no_record_and_no_group():
    assert group_sizes(as_table(frame(1), "test"), ["age", "rate"], "groups").groups == {1: 1}
    nobody = group_sizes(as_table(frame(0), "test"), ["age", "rate"], "groups")
    assert nobody == GroupSizes()
    assert (nobody.records, nobody.distinct, nobody.smallest, nobody.below(9)) == (0, 0, 0, 0)
    assert GroupSizes({1: 2, 3: 1}).plus(GroupSizes({3: 4, 5: 1})).groups == {1: 2, 3: 5, 5: 1}
