"""A driver that was killed, in any stage, is resumed: the same release, and less to compute."""

import signal

import pytest
from conftest import people
from fault_tools import AT_ONCE, LARGE, as_if_large, cli, dying_in
from resume_tools import CELLS, FUZZY, MEASURES, REFINEMENT, computed_before_publishing, computing, resumed

from dpmask.masking.microaggregation import cells

DYING = {
    "fitting": f"""{AT_ONCE}
from dpmask.job.checkpoint import _PersistedFiles
put = _PersistedFiles.put
def dying(self, name, data):
    put(self, name, data)
    os.kill(os.getpid(), signal.SIGKILL)
_PersistedFiles.put = dying
import dask
dask.config.set(scheduler="synchronous")
""",
    "staging": f"""{AT_ONCE}
from dpmask.engine.journal import FileEntries
keep, seen = FileEntries.keep, []
def dying(self, number, result):
    keep(self, number, result)
    seen.append(number)
    if len(seen) > 2: os.kill(os.getpid(), signal.SIGKILL)
FileEntries.keep = dying
""",
    "shuffling": f"""{AT_ONCE}
from dpmask.engine import files
class Dying(files.FileEntries):
    def __init__(self, label, spans):
        super().__init__(label, spans)
        self.left = 2 if label == "shuffle" else 1000
    def keep(self, number, result):
        super().keep(number, result)
        self.left -= 1
        if not self.left: os.kill(os.getpid(), signal.SIGKILL)
files.FileEntries = Dying
""",
    "publishing": f"""{AT_ONCE}
from dpmask.lake.storage import Place
from dpmask.masking.microaggregation import cells
bring, seen = Place.bring_to, []
def dying(self, target):
    bring(self, target)
    seen.append(target)
    if len(seen) > 2: os.kill(os.getpid(), signal.SIGKILL)
Place.bring_to = dying
""",
}
KILLS = {
    # where the driver dies: its masking, the pass, after how many of them, on a cluster, resumed on one
    "fuzzy clustering": ([FUZZY], "fuzzy c-means", 3, False, False),
    "fuzzy clustering on a cluster": ([FUZZY], "fuzzy c-means", 3, True, False),
    "refinement rounds": ([REFINEMENT], "refinement: count", 4, False, True),
    "records on their way": (CELLS, "cells: figures", 1, True, True),
    "staging": (CELLS, "mask", 2, False, True),
    "measuring": (CELLS, "linkage: links", 0, False, False),
    "shuffling": (CELLS, "shuffle", 2, False, True),
    "publishing": (CELLS, "publish", 0, False, False),
}


@pytest.mark.parametrize("case", KILLS)
def test_the_driver_killed_and_resumed(place, cluster, monkeypatch, limit, case):
    computed = computing(monkeypatch)
    as_if_large(limit)
    mask, label, passes, before, after = KILLS[case]
    place.lake(people(600))
    said = {"mask": mask, "measure": [] if mask == [REFINEMENT] else MEASURES[:1] + MEASURES[8:9]}
    assert place.run(**said, target="undisturbed", private="p2").code == 0
    whole = len(computed_before_publishing(computed))
    computed.clear()
    dying = DYING.get(case) or dying_in(label, passes)
    where = ["--scheduler", cluster.scheduler_address]
    died = cli(place, "run", place.job(**said), *where * before, code=LARGE + dying)
    _, err = died.communicate(timeout=120)
    assert died.returncode == -signal.SIGKILL, err
    assert not (place.folder / "release" / "manifest.json").exists()
    ended = place.run("--resume", "--json", *where * after, **said)
    assert ended.code == 0, ended.err
    assert place.bytes() == place.bytes("undisturbed")
    assert resumed(ended)["passes"] > 0
    assert len(computed_before_publishing(computed)) < whole
    assert (resumed(ended)["files"] > 0) == (case in {"staging", "measuring", "shuffling", "publishing"})


def test_fitted_cells_are_kept_one_by_one(place, monkeypatch):
    """Killed when the first of two shards was fitted: the resumed run fits the other one."""
    place.lake(people(1000))
    said = {"mask": CELLS[:1]}
    assert place.run(**said, target="undisturbed", private="p2").code == 0
    died = cli(place, "run", place.job(**said), code=DYING["fitting"])
    _, err = died.communicate(timeout=120)
    assert died.returncode == -signal.SIGKILL, err
    fitted, fit = [], cells._fit_shard
    monkeypatch.setattr(cells, "_fit_shard", lambda *given: (fitted.append(given[-1]), fit(*given))[1])
    assert len(list(place.folder.glob("private/*/checkpoint/persisted/*-?"))) == 1
    ended = place.run("--resume", **said)
    assert ended.code == 0, ended.err
    assert len(fitted) == 1
    assert place.bytes() == place.bytes("undisturbed")
