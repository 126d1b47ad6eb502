"""What the benchmarks share: numeric lakes, CPU of a process, peak memory of a tree of processes."""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

JOBS = Path(__file__).parents[2] / "jobs"
READY = sorted(path.parent.name for path in JOBS.glob("*/job.yaml"))
COLUMNS = [f"v{number}" for number in range(1, 14)]


class Population:
    """13 columns of correlated, skewed doubles in ten clumps, drawn a piece at a time: people are not one cloud."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.clumps = 2 * self.rng.normal(size=(13, 10))
        self.mixing = 0.5 * self.rng.normal(size=(13, 13))

    def draw(self, rows):
        """columns x rows."""
        clump = self.clumps[:, self.rng.integers(0, 10, rows)]
        return 1000 * np.exp(0.3 * (clump + self.mixing @ self.rng.normal(size=(13, rows))))


def numeric_lake(folder, rows, block_rows, rows_per_file=1_000_000):
    """A lake of that population, written a row group at a time."""
    folder.mkdir(parents=True)
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS])
    population = Population()
    for number, start in enumerate(range(0, rows, rows_per_file)):
        with pq.ParquetWriter(folder / f"part-{number:05d}.parquet", schema) as writer:
            for first in range(start, min(start + rows_per_file, rows), block_rows):
                count = min(block_rows, start + rows_per_file - first, rows - first)
                writer.write_table(pa.table(list(population.draw(count)), schema=schema), row_group_size=count)
    return folder


def in_folder(measure, about, *, rounds, arguments=None):
    """``measure(folder, rows, rounds)`` in a new folder, by the options of a command line."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--folder")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        return measure(Path(folder), int(options.rows), options.rounds)


def noise_job(folder, block_rows, **changes):
    """A job file that adds noise to all 13 columns, and releases them.

    The gate's linkage, and noise filtered by who knows its parameters, are measured and let pass, as weak noise is what
    they find.
    """
    job = {
        "name": "benchmark",
        "source": str(folder / "lake"),
        "target": str(folder / "release"),
        "private": str(folder / "private"),
        "seed": 1,
        "block_rows": block_rows,
        "columns": {"plain": COLUMNS},
        "mask": [{"method": "noise", "columns": COLUMNS, "scale": 0.1}],
        "policy": ["gate.attacks <= 1", "gate.linkage <= 1"],
    }
    job |= changes
    if job.get("order", "shuffled") != "shuffled":
        job["accept"] = {"order": "people made for a benchmark"} | job.get("accept", {})
    path = folder / "job.yaml"
    path.write_text(json.dumps(job))
    return path


def cpu_of(code, *arguments):
    """CPU seconds (user and system, all threads) of a Python process that runs this code."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=True,
        env=environment,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class PeakMemory:
    """The largest private memory of each of some processes while the block runs, in bytes."""

    def __init__(self, pids):
        self.processes = {pid: psutil.Process(pid) for pid in pids}
        self.peak = dict.fromkeys(pids, 0)
        self.start = {pid: self._now(pid) for pid in pids}

    def _now(self, pid):
        try:
            return self.processes[pid].memory_info().rss
        except psutil.NoSuchProcess:
            return 0

    def _watch(self):
        while not self.done.wait(0.01):
            for pid in self.processes:
                self.peak[pid] = max(self.peak[pid], self._now(pid))

    def __enter__(self):
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


BROKEN = []
"""Limits that a figure did not keep."""


def say(*, full=False, at_most=None, at_least=None, **facts):
    """One line of JSON a result, for people and for programs. At full size its figures are held to their limits."""
    limits = {"at_most": at_most or {}, "at_least": at_least or {}}
    for kind, sign in (("at_most", 1), ("at_least", -1)):
        for name, limit in limits[kind].items():
            if full and not sign * facts[name] <= sign * limit:
                BROKEN.append(
                    f"{facts['benchmark']}: {name} is {facts[name]:.4g}, limit {kind.replace('_', ' ')} {limit}"
                )
    print(json.dumps(facts | {kind: some for kind, some in limits.items() if some} | {"full_size": full}), flush=True)


def within_limits(main):
    """Run a benchmark; a limit that was not kept at full size ends it with exit code 1."""
    main()
    if BROKEN:
        sys.exit("\n".join(BROKEN))


DPMASK = "import sys; from dpmask.cli import main; main([*sys.argv[1:], *['--trial'][: sys.argv[1] == 'run']])"
"""The command line; jobs have seeds, so runs are trials."""
__all__ = [
    "COLUMNS",
    "DPMASK",
    "Path",
    "PeakMemory",
    "Population",
    "cpu_of",
    "noise_job",
    "numeric_lake",
    "os",
    "say",
    "time",
    "within_limits",
]
