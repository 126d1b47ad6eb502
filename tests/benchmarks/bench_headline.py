"""The headline: generated people, 12 columns, two workers with 2 GB each, each job to a verified release.

python tests/benchmarks/bench_headline.py [--rows 1e7 1e8] [--jobs noise refinement fuzzy] [--block-rows 1e6] [--folder DIR]

The census of ``dpmask generate`` with its 12 columns. Three jobs, each with the default gate and verification: noise on 4 amounts (0.8 standard deviations), refinement of 5
quasi-identifiers (k = 1,000), fuzzy microaggregation of 4 amounts (k = 500): with less of it the gate refuses. CPU of driver and workers, peak memory of the largest worker and of the driver, bytes of lake and release. Where several
sizes are given, the CPU of the last is divided by that of the first: at most 1.1 times the ratio of the rows.
"""

import argparse
import json
import subprocess
import sys
import tempfile

import psutil
from common import DPMASK, Path, PeakMemory, os, say, time, within_limits
from distributed import LocalCluster

FULL = 100_000_000
_TAXONOMIES = Path(__file__).parents[2] / "jobs" / "taxonomies"
_AMOUNTS = ["net", "tax", "gross", "hours"]
_QUASI = ["age", "sex", "education", "occupation", "region"]
_KNOWN = {name: str(_TAXONOMIES / f"{name}.yaml") for name in ("education", "occupation", "region")}
_STEPS = {
    "noise": (_AMOUNTS, {"method": "noise", "columns": _AMOUNTS, "scale": 0.8}),
    "refinement": (
        _QUASI,
        {
            "method": "refinement",
            "requirements": [{"columns": _QUASI, "k": 1000}],
            "taxonomies": _KNOWN,
            "domains": {"age": [0, 120]},
        },
    ),
    "fuzzy": (_AMOUNTS, {"method": "fuzzy_microaggregation", "columns": _AMOUNTS, "k": 500, "minimum_size": 20}),
}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e7, 1e8])
    parser.add_argument("--jobs", nargs="+", default=list(_STEPS), choices=list(_STEPS))
    parser.add_argument("--block-rows", type=float, default=1e6)
    parser.add_argument("--folder")
    given = parser.parse_args(arguments)
    found = {name: [] for name in given.jobs}
    for rows in map(int, given.rows):
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            for name, facts in _measured(Path(folder), rows, int(given.block_rows), given.jobs):
                found[name].append(facts)
    for name, some in found.items():
        _compare(name, some)
    return found


def _compare(name, some):
    """CPU of the largest by that of the smallest: eleven times for ten times the rows."""
    if len(some) < 2:
        return
    first, last = some[0], some[-1]
    times, larger = last["cpu"] / first["cpu"], last["rows"] / first["rows"]
    limits = {"times_a_row": 1.1}
    full = last["rows"] >= FULL
    say(benchmark=f"headline growth, {name}", full=full, at_most=limits, times=times, times_a_row=times / larger)


def _measured(folder, rows, block_rows, jobs):
    """Each job on a lake of so many people, on a cluster of its own."""
    lake = folder / "lake"
    files = max(rows // 1_000_000, 1)
    generate = [sys.executable, "-c", DPMASK, "generate", str(lake), "--rows", str(rows), "--files", str(files)]
    subprocess.run(generate, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    size = _bytes(lake)
    for name in jobs:
        yield name, _job(folder, name, rows, block_rows, size)


def _job(folder, name, rows, block_rows, size):
    job = _write_job(folder, name, block_rows)
    with LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="2GB", dashboard_address=None) as cluster:
        workers = [psutil.Process(worker.pid) for worker in cluster.workers.values()]
        before, start = sum(map(_cpu, workers)), time.monotonic()
        command = [sys.executable, "-c", DPMASK, "run", str(job), "--scheduler", cluster.scheduler_address]
        log = (folder / f"{name}.log").open("w")
        driver = subprocess.Popen(command, stderr=log, stdout=log)
        with PeakMemory([*(worker.pid for worker in workers), driver.pid]) as memory:
            _, status, used = os.wait4(driver.pid, 0)
        assert status == 0, (folder / f"{name}.log").read_text()[-3000:]
        seconds = time.monotonic() - start
        cpu = sum(map(_cpu, workers)) - before + used.ru_utime + used.ru_stime
    release = folder / f"{name}-release"
    assert json.loads((release / "manifest.json").read_text())["rows"] == rows
    facts = {
        "rows": rows,
        "cpu": cpu,
        "seconds": seconds,
        "worker_peak_mb": max(memory.peak[worker.pid] for worker in workers) / 1e6,
        "driver_peak_mb": memory.peak[driver.pid] / 1e6,
        "lake_bytes": size,
        "release_bytes": _bytes(release / "data"),
    }
    say(benchmark=f"headline, {name}", full=rows >= FULL, at_most={"worker_peak_mb": 2000}, **facts)
    subprocess.run(["rm", "-rf", str(release), str(folder / f"{name}-private")], check=True)
    return facts


def _write_job(folder, name, block_rows):
    """A job whose columns are those that its step masks; all others are dropped."""
    columns, step = _STEPS[name]
    everything = ["person_id", "household_id", *_QUASI, *_AMOUNTS, "weight"]
    role = "quasi" if name == "refinement" else "sensitive"
    job = {
        "name": f"headline, {name}",
        "source": str(folder / "lake"),
        "target": str(folder / f"{name}-release"),
        "private": str(folder / f"{name}-private"),
        "seed": 1,
        "block_rows": block_rows,
        "columns": {role: columns, "drop": [one for one in everything if one not in columns]},
        "mask": [step],
    }
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(job))
    return path


def _cpu(process):
    used = process.cpu_times()
    return used.user + used.system


def _bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    within_limits(main)
