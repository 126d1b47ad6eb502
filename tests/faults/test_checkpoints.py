"""Checkpoints that are of something else are refused, damaged ones computed again, and none is left in the way."""

import json
import shutil

import pytest
from conftest import people
from resume_tools import CELLS, computed_before_publishing, computing, header, resumed, stopped

from dpmask.engine.limits import limits
from dpmask.errors import StorageError
from dpmask.lake.storage import Place


@pytest.fixture
def at_once(limit):
    limit(journal_seconds=0.0)


def rewritten(place):
    path = place.folder / "lake" / "part-1.parquet"
    path.write_bytes(path.read_bytes())


OTHERS = {
    # what was changed since: the message
    "key": (lambda place: {"seed": 8}, "is of a run with another key"),
    "job": (lambda place: {"order": "input"}, "is of another state of this job"),
    "data": (lambda place: place.lake(people(seed=1)) and {}, "is of a run on other source files"),
    "same data, written again": (lambda place: rewritten(place) or {}, "is of a run on other source files"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_checkpoint_of_something_else_is_refused(place, case):
    change, message = OTHERS[case]
    place.lake()
    stopped(place)
    said = change(place)
    ended = place.run("--resume", **said)
    assert ended.code == 2
    assert message in ended.err
    assert "Run without --resume to start anew." in ended.err
    assert not (place.folder / "release").exists()
    assert place.run(**said).code == 0
    for left in ("checkpoint", "staging"):
        assert not list(place.folder.rglob(left)), "cleared by the run without --resume"
    assert len(list(place.folder.rglob("pairing"))) == (said.get("order") != "input"), "that of the release"


@pytest.mark.parametrize(("name", "other"), [("numpy", "1.0"), ("format", "dpmask checkpoint 2")])
def test_a_checkpoint_of_other_libraries_is_refused(place, name, other):
    place.lake()
    stopped(place)
    told = json.loads(header(place).read_text())
    header(place).write_text(json.dumps(told | {name: other}))
    ended = place.run("--resume")
    assert ended.code == 2
    assert f"was written with {name} {other}, this is" in ended.err


def test_what_pairs_a_release_outlives_its_abandoned_checkpoint(place):
    """A run that was released and then begun again: a run of another state clears its checkpoint and no more."""
    place.lake()
    assert place.run().code == 0
    (pairing,) = place.folder.rglob("pairing")
    shutil.rmtree(place.folder / "release")
    stopped(place)
    said = {"order": "input", "target": "other"}
    header(place).write_text(header(place).read_text().replace(pairing.parent.name, "../elsewhere"))
    assert place.run(**said).code == 0
    assert list(pairing.iterdir())
    for left in ("checkpoint", "staging", "elsewhere"):
        assert not list(place.folder.rglob(left)), "what a header says is not where anything is cleared"


@pytest.mark.parametrize("resume", [(), ("--resume",)])
def test_a_folder_made_for_a_file_that_was_not_written(place, monkeypatch, resume):
    """As a full disk leaves it: it is in no later run's way."""
    place.lake()
    write = Place.replaced

    def full(self, *mode, **settled):
        if "/persisted/" in self.path:
            Place(self.path.rpartition("/")[0]).make_private()
            raise StorageError("no space is left there")
        return write(self, *mode, **settled)

    with monkeypatch.context() as broken, limits(tries=1):
        broken.setattr(Place, "replaced", full)
        ended = place.run(mask=CELLS[:1])
    assert ended.code == 5, ended.err
    (persisted,) = place.folder.glob("private/*/checkpoint/persisted")
    assert not list(persisted.iterdir())
    assert place.run(*resume, mask=CELLS[:1]).code == 0
    assert not list(place.folder.rglob("checkpoint"))


def segments(place):
    return list(place.folder.glob("private/*/checkpoint/*-0*"))


DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "changed": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
}


@pytest.mark.parametrize("case", [*DAMAGE, "header", "of another run", "staged file"])
def test_damage_costs_time_and_nothing_else(place, at_once, monkeypatch, case):
    """What is not whole, or not ours, is computed again."""
    place.lake()
    computed = computing(monkeypatch)
    assert place.run(target="undisturbed", private="p2").code == 0
    whole = computed_before_publishing(computed)
    of_values = [label for label in whole if label not in {"mask", "shuffle"}]  # those two write files
    assert len(of_values) == len(whole) - 2 == 21
    stopped(place)
    if case == "header":
        header(place).write_text("{")
    elif case == "staged file":
        for path in list(place.folder.glob("private/*/staging/*"))[1:]:
            path.write_bytes(b"PAR1")
    else:
        (first, *rest) = sorted(segments(place))
        damage = DAMAGE.get(case, lambda data: rest[0].read_bytes())  # whole, and under a name that it was not given
        first.write_bytes(damage(first.read_bytes()))
    count = len(list(place.folder.glob("private/*/staging/*")))
    computed.clear()
    ended = place.run("--resume", "--json")
    assert ended.code == 0, ended.err
    lost = {"header": whole, "staged file": ["mask", "shuffle"]}.get(case, whole[:1])
    again = computed_before_publishing(computed)
    assert [label for label in again if label not in {"staged before", "shuffled before"}] == lost
    assert resumed(ended) == {
        "passes": {"header": 0, "staged file": len(of_values)}.get(case, len(of_values) - 1),
        "files": {"header": 0, "staged file": 1}.get(case, count),
    }
    assert place.bytes() == place.bytes("undisturbed")
