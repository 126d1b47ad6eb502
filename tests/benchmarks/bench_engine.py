"""What the engine itself costs: CPU of a pass over 200 blocks that does nothing, time to the first task, speed-up by workers.

python tests/benchmarks/bench_engine.py [--blocks 200] [--passes 20] [--rounds 3] [--rows 4e6] [--folder DIR]

A pass: the CPU (user and system) of client, scheduler and both workers, heartbeats included, less what the same number of calls of the
kernel takes by themselves; limit 150 ms. Blocks are recipes, as of a lake; persisted in the workers' memory, as in an iteration; and partitions
of a Dask frame, which must come one by one: their own tasks are counted too. The least of the rounds counts.

The first task: from nothing to its result, in a fresh process, by cluster_config/local.yaml, by the clock; limit 4 s. On a busy machine the clock
says little; beside it stands the CPU of all its processes until they have ended.

Speed-up: the same noise job on 1 and on 2 workers by the clock, beside the cores there are. It is printed, not judged.
"""

import argparse
import json
import shutil
import tempfile

import psutil
from common import DPMASK, Path, cpu_of, noise_job, numeric_lake, say, time, within_limits

FULL_BLOCKS, FULL_ROUNDS = 200, 3
LOCAL = Path(__file__).parents[2] / "cluster_config" / "local.yaml"
FIRST = """
import sys, time
from dpmask.engine.cluster.connect import connected
from dpmask.engine.collection import Collection
with connected(cluster=sys.argv[1]):
    assert Collection.of([7]).map(lambda content: content, "first") == [7]
    open(sys.argv[2], "w").write(str(time.time()))
"""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=float, default=4e6)
    parser.add_argument("--folder")
    options = parser.parse_args(arguments)
    overhead = measure_overhead(options.blocks, options.passes, options.rounds)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        first = measure_first_task(Path(folder), options.rounds)
        speed_up = measure_speed_up(Path(folder), int(options.rows), options.rounds)
    return overhead, first, speed_up


def kernel(content):
    return content


def add(left, right):
    return left + right


def measure_overhead(blocks, passes, rounds):
    """CPU milliseconds of a pass, for each kind of block."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        processes = [psutil.Process(), *(psutil.Process(worker.pid) for worker in cluster.workers.values())]
        found = {}
        for kind, made in kinds(blocks).items():
            one_pass(made)  # workers import what they need
            spent = min(milliseconds(processes, made, passes) for _ in range(rounds))
            found[kind] = spent - own_milliseconds(blocks, rounds)
    full, most = blocks >= FULL_BLOCKS, max(found.values())
    say(
        full=full,
        at_most={"most_ms": 150},
        benchmark="engine, overhead of a pass",
        blocks=blocks,
        cpu_ms=found,
        most_ms=most,
    )
    return found


def kinds(count):
    from dask.delayed import delayed

    from dpmask.engine.collection import Collection

    recipes = Collection.of(range(count))
    return {
        "recipes": recipes,
        "persisted": recipes.persist(kernel, "persist"),
        "partitions": Collection.of(delayed(int)(number) for number in range(count)),
    }


def one_pass(blocks):
    return blocks.reduce(kernel, add, "pass")


def milliseconds(processes, blocks, passes):
    before = cpu(processes)
    for _ in range(passes):
        one_pass(blocks)
    return 1000 * (cpu(processes) - before) / passes


def cpu(processes):
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def own_milliseconds(blocks, rounds):
    """The kernel by itself, over as many blocks."""
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        for number in range(blocks):
            kernel(number)
        spent.append(time.process_time() - start)
    return 1000 * min(spent)


def measure_first_task(folder, rounds):
    """Seconds from starting Python to the first result of a local cluster: by the clock, and CPU until all has ended."""
    clock, spent = [], []
    for _ in range(rounds):
        start = time.time()
        spent.append(cpu_of(FIRST, LOCAL, folder / "first"))
        clock.append(float((folder / "first").read_text()) - start)
    say(
        full=rounds >= FULL_ROUNDS,
        at_most={"seconds": 4},
        benchmark="engine, first task",
        seconds=min(clock),
        cpu=min(spent),
    )
    return min(clock)


def measure_speed_up(folder, rows, rounds):
    """How many times faster two workers are than one, and the clock of both."""
    numeric_lake(folder / "lake", rows, rows // 20, rows_per_file=rows // 4)
    job = noise_job(folder, rows // 20)
    seconds = {}
    for workers in (1, 2) * rounds:
        file = folder / "cluster.yaml"
        said = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        file.write_text(json.dumps({"cluster": "distributed.LocalCluster", "options": said}))
        start = time.monotonic()
        cpu_of(DPMASK, "run", job, "--cluster", file)
        took = time.monotonic() - start
        seconds[workers] = min(took, seconds.get(workers, took))
        for name in ("release", "private"):
            shutil.rmtree(folder / name)
    speed_up = seconds[1] / seconds[2]
    say(benchmark="engine, speed-up", rows=rows, cores=psutil.cpu_count(), seconds=seconds, speed_up=speed_up)
    return speed_up


if __name__ == "__main__":
    within_limits(main)
