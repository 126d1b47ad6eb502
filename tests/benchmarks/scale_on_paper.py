"""What a job takes at sizes that nobody has run: tasks, driver memory, requests to object storage, time. On paper.

python tests/benchmarks/scale_on_paper.py [--json]

Each constant stands with where it comes from. The rest is arithmetic: a table of n records in blocks and files of ``block_rows``, passes over it as
``dpmask plan`` counts them, on workers of one thread each.
"""

import argparse
import json
from math import ceil
from typing import NamedTuple

CPU_A_MILLION = {"noise": 6.4, "refinement": 13.7, "fuzzy": 17.5}
"""CPU seconds a million records, without start and compiling: ``dpmask plan`` of the jobs of bench_headline.py at a million,
which bench_plan.py compares with runs. Put the CPU of bench_headline.py here once it was run at full size."""
PASSES = {"noise": 12, "refinement": 12, "fuzzy": 12}
"""Passes over the data, by the same plans."""
TASKS_A_THREAD = 4
"""Tasks of a pass for each worker thread, if there are as many blocks: dpmask/engine/tasks.py."""
SECONDS_A_TASK = 0.001
"""Of the scheduler, as Dask's own documentation has it."""
DRIVER_MB, DRIVER_KB_A_FILE = 206, 12
"""The peak of a driver with two files (bench_headline.py at 200,000), and what it holds for each file more: facts of 12 columns, hashes and the manifest's entry, an estimate."""
REQUESTS_A_BLOCK = 2
"""Of a block of one file in a pass: neighbouring columns and row groups are read in one (bench_lake.py)."""


class Size(NamedTuple):
    """A table and a cluster."""

    rows: int
    workers: int
    block_rows: int


SIZES = [
    Size(10_000_000, 2, 1_000_000),
    Size(100_000_000, 2, 1_000_000),
    Size(100_000_000, 100, 1_000_000),
    Size(1_000_000_000, 1000, 1_000_000),
    Size(1_000_000_000, 1000, 4_000_000),
]


def on_paper(job, size):
    """What a run of a job takes."""
    blocks, passes = ceil(size.rows / size.block_rows), PASSES[job]
    tasks = passes * min(blocks, TASKS_A_THREAD * size.workers) + 4 * blocks
    cpu = CPU_A_MILLION[job] * size.rows / 1e6
    busy = min(size.workers, blocks)
    return {
        "blocks": blocks,
        "tasks": tasks,
        "scheduler_seconds": tasks * SECONDS_A_TASK,
        "cpu_hours": cpu / 3600,
        "hours": cpu / busy / 3600 + tasks * SECONDS_A_TASK / 3600,
        "driver_mb": DRIVER_MB + 2 * blocks * DRIVER_KB_A_FILE / 1024,
        "requests": blocks * (1 + REQUESTS_A_BLOCK * passes) + 5 * blocks,
        "pieces_shuffled": blocks * blocks,
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    found = [{"job": job, **size._asdict(), **on_paper(job, size)} for job in CPU_A_MILLION for size in SIZES]
    if given.json:
        print(json.dumps(found, indent=1))
        return found
    names = list(found[0])
    print("| " + " | ".join(name.replace("_", " ") for name in names) + " |")
    print("|" + "---|" * len(names))
    for one in found:
        print("| " + " | ".join(_shown(one[name]) for name in names) + " |")
    return found


def _shown(value):
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


if __name__ == "__main__":
    main()
