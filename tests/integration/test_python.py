"""The Python interface: any frame in, the same kind out."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from bad_incomes import BAD_INCOMES
from conftest import people, write_lake

import dpmask
from dpmask.errors import DpmaskError, InputError, JobError

NOISE = dpmask.NoiseAddition(columns=["income", "rate"], scale=0.1)


@pytest.fixture
def frame():
    return people(1000).to_pandas().set_index(np.arange(1000) * 3 + 5)


def test_pandas_in_pandas_out(frame):
    before = frame.copy()
    masked = NOISE.fit(frame, seed=7).mask(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert masked.index.equals(frame.index)
    assert (masked.dtypes == frame.dtypes).all()
    pd.testing.assert_frame_equal(masked.drop(columns=["income", "rate"]), frame.drop(columns=["income", "rate"]))
    assert masked["rate"].isna().equals(frame["rate"].isna())
    assert (masked["income"] != frame["income"]).all()


def test_noise_does_not_depend_on_partitions(frame, partitions):
    """With an empty partition among them."""
    parts = [frame.iloc[:0], *np.array_split(np.arange(len(frame)), partitions)]
    pieces = [part if isinstance(part, pd.DataFrame) else frame.iloc[part] for part in parts]
    given = dd.concat([dd.from_pandas(piece, npartitions=1) for piece in pieces])
    fitted = NOISE.fit(given, seed=7)
    masked = fitted.mask(given)
    assert isinstance(masked, dd.DataFrame)
    alone = NOISE.fit(frame, seed=7)
    assert fitted.deviations == pytest.approx(alone.deviations, rel=1e-12)
    found = masked.compute()
    assert found.index.equals(frame.index)
    np.testing.assert_allclose(found["income"], alone.mask(frame)["income"], rtol=1e-9)


def test_a_lake_in_a_dask_frame_out(tmp_path, frame):
    write_lake(tmp_path / "lake", people(1000), files=3)
    lake = dpmask.read_lake(str(tmp_path / "lake"), block_rows=150)
    masked = NOISE.fit(lake, seed=7).mask(lake)
    assert masked.npartitions == len(lake.blocks)
    found = masked.compute()
    assert found.index.tolist() == list(range(1000))
    np.testing.assert_allclose(found["income"], NOISE.fit(frame, seed=7).mask(frame)["income"], rtol=1e-9)
    loss = dpmask.utility.il1s(lake, masked, columns=NOISE.columns)
    assert loss.value == pytest.approx(
        dpmask.utility.il1s(frame, NOISE.fit(frame, seed=7).mask(frame), columns=NOISE.columns).value
    )


def test_a_lake_keeps_its_types_in_dask(tmp_path):
    table = people(1000)
    write_lake(tmp_path / "lake", table, files=3)
    lake = dpmask.read_lake(str(tmp_path / "lake"), block_rows=150)
    given = lake.to_dask()
    found = given.compute()
    expected = {
        "id": "int64",
        "age": "int32",
        "children": "Int8",
        "income": "float64",
        "rate": "float32",
        "member": "boolean",
    }
    assert {name: str(found[name].dtype) for name in expected} == expected
    assert str(found["money"].dtype) == "decimal128(12, 2)[pyarrow]"
    assert str(found["born"].dtype) == "date32[day][pyarrow]"
    assert str(found["seen"].dtype) == "datetime64[us, UTC]"
    assert list(found["region"].cat.categories) == ["north", "south", "east"]
    for name in table.schema.names:
        assert found[name].dtype == given.dtypes[name], name
        values = [None if pd.isna(value) else value for value in found[name].tolist()]
        assert values == table[name].to_pylist() or name == "rate", name


def test_read_lake_keeps_some_columns(tmp_path):
    write_lake(tmp_path / "lake", people(1000), files=2)
    lake = dpmask.read_lake(str(tmp_path / "lake"), columns=["name", "age"])
    assert list(lake.to_dask().columns) == ["name", "age"]
    with pytest.raises(JobError, match=r"no column 'agee' in the table. Did you mean 'age'"):
        dpmask.read_lake(str(tmp_path / "lake"), columns=["agee"])
    with pytest.raises(JobError, match="block_rows must be an integer >= 1; got 0"):
        dpmask.read_lake(str(tmp_path / "lake"), block_rows=0)


def test_a_fit_is_lazy_in_masking(frame):
    given = dd.from_pandas(frame, npartitions=3)
    masked = NOISE.fit(given, seed=7).mask(given)
    with dask.config.set(scheduler="synchronous"):
        assert len(masked.partitions[1].compute()) == len(given.partitions[1].compute())


def test_masking_without_key_or_seed_is_refused(frame):
    with pytest.raises(JobError, match=r"give either key= .a secret. or seed="):
        NOISE.fit(frame)


def test_a_small_noise_on_integers_is_warned_of(frame):
    with pytest.warns(UserWarning, match="of the values of 'age' stay as they are"):
        dpmask.NoiseAddition(columns=["age"], scale=0.01).fit(frame, seed=1)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda f: f.assign(income=np.inf), InputError, "holds infinite values in 1000 records"),
        *BAD_INCOMES,
        (lambda f: f["income"], JobError, "must be a lake, a pandas or a Dask DataFrame, .*; got Series"),
    ],
)
@pytest.mark.parametrize("kind", ["pandas", "dask"])
def test_bad_frames(frame, change, error, text, kind):
    given = change(frame)
    if kind == "dask" and not given.columns.has_duplicates if isinstance(given, pd.DataFrame) else False:
        given = dd.from_pandas(given, npartitions=2)
    with pytest.raises(error, match=text):
        NOISE.fit(given, seed=1)


def test_il1s_by_hand():
    original = pd.DataFrame({"a": [0.0, 2, 4], "b": [1.0, 1, 4]}, index=[3, 4, 5])
    masked = pd.DataFrame({"a": [4.0, 3, 0], "b": [1.0, np.nan, 1]}, index=[5, 4, 3])
    loss = dpmask.utility.il1s(original, masked, columns=["a", "b"])
    # a: one pair moved by 1, sd 2; b: pairs (1, 1) and (4, 1) moved by 3 in all, sd sqrt(3)
    assert loss.parts["a"] == pytest.approx(1 / 3 / (np.sqrt(2) * 2))
    assert loss.parts["b"] == pytest.approx(3 / 2 / np.sqrt(6))
    assert loss.value == pytest.approx((loss.parts["a"] + loss.parts["b"]) / 2)
    assert loss.to_dict()["value"] == loss.value
    assert "larger means more information lost" in loss.explain()


def test_frames_pair_by_a_unique_index():
    frame = pd.DataFrame({"a": [0.0, 2, 4]}, index=[1, 1, 2])
    for given in (frame, dd.from_pandas(frame.sort_index(), npartitions=1)):
        with pytest.raises(JobError, match="must be unique in both"):
            dpmask.utility.il1s(given, given, columns=["a"])


@pytest.mark.parametrize("kind", ["embedded", "cluster"])
def test_a_lazy_mask_quotes_no_value(frame, kind, request, capfd):
    """Another table than was fitted, with text in a masked column."""
    client = request.getfixturevalue("client") if kind == "cluster" else None
    fitted = NOISE.fit(frame, seed=7)
    text = dd.from_pandas(frame.assign(income="4711-secret"), npartitions=2)
    with pytest.raises(JobError, match="column 'income' must be numeric"):
        fitted.mask(text)
    sly = text.map_partitions(lambda part: part, meta=frame.iloc[:0])
    with pytest.raises(DpmaskError) as caught:
        fitted.mask(sly).compute()
    logs = str(client.get_worker_logs()) if client else ""
    assert "4711" not in str(caught.value) + logs + "".join(capfd.readouterr())


def test_two_fits_do_not_share_their_noise(frame):
    def noise(scale, table):
        fitted = dpmask.NoiseAddition(columns=["income"], scale=scale).fit(table, seed=7)
        return (fitted.mask(table)["income"] - table["income"]).to_numpy()[:900]

    for other in (noise(0.3, frame), noise(0.1, frame.iloc[:950])):
        assert abs(np.corrcoef(noise(0.1, frame), other)[0, 1]) < 5 / np.sqrt(900)


def test_a_lake_shows_no_value(tmp_path):
    write_lake(tmp_path / "lake", people(1000).append_column("odd", [[4711.25] * 1000]))
    lake = dpmask.read_lake(tmp_path / "lake")
    assert "4711" not in repr(lake) + repr(lake.facts) + repr(lake.files)
    assert "1,000 rows in 4 files" in repr(lake)
    assert "read_lake" in dir(dpmask)


@pytest.mark.parametrize("key", [42, [1] * 40, None])
def test_a_key_is_text_or_bytes(frame, key):
    with pytest.raises(JobError):
        NOISE.fit(frame, key=key)
    assert NOISE.fit(frame, seed=np.int64(7)).key == NOISE.fit(frame, seed=7).key
