"""Synthetic dependents with bounds and missing values, of other tables and bad ones, and in a job."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import write_lake
from synthesis_tools import COLUMNS, METHODS, models, people

import dpmask
from dpmask.errors import InputError, JobError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("name", METHODS)
def test_bounds_hold_and_are_counted(name):
    frame = people()
    bounds = ["k >= 450.5", "0 <= y <= 4"]
    parameters = vars(METHODS[name]) | {"bounds": bounds}
    fitted = type(METHODS[name])(**parameters).fit(frame, seed=1)
    masked = fitted.mask(frame)
    assert masked["k"].min() == 451
    assert masked["y"].between(0, 4).all()
    said = {column["column"]: column for column in fitted.figures.to_dict()["columns"]}
    assert said["y"]["clipped"] == int(masked["y"].isin([0.0, 4.0]).sum())
    assert said["y"]["rounded"] == 0
    assert 0 < said["k"]["clipped"] <= int((masked["k"] == 451).sum())
    assert said["k"]["rounded"] > 0.9 * len(frame) - said["k"]["clipped"]
    assert fitted.claims() == [{"columns": ["y", "k"], "constraints": bounds}]


@pytest.mark.parametrize("name", METHODS)
def test_missing_values(name, tmp_path):
    frame = people()
    frame["k"] = frame["k"].astype("Int64")
    frame.loc[:9, "x"] = np.nan
    frame.loc[20:29, "y"] = np.nan
    frame.loc[40:44, "g"] = None
    with pytest.raises(InputError, match="column 'x' is missing in 10 records"):
        METHODS[name].fit(frame, seed=1)
    parameters = vars(METHODS[name]) | {"nulls": "keep"}
    fitted = type(METHODS[name])(**parameters).fit(frame, seed=1)
    masked = fitted.mask(frame)
    gone = frame["x"].isna() | frame["g"].isna()
    assert (masked["k"].isna() == gone).all()
    assert (masked["y"].isna() == (gone | frame["y"].isna())).all()
    plain = frame.drop(columns="k").assign(k=people()["k"])
    with pytest.raises(InputError, match="Int64"):
        fitted.mask(plain)
    write_lake(tmp_path / "lake", pa.Table.from_pandas(plain, preserve_index=False))
    lake = dpmask.read_lake(str(tmp_path / "lake"))
    released = fitted.mask(lake).compute()
    assert (released["k"].isna().to_numpy() == gone.to_numpy()).all()


def test_no_record_is_complete():
    frame = people()
    odd = frame.index % 2 == 0
    for table in (
        frame.assign(x=frame["x"].where(odd), y=frame["y"].where(~odd)),
        frame.assign(
            x=np.where(frame.index == 5, 1.0, np.nan), y=frame["y"].where(frame.index != 5)
        ),  # no start sees it
    ):
        for name, told in (("each", "no record without missing values"), ("ipso", "records without missing values")):
            parameters = vars(METHODS[name]) | {"nulls": "keep"}
            with pytest.raises(InputError, match=told):
                type(METHODS[name])(**parameters).fit(table, seed=1)


def test_other_tables():
    frame = people()
    fitted = METHODS["each"].fit(frame, seed=1)
    with pytest.raises(InputError, match="has a level here") as caught:
        fitted.mask(frame.assign(g="zz"))
    assert "zz" not in str(caught.value)
    with pytest.raises(InputError, match="missing values"):
        fitted.mask(frame.assign(x=np.nan))
    with pytest.raises(InputError, match="infinite"):
        fitted.mask(frame.assign(y=np.inf))
    with pytest.raises(JobError, match="must be numeric"):
        fitted.mask(frame.assign(y="a"))


def test_bad_parameters_and_tables():
    frame = people()
    for method, wrong, told in (
        (models, {"dependents": ["y", "x"]}, "either in dependents or in independents"),
        (models, {"clusters": 0}, "clusters must be an integer >= 1"),
        (models, {"minimum_size": 0}, "minimum_size"),
        (models, {"joint": 1}, "joint must be true or false"),
        (models, {"nulls": "drop"}, "nulls must be 'refuse' or 'keep'"),
        (models, {"bounds": ["y = 3"]}, "got an equality"),
        (models, {"bounds": ["z >= 3"]}, "z"),
        (models, {"independents": []}, "independents"),
        (models, {"weight": "y"}, "weight must name a column other than"),
        (models, {"weight": 3}, "weight must name a column"),
    ):
        with pytest.raises(JobError, match=told):
            method(**wrong)
    with pytest.raises(JobError, match="variant must be 'A' or 'B' or 'C'"):
        dpmask.IPSO(variant="D", **COLUMNS)
    for table, told in (
        (frame.assign(y=1.0), "'y' is constant"),
        (frame.assign(x=np.inf), "infinite"),
        (frame.assign(x=np.nan), "no value in any record"),
        (frame.assign(g=[str(n) for n in range(len(frame))]), "more than 200 levels"),
        (frame.head(2), "records"),
        (frame.assign(g=pd.Timestamp("2020-01-01")), "must be numeric, text or true/false"),
    ):
        for method in METHODS.values():
            with pytest.raises((InputError, JobError), match=told):
                method.fit(table, seed=1)
    for weights, told in (
        (-1.0, "'w' must hold a number >= 0"),
        (np.nan, "'w' must hold a number >= 0"),
        (0.0, "'w' must be above 0 in a record"),
        ("a", "must be numeric"),
    ):
        with pytest.raises((InputError, JobError), match=told):
            METHODS["joint"].fit(frame.assign(w=weights), seed=1)
    with pytest.raises(JobError, match="'ww'"):
        models(weight="ww").fit(frame, seed=1)
    with pytest.raises(JobError, match="seed="):
        models().fit(frame)
    with pytest.raises(JobError, match="must stand once"):
        dpmask.FuzzyCRegression(clusters=2).fit(frame, dependents=["y"], independents=["x", "y"])
    constant = frame.assign(b=True, g=1.0)  # says nothing, and harms nothing
    assert models().fit(constant, seed=1).mask(constant)["y"].notna().all()


@pytest.mark.parametrize("method", ["regression_synthesis", "ipso"])
def test_in_a_job(place, method):
    place.lake(pa.Table.from_pandas(people(600), preserve_index=False))
    own = {"clusters": 3, "residual_noise": True} if method == "regression_synthesis" else {"variant": "C"}
    job = {
        "columns": {"identifier": ["other"], "quasi": ["x", "g", "b"], "sensitive": ["y", "k"], "weight": ["w"]},
        "mask": [{"method": method, **COLUMNS, **own, "weight": "w", "bounds": ["k >= 0"]}],
        "measure": [{"measure": "il1s", "columns": ["y", "k"]}],
        "policy": [f"{method}.reproduced <= 0.5", f"{method}.small <= 0"],
    }
    ended = place.run("--json", **job)
    assert ended.code == 0, ended.err
    outcome = ended.json
    assert outcome["steps"][0]["figures"]["columns"][0]["column"] == "y"
    assert outcome["policy"][0]["held"]
    manifest, released = place.released()
    assert released.num_rows == 600
    assert manifest["claims"] == [{"columns": ["y", "k"], "constraints": ["k >= 0"]}]
    assert "figures" not in json.dumps(manifest["steps"])
    assert place.dpmask("verify", "release").code == 0
    first = place.bytes()
    refused = place.run("--json", **job | {"policy": [f"{method}.smallest >= 5000"], "target": "other"})
    assert refused.code == 3
    again = place.run("--overwrite", **job | {"target": "again"})
    assert again.code == 0
    assert place.bytes("again") == first
