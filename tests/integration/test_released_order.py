"""The order of released rows: over the whole release neither a row's file nor its place tells which record it was."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import JOB, people, refinement_step
from scipy.stats import chi2_contingency

LEVEL = 1e-3
"""Of a chi-square test: keys are fixed here, so it is passed always or never."""
MASK = [{"method": "noise", "columns": ["income"], "scale": 0.1}]
HIVE = {"identifier": ["id", "district"], "plain": ["age", "income", "household"]}


@pytest.fixture
def hive(place):
    """A lake with a folder for each of eight districts; households of four, who follow each other."""
    rng = np.random.default_rng(3)
    for district in range(8):
        folder = place.folder / "hive" / f"district={district}"
        folder.mkdir(parents=True)
        number = 500 * district + np.arange(500)
        table = {"id": number, "age": rng.integers(0, 90, 500), "income": rng.lognormal(9, 1, 500)}
        pq.write_table(pa.table(table | {"household": number // 4}), folder / "part.parquet")
    return place


def run_hive(place, *options, **said):
    ended = place.run(*options, **({"source": "hive", "columns": HIVE, "mask": MASK, "block_rows": 500} | said))
    assert ended.code == 0, ended.err
    return place.released(said.get("target", "release"))


def rows_by_file(manifest):
    return np.repeat(np.arange(len(manifest["files"])), [file["rows"] for file in manifest["files"]])


def p_value(files, groups):
    """Of the hypothesis that the file tells nothing of the group."""
    counts = np.zeros((files.max() + 1, groups.max() + 1))
    np.add.at(counts, (files, groups), 1)
    return chi2_contingency(counts).pvalue


def together(files, household):
    """The share of pairs of one household whose rows lie in one file."""
    order = np.argsort(household, kind="stable")
    pairs = files[order].reshape(-1, 4)
    return np.mean([pairs[:, one] == pairs[:, other] for one in range(4) for other in range(one)])


def test_the_file_tells_nothing_of_a_dropped_key_or_a_household(hive):
    manifest, released = run_hive(hive)
    files, positions = rows_by_file(manifest), hive.pairing(manifest)
    assert len(manifest["files"]) == 8
    assert sorted(positions) == list(range(4000))
    assert p_value(files, positions // 500) > LEVEL
    # eight files of about as many rows: one pair in eight meets by chance; 6,000 pairs, four standard errors
    assert together(files, released["household"].to_numpy()) == pytest.approx(1 / 8, abs=4 * 0.33 / np.sqrt(6000))
    # nor does the place in a file: halves of files against districts, neighbours against households
    first_half = np.concatenate([np.arange(file["rows"]) < file["rows"] / 2 for file in manifest["files"]])
    assert p_value(first_half.astype(int), positions // 500) > LEVEL
    assert np.mean(np.diff(positions // 4) == 0) < 0.004
    assert [abs(file["rows"] - 500) < 5 * np.sqrt(500) for file in manifest["files"]] == [True] * 8


def test_within_files_is_what_the_file_does_tell(hive):
    manifest, released = run_hive(hive, order="within_files")
    files, positions = rows_by_file(manifest), hive.pairing(manifest)
    assert np.array_equal(files, positions // 500)
    assert together(files, released["household"].to_numpy()) == 1
    assert 0.4 < np.mean(np.diff(positions) > 0) < 0.6
    manifest, released = run_hive(hive, order="input", target="plain")
    assert released["household"].to_pylist() == (np.arange(4000) // 4).tolist()
    assert not (hive.folder / "private" / manifest["run"] / "pairing").exists()


def test_every_row_is_the_record_that_the_pairing_says(place):
    """Also with dictionaries, decimals, nulls: the values are those of a release in the source's order."""
    table = people()
    place.lake(table)
    assert place.run(order="input", target="plain").code == 0
    assert place.run().code == 0
    _, plain = place.released("plain")
    back = place.by_original(table)
    same = [name for name in plain.schema.names if name not in JOB["mask"][0]["columns"]]
    assert back.select(same).to_pylist() == plain.select(same).to_pylist()
    assert back["income"].type == plain["income"].type


def test_measures_see_the_same_in_any_order(place):
    place.lake()
    measure = [{"measure": name, "columns": ["income", "age"]} for name in ("il1s", "distance_linkage")]
    said = {"measure": measure, "mask": MASK}
    for order in ("shuffled", "within_files"):
        ended = place.run("--json", order=order, target=order, **said)
        assert ended.code == 0, ended.err
        in_the_run = {one["measure"]: one["judged"] for one in ended.json["measures"]}
        evaluated = place.dpmask(
            "evaluate", "lake", order, "--columns", "income,age", "--paired-by", "private", "--json", "-"
        )
        assert evaluated.code == 0, evaluated.err
        measures = {one["measure"]: one for one in json.loads(evaluated.out)["measures"]}
        assert measures["il1s"]["judged"]["value"] == pytest.approx(in_the_run["il1s"]["value"], rel=1e-12)
        assert 0 < in_the_run["il1s"]["value"] < 0.1  # noise of a tenth: each record stands beside its own original
        assert measures["distance_linkage"]["judged"]["rate"] > 0.1  # records are beside their own originals


def test_a_single_block_is_shuffled_where_it_lies(place):
    place.lake(people(50), files=1)
    assert place.run().code == 0
    manifest, _ = place.released()
    assert len(manifest["files"]) == 1
    assert sorted(place.pairing(manifest)) == list(range(50))
    assert place.run(order="within_files", target="within").code == 0
    assert manifest["order"] == "shuffled"


@pytest.mark.parametrize("block_rows", [1, 7])
def test_blocks_of_a_few_records(place, block_rows):
    table = people(20)
    place.lake(table, files=2)
    assert place.run(block_rows=block_rows, mask=MASK).code == 0
    assert place.by_original(table)["name"].to_pylist() == table["name"].to_pylist()


def test_dropped_records(place):
    table = people()
    place.lake(table)
    mask = [refinement_step(10, 5) | {"suppress_records": 0.1}]
    assert place.run(mask=mask).code == 0
    manifest, released = place.released()
    positions = place.pairing(manifest)
    assert len(set(positions)) == len(positions) == manifest["rows"] < table.num_rows
    assert released["name"].to_pylist() == table["name"].take(pa.array(positions)).to_pylist()
    assert p_value(rows_by_file(manifest), positions // 200) > LEVEL
    evaluated = place.dpmask("evaluate", "lake", "release", "--paired-by", "private", "--json", "-")
    assert evaluated.code == 0, evaluated.err
    assert evaluated.json["pairing"]["originals_without_masked"] == table.num_rows - manifest["rows"]


def test_a_pairing_of_another_run_is_refused(place):
    place.lake()
    assert place.run(mask=MASK).code == 0
    folder = next(place.folder.glob("private/*/pairing"))
    names = sorted(path.name for path in folder.iterdir())
    pq.write_table(pq.read_table(folder / names[0]).slice(1), folder / names[0])
    ended = place.dpmask("evaluate", "lake", "release", "--paired-by", "private")
    assert ended.code == 4
    assert "does not pair the records of this release" in ended.err


ORDERS = {
    "shuffled": "a random order over all files of the release",
    "within_files": "records of each file were put into a random order",
    "input": "in the order of the source",
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_release_says_which_order_it_is_in(place, order):
    place.lake(people(300))
    assert place.run(order=order, mask=MASK).code == 0
    manifest, _ = place.released()
    assert manifest["order"] == order
    pages = [one["path"] for one in manifest["documents"] if one["path"].startswith("report/")]
    texts = [(place.folder / "release" / path).read_text() for path in pages]
    assert len(texts) == 2
    assert all(ORDERS[order] in text for text in texts), "on the statement and on the page"
