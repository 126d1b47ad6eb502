"""Transforms are bound by Parquet, and swapping is linear in bounded memory.

python tests/benchmarks/bench_transforms.py [--rows 1e7] [--rounds 2] [--memory 1e9] [--folder DIR] [--only transforms|swapping]

Transforms: the CPU of a run that takes memberships of 13 columns and rotates them, against reading the source twice, writing a release's
worth of columns once and reading it once with pyarrow alone, as in bench_noise.py. The whole run counts: release, report and verification.

Swapping: a run that swaps all 13 columns, on a tenth of the rows and on all of them, by one worker that may hold so much memory and
spills the rest. Cost is linear if a row takes the same CPU at both sizes, driver and worker together: the ratio is printed, and the limit is 1.3.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import psutil
from bench_noise import PEER
from common import COLUMNS, DPMASK, Path, PeakMemory, cpu_of, noise_job, numeric_lake, say, time, within_limits
from distributed import LocalCluster

BLOCK_ROWS, FULL = 1_000_000, 10_000_000
HYBRID = [
    {"method": "membership_transform", "columns": COLUMNS, "function": "s"},
    {"method": "rotation", "columns": COLUMNS},
]
SWAPPING = [{"method": "swapping", "columns": COLUMNS, "share": 0.5, "window": 0.01}]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--memory", type=float, default=1e9)
    parser.add_argument("--folder")
    parser.add_argument("--only", choices=["transforms", "swapping"])
    options = parser.parse_args(arguments)
    rows, ratio, results = int(options.rows), None, []
    if options.only != "swapping":
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            ratio = transforms(Path(folder), rows, options.rounds)
    for size in (rows // 10, rows) if options.only != "transforms" else ():
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            results.append(swapping(Path(folder), size, int(options.memory)))
    if results:
        small, large = results
        growth = {
            name: large[name] / small[name] for name in ("cpu_a_million_rows", "worker_peak_mb", "driver_peak_mb")
        }
        full, times = rows >= FULL, large["rows"] / small["rows"]
        say(full=full, at_most={"cpu_a_million_rows": 1.3}, benchmark="swapping growth", rows_times=times, **growth)
    return ratio, results


def transforms(folder, rows, rounds):
    numeric_lake(folder / "lake", rows, BLOCK_ROWS)
    job = noise_job(folder, BLOCK_ROWS, mask=HYBRID, order="within_files")
    cpu = {"run": [], "pyarrow": []}
    for _ in range(rounds):
        cpu["run"].append(cpu_of(DPMASK, "run", job))
        (folder / "peer").mkdir()
        cpu["pyarrow"].append(cpu_of(PEER, folder / "lake", folder / "peer", "own"))
        for name in ("release", "private", "peer"):
            shutil.rmtree(folder / name)
    least = {name: min(seconds) for name, seconds in cpu.items()}
    ratio = least["run"] / least["pyarrow"]
    say(full=rows >= FULL, at_most={"ratio": 2.5}, benchmark="transforms", rows=rows, cpu=least, ratio=ratio)
    return ratio


def swapping(folder, rows, limit):
    numeric_lake(folder / "lake", rows, BLOCK_ROWS)
    job = noise_job(folder, BLOCK_ROWS, mask=SWAPPING)
    with LocalCluster(n_workers=1, threads_per_worker=1, memory_limit=limit, dashboard_address=":0") as cluster:
        (pid,) = (worker.pid for worker in cluster.workers.values())
        worker, start, before = psutil.Process(pid), time.perf_counter(), psutil.Process(pid).cpu_times()
        command = [sys.executable, "-c", DPMASK, "run", str(job), "--scheduler", cluster.scheduler_address]
        children = os.times()
        driver = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        with PeakMemory([pid, driver.pid]) as memory:
            assert driver.wait() == 0
        after, seconds, own = worker.cpu_times(), time.perf_counter() - start, os.times()
    spent = after.user + after.system - before.user - before.system
    driver_cpu = own.children_user + own.children_system - children.children_user - children.children_system
    result = {
        "rows": rows,
        "seconds": seconds,
        "worker_cpu": spent,
        "driver_cpu": driver_cpu,
        "cpu_a_million_rows": (spent + driver_cpu) / rows * 1e6,
        "worker_peak_mb": memory.peak[pid] / 1e6,
        "worker_limit_mb": limit / 1e6,
        "driver_peak_mb": memory.peak[driver.pid] / 1e6,
    }
    say(benchmark="swapping", **result)
    return result


if __name__ == "__main__":
    within_limits(main)
