"""Workers killed again and again while a job runs: the same release, byte for byte."""

import os
import signal
import threading
import time
import uuid
from functools import partial

import dask
import pytest
from conftest import JOB, people
from fault_tools import as_if_large, wait_until
from servers import kill_a_worker

from dpmask.engine.collection import Collection, itself

pytestmark = pytest.mark.machine

NUMBERS = ["age", "income"]
FUZZY = {"method": "fuzzy_microaggregation", "columns": NUMBERS, "clusters": 5, "fuzziness": 1.4}
SWAPPING = {"method": "swapping", "columns": NUMBERS, "share": 0.5, "window": 0.1}
JOBS = {
    # the masking, and where its progress can be seen
    "noise": (JOB["mask"], "private/*/staging/*", 3),
    "fuzzy clustering, then an exchange": ([FUZZY, SWAPPING], "private/*/checkpoint/*", 2),
}


class Killer(threading.Thread):
    """Kills one worker after the other, each when the run has come some steps further."""

    def __init__(self, cluster, kills, progress, steps):
        super().__init__(daemon=True)
        self.cluster, self.kills, self.progress, self.steps = cluster, kills, progress, steps
        self.killed, self.over = [], threading.Event()

    def run(self):
        last = 0
        while len(self.killed) < self.kills and not self.over.is_set():
            if self.progress() >= last + self.steps and self._kill():
                last = self.progress()
            time.sleep(0.005)

    def _kill(self):
        alive = [nanny.pid for nanny in self.cluster.workers.values() if nanny.pid]
        fresh = [pid for pid in alive if pid not in self.killed]
        for pid in fresh[:1]:
            self.killed.append(pid)
            os.kill(pid, signal.SIGKILL)
        return bool(fresh)


@pytest.fixture
def two_workers():
    """A cluster of its own, whose workers may be killed: each has a nanny that starts it again."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as made:
        yield made


@pytest.mark.parametrize("case", JOBS)
def test_ten_kills(place, two_workers, limit, case):
    mask, traces, steps = JOBS[case]
    as_if_large(limit)
    limit(journal_seconds=0.0)
    place.lake(people(1_200), files=8, row_group_size=30)
    said = {"mask": mask, "measure": [{"measure": "il1s", "columns": NUMBERS}], "block_rows": 30}
    assert place.run(**said, target="undisturbed", private="p2").code == 0
    killer = Killer(two_workers, 10, lambda: len(list(place.folder.glob(traces))), steps)
    killer.start()
    ended = place.run("--scheduler", two_workers.scheduler_address, **said)
    killer.over.set()
    killer.join()
    assert ended.code == 0, ended.err
    assert len(killer.killed) == 10
    assert place.bytes() == place.bytes("undisturbed")


def dies_when_computed_again(folder, content):
    """Computed at first, deadly when it is computed again, computed at last."""
    calls = len(list(folder.iterdir()))
    (folder / f"{calls}-{uuid.uuid4().hex}").touch()
    if calls == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return content.upper()


def bracket(left, right):
    return f"({left}{right})"


def test_what_is_persisted_is_computed_again_though_dask_gave_it_up(tmp_path):
    """Dask gives up a task whose workers died too often; what is persisted must not stay lost with it."""
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        persisted = Collection.of("a").persist(partial(dies_when_computed_again, tmp_path), "persist")
        kill_a_worker(cluster)
        assert wait_until(lambda: len(list(tmp_path.iterdir())) == 2), "it was being computed again, and died"
        assert persisted.reduce(itself, bracket, "x") == "A"
        assert len(list(tmp_path.iterdir())) == 3
