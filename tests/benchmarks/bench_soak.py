"""Many jobs on one cluster, one after another and three at once: memory, files and tasks must not grow.

PYTHONPATH=tests python tests/benchmarks/bench_soak.py [--jobs 200] [--hours 0] [--rows 2e4] [--workers 2] [--folder DIR]

A driver submits job after job to a scheduler and workers that are processes of their own, as a service would; then three drivers do at once. Every job has
another seed; it releases and verifies, and its folders are deleted. With --hours each part goes on for half of them. After each job memory of driver, scheduler and workers,
open files and threads of the driver, files in temporary folders and tasks that the scheduler knows are counted, once each process has collected its garbage and its allocator has given back what it kept:
what stays is held by somebody. Logs of tasks that Dask keeps are short, so that they are full soon. Growth is the median slope over all pairs of jobs of the second half (Theil 1950, Sen 1968), so that one jump is no growth, with its 95 % interval:
``verdict`` is "grows" where all of it is above the limit, "rests" where none is, "undecided" where there were too few jobs to say. What grows fails at any size.
"""

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import tempfile

import numpy as np
import psutil
from common import Path, noise_job, numeric_lake, os, say, time, within_limits
from servers import dask_cluster

from dpmask.kernels.target import pin_process

FULL_JOBS = 200
_LIMITS = {
    "driver_kb_a_job": 60,
    "scheduler_kb_a_job": 60,
    "workers_kb_a_job": 120,
    "files_a_job": 0.02,
    "tasks_left": 0,
}
_COUNTED = {"driver": 1024, "scheduler": 1024, "workers": 1024, "open": 1, "threads": 1, "files": 1}
_NORMAL_95 = 1.96
_SHORT_LOGS = {
    "DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "100",
    "DASK_DISTRIBUTED__SCHEDULER__DASHBOARD__TASKS__TASK_STREAM_LENGTH": "100",
    "DASK_DISTRIBUTED__SCHEDULER__DASHBOARD__STATUS__TASK_STREAM_LENGTH": "100",
    "DASK_DISTRIBUTED__DIAGNOSTICS__COMPUTATIONS__MAX_HISTORY": "10",
}
"""Dask's own logs of tasks are full after a few jobs then; by default the dashboard's has 100,000 tasks."""
_DRIVER = """
import ctypes, gc, json, os, shutil, sys, psutil
from dpmask.job.run import run_job
job, address, folder = sys.argv[1:]
me = psutil.Process()
for line in sys.stdin:
    here = os.path.join(folder, line.strip())
    changes = [f"seed={int(line)}", f"target={here}/release", f"private={here}/private"]
    outcome = run_job(job, settings=changes, scheduler=address, trial=True)
    assert outcome.exit_code == 0, outcome
    shutil.rmtree(here)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    print(json.dumps({"driver": me.memory_info().rss, "open": me.num_fds(), "threads": me.num_threads()}), flush=True)
"""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=FULL_JOBS)
    parser.add_argument("--hours", type=float, default=0)
    parser.add_argument("--rows", type=float, default=2e4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder")
    given = parser.parse_args(arguments)
    rows = int(given.rows)
    pin_process()  # in the environment of scheduler, workers and drivers
    with tempfile.TemporaryDirectory(dir=given.folder) as made:
        folder, temporary = Path(made), Path(made) / "temporary"
        temporary.mkdir()
        numeric_lake(folder / "lake", rows, rows // 4)
        job = noise_job(folder, rows // 4)
        places = {"TMPDIR": str(temporary), "DASK_TEMPORARY_DIRECTORY": str(temporary)}
        with dask_cluster(folder, worker=("--nworkers", given.workers), env=places | _SHORT_LOGS) as address:
            cluster = _Cluster(address, given.workers, temporary)
            return [_soaked(cluster, job, drivers, given, places) for drivers in (1, 3)]


class _Cluster:
    """A scheduler and its workers, looked at from outside."""

    def __init__(self, address, workers, temporary):
        from distributed import Client

        self.client, self.address, self.temporary = Client(address), address, temporary
        self.client.wait_for_workers(workers)
        self.scheduler = psutil.Process(self.client.run_on_scheduler(os.getpid))
        self.workers = [psutil.Process(pid) for pid in self.client.run(os.getpid).values()]

    def look(self):
        """Memory of its processes, tasks that the scheduler knows, and temporary files."""
        self.client.run(_give_back)
        self.client.run_on_scheduler(_give_back)
        return {
            "scheduler": self.scheduler.memory_info().rss,
            "workers": sum(worker.memory_info().rss for worker in self.workers),
            "tasks": self.client.run_on_scheduler(_tasks),
            "files": sum(len(names) for _, _, names in os.walk(self.temporary)),
        }


def _give_back():
    """Have this process give back the memory that nothing is in."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def _tasks(dask_scheduler):
    return len(dask_scheduler.tasks)


def _soaked(cluster, job, drivers, given, places):
    """As many jobs by so many drivers at once, and how what they leave grows."""
    command = [sys.executable, "-c", _DRIVER, str(job), cluster.address, str(job.parent)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    started = [subprocess.Popen(command, env={**os.environ, **places}, **pipes) for _ in range(drivers)]
    start, looks = time.monotonic(), []
    try:
        while len(looks) * drivers < given.jobs or time.monotonic() - start < given.hours * 1800:
            for number, one in enumerate(started):
                one.stdin.write(f"{1 + len(looks) * drivers + number}\n")
                one.stdin.flush()
            own = [json.loads(one.stdout.readline()) for one in started]
            looks.append({name: sum(one[name] for one in own) for name in own[0]} | cluster.look())
    finally:
        for one in started:
            one.stdin.close()
            one.wait()
    return _report(looks, drivers, given, time.monotonic() - start)


def _report(looks, drivers, given, seconds):
    late = looks[len(looks) // 2 :]
    growth = {
        f"{name}_kb_a_job" if unit > 1 else f"{name}_a_job": _slopes([one[name] / (unit * drivers) for one in late])
        for name, unit in _COUNTED.items()
    }
    facts = {name: one[1] for name, one in growth.items()}
    facts |= {"intervals": {name: (one[0], one[2]) for name, one in growth.items()}}
    facts["verdict"] = {name: _verdict(growth[name], limit) for name, limit in _LIMITS.items() if name in growth}
    facts |= {"tasks_left": looks[-1]["tasks"], "files_left": looks[-1]["files"]}
    facts |= {
        f"{name}_mb": [looks[0][name] >> 20, looks[-1][name] >> 20] for name in ("driver", "scheduler", "workers")
    }
    jobs, full = len(looks) * drivers, given.jobs >= FULL_JOBS
    grows = [name for name, verdict in facts["verdict"].items() if verdict == "grows"]
    limits = _LIMITS if full else {name: _LIMITS[name] for name in grows}
    say(
        benchmark="soak", full=full or bool(grows), at_most=limits, drivers=drivers, jobs=jobs, seconds=seconds, **facts
    )
    return facts


def _slopes(values):
    """The median of the slopes between all pairs of values, and the ends of its 95 % interval."""
    count = len(values)
    if count < 2:
        return -np.inf, 0.0, np.inf
    first, second = np.triu_indices(count, 1)
    slopes = np.sort((np.array(values)[second] - np.array(values)[first]) / (second - first))
    aside = int(len(slopes) / 2 - _NORMAL_95 / 2 * np.sqrt(count * (count - 1) * (2 * count + 5) / 18))
    low, high = (slopes[aside], slopes[-1 - aside]) if aside >= 0 else (-np.inf, np.inf)
    return float(low), float(np.median(slopes)), float(high)


def _verdict(slopes, limit):
    low, _, high = slopes
    return "grows" if low > limit else "rests" if high <= limit else "undecided"


if __name__ == "__main__":
    within_limits(main)
