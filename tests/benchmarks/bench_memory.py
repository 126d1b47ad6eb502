"""Memory follows the block, never the table: peaks of a worker and of the driver at two sizes of lake.

python tests/benchmarks/bench_memory.py [--rows 1e6 5e7] [--block-rows 1e6] [--folder DIR]

One worker process with one thread, and the driver in a process of its own. The worker's peak above its idle size is given in decoded
blocks (rows x 13 doubles); the limit is 6. The driver's peak must be the same at both sizes. Noise is so weak that everybody is linked: nobody is
then assigned one to one, for which up to 128,000 rows around 2,000 records meet, about 100 MB, whatever the size of the table.
"""

import argparse
import subprocess
import sys
import tempfile

from common import COLUMNS, DPMASK, Path, PeakMemory, noise_job, numeric_lake, say, within_limits
from distributed import LocalCluster

FULL_BLOCK = 1_000_000


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 5e7])
    parser.add_argument("--block-rows", type=float, default=1e6)
    parser.add_argument("--folder")
    options = parser.parse_args(arguments)
    results = []
    for rows in options.rows:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            results.append(measure(Path(folder), int(rows), int(options.block_rows)))
    return results


def measure(folder, rows, block_rows):
    numeric_lake(folder / "lake", rows, block_rows)
    job = noise_job(folder, block_rows, mask=[{"method": "noise", "columns": COLUMNS, "scale": 1e-3}])
    with LocalCluster(n_workers=1, threads_per_worker=1, memory_limit=0, dashboard_address=None) as cluster:
        (worker,) = (worker.pid for worker in cluster.workers.values())
        command = [sys.executable, "-c", DPMASK, "run", str(job), "--scheduler", cluster.scheduler_address]
        driver = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        with PeakMemory([worker, driver.pid]) as memory:
            assert driver.wait() == 0
    block = block_rows * len(COLUMNS) * 8
    blocks = (memory.peak[worker] - memory.start[worker]) / block
    result = {
        "rows": rows,
        "worker_peak_in_blocks": blocks,
        "driver_peak_mb": memory.peak[driver.pid] / 1e6,
    }
    full, at_most = block_rows >= FULL_BLOCK, {"worker_peak_in_blocks": 6}
    say(full=full, at_most=at_most, benchmark="memory", block_rows=block_rows, **result)
    return result


if __name__ == "__main__":
    within_limits(main)
