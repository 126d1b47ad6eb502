"""CPU of one pass of fuzzy c-regression against the GEMMs of its Gram matrices; memory of a worker as the table grows.

python tests/benchmarks/bench_regression.py [--rows 1e7] [--clusters 20] [--rounds 3] [--lakes 1e6 4e6] [--block-rows 250000]

10 independents and 10 dependents. A pass is over blocks of 250,000 records in memory, one thread; the GEMMs are c products (p x tile) (tile x (p + t)) for each
tile of 1,024 records, on operands that are ready and in the cache: no weights, no residuals, no memberships. Contestants take turns, the least CPU counts. Limit: 2 times,
joint and one dependent at a time. Then FuzzyCRegression on lakes of --lakes rows, blocks read again in every pass: the peak memory of
a worker must not grow.
"""

import argparse
import tempfile
import time
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import Path, PeakMemory, say, within_limits
from threadpoolctl import threadpool_limits

from dpmask.kernels.regression.gram import model_sums

INDEPENDENTS = [f"x{number}" for number in range(10)]
DEPENDENTS = [f"y{number}" for number in range(10)]
TILE, FULL = 1024, 1e7


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lakes", type=float, nargs=2, default=[1e6, 4e6])
    parser.add_argument("--block-rows", type=float, default=250_000)
    options = parser.parse_args(arguments)
    rows, block_rows = int(options.rows), int(options.block_rows)
    with threadpool_limits(1):
        ratios = [one_pass(rows, block_rows, t, options.clusters, options.rounds) for t in (10, 1)]
    with tempfile.TemporaryDirectory() as folder:
        peaks = [memory(Path(folder), int(size), block_rows, options.clusters) for size in options.lakes]
    times, limits = options.lakes[1] / options.lakes[0], {"full": rows >= FULL, "at_most": {"worker_peak": 1.3}}
    say(benchmark="regression memory growth", rows_times=times, worker_peak=peaks[1] / peaks[0], **limits)
    return ratios, peaks


def one_pass(rows, block_rows, t, clusters, rounds):
    """A pass over `rows` records, t dependents together; for one at a time all ten pass, one after the other."""
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(11, block_rows)), rng.normal(size=(10, block_rows))
    z[0], models = 1.0, rng.normal(size=(clusters, 11, t))
    operands, product = rng.normal(size=(clusters, 11, TILE)), np.empty((clusters, 11, 11 + t))
    other = np.ascontiguousarray(np.concatenate([z, y[:t]])[:, :TILE])
    parts = [y[first : first + t].copy() for first in range(0, 10, t)]

    def ours():
        for part in parts:
            model_sums(z, part, models, 1.5, models + 1e-3, 1e-4)

    def gemms():
        for _ in range(len(parts) * -(-block_rows // TILE)):
            np.matmul(operands, other.T, out=product)

    least = {ours: np.inf, gemms: np.inf}
    ours()
    for _ in range(rounds):
        for contestant, before in least.items():
            start = time.process_time()
            for _ in range(-(-rows // block_rows)):
                contestant()
            least[contestant] = min(before, time.process_time() - start)
    ratio = least[ours] / least[gemms]
    said = {"rows": rows, "dependents": "together" if t > 1 else "each", "clusters": clusters}
    full, cpu = rows >= FULL, {"cpu_a_pass": least[ours], "gemms": least[gemms]}
    say(full=full, at_most={"ratio": 2}, benchmark="regression", **said, **cpu, ratio=ratio)
    return ratio


def memory(folder, rows, block_rows, clusters):
    """The most private memory of a worker above its idle one, in MB, over three iterations on a lake."""
    from distributed import Client, LocalCluster

    import dpmask
    from dpmask.engine import collection

    lake = dpmask.read_lake(str(_lake(folder / f"{rows}", rows, block_rows)), block_rows=block_rows)
    kept, collection.fits_in_memory = collection.fits_in_memory, lambda size: False
    try:
        with (
            LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=":0") as cluster,
            Client(cluster.scheduler_address),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            pids = [worker.pid for worker in cluster.workers.values()]
            start = time.perf_counter()
            with PeakMemory(pids) as watched:
                method = dpmask.FuzzyCRegression(clusters=clusters, max_passes=3)
                method.fit(lake, dependents=DEPENDENTS, independents=INDEPENDENTS)
            seconds = time.perf_counter() - start
            peak = max(watched.peak[pid] - watched.start[pid] for pid in pids) / 1e6
    finally:
        collection.fits_in_memory = kept
    say(benchmark="regression memory", rows=rows, block_rows=block_rows, worker_peak_mb=peak, seconds=seconds)
    return peak


def _lake(folder, rows, block_rows):
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=(3, 10, 10))
    names = INDEPENDENTS + DEPENDENTS
    for number, first in enumerate(range(0, rows, block_rows)):
        count = min(block_rows, rows - first)
        x, kind = rng.normal(size=(10, count)), rng.integers(0, 3, count)
        lines = np.array([slope.T @ x for slope in slopes])
        y = lines[kind, :, np.arange(count)].T + 0.1 * rng.normal(size=(10, count))
        pq.write_table(pa.table([*x, *y], names=names), folder / f"part-{number:05d}.parquet", row_group_size=count)
    return folder


if __name__ == "__main__":
    within_limits(main)
