"""Distributions and correlations of two tables: exact, the same for any partitioning, nothing of the original in public."""

import numpy as np
import pyarrow as pa
import pytest
from conftest import people, write_lake

import dpmask
from dpmask.job.account import account
from dpmask.report.compared import ComparedCategories, Correlations, NotDrawn
from dpmask.report.comparison import compare
from dpmask.report.distributions import correlation_change, drawn_columns, public_columns
from dpmask.table.alignment import pair_by_column
from dpmask.table.label_sets import through_steps

COLUMNS = ["age", "income", "rate", "money", "name", "region", "member", "born"]


def lakes(folder, rows=3000, block_rows=10**6):
    before = people(rows)
    rng = np.random.default_rng(5)
    after = before.set_column(3, "income", pa.array(before["income"].to_numpy() + rng.normal(0, 3000, rows)))
    after = after.set_column(1, "age", pa.array(np.maximum(before["age"].to_numpy() - 3, 0), pa.int32()))
    paths = write_lake(folder / "before", before), write_lake(folder / "after", after)
    return [dpmask.read_lake(str(path), block_rows=block_rows) for path in paths], before, after


def test_counts_and_correlations_against_pandas(tmp_path):
    (one, two), before, after = lakes(tmp_path)
    found = compare(one, two, COLUMNS, ["age", "income", "rate"])
    by_name = {column.column: column for column in found.columns}
    assert list(by_name) == COLUMNS
    for name in ("age", "income", "rate", "money"):
        column = by_name[name]
        for side, table in enumerate((before, after)):
            values = table[name].cast(pa.float64()).to_pandas().dropna()
            assert column.bars.counts[side] == np.histogram(values, column.bars.edges)[0].tolist()
            assert column.bars.below[side] == (values < column.bars.edges[0]).sum()
            assert column.bars.missing[side] == table.num_rows - len(values)
            assert sum(column.bars.counts[side]) >= 0.97 * len(values)
    region = by_name["region"]
    assert dict(zip(region.labels, region.before, strict=True)) == {"east": 1000, "north": 1000, "south": 1000}
    assert by_name["name"].labels[-1] == "5 other values"
    assert sum(by_name["name"].before) == sum(by_name["name"].after) == 3000
    assert by_name["born"] == NotDrawn("born", "not drawn: date")
    for side, table in (("before", before), ("after", after)):
        expected = table.select(["age", "income", "rate"]).to_pandas().corr().to_numpy()
        assert np.array(getattr(found.correlations, side)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("block_rows", [1000, 150])
def test_the_same_for_any_partitioning(tmp_path, client, block_rows):
    (one, two), *_ = lakes(tmp_path)
    expected = compare(one, two, COLUMNS, ["age", "income", "rate"])
    (one, two), *_ = lakes(tmp_path, block_rows=block_rows)
    assert compare(one, two, COLUMNS, ["age", "income", "rate"]) == expected


STEPS = {
    "each record by itself": {"method": "noise", "columns": ["age", "income", "rate"], "scale": 0.1},
    "records that meet": {"method": "swapping", "columns": ["age", "income"], "share": 0.5, "window": 0.1},
    "records left out": {
        "method": "refinement",
        "requirements": [[["age", "region"], 10]],
        "domains": {"age": [0, 100]},
        "guide": "distortion",
        "suppress_records": 0.05,
    },
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("where", ["embedded", "cluster"])
def test_what_a_run_sees_while_it_masks_is_what_was_released(place, monkeypatch, cluster, step, where):
    """The numbers in a report, against those of the source and the release read again."""
    from dpmask.job import stages

    told = []
    monkeypatch.setattr(stages, "write_reports", lambda folder, account, compared, exposure: told.append(compared))
    made = []
    monkeypatch.setattr(stages, "account", lambda *found: made.append(found[1]) or account(*found))
    place.lake()
    options = ["--scheduler", cluster.scheduler_address] if where == "cluster" else []
    ended = place.run(*options, mask=[step], order="input")
    assert ended.code == 0, ended.err
    before, after = (dpmask.read_lake(str(place.folder / name)) for name in ("lake", "release"))
    (found,) = told
    columns = [column.column for column in found.columns]
    assert columns
    (fitted,) = made
    assert found == compare(before, after, columns, found.correlations.columns, through_steps(fitted))


def test_outliers_do_not_squeeze_the_bars(tmp_path):
    values = np.append(np.random.default_rng(1).normal(100, 10, 4999), 1e12)
    lake = dpmask.read_lake(str(write_lake(tmp_path / "one", pa.table({"x": values}))))
    (column,) = compare(lake, lake, ["x"]).columns
    assert len(column.bars.edges) > 12
    assert column.bars.above[0] >= 1
    assert column.bars.edges[-1] < 200


def test_edges_of_large_numbers_are_told_apart(tmp_path):
    lake = dpmask.read_lake(str(write_lake(tmp_path / "one", pa.table({"x": [1e15, 1e15 + 1, 1e15 + 2] * 20}))))
    (column,) = compare(lake, lake, ["x"]).columns
    assert np.diff(column.bars.edges).min() > 0
    assert sum(column.bars.counts[0]) + column.bars.below[0] + column.bars.above[0] == 60


def test_odd_columns(tmp_path):
    table = pa.table(
        {
            "null": pa.nulls(50, pa.float64()),
            "same": pa.array([3.0] * 50),
            "huge": pa.array([-1.7e308, 1.7e308] * 25),
            "endless": pa.array([np.inf, -np.inf, 1.0, 2.0, np.nan] * 10),
            "zähl": pa.array(range(50), pa.int64()),
            "nothing": pa.nulls(50),
            "unique": pa.array([f"person {n}" for n in range(50)]),
        }
    )
    lake = dpmask.read_lake(str(write_lake(tmp_path / "odd", table)))
    found = {column.column: column for column in compare(lake, lake, table.schema.names, table.schema.names).columns}
    assert isinstance(found["null"], NotDrawn)
    assert found["same"].bars.counts == ([50], [50])
    huge, endless = found["huge"].bars, found["endless"].bars
    assert sum(huge.counts[0]) + huge.below[0] + huge.above[0] == 50
    assert (endless.below[0], endless.above[0], endless.missing[0]) == (10, 10, 10)
    assert sum(found["zähl"].bars.counts[0]) == 50
    assert len(found["unique"].labels) == 13
    public = public_columns(found.values())
    assert "person" not in str(public), "no value that fewer than ten records share"
    drawn_columns(found.values())


def test_one_row_and_too_many_categories(tmp_path):
    one = dpmask.read_lake(str(write_lake(tmp_path / "one", pa.table({"x": [1.5], "y": [2]}), files=1)))
    assert compare(one, one, ["x", "y"], ["x", "y"]).correlations.before == [[None, None], [None, None]]
    names = pa.table({"name": [str(n) for n in range(3000)]})
    many = dpmask.read_lake(str(write_lake(tmp_path / "many", names)), block_rows=400)
    assert "1,000 different values" in compare(many, many, ["name"]).columns[0].reason


def test_a_number_masked_by_labels_shows_its_labels(tmp_path):
    before = dpmask.read_lake(str(write_lake(tmp_path / "a", pa.table({"age": list(range(40))}))))
    after = dpmask.read_lake(str(write_lake(tmp_path / "b", pa.table({"age": ["[0, 20)", "[20, 40)"] * 20}))))
    (column,) = compare(before, after, ["age"]).columns
    assert column.labels == ["[0, 20)", "[20, 40)"]
    assert (column.before, column.after) == (None, [20, 20])
    assert drawn_columns([column])[0].shares == {"after": [0.5, 0.5]}


def test_originals_are_counted_under_the_labels_they_are_released_as(tmp_path, client):
    ages, jobs = [*range(40), 7, 7], ["cook", "nurse", "miner"] * 14
    before = write_lake(tmp_path / "a", pa.table({"age": ages, "job": jobs}))
    after = write_lake(tmp_path / "b", pa.table({"age": ["[20, 40)", "[3, 20)", "[0, 3)"] * 14, "job": ["any"] * 42}))
    sets = {"age": {label: [label] for label in ("[0, 3)", "[3, 20)", "[20, 40)")}, "job": {"any": None}}
    tables = [dpmask.read_lake(str(path), block_rows=10) for path in (before, after)]
    age, job = compare(*tables, ["age", "job"], sets=sets).columns
    assert (age.labels, age.ordered, age.generalised) == (["[0, 3)", "[3, 20)", "[20, 40)"], True, True)
    assert (age.before, age.after) == ([3, 19, 20], [14, 14, 14])
    assert (job.labels, job.before, job.after) == (["any"], [42], [42])
    overlapping = {"age": {"[0, 3)": ["[0, 3)"], "[3, 20)": ["[3, 20)"], "[20, 40)": ["[10, 40)"]}}
    assert compare(*tables, ["age"], sets=overlapping).columns[0].before is None, "a value has no one label"


def test_zeros_stand_apart_and_skewed_columns_go_by_ratios(tmp_path):
    rng = np.random.default_rng(3)
    amounts = np.where(rng.random(5000) < 0.6, 0.0, np.exp(rng.normal(7, 2, 5000)))
    even = np.where(rng.random(5000) < 0.3, 0.0, rng.normal(50, 9, 5000))
    few = rng.integers(0, 4, 5000)
    table = pa.table({"skewed": amounts, "even": even, "few": few})
    lake = dpmask.read_lake(str(write_lake(tmp_path / "a", table)), block_rows=900)
    columns = drawn_columns(compare(lake, lake, table.schema.names).columns)
    skewed, plain, whole = (one.picture for one in columns)
    assert skewed.logarithmic
    assert skewed.zeros == pytest.approx({"before": (amounts == 0).mean(), "after": (amounts == 0).mean()})
    ratios = np.diff(np.log(skewed.edges))
    assert ratios.max() < 2 * ratios.min()
    assert not plain.logarithmic
    assert plain.zeros["after"] == pytest.approx((even == 0).mean())
    assert sum(plain.shares["after"]) == pytest.approx((even != 0).mean(), abs=0.011), "the tails are not drawn"
    assert whole.zeros is None, "0, 1, 2 and 3 have a bar each"
    for column, values in zip(columns, (amounts, even), strict=False):
        assert sum(row[2] for row in column.rows) == pytest.approx(1, abs=1e-4)
        assert column.rows[0][0] == "0"
        assert column.rows[0][1] == pytest.approx((values == 0).mean())
    public = public_columns(compare(lake, lake, table.schema.names).columns)
    assert [one.picture.zeros is not None for one in public] == [True, True, False]
    assert sum(share for _, share in public[0].rows) == pytest.approx(1, abs=0.01)


def test_public_columns_do_not_depend_on_the_original(tmp_path):
    rng = np.random.default_rng(2)
    masked = pa.table({"x": rng.normal(0, 1, 2000)})
    after = dpmask.read_lake(str(write_lake(tmp_path / "after", masked)))
    pages = []
    for number, original in enumerate((masked["x"].to_numpy(), rng.normal(50, 40, 2000))):
        before = dpmask.read_lake(str(write_lake(tmp_path / str(number), pa.table({"x": original}))))
        pages.append(public_columns(compare(before, after, ["x"]).columns))
    assert pages[0] == pages[1]
    (column,) = pages[0]
    assert column.rows[0][0].startswith("below ")
    assert column.rows[-1][0].endswith(" and more")
    assert all(share * 2000 >= 10 for _, share in column.rows)
    assert sum(share for _, share in column.rows) == pytest.approx(1, abs=0.0005 * len(column.rows))  # each is rounded


@pytest.mark.parametrize(
    ("counts", "labels"),
    [
        ([50, 30, 9], ["a", "other values"]),
        ([50, 30, 12], ["a", "b", "c"]),
        ([50, 9, 8], ["a", "other values"]),
        ([5, 3], []),
    ],
)
def test_small_categories_are_pooled(counts, labels):
    column = ComparedCategories("x", list("abc")[: len(counts)], None, counts)
    assert [name for one in public_columns([column]) for name in one.labels] == labels


def test_the_pairs_that_changed_most():
    before = [[1, 0.5, None], [0.5, 1, 0.1], [None, 0.1, 1]]
    after = [[1, 0.25, None], [0.25, 1, 0.5], [None, 0.5, 1]]
    assert correlation_change(Correlations(["a", "b", "c"], before, after)).most_changed == [
        ("c", "b", 0.1, 0.5, 0.4),
        ("b", "a", 0.5, 0.25, -0.25),
    ]


def test_lakes_paired_by_a_column(tmp_path):
    table = people(200)
    paths = write_lake(tmp_path / "a", table), write_lake(tmp_path / "b", table.take(np.arange(200)[::-1]))
    one, two = (dpmask.read_lake(str(path)) for path in paths)
    keyed = pair_by_column(one, two, "id", ["age", "income"], "test")
    column, _ = compare(keyed.original, keyed.masked, ["age", "income"]).columns
    assert column.bars.counts[0] == column.bars.counts[1]
    assert sum(column.bars.counts[0]) == 200
