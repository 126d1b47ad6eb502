"""Equal rows, counted: in a block against a Counter, over a table against pandas."""

from collections import Counter

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from dpmask.kernels.keys import RowKeys, counted, counted_floats
from dpmask.table.grouping import GroupSizes, group_sizes
from dpmask.table.table import as_table


def test_rows_that_count_more_than_once_equal_a_counter():
    rng = np.random.default_rng(1)
    rows, weights = rng.integers(-2, 3, (500, 3)) / 10, rng.integers(1, 9, 500)
    expected = Counter()
    for row, weight in zip(map(tuple, rows.tolist()), weights.tolist(), strict=True):
        expected[row] += weight
    first, second, counts = counted_floats(rows, weights)
    assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == len(expected)
    assert sorted(counts.tolist()) == sorted(expected.values())


def test_counts_of_parts_add_up():
    rows = np.random.default_rng(2).integers(0, 4, (900, 3)) * 1.5
    parts = [
        counted_floats(rows[part], np.ones(len(rows[part]), np.int64)) for part in (slice(0, 400), slice(400, 900))
    ]
    first, second, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    whole = counted_floats(rows, np.ones(900, np.int64))[2]
    assert sorted(counted(RowKeys(first, second), counts)[2].tolist()) == sorted(whole.tolist())


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
def test_group_sizes_do_not_depend_on_partitions(client, limit, partitions):
    limit(group_target_rows=400)
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
