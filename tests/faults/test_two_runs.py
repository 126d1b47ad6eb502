"""Two runs started together, with one private folder or one target: one wins, the other says so and touches nothing."""

import json
import re

import pytest
from conftest import people
from fault_tools import both_run

from dpmask.errors import StorageError
from dpmask.lake.locks import LOCK, locked
from dpmask.lake.storage import Place
from dpmask.table.lake import read_lake

CASES = {
    # what the second run changes of the first, and whether a release is there that both are to replace
    "the same job": ({}, False),
    "one private folder": ({"seed": 8, "target": "other"}, False),
    "one target": ({"seed": 8, "private": "p2"}, False),
    "one target, to be replaced": ({"seed": 8, "private": "p2"}, True),
}
SAID = ("another run", "holds another release", "changed while this run was under way")


def check(place, root, case):
    """Start both in folders below ``root``, and look at what they leave."""
    change, replaced = CASES[case]
    first = {"target": "release", "private": "private"}
    jobs = [{**job, **{key: f"{root}/{job[key]}" for key in first}} for job in (first, first | change)]
    if replaced:
        assert place.run(**jobs[0], seed=9).code == 0
    codes, said = both_run(place, jobs, ["--overwrite"] if replaced else [])
    assert 0 in codes, said
    assert set(codes) <= {0, 2, 5}, said
    assert codes != [0, 0] or case in {"the same job", "one target, to be replaced"} or "private" in case, said
    for job, code, text in zip(jobs, codes, said, strict=True):
        assert code == 0 or any(words in text for words in SAID), text
        assert "do not use it" not in text
        target = Place(job["target"])
        if code == 0 or "one target" in case or case == "the same job":
            verified = place.dpmask("verify", target.url)
            assert verified.code == 0, verified.err
        else:
            assert not target.files(), "the one that lost touches nothing"


@pytest.mark.parametrize("case", CASES)
def test_on_a_disk(place, case):
    place.lake(people(400), files=2)
    check(place, "round", case)


@pytest.mark.parametrize("case", CASES)
def test_in_a_bucket(place, s3, case):
    place.lake(people(400), files=2)
    check(place, f"{s3}/round", case)


def test_a_lock_in_a_bucket_is_kept_while_its_owner_lives(s3, limit):
    limit(lock_seconds=0.1, lock_patience=2.0)
    folder = Place(f"{s3}/folder")
    with locked(folder, StorageError("first")):
        with pytest.raises(StorageError, match="second"), locked(folder, StorageError("second")):
            pass
        assert folder.files() == [LOCK]
    assert folder.files() == []


def test_a_lock_in_a_bucket_whose_owner_died_is_taken_over(s3, limit):
    limit(lock_seconds=0.1, lock_patience=0.5)
    folder = Place(f"{s3}/folder")
    (folder / LOCK).write(json.dumps({"owner": "dead", "beats": 3}).encode())
    with locked(folder, StorageError("busy")):
        assert json.loads((folder / LOCK).read())["owner"] != "dead"
    assert folder.files() == []


def test_a_lock_left_in_a_bucket_is_no_fault_of_the_release(place, s3):
    """Of a run that was killed while it published: verify and readers pass it by, and it says nothing of anybody."""
    place.lake(people(400), files=2)
    target = Place(f"{s3}/release")
    assert place.run(target=target.url).code == 0
    assert "dpmask.lock" not in place.dpmask("verify", target.url).out
    with locked(target, StorageError("busy")):
        left = (target / LOCK).read()
    assert re.fullmatch(rb'\{"owner": "[0-9a-f]{32}", "beats": 0\}', left)
    (target / LOCK).write(left)
    verified = place.dpmask("verify", target.url)
    assert verified.code == 0, verified.err
    assert "dpmask.lock lies there: a run is publishing now, or died here" in verified.out
    assert place.dpmask("verify", target.url, "--json").json["publishing"] is True
    assert read_lake(target.url).rows == 400
    for content in (b"", b"secret", left[:-1] + b', "name": "Ann"}', b" " * 10**6):
        (target / LOCK).write(content)
        assert "dpmask.lock is not in the manifest" in place.dpmask("verify", target.url).err, "it only has the name"


@pytest.mark.parametrize("mode", [0o777, 0o750, 0o701])
def test_a_private_folder_that_others_can_open_is_refused(place, mode):
    place.lake()
    folder = place.folder / "private"
    folder.mkdir()
    folder.chmod(mode)
    for command in ("run", "plan"):
        ended = place.dpmask(command, place.job())
        assert ended.code == 2
        assert f"its mode is {mode:04o}. Type: chmod 700 {folder}" in ended.err
    assert list(folder.iterdir()) == []
    folder.chmod(0o700)
    assert place.run().code == 0


def test_what_shows_records_is_for_the_owner_only(place):
    place.lake()
    place.run(policy=["il1s.value <= 0"], measure=[{"measure": "il1s", "columns": ["income"]}])
    assert place.run().code == 0
    pairing = list(place.folder.glob("private/*/pairing/*"))
    assert pairing
    assert {path.stat().st_mode & 0o777 for path in pairing} == {0o600}
