"""What stands at the target: the same release, another one, half of one, and other runs at the same moment."""

import shutil

from conftest import people, write_lake


def test_a_second_run_says_already_released_and_changes_nothing(place):
    place.lake()
    assert place.run().code == 0
    before = {path: path.stat().st_mtime_ns for path in place.folder.glob("release/**/*")}
    again = place.run()
    assert again.code == 0
    assert again.out.splitlines()[-1].startswith("Already released 1,000 records")
    assert {path: path.stat().st_mtime_ns for path in place.folder.glob("release/**/*")} == before


def test_touched_sources_are_masked_again_and_found_equal(place):
    lake = place.lake()
    assert place.run().code == 0
    before = place.bytes()
    for path in lake.iterdir():
        path.write_bytes(path.read_bytes())
    again = place.run()
    assert again.code == 0
    assert "Already released" in again.out
    assert place.bytes() == before


def test_a_changed_value_is_another_release(place):
    place.lake()
    assert place.run().code == 0
    before = place.bytes()
    place.lake(people(seed=1))
    refused = place.run()
    assert refused.code == 2
    assert "another release" in refused.err
    assert "--overwrite" in refused.err
    assert place.bytes() == before
    assert place.run("--overwrite").code == 0
    after = place.bytes()
    assert not {name for name in before if name != "manifest.json"} & set(after), "old files are deleted"
    assert place.dpmask("verify", "release").code == 0


def test_the_same_source_in_another_folder_gives_the_same_bytes(place):
    lake = place.lake()
    assert place.run().code == 0
    shutil.copytree(lake, place.folder / "copy")
    assert place.run(source="copy", target="other", private="p2").code == 0
    assert place.bytes("other") == place.bytes()


def test_leftovers_of_a_dead_run_are_cleared(place):
    place.lake()
    folder = place.folder / "release" / "data" / ("0" * 16)
    folder.mkdir(parents=True)
    (folder / "part-00000.parquet").write_bytes(b"half a file")
    (folder / ("part-00001.parquet." + "a" * 32 + ".part")).write_bytes(b"less")
    assert place.run().code == 0
    assert not folder.exists()
    assert place.dpmask("verify", "release").code == 0


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


def test_a_run_that_publishes_is_left_alone(place):
    """A second run of the standing job must not take the files of a run that is publishing for leftovers."""
    place.lake()
    assert place.run().code == 0
    (place.folder / "release" / ("publishing-" + "a" * 32)).touch()
    theirs = place.folder / "release" / "data" / ("b" * 16) / "part-00000.parquet"
    theirs.parent.mkdir()
    theirs.write_bytes(b"new")
    ended = place.run()
    assert ended.code == 2
    assert "another run is publishing here" in ended.err
    assert theirs.exists()


def test_a_damaged_manifest_is_replaced_only_with_the_word(place):
    place.lake()
    assert place.run().code == 0
    (place.folder / "release" / "manifest.json").write_text("{}")
    refused = place.run()
    assert (refused.code, "--overwrite" in refused.err) == (2, True)
    assert place.dpmask("plan", "job.yaml").code == 2
    assert place.dpmask("plan", "job.yaml", "--overwrite").code == 0
    assert place.run("--overwrite").code == 0
    assert place.dpmask("verify", "release").code == 0


def test_a_run_that_comes_second_takes_its_files_back(place, monkeypatch):
    from dpmask.lake.storage import Place

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
