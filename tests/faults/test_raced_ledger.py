"""Two processes that enter releases into one ledger at the same time: none is lost, none is doubled, the chain holds."""

import json
import subprocess
import sys
import time

import pytest

from dpmask.lake.storage import Place
from dpmask.release.ledger import read_ledger, verify_ledger

EACH = {"disk": 8, "s3": 3}
WRITER = """
import json, os, sys, time
import numpy as np
from dpmask.errors import StorageError
from dpmask.lake.storage import Place
from dpmask.release.ledger import read_ledger

url, name, each, go = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
place, entered, beaten = Place(url), [], 0
read_ledger(place, "people")
open(go + "." + name, "w").close()
while not os.path.exists(go): time.sleep(0.001)
while len(entered) < each:
    ledger = read_ledger(place, "people")
    people = np.full((3, 3), len(entered), np.uint64) + np.uint64(1000 * int(name))
    try: entered.append(ledger.add({"run": f"{name} {len(entered)}"}, people, None)[1].number)
    except StorageError: beaten += 1
print(json.dumps([entered, beaten]))
"""


@pytest.mark.parametrize("kind", ["disk", "s3"])
def test_two_writers(kind, place, request):
    """Each enters what it read the ledger for, or is told that another was faster and reads it again."""
    url = str(place.folder / "race.ledger") if kind == "disk" else f"{request.getfixturevalue('s3')}/race.ledger"
    go = place.folder / "go"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, url, name, str(EACH[kind]), go], stdout=-1, stderr=-1, text=True
        )
        for name in ("1", "2")
    ]
    while len(list(place.folder.glob("go.*"))) < len(runs):
        assert all(run.poll() is None for run in runs), [run.communicate() for run in runs]
        time.sleep(0.01)
    go.touch()
    said = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    (one, _), (other, _) = (json.loads(out) for out, _ in said)
    assert sorted(one + other) == list(range(1, 2 * EACH[kind] + 1))
    ledger = verify_ledger(url)
    assert {entry.content["run"] for entry in ledger.entries} == {
        f"{name} {at}" for name in "12" for at in range(EACH[kind])
    }
    assert read_ledger(Place(url)).head == ledger.head
