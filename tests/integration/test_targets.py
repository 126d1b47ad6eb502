"""What stands at the target: the same release, another one, half of one, and other runs at the same moment."""

import shutil

import pytest
from conftest import people, write_lake

from dpmask.errors import StorageError
from dpmask.lake.locks import locked
from dpmask.lake.storage import Place


@pytest.fixture(scope="module")
def first(once):
    once.lake()
    return once.run_once()


@pytest.fixture
def released(place, first):
    """A place where a release stands."""
    return place.copy_of(first)


def test_a_second_run_says_already_released_and_changes_nothing(place):
    place.lake()
    assert place.run().code == 0
    before = {path: path.stat().st_mtime_ns for path in place.folder.glob("release/**/*")}
    again = place.run()
    assert again.code == 0
    assert again.out.splitlines()[-1].startswith("TRIAL, not a release: there are already 600 records")
    assert {path: path.stat().st_mtime_ns for path in place.folder.glob("release/**/*")} == before


def test_touched_sources_are_masked_again_and_found_equal(released):
    before = released.bytes()
    for path in (released.folder / "lake").iterdir():
        path.write_bytes(path.read_bytes())
    again = released.run()
    assert again.code == 0
    assert "nothing was changed" in again.out
    assert released.bytes() == before


def test_a_changed_value_is_another_release(released):
    before = released.bytes()
    released.lake(people(seed=1))
    refused = released.run()
    assert refused.code == 2
    assert "another release" in refused.err
    assert "--overwrite" in refused.err
    assert released.bytes() == before
    assert released.run("--overwrite").code == 0
    after = released.bytes()
    assert not {name for name in before if name != "manifest.json"} & set(after), "old files are deleted"
    assert released.dpmask("verify", "release").code == 0


def test_the_same_source_in_another_folder_gives_the_same_bytes(released):
    shutil.copytree(released.folder / "lake", released.folder / "copy")
    assert released.run(source="copy", target="other", private="p2").code == 0
    assert released.bytes("other") == released.bytes()


def test_leftovers_of_a_dead_run_are_cleared(place):
    place.lake()
    folder = place.folder / "release" / "data" / ("0" * 16)
    folder.mkdir(parents=True)
    (folder / "part-00000.parquet").write_bytes(b"half a file")
    (folder / ("part-00001.parquet." + "a" * 32 + ".part")).write_bytes(b"less")
    assert place.run().code == 0
    assert not folder.exists()
    assert place.dpmask("verify", "release").code == 0


def test_a_source_that_cannot_be_read_any_more_says_that_it_changed(place, monkeypatch):
    """Files with fewer rows than their footers said fail somewhere, in ways that look like a bug."""
    from dpmask.job import stages

    lake = place.lake()
    masked = stages.mask_and_measure

    def meanwhile(*arguments, **options):
        write_lake(lake, people(200))
        return masked(*arguments, **options)

    monkeypatch.setattr(stages, "mask_and_measure", meanwhile)
    ended = place.run()
    assert ended.code == 4
    assert "lake: changed while the run was under way. Nothing was published." in ended.err


def test_a_source_that_changes_under_way_is_not_released(place, monkeypatch):
    from dpmask.job import stages

    lake = place.lake()
    account = stages.account

    def meanwhile(*arguments):
        write_lake(lake, people(seed=5))
        return account(*arguments)

    monkeypatch.setattr(stages, "account", meanwhile)
    ended = place.run()
    assert ended.code == 4
    assert "changed while the run was under way" in ended.err
    assert not (place.folder / "release").exists()


def test_a_run_that_publishes_is_left_alone(released):
    """A second run of the standing job must not take the files of a run that is publishing for leftovers."""
    theirs = released.folder / "release" / "data" / ("b" * 16) / "part-00000.parquet"
    theirs.parent.mkdir()
    theirs.write_bytes(b"new")
    with locked(Place("release"), StorageError("busy")):
        ended = released.run()
    assert ended.code == 2
    assert "another run is publishing here" in ended.err
    assert theirs.exists()
    assert released.run().code == 0
    assert not theirs.exists(), "nobody publishes any more"


def test_a_damaged_manifest_is_replaced_only_with_the_word(released):
    (released.folder / "release" / "manifest.json").write_text("{}")
    refused = released.run()
    assert (refused.code, "--overwrite" in refused.err) == (2, True)
    assert released.dpmask("plan", "job.yaml").code == 2
    assert released.dpmask("plan", "job.yaml", "--overwrite").code == 0
    assert released.run("--overwrite").code == 0
    assert released.dpmask("verify", "release").code == 0


def test_a_run_that_comes_second_takes_its_files_back(place, monkeypatch):
    place.lake()
    assert place.run(seed=8, target="other", private="p2").code == 0
    create = Place.create

    def beaten(self, data):
        shutil.copytree(place.folder / "other", place.folder / "release", dirs_exist_ok=True)
        create(self, data)

    monkeypatch.setattr(Place, "create", beaten)
    ended = place.run()
    assert ended.code == 2
    assert "another run has just published here" in ended.err
    assert place.bytes() == place.bytes("other")
