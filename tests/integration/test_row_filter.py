"""Some rows of a lake: `where` in jobs and read_lake, against pandas; what footers decide is not read."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import people, write_lake

import dpmask
from dpmask.errors import InputError, JobError
from dpmask.lake.reading import FilteredBlock, LakeBlock

ROWS = 600


def mixed(rows=ROWS):
    """Every kind of column that can be compared, with missing values and NaN."""
    rng = np.random.default_rng(5)
    n = np.arange(rows)
    return pa.table(
        {
            "n": pa.array(n, pa.int32()),
            "year": pa.array(2020 + n // 100, pa.int16()),
            "x": pa.array(np.where(n % 10 == 0, np.nan, rng.normal(size=rows)), mask=n % 7 == 0),
            "d": pa.array([None if i % 9 == 0 else dt.date(2026, 1, 1) + dt.timedelta(int(i)) for i in n]),
            "t": pa.array([dt.datetime(2026, 1, 1) + dt.timedelta(hours=int(i)) for i in n], pa.timestamp("us", "UTC")),
            "s": pa.array([None if i % 11 == 0 else "abcde"[i // 120] for i in n]),
            "c": pa.array([f"k {i % 3}" for i in n]).dictionary_encode(),
            "b": pa.array([None if i % 5 == 0 else bool(i % 2) for i in n]),
            "m": pa.array([f"{i}.50" for i in n]).cast(pa.decimal128(9, 2)),
        }
    )


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Four files with three row groups each."""
    folder = tmp_path_factory.mktemp("filtered")
    table = mixed()
    for number in range(4):
        pq.write_table(table.slice(150 * number, 150), folder / f"part-{number}.parquet", row_group_size=50)
    return folder


@pytest.mark.parametrize(
    ("where", "query"),
    [
        ("year = 2023", "year == 2023"),
        ("year != 2023 and n < 410.5", "year != 2023 and n < 410.5"),
        ("n in (3, 77, 599, 9999999999)", "n in (3, 77, 599)"),
        ("x != 0", "x == x"),
        ("x > -0.5 and x <= 0.5", "x > -0.5 and x <= 0.5"),
        ("d >= 2026-11-01", "d == d and d >= @day"),
        ("t < '2026-01-09 12:00:00' and c = 'k 1'", "t < @moment and c == 'k 1'"),
        ("s > b", "s > 'b'"),
        ("s in ('a', 'e') and b = true", "s in ('a', 'e') and b == True"),
        ("m = 7.5", "n == 7"),
        ("m < 7.501", "n <= 7"),
    ],
)
def test_the_rows_that_pandas_takes(lake, where, query):
    frame = mixed().to_pandas().assign(d=lambda frame: pd.to_datetime(frame["d"]))
    named = {"day": pd.Timestamp(2026, 11, 1), "moment": pd.Timestamp("2026-01-09 12:00", tz="UTC")}
    wanted = frame.query(query, local_dict=named, engine="python")["n"].tolist()
    assert 0 < len(wanted) < ROWS
    for block_rows in (30, 50, 120, 1000):
        found = dpmask.read_lake(lake, where=where, block_rows=block_rows)
        assert (found.rows, found.to_dask()["n"].compute().tolist()) == (len(wanted), wanted)
        assert max(block.rows for block in found.blocks) <= block_rows
        assert found.to_dask().compute().index.tolist() == list(range(len(wanted)))
    few = dpmask.read_lake(lake, where=where, columns=["c", "n"])
    assert few.schema.names == ["c", "n"]
    assert few.to_dask().compute()["n"].tolist() == wanted


def test_footers_decide_what_is_read(lake, monkeypatch):
    """Row groups out of the range are not read, those inside are read as they are, and only the rest is counted."""
    read = []
    real = LakeBlock.read
    monkeypatch.setattr(LakeBlock, "read", lambda self, columns: read.append(self) or real(self, columns))
    whole = dpmask.read_lake(lake, where="year in (2021, 2022)", block_rows=50)
    assert (whole.rows, read, len(whole.blocks)) == (200, [], 4)
    assert all(isinstance(block.content, LakeBlock) for block in whole.blocks)
    part = dpmask.read_lake(lake, where="n >= 120 and n < 260", block_rows=50)
    assert (part.rows, len(read), len(part.blocks)) == (140, 2, 4)
    assert [isinstance(block.content, FilteredBlock) for block in part.blocks] == [True, False, False, True]


def test_what_footers_say_of_other_rows_is_not_believed(tmp_path):
    """Ranges and nulls are those of whole files: a column may be constant, or complete, in the rows that are taken."""
    table = pa.table({"g": [0, 1] * 50, "x": [1.0 if i % 2 else None if i % 4 else i for i in range(100)]})
    pq.write_table(table, tmp_path / "a.parquet")
    lake = dpmask.read_lake(tmp_path, where="g = 1")
    assert (lake.facts["x"].nulls, lake.facts["x"].low, lake.facts["g"].nulls) == (None, None, 0)
    with pytest.raises(InputError, match=r"constant|the same"):
        dpmask.NoiseAddition(columns=["x"], scale=0.1).fit(lake, seed=1)


def test_floats_without_a_number_and_codes_are_in_no_range(tmp_path):
    table = pa.table({"x": [1.0, 1.0, float("nan")], "n": [1, 1, 1], "k": [7, 7, 7]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert dpmask.read_lake(tmp_path, where="x = 1").rows == 2
    with pytest.raises(InputError, match="has no rows where k = 7 in 1 file"):
        dpmask.read_lake(tmp_path, where="k = 7", missing={"k": [7]})


def test_hive_folders_and_columns_together(tmp_path):
    """A key's type is that of all folders: a filter does not change the schema."""
    for month in ("01", "02", "11"):
        write_lake(tmp_path / "lake" / f"month={month}", people(100), files=1)
    write_lake(tmp_path / "lake" / "month=__HIVE_DEFAULT_PARTITION__", people(100), files=1)
    (tmp_path / "lake" / "month=01" / "broken.parquet").write_bytes(b"nothing")
    lake = dpmask.read_lake(tmp_path / "lake", where="month >= 02 and age < 50")
    assert lake.schema.field("month").type == pa.string()
    ages = np.array(people(100)["age"].to_pylist(), float)
    assert lake.rows == 2 * (ages < 50).sum()
    assert len(lake.files) == 2
    above = dpmask.read_lake(tmp_path / "lake" / "month=11", where="month = 11")
    assert above.rows == 100
    with pytest.raises(InputError, match="no file is in a folder where month = 12"):
        dpmask.read_lake(tmp_path / "lake", where="month = 12")


def test_csv_and_unions_are_filtered_by_reading(tmp_path):
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text("year,n\n2025,1\n2026,2\n")
    (tmp_path / "csv" / "b.csv").write_text("n\n3\n")
    lake = dpmask.read_lake(tmp_path / "csv", schema="union", where="year = 2026")
    assert lake.to_dask().compute()["n"].tolist() == [2]


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("yaer = 2026", "there is no column 'yaer'. Did you mean 'year'?"),
        ("year = soon", "column 'year' holds numbers; it cannot be compared with 'soon'."),
        ("d > 7", "column 'd' is date32[day]; it cannot be compared with '7'."),
        ("b = yes", "column 'b' is bool; it cannot be compared with 'yes'."),
        ("n = 1e999999999", "it cannot be compared with '1e999999999'"),
        ("n >= 5 or", "'n >= 5 or' must read COLUMN = VALUE"),
        ("year", "'year' must read COLUMN = VALUE"),
        ("year = 1 and", "'year = 1 and' must read COLUMN = VALUE"),
    ],
)
def test_filters_that_are_refused(lake, where, text):
    with pytest.raises(JobError) as refused:
        dpmask.read_lake(lake, where=where)
    assert text in str(refused.value)


def test_a_job_releases_the_rows_it_asks_for(place):
    """The filter is part of the run's identity, and stands in no public file."""
    table = people(600)
    place.lake(table, files=2)
    ended = place.run(where="age < 40", order="input")
    assert ended.code == 0, ended.err
    young = table.to_pandas().query("age < 40")["name"].tolist()
    manifest, released = place.released()
    assert released["name"].to_pylist() == young
    assert "age < 40" not in json.dumps(manifest)
    again = place.run(where="age < 40", order="input")
    assert (again.code, "nothing was changed" in again.out) == (0, True)
    other = place.run(where="age < 41", order="input")
    assert (other.code, "holds another release" in other.err) == (2, True)
    planned = place.dpmask("plan", place.job(where="age < 40", target="planned"))
    assert (planned.code, f"{len(young):,} rows" in planned.out) == (0, True), planned.out + planned.err
    wrong = place.run(where="agee < 40", target="other")
    assert (wrong.code, "where" in wrong.err, "Did you mean 'age'?" in wrong.err) == (2, True, True)
    broken = place.run(where="age", target="other")
    assert (broken.code, "where: 'age' must read COLUMN = VALUE" in broken.err) == (2, True)


def test_the_same_bytes_on_a_cluster(place, cluster):
    place.lake(people(600), files=3)
    said = {"where": "age >= 30 and age < 60", "block_rows": 70}
    assert place.run("--scheduler", cluster.scheduler_address, **said).code == 0
    assert place.run(**said, target="again").code == 0
    assert place.bytes() == place.bytes("again")
