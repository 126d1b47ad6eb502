"""Memberships in fuzzy sets: their bounds, their types, and who is warned."""

import warnings

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from conftest import people, write_lake
from transform_tools import COMPLETE, HYBRID, NUMBERS

import dpmask
from dpmask.errors import JobError


def test_memberships_are_doubles_from_0_to_1(frame):
    fitted = dpmask.MembershipTransform(columns=NUMBERS[:4], function="s").fit(frame, seed=1)
    masked = fitted.mask(frame)
    assert set(masked[NUMBERS[:4]].dtypes.astype(str)) == {"float64"}
    for column in NUMBERS[:4]:
        assert masked[column].isna().equals(frame[column].isna())
        assert (masked[column].min(), masked[column].max()) == (0.0, 1.0)
        assert masked[column].rank().equals(frame[column].rank())
    assert "84" not in repr(fitted)  # the oldest, or any other value
    pd.testing.assert_frame_equal(masked.drop(columns=NUMBERS), frame.drop(columns=NUMBERS), check_like=True)


def test_bounds_that_are_given(frame):
    method = dpmask.MembershipTransform(columns=["age"], function="z", bounds={"age": [0, 50]})
    with pytest.warns(UserWarning, match="'age' has values outside its bounds"):
        masked = method.fit(frame, seed=1).mask(frame)
    assert (masked["age"][frame["age"] >= 50] == 0).all()
    assert masked["age"][frame["age"] == 25].iloc[0] == 0.5
    wide = dpmask.MembershipTransform(columns=["age"], function="gaussian", bounds={"age": [30, 10]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        masked = wide.fit(frame, seed=1).mask(frame)
    assert masked["age"][frame["age"] == 40].iloc[0] == pytest.approx(np.exp(-0.5))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"function": "t"}, "function must be 's' or 'z' or 'triangular' or 'gaussian'; got 't'"),
        ({"bounds": {"agee": [0, 1]}}, "bounds name 'agee'. Did you mean 'age'"),
        ({"bounds": {"age": [1, 1]}}, r"bounds of 'age' must be \[low, high\], low < high; got \[1, 1\]"),
        ({"bounds": {"age": [0, 1, 2]}}, r"bounds of 'age' must be \[low, high\]"),
        ({"bounds": {"age": 3}}, r"bounds of 'age' must be \[low, high\]"),
        ({"bounds": {"age": [0, np.inf]}}, r"bounds of 'age' must be \[low, high\]"),
        ({"bounds": [0, 1]}, "bounds must name columns"),
        ({"function": "triangular", "bounds": {"age": [0, 3, 2]}}, "low < peak < high"),
        ({"function": "gaussian", "bounds": {"age": [0, 0]}}, "the latter > 0"),
    ],
)
def test_bad_memberships(options, text):
    with pytest.raises(JobError, match=text):
        dpmask.MembershipTransform(**{"columns": ["age"], "function": "s"} | options)


def test_a_lake_in_a_dask_frame_out_with_new_types(tmp_path, frame):
    write_lake(tmp_path / "lake", people(1000), files=2)
    lake = dpmask.read_lake(str(tmp_path / "lake"), block_rows=300)
    transform = dpmask.MembershipTransform(columns=["age", "children", "money"], function="s")
    masked = transform.fit(lake, seed=1).mask(lake)
    assert isinstance(masked, dd.DataFrame)
    found = masked.compute()
    assert (found.dtypes == masked.dtypes).all()
    assert set(found[["age", "children", "money"]].dtypes.astype(str)) == {"float64"}
    assert found["money"].isna().sum() == people(1000)["money"].null_count
    alone = dpmask.MembershipTransform(columns=["age", "children"], function="s").fit(frame, seed=1).mask(frame)
    np.testing.assert_allclose(found["children"], alone["children"], rtol=1e-12)


def measured_by(ended):
    """The measures of a run beside the gate's."""
    return [one["name"] for one in ended.json["measures"] if not one["name"].startswith("gate")]


def test_a_job_takes_the_attack_on_its_method_by_itself(place):
    place.lake()
    ended = place.run("--json", mask=HYBRID[:1], order="input")
    assert measured_by(ended) == ["known_records", "repeated_linkage", "consistency"]
    assert ended.json["measures"][0]["values"]["parts"]["membership: rate"] == 1.0
    measured = [{"measure": "known_records", "columns": COMPLETE, "known": 4}]
    ended = place.run("--json", "--overwrite", mask=HYBRID, measure=measured, order="input")
    names = measured_by(ended)
    assert names == ["known_records", "known_records of membership_transform", "consistency"]  # once for both steps
    measured[0]["known"] = [6, 20, 100]
    ended = place.run("--json", "--overwrite", mask=HYBRID, measure=measured, order="input")
    assert measured_by(ended) == ["known_records", "consistency"]  # it asks for the same


def test_an_attack_that_a_table_is_too_small_for_is_a_warning(place):
    place.lake(people(6))
    ended = place.run("--json", mask=HYBRID[:1], order="input", measure=[])
    assert measured_by(ended) == ["repeated_linkage", "consistency"]
    assert ended.json["measures"][-1]["judged"]["attacks"] == 1.0, "what was not tried may succeed"
    assert any("known_records was not tried, so its risk is unknown" in warning for warning in ended.json["warnings"])
