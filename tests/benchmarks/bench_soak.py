"""Many jobs on one cluster, one after another and three at once: memory, files and tasks must not grow.

PYTHONPATH=tests python tests/benchmarks/bench_soak.py [--jobs 200] [--hours 0] [--rows 2e4] [--workers 2] [--folder DIR]

A driver submits job after job to a scheduler and workers that are processes of their own, as a service would; then three drivers do at once. Every job has
another seed; it releases and verifies, and its folders are deleted. With --hours each part goes on for half of them. After each job memory of driver, scheduler and workers,
open files and threads of the driver, files in temporary folders and tasks that the scheduler knows are counted. Growth is the slope over the second half of the jobs.
"""

import argparse
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
_DRIVER = """
import json, os, shutil, sys, psutil
from dpmask.job.run import run_job
job, address, folder = sys.argv[1:]
me = psutil.Process()
for line in sys.stdin:
    here = os.path.join(folder, line.strip())
    changes = [f"seed={int(line)}", f"target={here}/release", f"private={here}/private"]
    outcome = run_job(job, settings=changes, scheduler=address, trial=True)
    assert outcome.exit_code == 0, outcome
    shutil.rmtree(here)
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
        with dask_cluster(folder, worker=("--nworkers", given.workers), env=places) as address:
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
        return {
            "scheduler": self.scheduler.memory_info().rss,
            "workers": sum(worker.memory_info().rss for worker in self.workers),
            "tasks": self.client.run_on_scheduler(_tasks),
            "files": sum(len(names) for _, _, names in os.walk(self.temporary)),
        }


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
    growth = {name: _slope([one[name] for one in late]) / drivers for name in late[0]}
    facts = {f"{name}_kb_a_job": growth[name] / 1024 for name in ("driver", "scheduler", "workers")}
    facts |= {f"{name}_a_job": growth[name] for name in ("open", "threads", "files")}
    facts |= {"tasks_left": looks[-1]["tasks"], "files_left": looks[-1]["files"]}
    facts |= {
        f"{name}_mb": [looks[0][name] >> 20, looks[-1][name] >> 20] for name in ("driver", "scheduler", "workers")
    }
    jobs, full = len(looks) * drivers, given.jobs >= FULL_JOBS
    say(benchmark="soak", full=full, at_most=_LIMITS, drivers=drivers, jobs=jobs, seconds=seconds, **facts)
    return facts


def _slope(values):
    return float(np.polyfit(np.arange(len(values)), values, 1)[0]) if len(values) > 1 else 0.0


if __name__ == "__main__":
    within_limits(main)
