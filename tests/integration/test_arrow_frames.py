"""Frames that speak Arrow (polars, pyarrow, duckdb, narwhals): the same numbers as pandas, the same kind out."""

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pytest
from conftest import people, write_lake

import dpmask
from dpmask.errors import JobError

polars = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
narwhals = pytest.importorskip("narwhals")

NOISE = dpmask.NoiseAddition(columns=["age", "income", "rate"], scale=0.1)
KINDS = {
    "pyarrow": lambda table: table,
    "polars": polars.from_arrow,
    "duckdb": duckdb.from_arrow,
    "narwhals": lambda table: narwhals.from_native(polars.from_arrow(table)),
}


@pytest.fixture(params=KINDS)
def frame(request):
    return KINDS[request.param](people(500))


def column(frame, name):
    return np.array(pa.table(frame)[name].to_numpy(), float)


def test_masked_as_pandas_is_and_the_same_kind(frame, limit):
    limit(frame_rows=70)
    whole = people(500).to_pandas()
    fitted = NOISE.fit(frame, seed=7)
    assert fitted.key == NOISE.fit(whole, seed=7).key
    masked = fitted.mask(frame)
    assert type(masked) is type(frame)
    expected, found = NOISE.fit(whole, seed=7).mask(whole), pa.table(masked)
    assert found.schema.equals(pa.table(frame).schema)
    for name in NOISE.columns:
        np.testing.assert_array_equal(column(masked, name), expected[name].to_numpy(float))
    for name in found.schema.names:
        if name not in NOISE.columns:
            assert found[name].to_pylist() == pa.table(frame)[name].to_pylist(), name
    loss = dpmask.utility.il1s(frame, masked, columns=list(NOISE.columns[:2]))
    assert loss.value == pytest.approx(dpmask.utility.il1s(whole, expected, columns=list(NOISE.columns[:2])).value)
    risk = dpmask.risk.distance_linkage(frame, masked, columns=["age", "income"])
    assert risk.rate == dpmask.risk.distance_linkage(whole, expected, columns=["age", "income"]).rate


def test_records_that_meet_and_clusters(frame):
    whole = people(500).to_pandas()
    swapping = dpmask.RankSwapping(columns=["income"], window=0.1)
    assert (
        pa.table(swapping.fit(frame, seed=7).mask(frame))["income"].to_pylist()
        == swapping.fit(whole, seed=7).mask(whole)["income"].tolist()
    )
    fitted = dpmask.FuzzyCMeans(clusters=3).fit(frame, columns=["age", "income"])
    found = fitted.memberships(frame)
    assert type(found) is type(frame)
    np.testing.assert_array_equal(
        np.array([pa.table(found)[name].to_numpy() for name in pa.table(found).schema.names]).T,
        fitted.memberships(whole).to_numpy(),
    )


def test_records_that_are_left_out(frame):
    refinement = dpmask.TopDownRefinement(
        requirements=[{"columns": ["age", "region"], "k": 20}],
        taxonomies={"region": {"land": {"coast": ["north", "east"], "inland": ["south"]}}},
        domains={"age": [0, 100]},
        suppress_records=0.2,
    )
    whole = people(500).to_pandas()
    masked, expected = refinement.fit(frame, seed=7).mask(frame), refinement.fit(whole, seed=7).mask(whole)
    found = pa.table(masked)
    assert found["name"].to_pylist() == expected["name"].tolist()
    assert found["region"].to_pylist() == expected["region"].tolist()
    assert found.num_rows == 428
    with pytest.raises(JobError, match="records pair by position, so both tables must have as many"):
        dpmask.utility.il1s(frame, masked, columns=["income"])


def test_polars_keeps_its_categories():
    frame = polars.from_arrow(people(300)).with_columns(polars.col("region").cast(polars.Categorical))
    masked = NOISE.fit(frame, seed=7).mask(frame)
    assert masked.schema == frame.schema
    assert masked["region"].to_list() == frame["region"].to_list()


@pytest.mark.parametrize("lazy", [True, False])
def test_what_is_lazy_and_what_is_not(tmp_path, monkeypatch, lazy):
    """Lakes and Dask frames are masked when the frame they give is computed; all others at once."""
    from dpmask.masking.noise import FittedNoise

    whole, masked = people(300).to_pandas(), []
    real = FittedNoise.mask_rows
    monkeypatch.setattr(
        FittedNoise, "mask_rows", lambda self, rows, first: masked.append(rows.num_rows) or real(self, rows, first)
    )
    write_lake(tmp_path / "lake", people(300).drop_columns(["region"]))
    tables = (
        [dpmask.read_lake(tmp_path / "lake"), dd.from_pandas(whole, npartitions=3)]
        if lazy
        else [whole, people(300), polars.from_arrow(people(300))]
    )
    for table in tables:
        fitted = NOISE.fit(table, seed=7)
        found = fitted.mask(table)
        assert sum(masked) == (0 if lazy else 300)
        masked.clear()
        if lazy:
            assert len(found.compute()) == sum(masked) == 300
            masked.clear()


def test_frames_that_are_refused(frame):
    with pytest.raises(JobError, match=r"got LazyFrame\. Compute it: frame\.collect\(\)"):
        NOISE.fit(polars.from_arrow(people(50)).lazy(), seed=7)
    with pytest.raises(JobError, match="a stream can be read only once"):
        NOISE.fit(people(50).to_reader(), seed=7)
    with pytest.raises(JobError, match="there is no column 'agee' in the table"):
        dpmask.NoiseAddition(columns=["agee"], scale=0.1).fit(frame, seed=7)


def test_a_dask_frame_keeps_what_it_is():
    whole = (
        people(300).to_pandas().convert_dtypes(dtype_backend="pyarrow").astype({"region": "category"}).set_index("id")
    )
    frame = dd.from_pandas(whole, npartitions=4)
    masked = NOISE.fit(frame, seed=7).mask(frame)
    assert (masked.divisions, masked.dtypes.to_dict(), masked.index.name) == (
        frame.divisions,
        frame.dtypes.to_dict(),
        "id",
    )
    found = masked.compute()
    assert found.dtypes.to_dict() == frame.compute().dtypes.to_dict()
    assert found["region"].cat.categories.equals(whole["region"].cat.categories)
    assert found.index.equals(whole.index)


def test_a_mixture_of_kinds_pairs_by_position():
    table = people(300)
    masked = NOISE.fit(table, seed=7).mask(table)
    both = [
        dpmask.utility.il1s(one, polars.from_arrow(masked), columns=["income"]).value
        for one in (table, table.to_pandas())
    ]
    assert both[0] == pytest.approx(both[1])
