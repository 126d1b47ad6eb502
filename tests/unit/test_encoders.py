"""Encoders against pandas and numpy by hand, and the same for any partitioning."""

import datetime
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpmask.errors import InputError, JobError
from dpmask.kernels.covariance import covariance_sums
from dpmask.kernels.moments import column_moments
from dpmask.table import checks
from dpmask.table.encoders.base import EncodedColumns, learn
from dpmask.table.encoders.category import category_encoder, count_texts, taxonomy_encoder
from dpmask.table.encoders.interval import DistinctNumbers, IntervalEncoder, interval_encoders, interval_parts, middles
from dpmask.table.encoders.numeric import NumberRange, NumericEncoder, RangeEncoder, Scale
from dpmask.table.encoders.one_hot import OneHotEncoder, find_predictors
from dpmask.table.encoders.texts import TextCounts, text_values
from dpmask.table.encoders.value_codes import code_shares, value_encoders
from dpmask.table.table import as_table
from dpmask.table.taxonomy import Branch

RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "job": pd.Series(RNG.choice(["cook", "clerk", "judge", None], 300, p=[0.5, 0.3, 0.1, 0.1]), dtype=object),
        "age": RNG.integers(0, 90, 300).astype(float),
        "net": np.where(RNG.random(300) < 0.1, np.nan, RNG.normal(20, 5, 300)),
        "band": RNG.choice(["[0, 20)", "[20, 40)"], 300),
    }
)


def block(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


def partitioned(parts):
    dd = pytest.importorskip("dask.dataframe")
    cuts = np.linspace(0, len(FRAME), parts + 1).astype(int)
    pieces = [FRAME.iloc[low:high] for low, high in pairwise(cuts)]
    return as_table(dd.concat([dd.from_pandas(one, npartitions=1) for one in [*pieces, FRAME.iloc[:0]]]), "test")


def test_categories_are_codes_in_the_order_of_their_texts():
    encoder = category_encoder("job", count_texts(as_table(FRAME, "test"), ["job"], "test")["job"], "test")
    wanted = pd.Categorical(FRAME["job"], ["clerk", "cook", "judge"]).codes.astype(int)
    assert encoder.encode(block(FRAME)).tolist() == np.where(wanted < 0, 3, wanted).tolist()
    assert (encoder.size, repr(encoder)) == (4, "CategoryEncoder('job', size=4)")
    other = pd.DataFrame({"work": ["judge", "king", None]})
    assert encoder.on("work").encode(block(other)).tolist() == [2, 4, 3]


def test_stored_categories_with_unused_and_repeated_values():
    stored = pa.DictionaryArray.from_arrays([0, 2, None, 3], pa.array(["a", "b", "a", None]))
    rows = pa.table({"x": stored})
    assert TextCounts.of(rows, "x", most=9) == TextCounts.of(pa.table({"x": ["a", "a", None, None]}), "x", most=9)
    assert text_values(rows, "x").lookup(ord, 0).tolist() == [97, 97, 0, 0]
    assert TextCounts.of(pa.table({"x": pa.nulls(3)}), "x", most=9).missing == 3


def test_a_taxonomy_must_have_all_values():
    found = TextCounts.of(block(FRAME), "job", most=9)
    tree = Branch("*", (Branch("judge"), Branch("cook"), Branch("clerk"), Branch("king")))
    assert taxonomy_encoder("job", tree, found, "test").encode(block(FRAME.iloc[:9])).max() <= 4
    with pytest.raises(InputError, match=r"the taxonomy lacks 'clerk' \(\d+ records\)"):
        taxonomy_encoder("job", Branch("*", (Branch("judge"), Branch("cook"))), found, "test")


def test_numbers_and_dates_are_codes_by_edges():
    table = as_table(FRAME, "test")
    found = learn(table, {"net": lambda rows, name: DistinctNumbers.of(rows, name, most=999)}, "test")
    encoder = interval_encoders(table, found, "test")["net"]
    wanted = FRAME["net"].rank(method="dense") - 1
    assert encoder.encode(block(FRAME)).tolist() == wanted.fillna(encoder.size - 1).astype(int).tolist()
    days = pa.table({"day": pa.array([datetime.date(1970, 1, 3), None, datetime.date(1969, 12, 31)])})
    assert IntervalEncoder("day", np.array([0.0, 2.0]), missing=True).encode(days).tolist() == [2, 3, 0]
    outside = {"net": DistinctNumbers.of(block(FRAME), "net", most=999, domain=(0.0, 1.0))}
    with pytest.raises(InputError, match="outside its domain"):
        interval_encoders(table, outside, "test")


def test_interval_labels_by_their_parts_and_middles():
    assert interval_parts("(1,  2.5]") == ("(", "1", "2.5", "]")
    assert interval_parts("1 to 2") is None
    rows = pa.table({"x": ["[20, 40)", None, "[1970-01-01, 1970-01-11)"]})
    np.testing.assert_array_equal(middles(rows, "x"), [30.0, np.nan, 5.0])
    with pytest.raises(InputError, match="withheld") as error:
        middles(pa.table({"x": ["secret"]}), "x")
    assert "secret" not in str(error.value)


def test_numbers_in_units_and_by_their_range():
    rows, net = block(FRAME), FRAME["net"].to_numpy()
    np.testing.assert_array_equal(NumericEncoder("net").encode(rows)[0], net)
    scale = Scale(np.array([20.0]), np.array([5.0]))
    np.testing.assert_array_equal(scale.upright.to_units(net[None]), (net[None] - 20.0) / 5.0)
    np.testing.assert_allclose(scale.to_original(scale.to_units(net[:, None])), net[:, None])
    encoded = RangeEncoder("net", NumberRange.of(rows, "net")).encode(rows)
    wanted = (net - np.nanmin(net)) / (np.nanmax(net) - np.nanmin(net))
    np.testing.assert_array_equal(encoded, [np.where(np.isnan(net), 0.5, wanted), np.isnan(net)])


def test_one_hot_and_dummies_are_those_of_pandas():
    rows = block(FRAME)
    found = TextCounts.of(rows, "job", most=9)
    encoded = OneHotEncoder("job", category_encoder("job", found, "test")).encode(rows)
    np.testing.assert_array_equal(encoded.T, pd.get_dummies(FRAME["job"], dummy_na=True).to_numpy())
    predictors = find_predictors(as_table(FRAME, "test"), ["age", "job"], "test")
    assert predictors.names == ("age", "job=clerk", "job=judge")
    assert predictors.sources == ("age", "job", "job")
    wanted = pd.get_dummies(FRAME["job"], dtype=float)[["clerk", "judge"]].where(FRAME["job"].notna(), axis=0)
    np.testing.assert_array_equal(predictors.values(rows), np.vstack([FRAME["age"], wanted.to_numpy().T]))
    with pytest.raises(InputError, match="a level here that was not there"):
        predictors.values(block(FRAME.assign(job="king")))


def test_values_of_any_type_have_codes_and_shares():
    table = as_table(FRAME, "test")
    encoders = value_encoders([table, table], ["job", "age"], "test")
    shares = code_shares(table, encoders, "test")
    assert sorted(shares["job"]) == pytest.approx(sorted(FRAME["job"].value_counts(normalize=True, dropna=False)))
    assert shares["age"][:-1] == pytest.approx(FRAME["age"].value_counts(normalize=True).sort_index().to_numpy())
    assert shares["age"][-1] == 0.0


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_encoders_do_not_depend_on_partitions(parts):
    table = partitioned(parts)
    looks = {
        "job": lambda rows, name: TextCounts.of(rows, name, most=9),
        "age": lambda rows, name: DistinctNumbers.of(rows, name, most=9),
        "net": NumberRange.of,
        "band": NumberRange.of,
    }
    found = learn(table, looks, "test")
    whole = {name: look(block(FRAME), name) for name, look in looks.items()}
    assert (found["job"], found["net"], found["band"]) == (whole["job"], whole["net"], whole["band"])
    assert found["age"].values.tolist() == whole["age"].values.tolist()
    assert found["age"].many
    both = EncodedColumns(find_predictors(table, ["job", "age"], "test").parts)
    np.testing.assert_array_equal(
        both.values(block(FRAME)), find_predictors(as_table(FRAME, "test"), ["job", "age"], "test").values(block(FRAME))
    )


def test_too_many_texts_are_known_as_such():
    many = TextCounts.of(pa.table({"x": [str(number) for number in range(12)]}), "x", most=5)
    few = TextCounts.of(pa.table({"x": ["a"]}), "x", most=5)
    assert many.many
    assert few.plus(many).many
    assert many.plus(few).many
    with pytest.raises(JobError, match="more than 5 different values"):
        category_encoder("x", many, "test")


@pytest.mark.parametrize("summary", [column_moments, covariance_sums])
def test_refusals_read_any_summary(summary):
    def found(*columns):
        return summary([np.array(values, float) for values in columns])

    with pytest.raises(InputError, match="column 'b' holds infinite values in 1 records"):
        checks.require_spread(found([1, 2], [np.inf, 1]), ["a", "b"], "test")
    with pytest.raises(InputError, match="column 'a' has no value in any record"):
        checks.require_spread(found([np.nan, np.nan]), ["a"], "test")
    with pytest.raises(InputError, match="column 'a' is constant"):
        checks.require_spread(found([3, 3]), ["a"], "test")
    with pytest.raises(InputError, match="column 'a' is missing in 1 records, so"):
        checks.require_complete(found([3, np.nan]), ["a"], 2, "test", ", so")
    with pytest.raises(InputError, match="column 'a' has missing or infinite values, which cannot be turned"):
        checks.require_finite_rows([np.array([np.nan])], ["a"], "test", "turned")
