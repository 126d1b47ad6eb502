"""Keys of rows: equal for equal values of any type, different for different ones."""

import numpy as np
import pyarrow as pa
import pytest
from conftest import people

from dpmask.errors import JobError
from dpmask.kernels.households import counted_rows, masked_rows
from dpmask.kernels.keys import RowKeys, counted, grouped, new_keys, with_word
from dpmask.table.row_keys import require_groupable, row_keys


def told_apart(rows, columns):
    """Group numbers in the order in which values first occur."""
    keys = list(zip(*(lane.tolist() for lane in row_keys(rows, columns)), strict=True))
    return [list(dict.fromkeys(keys)).index(key) for key in keys]


@pytest.mark.parametrize("names", [["region", "age"], *([name] for name in people(1).schema.names)])
def test_rows_have_equal_keys_where_values_are_equal(names):
    table = people(500).select(names)
    values = list(zip(*(["none" if v is None else v for v in table[n].to_pylist()] for n in names), strict=True))
    assert told_apart(table, names) == [list(dict.fromkeys(values)).index(value) for value in values]


def test_keys_do_not_depend_on_where_a_block_begins_or_how_it_is_chunked():
    table = people(300)
    pieces = pa.concat_tables([table.slice(0, 7), table.slice(7, 150), table.slice(157)])
    for name in table.schema.names:
        whole = row_keys(table, [name])
        assert (row_keys(pieces, [name]).first == whole.first).all(), name
        assert (row_keys(table.slice(40, 30), [name]).second == whole.second[40:70]).all(), name


@pytest.mark.parametrize("columns", [["sex"], ["sex", "region"], ["sex", "name"], ["sex", "region", "name"]])
def test_keys_of_few_different_rows_are_those_of_each_row(columns):
    """Those of a table of 5,000 rows, and of each of its rows alone: some are missing, one column has many values."""
    rng = np.random.default_rng(5)
    names = rng.integers(0, 4000, 5000).astype(str)
    people = pa.table(
        {
            "sex": pa.array(np.where(rng.random(5000) < 0.1, None, rng.choice(["f", "m"], 5000))),
            "region": pa.array(rng.choice(["a", "b", "c"], 5000)).dictionary_encode(),
            "name": pa.array(names),
        }
    )
    keys = row_keys(people, columns)
    for row in range(0, 5000, 250):
        alone = row_keys(people.slice(row, 1), columns)
        assert (keys.first[row], keys.second[row]) == (alone.first[0], alone.second[0])
    found = people.select(columns).combine_chunks().to_pylist()
    assert len(np.unique(keys.first)) == len({tuple(row.values()) for row in found})


def test_types_that_hold_the_same_value_have_the_same_key():
    whole = [pa.int8(), pa.uint64(), pa.float32(), pa.float64()]
    text = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string())]
    for kinds, values in ((whole, [1, 0, None, 100]), (text, ["a", "", None, "né"])):
        keys = [row_keys(pa.table({"x": pa.array(values).cast(kind)}), ["x"]) for kind in kinds]
        assert all((one.first == keys[0].first).all() and (one.second == keys[0].second).all() for one in keys)
    zeros = row_keys(pa.table({"x": [0.0, -0.0, 0.5]}), ["x"]).first
    assert (zeros[0] == zeros[1], zeros[0] == zeros[2]) == (True, False)


def test_columns_count_in_their_place():
    table = pa.table({"a": [1, 2, 1], "b": [2, 1, None], "c": pa.array([None] * 3, pa.int64())})
    assert len(set(told_apart(table, ["a", "b"]))) == 3
    assert (row_keys(table, ["a", "b"]).first != row_keys(table, ["b", "a"]).first).all()


def test_a_collision_in_one_lane_is_told_apart_by_the_other():
    first = np.array([5, 9, 5, 5, 5], np.uint64)
    second = np.array([1, 7, 2, 1, 2], np.uint64)
    groups = grouped(RowKeys(first, second))
    numbers = groups.numbers()
    assert numbers[0] == numbers[3] != numbers[2] == numbers[4]
    assert sorted(groups.sums(np.ones(5, np.int64)).tolist()) == [1, 2, 2]


def test_counts_are_those_of_a_plain_count_in_any_order_of_equal_keys():
    lanes = np.random.default_rng(5).integers(0, 4, (2, 500)).astype(np.uint64)
    first, second, times = counted(RowKeys(*lanes))
    pairs, expected = np.unique(lanes, axis=1, return_counts=True)
    assert np.array_equal(np.array([first, second]), pairs)
    assert np.array_equal(times, expected)


@pytest.mark.parametrize("size", [3, 20, 300])
def test_masked_rows_are_counted_as_their_keys_are(size):
    """Few rows of codes, few rows of nodes only, and many of both."""
    rng = np.random.default_rng(size)
    codes = rng.integers(0, size, (3, 2000)).astype(np.uint16)
    nodes = [rng.integers(0, min(size, 5) if size < 300 else size, size).astype(np.int32) for _ in codes]
    kept = rng.random(2000) < 0.7
    plain = counted(masked_rows(codes, nodes).at(kept))
    assert all(np.array_equal(*pair) for pair in zip(counted_rows(codes, nodes, kept), plain, strict=True))
    rows = {tuple(each[code] for each, code in zip(nodes, row, strict=True)) for row in codes.T[kept]}
    assert len(rows) == len(plain[2])


def test_no_rows_make_no_groups():
    groups = grouped(with_word(new_keys(0), np.empty(0, np.uint64)))
    assert (len(groups.starts), groups.sums(np.empty(0, np.int64)).tolist()) == (0, [])
    assert told_apart(pa.table({"x": pa.array([], pa.string())}), ["x"]) == []


def test_nested_columns_are_refused():
    schema = pa.schema([("home", pa.struct([("zip", pa.int64())]))])
    with pytest.raises(JobError, match="groups: column 'home' is struct"):
        require_groupable(schema, ["home"], "groups")
