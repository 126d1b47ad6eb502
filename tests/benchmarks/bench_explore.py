"""Moves of the explorer, on ready jobs: seconds and CPU of the first picture and of moves of every slider, peak memory.

python tests/benchmarks/bench_explore.py [--rows 1e6] [--moves 50] [--jobs cluster_analysis,public_use_file,...]

Every ready job that the explorer opens: all but those of a series. Kernels compiled. Limits of each job: the first picture 5 CPU s, the 95th
percentile of moves 2 CPU s, and 2 s on two cores that nobody else uses, which share risks and losses; memory 1 GB.
"""

import argparse
import shutil
import tempfile
import time

import yaml
from common import DPMASK, JOBS, Path, cpu_of, os, say, within_limits

from dpmask.explore.session import Explorer

FULL = 1e6
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it modulo 1 lie everywhere between 0 and 1, and nowhere twice."""


def spent(function, *arguments):
    """Seconds and CPU seconds."""
    before, start = time.perf_counter(), time.process_time()
    function(*arguments)
    return time.perf_counter() - before, time.process_time() - start


def is_opened(path):
    """Whether a file is a job that the explorer opens."""
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    return "mask" in values and "series" not in values


def moves_of(explorer, count):
    """So many moves: every number in turn, each time elsewhere between half and twice of what the job has."""
    numbers = [one for one in explorer.controls if one.kind == "number" and one.value]
    for at in range(count):
        control = numbers[at % len(numbers)]
        value = min(max(control.value * 2 ** (2 * (at * GOLDEN % 1) - 1), control.low), control.high)
        yield control.name, round(value) if control.whole else round(value, 4)


def moved(path, rows, moves):
    """The first picture, and each move from the setting of the job, in seconds and CPU seconds."""
    Explorer(path, rows=rows).current()  # compiles
    shutil.rmtree("out", ignore_errors=True)
    explorers = []
    first = spent(lambda: explorers.append(Explorer(path, rows=rows)) or explorers[0].current())
    explorer, each = explorers[0], []
    for name, value in moves_of(explorer, moves):
        each.append(spent(explorer.move, name, value))
        explorer.undo()
    return first, sorted(one for one, _ in each), sorted(one for _, one in each)


def percentile(values, share):
    return values[int(share * len(values))]


def main(arguments=None):
    import resource

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=FULL)
    parser.add_argument("--moves", type=int, default=50)
    parser.add_argument("--jobs", default="")
    asked = parser.parse_args(arguments)
    paths = sorted(f"jobs/{one.relative_to(JOBS)}" for one in JOBS.glob("*/*.yaml") if is_opened(one))
    paths = [path for path in paths if not asked.jobs or path.split("/")[1] in asked.jobs.split(",")]
    before, found = Path.cwd(), {}
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "jobs").symlink_to(JOBS)
        os.chdir(place)
        try:
            cpu_of(DPMASK, "generate", "lake/", "--rows", int(asked.rows))
            if any("tax_units" in path for path in paths):
                cpu_of(DPMASK, "generate", "units/", "--kind", "tax_units", "--rows", int(asked.rows))
            for path in paths:
                (_, first), seconds, cpu = moved(path, 5000, asked.moves)
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                found = {"first": first, "median": percentile(cpu, 0.5), "p95": percentile(cpu, 0.95), "memory": memory}
                found |= {"seconds_p95": percentile(seconds, 0.95)}
                limits = {"first": 5, "p95": 2, "seconds_p95": 2, "memory": 1000}
                say(benchmark=f"explore: moves of {path}", full=asked.rows >= FULL, at_most=limits, **found)
        finally:
            os.chdir(before)
    return found


if __name__ == "__main__":
    within_limits(main)
