"""Two lakes measured against each other, paired by position, by a column or by the holder's pairing files."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
from conftest import people, write_lake

import dpmask
from dpmask.errors import InputError, JobError
from dpmask.job import evaluate as command
from dpmask.table import alignment as pairing

COLUMNS = ["income", "age", "children"]


def noisy(table, seed=1):
    """What another tool might have made of it: noise on the incomes."""
    rng = np.random.default_rng(seed)
    place = table.schema.get_field_index("income")
    return table.set_column(place, "income", pa.array(table["income"].to_numpy() + 2000 * rng.normal(size=len(table))))


def values(found, measure):
    return next(one["values"] for one in found["measures"] if one["measure"] == measure)


def expected(table, masked):
    """The measures on pandas frames, paired by id."""
    original, other = (one.to_pandas().set_index("id") for one in (table, masked))
    return {
        "il1s": dpmask.utility.il1s(original, other, columns=COLUMNS).value,
        "interval_disclosure": dpmask.risk.interval_disclosure(original, other, columns=COLUMNS).rate,
        "probabilistic_linkage": dpmask.risk.probabilistic_linkage(original, other, columns=COLUMNS).rate,
    }


def compare(found, wanted):
    for name, value in wanted.items():
        key = "value" if name == "il1s" else "rate"
        assert values(found, name)[key] == pytest.approx(value, rel=1e-9), name


def test_measures_that_describe_the_table_take_a_weight(place):
    """As in a job; the weight itself is no amount, and linkage takes none."""
    table = people().append_column("weight", pa.array(np.random.default_rng(5).uniform(1, 9, 600)))
    masked = noisy(table)
    place.lake(table)
    write_lake(place.folder / "other", masked)
    found = {}
    for name, options in {"weighted": ["--weight", "weight"], "plain": []}.items():
        asked = ("--columns", "income,weight", "--quasi", "age", "--json", "-")
        ended = place.dpmask("evaluate", "lake", "other", *options, *asked)
        assert ended.code == 0, ended.err
        found[name] = ended.json
    original, other = (one.to_pandas() for one in (table, masked))
    wanted = dpmask.utility.moments(original, other, columns=["income"], weight="weight")
    assert values(found["weighted"], "moments")["means"] == pytest.approx(wanted.to_dict()["means"], rel=1e-9)
    for name in ("moments", "kolmogorov_smirnov", "totals", "tails", "probabilistic_information_loss"):
        assert values(found["weighted"], name)["weight"] == "weight", name
        assert values(found["plain"], name)["weight"] is None, name
    linked = [values(one, "distance_linkage")["rate"] for one in found.values()]
    assert linked[0] == linked[1]
    alone = [values(one, "groups")["uniques_with_weight"] for one in found.values()]
    assert (alone[0] > 0, alone[1]) == (True, None)
    ended = place.dpmask("evaluate", "lake", "other", "--weight", "sex")
    assert ended.code == 2
    assert "--weight" in ended.err
    assert place.dpmask("evaluate", "lake", "other", "--weight", "weight", "--unweighted").code == 2


def test_lakes_in_different_files_and_blocks_pair_by_position(place):
    table = people()
    masked = noisy(table)
    place.lake(table, files=4, row_group_size=120)
    write_lake(place.folder / "other", masked, files=3, row_group_size=77)
    ended = place.dpmask("evaluate", "lake", "other", "--columns", ",".join(COLUMNS), "--json", "found.json")
    assert ended.code == 0, ended.err
    found = json.loads((place.folder / "found.json").read_text())
    compare(found, expected(table, masked))
    assert found["pairing"] == {"by": "position"}
    assert "600 original and 600 masked records, paired by position" in ended.out
    assert "not measured: cluster_distance: needs clusters" in ended.out
    assert "not measured: groups: needs quasi. Give --quasi A,B." in ended.out
    assert any(line.split()[:2] == ["interval_disclosure", "joint"] for line in ended.out.splitlines())


@pytest.mark.parametrize("sizes", [(100, 999), (37, 250), (1000, 1), (64, 64)])
def test_blocks_are_cut_anew(tmp_path, sizes):
    table = people(300)
    write_lake(tmp_path / "one", table, files=4, row_group_size=50)
    write_lake(tmp_path / "two", table, files=3, row_group_size=1000)
    one = dpmask.read_lake(tmp_path / "one", block_rows=sizes[0])
    two = dpmask.read_lake(tmp_path / "two", block_rows=sizes[1])
    cut = pairing.recut(two, one.blocks)
    assert [block[:2] for block in cut.blocks] == [block[:2] for block in one.blocks]
    ids = cut.select(["id"]).with_positions().map(lambda rows, at: (at.first, rows["id"].to_pylist()), "x")
    assert [number for _, some in ids for number in some] == list(range(300))
    assert all(first == some[0] for first, some in ids)
    assert dpmask.utility.il1s(one, two, columns=["income"]).value == 0


def test_a_shuffled_release_pairs_by_the_private_folder(place):
    place.lake()
    measure = [{"measure": "probabilistic_linkage", "columns": COLUMNS}, {"measure": "il1s", "columns": COLUMNS}]
    assert place.run(measure=measure).code == 0
    told = {
        one["name"]: one["values"] for one in json.loads((place.folder / "private/result.json").read_text())["measures"]
    }
    for part in ("release", "release/data", "release/data/*/part-*.parquet"):
        refused = place.dpmask("evaluate", "lake", part)
        assert refused.code == 2, part
        assert "a release in shuffled order, whose positions mean nothing" in refused.err
    run = place.released()[0]["run"]
    for folder in ("private", f"private/{run}", f"private/{run}/pairing"):
        ended = place.dpmask(
            "evaluate", "lake", "release", "--paired-by", folder, "--columns", ",".join(COLUMNS), "--json", "-"
        )
        assert ended.code == 0, ended.err
        assert values(ended.json, "il1s")["value"] == pytest.approx(told["il1s"]["value"], rel=1e-12)
        rate = values(ended.json, "probabilistic_linkage")["rate"]
        assert rate == pytest.approx(told["probabilistic_linkage"]["rate"], rel=1e-12)


def test_an_ordered_release_pairs_by_position(place):
    place.lake()
    measure = [{"measure": "il1s", "columns": ["income"]}]
    assert place.run(measure=measure, order="input").code == 0
    found = command.evaluate("lake", "release", columns=["income"])
    assert values(found.to_dict(), "il1s")["value"] == pytest.approx(place.measured()["il1s"]["value"], rel=1e-12)


def test_pairing_files_of_another_run_are_refused(place):
    place.lake()
    assert place.run().code == 0
    assert place.run(target="two", private="holder", seed=8).code == 0
    run = next((place.folder / "private").glob("*/pairing"))
    other = next((place.folder / "holder").glob("*/pairing"))
    for folder in ("private", run, run.parent):
        ended = place.dpmask("evaluate", "lake", "two", "--paired-by", folder)
        assert ended.code == 2, folder
        assert "no pairing of this release's run is there" in ended.err
    (other / "part-00001.parquet").unlink()
    ended = place.dpmask("evaluate", "lake", "two", "--paired-by", "holder")
    assert (ended.code, "there is no part-00001.parquet" in ended.err) == (4, True)
    shutil.copy(other / "part-00002.parquet", other / "part-00001.parquet")
    ended = place.dpmask("evaluate", "lake", "two", "--paired-by", "holder")
    assert (ended.code, "does not pair the records" in ended.err) == (4, True)
    nowhere = place.dpmask("evaluate", "lake", "two", "--paired-by", "nowhere")
    assert (nowhere.code, "must be 'position', a column of the original" in nowhere.err) == (2, True)


@pytest.fixture
def keyed(tmp_path):
    """A masked lake in another order, with some records gone and some that are new."""
    table = people()
    masked = noisy(table).take(pa.array(np.random.default_rng(2).permutation(600)[:500]))
    extra = people(50, seed=9)
    extra = extra.set_column(0, "id", pa.array(np.arange(5000, 5050)))
    with_extra = pa.concat_tables([masked, extra])
    write_lake(tmp_path / "lake", table, files=4)
    write_lake(tmp_path / "other", with_extra, files=3)
    return tmp_path, table, masked


@pytest.mark.parametrize("kind", ["embedded", "cluster"])
def test_records_pair_by_a_column(keyed, kind, request, limit):
    if kind == "cluster":
        request.getfixturevalue("client")
    folder, table, masked = keyed
    limit(pair_shard_rows=300)
    lakes = [dpmask.read_lake(folder / name, block_rows=130) for name in ("lake", "other")]
    found = pairing.pair_by_column(*lakes, "id", COLUMNS, "test")
    assert (found.unmatched_original, found.unmatched_masked) == (100, 50)
    original, other = (one.to_pandas().set_index("id") for one in (table, masked))
    original = original.loc[sorted(other.index)]  # who has no partner is left out
    loss = dpmask.utility.il1s(found.original, found.masked, columns=COLUMNS)
    assert loss.value == pytest.approx(dpmask.utility.il1s(original, other, columns=COLUMNS).value, rel=1e-12)
    close = dpmask.risk.interval_disclosure(found.original, found.masked, columns=["age"])
    assert close.by_rank == dpmask.risk.interval_disclosure(original, other, columns=["age"]).by_rank


def test_by_a_column_on_the_command_line(keyed, place):
    folder, *_ = keyed
    ended = place.dpmask(
        "evaluate",
        folder / "lake",
        folder / "other",
        "--paired-by",
        "id",
        "--quasi",
        "region",
        "--sensitive",
        "name",
        "--explain",
    )
    assert ended.code == 0, ended.err
    assert "600 original and 550 masked records, paired by column id" in ended.out
    assert "originals without masked: 100" in ended.out
    assert "masked without original: 50" in ended.out
    assert "The smallest group with the same quasi-identifiers has 180 of 550 records" in ended.out
    by_position = place.dpmask("evaluate", folder / "lake", folder / "other")
    assert by_position.code == 2
    assert "600 records and the masked lake 550" in by_position.err


def test_a_column_must_be_unique_and_complete(keyed):
    folder, table, _ = keyed
    lake = dpmask.read_lake(folder / "lake", block_rows=300)
    for column, text in (("age", "not unique in the original"), ("children", "missing in records of the original")):
        with pytest.raises(InputError, match=f"'{column}': .*{text}"):
            pairing.pair_by_column(lake, lake, column, ["income"], "test")
    twice = pa.concat_tables([table, table.slice(0, 1)])
    write_lake(folder / "twice", twice)
    with pytest.raises(InputError, match="not unique in the masked table"):
        pairing.pair_by_column(lake, dpmask.read_lake(folder / "twice"), "id", ["income"], "test")
    with pytest.raises(JobError, match="no column 'idd'"):
        pairing.pair_by_column(lake, lake, "idd", ["income"], "test")


def test_nothing_to_measure_and_bad_arguments(place):
    place.lake(pa.table({"a": ["x"] * 50}), name="words")
    ended = place.dpmask("evaluate", "words", "words")
    assert ended.code == 4
    assert "nothing could be measured" in ended.err
    place.lake(pa.table({"a": ["x"] * 50, "b": [float("nan")] * 50}))
    ended = place.dpmask("evaluate", "lake", "lake")
    assert ended.code == 0, "missing values were counted"
    assert "column 'b' has no value in any record" in ended.out
    assert place.dpmask("evaluate", "lake", "nowhere").code == 4
    missing = place.dpmask("evaluate", "lake", "lake", "--columns", "bb")
    assert (missing.code, "Did you mean 'b'" in missing.err) == (2, True)


def test_columns_may_be_named_in_several_lists(place):
    table = people()
    place.lake(table)
    write_lake(place.folder / "other", noisy(table))
    options = ("--columns", "age", "--columns", "income,age", "--quasi", "age", "--quasi", "region", "--json", "-")
    found = place.dpmask("evaluate", "lake", "other", *options).json
    assert found["columns"] == ["age", "income"]
    groups = next(one for one in found["measures"] if one["measure"] == "groups")
    assert groups["parameters"]["quasi"] == ["age", "region"]


def test_a_report_that_cannot_be_written_is_told_before_anything_is_measured(place):
    place.lake(people())
    (place.folder / "file").write_text("")
    ended = place.dpmask("evaluate", "lake", "lake", "--report", "file/report.html")
    assert ended.code == 2
    assert "is a file, a folder is needed" in ended.err
    assert "task" not in ended.err


def test_nothing_in_common(place):
    table = people()
    place.lake(table)
    write_lake(place.folder / "other", table.select(["region", "name"]))
    ended = place.dpmask("evaluate", "lake", "other")
    assert ended.code == 4
    assert "The tables have no numeric column in common." in ended.err
    wrong = place.dpmask("evaluate", "lake", "lake", "--columns", "AGE")
    assert wrong.code == 2
    assert "Did you mean 'age'?" in wrong.err
