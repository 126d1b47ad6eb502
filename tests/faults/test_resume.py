"""A run that was stopped goes on from its checkpoint: the same release, and nothing is computed twice."""

import pytest
from conftest import people
from resume_tools import MASKS, MEASURES, computed_before_publishing, computing, resumed, stopped

from dpmask.errors import StorageError
from dpmask.lake.locks import locked
from dpmask.lake.storage import Place


def measured(case):
    if MASKS[case][0]["method"] == "refinement":
        return []
    return MEASURES if case == "noise" else MEASURES[:1]


@pytest.mark.parametrize("case", MASKS)
def test_nothing_is_computed_twice(place, monkeypatch, case):
    """Every pass of every method and measure is known again, and so is every file."""
    computed = computing(monkeypatch)
    place.lake(people(600))
    said = {"mask": MASKS[case], "measure": measured(case)}
    assert place.run(**said, target="undisturbed", private="p2").code == 0
    computed.clear()
    stopped(place, **said)
    once = len(computed)
    computed.clear()
    ended = place.run("--resume", "--json", **said)
    assert ended.code == 0, ended.err
    assert all(label.endswith("before") for label in computed_before_publishing(computed)), "files were looked at"
    assert "taken from the checkpoint" in ended.err
    assert 0 < resumed(ended)["passes"] < once
    assert resumed(ended)["files"] == 8, "the staged blocks, and the files that were put together from them"
    assert place.bytes() == place.bytes("undisturbed")
    assert not list(place.folder.rglob("checkpoint")), "it is of no use any more"


@pytest.mark.parametrize("case", ["dropped, then swapped", "dropped, then cells", "transforms"])
def test_staged_files_that_have_gone_are_made_again(place, case):
    """All passes before them are known, but what these left on the workers is not."""
    place.lake(people(600))
    said = {"mask": MASKS[case], "measure": measured(case)}
    assert place.run(**said, target="undisturbed", private="p2").code == 0
    stopped(place, **said)
    for path in sorted(place.folder.glob("private/*/staging/*"))[1:]:
        path.unlink()
    ended = place.run("--resume", "--json", **said)
    assert ended.code == 0, ended.err
    assert resumed(ended)["passes"] > 0
    assert resumed(ended)["files"] == 1
    assert place.bytes() == place.bytes("undisturbed")


def test_nothing_to_resume(place):
    place.lake()
    assert place.run("--resume").code == 0
    assert "nothing was changed" in place.run("--resume").out


def test_of_two_at_the_same_moment_one_is_told(place):
    place.lake()
    stopped(place)
    result = (place.folder / "private" / "result.json").read_bytes()
    with locked(Place("private"), StorageError("busy")):
        ended = place.run("--resume")
    assert ended.code == 5
    assert "another run uses this private folder now" in ended.err
    assert (place.folder / "private" / "result.json").read_bytes() == result, "the other one's"
    assert place.run("--resume").code == 0
