"""The synthetic census: its people, and the lake they are written into."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmask.engine.draws import make_key, record_uniforms
from dpmask.errors import JobError, StorageError, TargetError
from dpmask.kernels import census
from dpmask.lake import generate
from dpmask.lake.generate import Generated, generate_lake
from dpmask.table.lake import read_lake

ROWS = 30_000


def write(folder: Path, *, rows: int = ROWS, files: int = 3, seed: int = 7, nulls: bool = False) -> Generated:
    return generate_lake(str(folder), rows=rows, files=files, seed=seed, nulls=nulls)


def table(folder: Path) -> pa.Table:
    """All rows in file order, with the types a reader sees."""
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])


def arrays(rows: pa.Table) -> dict[str, np.ndarray]:
    return {name: rows.column(name).to_numpy() for name in rows.column_names}


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}


def uniforms(rows: int, **fixed: float) -> dict[str, np.ndarray]:
    """Draws of one half everywhere, but for those given."""
    names = census.HOUSEHOLD_DRAWS + census.PERSON_DRAWS + census.ANSWER_DRAWS
    return {name: np.full(rows, fixed.get(name.replace(" ", "_"), 0.5)) for name in names}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("census") / "lake"
    write(folder)
    return folder


@pytest.fixture(scope="module")
def people(lake):
    return arrays(table(lake))


@pytest.fixture(scope="module")
def big():
    """Fifty superblocks of people straight from the kernel."""
    key = make_key("test", seed=3)
    rows = 50 * census.SUPERBLOCK
    names = census.HOUSEHOLD_DRAWS + census.PERSON_DRAWS
    return census.make_people(0, {name: record_uniforms(key.subkey(name), 0, rows) for name in names})


# The kernel


def test_all_draws_the_smallest_give_people_who_live_alone():
    people = census.make_people(8192, uniforms(4096, size=0.0))
    assert (people.household_id == people.person_id).all()
    assert people.person_id[[0, -1]].tolist() == [8192, 12287]


def test_households_of_seven_fill_a_superblock_and_the_last_is_cut():
    people = census.make_people(0, uniforms(2 * 4096, size=0.9999))
    ids, sizes = np.unique(people.household_id, return_counts=True)
    assert sizes.tolist() == ([7] * 585 + [1]) * 2  # 4096 = 585 * 7 + 1
    assert ids[585:588].tolist() == [4095, 4096, 4103]


def test_a_couple_by_hand():
    """Size 2 at u = 0.5, a couple; the median head is 60, the median partner a year younger, of the other sex."""
    people = census.make_people(0, uniforms(4096))
    assert people.household_id[:4].tolist() == [0, 0, 2, 2]
    assert people.age[:2].tolist() == [60, 59]
    assert [census.SEXES[code] for code in people.sex[:2]] == ["man", "woman"]


@pytest.mark.parametrize("u", [2.0**-54, 0.5, 1 - 2.0**-53])
def test_the_most_extreme_draws_are_in_range(u):
    people = census.make_people(0, {name: np.full(4096, u) for name in uniforms(1)})
    assert 0 <= people.age.min() <= people.age.max() <= 99
    assert 0 <= people.gross.min() <= people.gross.max() <= 5_000_000
    assert (people.weight > 0).all()
    assert np.isfinite(people.weight).all()


def test_tax_by_hand():
    """Without deductions: nothing up to 9,000, then 18 %, from 25,000 on 32 %, from 60,000 on 42 %."""
    gross = np.array([0, 9_000, 10_000, 25_000, 60_000, 100_000])
    assert census._taxes(gross, np.zeros(6)).tolist() == [0, 0, 180, 2_880, 14_080, 30_880]
    assert census._taxes(gross[2:3], np.ones(1)).tolist() == [0]  # a fifth deducted leaves 8,000


def test_distributions_are_those_of_a_census(big):
    adult = big.age >= 25
    paid = big.gross[big.gross > 0]
    assert 0.15 < (big.gross == 0).mean() < 0.45
    assert paid.mean() > 1.2 * np.median(paid)  # skewed to the right
    assert (big.tax < big.gross)[big.gross > 0].all()
    rates = [(big.tax.sum(where=part) / big.gross.sum(where=part)) for part in (big.gross < 30_000, big.gross > 90_000)]
    assert rates[0] < 0.1
    assert rates[1] > 0.25
    assert np.corrcoef(big.education[adult], big.gross[adult])[0, 1] > 0.25
    assert 1 < big.weight.mean() < 4
    assert big.weight.min() > 0
    shares = np.bincount(big.region) / len(big.region)
    assert len(shares) == 12
    assert shares.max() > 8 * shares.min()
    assert set(np.bincount(np.unique(big.household_id, return_counts=True)[1]).nonzero()[0]) == set(range(1, 8))


def test_partners_resemble_each_other(big):
    starts, sizes = np.unique(big.household_id, return_index=True, return_counts=True)[1:]
    heads = starts[sizes > 1]
    heads = heads[(big.age[heads + 1] >= 18) & (abs(big.age[heads] - big.age[heads + 1]) < 15)]
    earning = heads[(big.hours[heads] > 0) & (big.hours[heads + 1] > 0)]
    assert np.corrcoef(big.education[heads], big.education[heads + 1])[0, 1] > 0.35
    assert np.corrcoef(np.log(big.gross[earning]), np.log(big.gross[earning + 1]))[0, 1] > 0.2


def test_work_and_hours_agree_and_children_do_neither(big):
    working = np.array(census.OCCUPATIONS)[big.occupation] != "not working"
    assert ((big.hours > 0) == working).all()
    assert (big.gross[working] > 0).all()
    children = big.age < 15
    assert children.mean() > 0.1
    assert not working[children].any()
    assert not big.gross[big.age < 15].any()
    assert big.age[big.education >= census.EDUCATIONS.index("doctorate")].min() >= 27
    means = [big.hours[working & (big.sex == sex)].mean() for sex in (0, 1)]
    assert means[0] > means[1] + 2


# The lake


@pytest.mark.parametrize("nulls", [False, True])
def test_the_number_of_files_changes_nothing(tmp_path, nulls):
    for files in (1, 3, 7):
        write(tmp_path / str(files), files=files, nulls=nulls)
    one, three, seven = (table(tmp_path / str(files)) for files in (1, 3, 7))
    assert one.equals(three)
    assert one.equals(seven)
    counts = [pq.read_metadata(path).num_rows for path in sorted((tmp_path / "7").glob("*.parquet"))]
    assert counts == [ROWS * (j + 1) // 7 - ROWS * j // 7 for j in range(7)]


def test_the_size_of_row_groups_changes_nothing(tmp_path, lake, monkeypatch):
    monkeypatch.setattr(generate, "GROUP_ROWS", 1_000)
    write(tmp_path / "small", files=1)
    metadata = pq.read_metadata(tmp_path / "small" / "part-00000.parquet")
    assert metadata.num_row_groups == ROWS // 1_000
    assert table(tmp_path / "small").equals(table(lake))


def test_row_groups_are_bounded():
    assert generate.GROUP_ROWS <= 250_000


def test_another_seed_gives_other_people(tmp_path, lake):
    write(tmp_path / "other", seed=8)
    other = arrays(table(tmp_path / "other"))
    same = np.mean(other["gross"] == table(lake).column("gross").to_numpy())
    assert same < 0.4  # mostly two zeros


def test_a_smaller_lake_is_the_beginning_of_a_larger_one(tmp_path, lake):
    write(tmp_path / "small", rows=10_001, files=2)
    assert table(tmp_path / "small").equals(table(lake).slice(0, 10_001))


def test_types_and_order_are_exact(lake):
    expected = pa.schema(
        [("person_id", pa.int64()), ("household_id", pa.int64()), ("age", pa.int32()), ("sex", pa.string())]
        + [(name, pa.string()) for name in ("education", "occupation", "region")]
        + [("hours", pa.int32()), ("net", pa.int64()), ("tax", pa.int64()), ("gross", pa.int64())]
        + [("weight", pa.float64())]
    )
    assert pq.read_schema(lake / "part-00000.parquet").remove_metadata().equals(expected)
    opened = read_lake(str(lake))
    assert opened.schema.equals(expected)
    assert opened.rows == ROWS
    assert [file.name for file in opened.files] == [f"part-{number:05d}.parquet" for number in range(3)]


def test_net_and_tax_add_up_and_nothing_is_null(lake, people):
    assert (people["net"] + people["tax"] == people["gross"]).all()
    assert not any(column.null_count for column in table(lake).columns)


def test_households_are_contiguous_and_share_region_and_weight(people):
    household = people["household_id"]
    assert (np.diff(household) >= 0).all()
    assert np.unique(people["person_id"]).size == ROWS
    inside = np.diff(household) == 0
    assert inside.any()
    for shared in ("region", "weight"):
        assert (people[shared][1:] == people[shared][:-1])[inside].all()


def test_nulls_are_where_a_census_has_them(tmp_path, lake):
    write(tmp_path / "nulls", nulls=True)
    rows, full = table(tmp_path / "nulls"), table(lake)
    missing = {name: rows.column(name).is_null().to_numpy() for name in rows.column_names}
    age = rows.column("age").to_numpy()
    for name, asked in {"occupation": 15, "hours": 15, "education": 6, "gross": 0}.items():
        assert missing[name][age < asked].all()
        assert 0.01 < missing[name][age >= asked].mean() < 0.06
    assert (missing["net"] == missing["gross"]).all()
    assert (missing["tax"] == missing["gross"]).all()
    assert not (missing["occupation"] == missing["hours"])[age >= 15].all()
    for name in rows.column_names:  # an answer that is given is the one without nulls
        answered = pa.array(~missing[name])
        assert rows.column(name).filter(answered).equals(full.column(name).filter(answered))
    assert not any(missing[name].any() for name in ("person_id", "household_id", "age", "sex", "region", "weight"))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rows": 0}, "rows must be an integer >= 1; got 0"),
        ({"rows": 1.5}, "rows must be an integer >= 1; got 1.5"),
        ({"files": 0}, "files must be an integer >= 1; got 0"),
        ({"files": True}, "files must be an integer >= 1; got True"),
        ({"rows": 5, "files": 6}, "files must be <= 5, as each file holds a row; got 6"),
        ({"rows": 10**6, "files": 100_001}, "files must be <= 100000"),
        ({"seed": "x"}, "seed must be an integer"),
        ({"nulls": "no"}, "nulls must be true or false"),
    ],
)
def test_bad_parameters_are_refused(tmp_path, wrong, words):
    with pytest.raises(JobError, match=words):
        write(tmp_path / "lake", **wrong)
    assert not (tmp_path / "lake").exists()


def test_a_folder_with_something_else_is_refused(tmp_path, lake):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(TargetError, match=r"holds something else, such as notes\.txt"):
        write(tmp_path)
    with pytest.raises(TargetError, match="is a file"):
        write(tmp_path / "notes.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    before = state(lake)
    with pytest.raises(TargetError, match="it holds one with others"):
        write(lake, seed=8)
    assert state(lake) == before


def test_a_part_that_was_not_generated_is_not_overwritten(tmp_path):
    """A release's files have the same names."""
    pq.write_table(pa.table({"net": [1, 2]}), tmp_path / "part-00000.parquet")
    before = state(tmp_path)
    with pytest.raises(TargetError, match=r"such as part-00000\.parquet"):
        write(tmp_path)
    assert state(tmp_path) == before


def test_a_second_call_changes_nothing(tmp_path):
    target = tmp_path / "lake"
    assert write(target) == Generated(str(target), ROWS, 3, fresh=True)
    before = state(target)
    assert write(target) == Generated(str(target), ROWS, 3, fresh=False)
    assert state(target) == before


def test_what_a_killed_run_left_is_written_again(tmp_path, lake):
    target = tmp_path / "lake"
    write(target, files=5, seed=9)  # the run that was killed had other plans
    (target / "_generated.json").unlink()
    (target / "part-00001.parquet").unlink()
    (target / f"part-00001.parquet.{'0' * 32}.part").write_bytes(b"PAR1")
    assert write(target).fresh
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {
        path.name: path.read_bytes() for path in lake.iterdir()
    }


def test_a_lake_that_lost_a_part_is_written_again(tmp_path, lake):
    write(tmp_path / "lake")
    (tmp_path / "lake" / "part-00002.parquet").unlink()
    assert write(tmp_path / "lake").fresh
    assert table(tmp_path / "lake").equals(table(lake))


def test_a_failed_write_leaves_no_file(tmp_path, monkeypatch, limit):
    def fail(*_):
        raise OSError(28, "No space left on device")

    limit(retry_seconds=0.0)
    monkeypatch.setattr(generate, "_people", fail)
    with pytest.raises(StorageError, match="no space is left"):
        write(tmp_path / "lake")
    assert list((tmp_path / "lake").iterdir()) == []


def test_other_storage_gets_the_same_bytes(lake):
    from dpmask.lake.storage import Place

    url = "memory://test_census/lake"
    assert generate_lake(url, rows=ROWS, files=3, seed=7).fresh
    assert not generate_lake(url, rows=ROWS, files=3, seed=7).fresh
    for path in lake.iterdir():
        assert (Place(url) / path.name).read() == path.read_bytes()
    Place(url).remove(Place(url).files())


def test_tax_units_add_up_and_begin_alike(tmp_path):
    """Rules hold, amounts are mostly zero, and a smaller lake is the beginning of a larger one."""
    small, large = (
        read_lake(generate_lake(str(tmp_path / str(rows)), rows=rows, files=files, seed=4, kind="tax_units").url)
        for rows, files in ((500, 1), (2000, 3))
    )
    few, units = small.to_dask().compute(), large.to_dask().compute().reset_index(drop=True)
    pd.testing.assert_frame_equal(few.reset_index(drop=True), units[:500])
    amounts = ["wages", "spouse_wages", "interest", "dividends", "gains"]
    assert (units[amounts].sum(axis=1) == units["income"]).all()
    assert (units.loc[units["status"] != "joint", "spouse_wages"] == 0).all()
    assert (units["dividends"] == 0).mean() > 0.8
    assert (units["tax"] < units["income"]).mean() > 0.85
    assert units.groupby(pd.cut(units["income"], [-1, 25_000, 1e9]))["weight"].mean().is_monotonic_decreasing
    with pytest.raises(JobError, match="kind must be census or tax_units"):
        generate_lake(str(tmp_path / "x"), rows=5, files=1, seed=1, kind="firms")
    with pytest.raises(JobError, match="nulls are those of a census"):
        generate_lake(str(tmp_path / "x"), rows=5, files=1, seed=1, kind="tax_units", nulls=True)
