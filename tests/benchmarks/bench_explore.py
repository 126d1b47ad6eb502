"""Moves of the explorer, on the ready job cluster_analysis: CPU of the first picture and of moves, peak memory.

python tests/benchmarks/bench_explore.py [--rows 1e6] [--moves 50]

CPU seconds of this process, kernels compiled; risks and losses share two cores, so that a move takes less than its CPU. Limits:
the first picture 5, the 95th percentile of moves 2.2, memory 1 GB.
"""

import argparse
import shutil
import tempfile
import time

from common import DPMASK, Path, cpu_of, os, say, within_limits

from dpmask.explore.session import Explorer

FULL = 1e6
JOBS = Path(__file__).parents[2] / "jobs"
JOB = "jobs/cluster_analysis/job.yaml"


def cpu(function, *arguments):
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def moved(rows, moves):
    """CPU of the first picture, and of each move of a slider."""
    Explorer(JOB, rows=rows).current()  # compiles
    shutil.rmtree("out", ignore_errors=True)
    explorers = []
    first = cpu(lambda: explorers.append(Explorer(JOB, rows=rows)) or explorers[0].current())
    spent = sorted(cpu(explorers[0].move, "mask[1].k", 300 + 7 * number) for number in range(moves))
    return first, spent


def main(arguments=None):
    import resource

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=FULL)
    parser.add_argument("--moves", type=int, default=50)
    asked = parser.parse_args(arguments)
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "jobs").symlink_to(JOBS)
        os.chdir(place)
        try:
            cpu_of(DPMASK, "generate", "lake/", "--rows", int(asked.rows))
            first, spent = moved(5000, asked.moves)
        finally:
            os.chdir(before)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"first": first, "median": spent[len(spent) // 2], "p95": spent[int(0.95 * len(spent))], "memory": memory}
    limits = {"first": 5, "p95": 2.2, "memory": 1000}
    say(benchmark="explore: moves", full=asked.rows >= FULL, at_most=limits, **found)
    return found


if __name__ == "__main__":
    within_limits(main)
