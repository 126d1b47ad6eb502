"""Clusters as they are in an office: several jobs at once, workers that come and go while a job runs."""

import threading
import time

import pytest
from conftest import people
from fault_tools import as_if_large, both_run

NUMBERS = ["age", "income"]
FUZZY = {"method": "fuzzy_microaggregation", "columns": NUMBERS, "clusters": 5, "fuzziness": 1.4}
SWAPPING = {"method": "swapping", "columns": NUMBERS, "share": 0.5, "window": 0.1}


@pytest.mark.timeout(200)
def test_two_jobs_at_once(place, cluster):
    """Each releases what it releases alone, and leaves nothing on the cluster."""
    place.lake(people(600), files=4)
    jobs = [
        {"name": "one", "target": "r0", "private": "p0", "seed": 7, "mask": [SWAPPING], "block_rows": 60},
        {"name": "two", "target": "r1", "private": "p1", "seed": 8, "block_rows": 60},
    ]
    codes, said = both_run(place, jobs, ["--scheduler", cluster.scheduler_address])
    assert codes == [0, 0], said
    for number, job in enumerate(jobs):
        assert place.run(**job | {"target": f"alone{number}"}).code == 0
        assert place.bytes(f"r{number}") == place.bytes(f"alone{number}")
    assert not [key for key in cluster.scheduler.tasks if str(key).startswith(("one", "two"))]


class Scaler(threading.Thread):
    """Retires a worker and asks for another one, again and again, each time the run has come some steps further."""

    def __init__(self, cluster, progress):
        super().__init__(daemon=True)
        self.cluster, self.progress = cluster, progress
        self.retired, self.over = 0, threading.Event()

    def run(self):
        last = 0
        while not self.over.is_set():
            if self.progress() >= last + 2:
                last = self.progress()
                self.cluster.scale(1)
                self._until(1)
                self.retired += 1
                self.cluster.scale(2)
                self._until(2)
            time.sleep(0.005)

    def _until(self, workers):
        while len(self.cluster.scheduler.workers) != workers and not self.over.is_set():
            time.sleep(0.005)


@pytest.mark.timeout(200)
def test_workers_that_are_retired_in_a_run(place, limit):
    """As adaptive clusters do; what a worker holds is handed over or computed again, and the bytes are the same."""
    from distributed import LocalCluster

    as_if_large(limit)
    limit(journal_seconds=0.0)
    place.lake(people(1_200), files=8, row_group_size=30)
    said = {"mask": [FUZZY, SWAPPING], "block_rows": 60}
    assert place.run(**said, target="undisturbed", private="p2").code == 0
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        scaler = Scaler(cluster, lambda: len(list(place.folder.glob("private/*/checkpoint/*"))))
        scaler.start()
        ended = place.run("--scheduler", cluster.scheduler_address, **said)
        scaler.over.set()
        scaler.join()
    assert ended.code == 0, ended.err
    assert scaler.retired >= 1
    assert place.bytes() == place.bytes("undisturbed")
