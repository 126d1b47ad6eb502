"""Equal rows of a block found by Arrow, against a dictionary of tuples."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from dpmask.table.distinct_rows import distinct_rows

KINDS = {
    "integers": [3, 1, 3, None, 1],
    "numbers": [0.5, 0.25, 0.5, None, 0.25],
    "texts": ["a", "b", "a", None, "b"],
    "flags": [True, False, True, None, False],
    "dates": [datetime.date(2020, 1, day) for day in (1, 2, 1, 3, 2)],
    "decimals": [Decimal("1.5"), Decimal("2.5"), Decimal("1.5"), None, Decimal("2.5")],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("coded", [False, True])
def test_rows_of_any_type(kind, coded):
    array = pa.array(KINDS[kind])
    found = distinct_rows(pa.table({"x": array.dictionary_encode() if coded else array, "y": range(5)}), ["x"])
    assert found.rows.column("x").to_pylist() == [KINDS[kind][at] for at in (0, 1, 3)]
    np.testing.assert_array_equal(found.members.order, [0, 2, 1, 4, 3])
    np.testing.assert_array_equal(found.members.sizes, [2, 2, 1])


def test_many_rows_and_none():
    rng = np.random.default_rng(0)
    columns = {"x": rng.integers(0, 40, 50_000), "y": rng.choice(["a", "b", "c"], 50_000), "z": rng.normal(size=50_000)}
    rows = pa.table(columns | {"z": columns["z"].round(1) + 0.0})
    places = {}
    for number, row in enumerate(zip(*rows.to_pydict().values(), strict=True)):
        places.setdefault(row, []).append(number)
    found = distinct_rows(rows, rows.column_names)
    assert list(zip(*found.rows.to_pydict().values(), strict=True)) == list(places)
    np.testing.assert_array_equal(found.members.order, np.concatenate(list(places.values())))
    np.testing.assert_array_equal(found.members.sizes, [len(one) for one in places.values()])
    none = distinct_rows(rows.slice(0, 0), rows.column_names)
    assert none.rows.num_rows == len(none.members.order) == len(none.members.sizes) == 0


def test_rows_stay_apart_where_hardly_any_are_equal():
    pairs = distinct_rows(pa.table({"x": np.repeat(np.arange(80_000.0), 2)}), ["x"], exact=False)
    assert (pairs.rows.num_rows, set(pairs.members.sizes)) == (80_000, {2})
    one_pair = pa.table({"x": np.append(np.arange(80_000.0), 1.0)})
    assert distinct_rows(one_pair, ["x"], exact=False).rows.num_rows == 80_001
    assert distinct_rows(one_pair, ["x"]).rows.num_rows == 80_000
