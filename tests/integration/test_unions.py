"""Lakes whose schema changed over the years: refused, or read as a union where the job declares it."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmask
from dpmask.errors import InputError, JobError

OLD = pa.table(
    {
        "n": pa.array([1, 2, None], pa.int32()),
        "x": pa.array([0.5, 1.5, 2.5], pa.float32()),
        "name": pa.array(["a", "b", None]),
        "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
        "empty": pa.nulls(3),
    }
)
NEW = pa.table(
    {
        "kind": pa.array(["w", None, "v"]).dictionary_encode(),
        "n": pa.array([2**40, 5, 6], pa.int64()),
        "x": pa.array([0.1, 1.1, 2.1], pa.float64()),
        "name": pa.array(["c", "d", "e"], pa.large_string()),
        "empty": pa.array([7, None, 9], pa.int16()),
        "more": pa.array([1.0, None, 3.0]),
    }
)
SCHEMA = {
    "n": pa.int64(),
    "x": pa.float64(),
    "name": pa.large_string(),
    "kind": pa.string(),
    "empty": pa.int16(),
    "more": pa.float64(),
}


def written(folder, *tables):
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"part-{number}.parquet")
    return folder


@pytest.mark.parametrize("block_rows", [2, 4, 100])
def test_a_union_has_what_every_file_has(tmp_path, block_rows):
    lake = dpmask.read_lake(written(tmp_path / "lake", OLD, NEW, OLD), schema="union", block_rows=block_rows)
    assert dict(zip(lake.schema.names, lake.schema.types, strict=True)) == SCHEMA
    names = lake.schema.names
    found = pa.concat_tables([block.content.read(names) for block in lake.blocks])
    wanted = [{name: row.get(name) for name in names} for table in (OLD, NEW, OLD) for row in table.to_pylist()]
    assert found.to_pylist() == wanted
    nulls = {name: sum(row[name] is None for row in wanted) for name in names} | {"empty": None}  # no footer says it
    assert {name: fact.nulls for name, fact in lake.facts.items()} == nulls
    only = lake.blocks[0].content.read(["more"])  # a column that the file has not
    assert only["more"].null_count == only.num_rows - sum(row["more"] is not None for row in wanted[: only.num_rows])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda old: old, r"column 'n' is int64, the lake's schema says int32.*, or declare schema: union"),
        (
            lambda old: old.select(["n"]).cast(pa.schema([("n", pa.int64())])),
            r"column 'kind' is not.*With schema: union",
        ),
        (
            lambda old: NEW.append_column("gone", [[1, 2, 3]]),
            r"column 'gone' is missing.*With schema: union it is null",
        ),
    ],
)
def test_strict_says_how_to_switch(tmp_path, change, text):
    source = written(tmp_path / "lake", change(OLD), NEW)
    with pytest.raises(InputError, match=text):
        dpmask.read_lake(source)
    assert dpmask.read_lake(source, schema="union").rows == 6


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.uint64(), pa.bool_()])
def test_types_of_which_none_holds_both_are_refused(tmp_path, kind):
    source = written(tmp_path / "lake", OLD.select(["n"]), pa.table({"n": pa.nulls(1, kind)}))
    with pytest.raises(InputError, match=r"part-1\.parquet: column 'n' is .*, in files before it int32, and no type"):
        dpmask.read_lake(source, schema="union")
    with pytest.raises(InputError, match=r"says int32\. Write the file again with int32\.$"):
        dpmask.read_lake(source)


def test_a_folder_key_that_another_file_has_as_a_column(tmp_path):
    source = tmp_path / "lake"
    for year, table in ((1, OLD), (2, NEW)):
        (source / f"year={year}").mkdir(parents=True)
        pq.write_table(table, source / f"year={year}" / "part.parquet")
    lake = dpmask.read_lake(source, schema="union")
    assert lake.to_dask()["year"].compute().tolist() == [1, 1, 1, 2, 2, 2]
    assert lake.facts["year"].nulls is None


def test_csv_files_of_two_years(tmp_path):
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.csv").write_text("n,name\n1,x\n2,y\n")
    (tmp_path / "lake" / "b.csv").write_text("name,n,more\nz,3,0.5\n")
    lake = dpmask.read_lake(tmp_path / "lake", schema="union")
    frame = lake.to_dask().compute()
    assert frame["n"].tolist() == [1, 2, 3]
    assert frame["more"].isna().tolist() == [True, True, False]


def test_a_job_declares_it(place):
    written(place.folder / "lake", *(table.slice(start) for table in (OLD, NEW) for start in range(3)))
    columns = {"identifier": ["empty"], "sensitive": ["n", "x", "more"], "plain": ["name", "kind"]}
    said = {"columns": columns, "mask": [{"method": "noise", "columns": ["n", "x", "more"], "scale": 0.1}]}
    refused = place.run(**said)
    assert (refused.code, "declare schema: union" in refused.err) == (4, True)
    ended = place.run(**said, schema="union", order="input")
    assert ended.code == 0, ended.err
    released = place.released()[1]
    assert released["more"].null_count == 6 + 2
    assert released.schema.field("kind").type == pa.string()
    wrong = place.run(**said, schema="onion")
    assert (wrong.code, "schema: must be 'strict' or 'union'" in wrong.err) == (2, True)


def test_another_rule_is_refused(tmp_path):
    with pytest.raises(JobError, match="schema must be strict or union; got 'loose'"):
        dpmask.read_lake(tmp_path, schema="loose")
