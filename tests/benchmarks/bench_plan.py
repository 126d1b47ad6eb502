"""What `dpmask plan` says that a run takes, over what it takes: CPU of the ready jobs, with an empty cache and the next time.

python tests/benchmarks/bench_plan.py [--rows 1e5] [--jobs household_income,...]

Limits: within a factor of 2 of each other. A job whose k is for fewer people may be refused; it has taken its time.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile

from common import DPMASK, JOBS, READY, Path, cpu_of, os, say, within_limits

FULL = 1e5
SOURCES = {"tax_units": ("units/", "--kind", "tax_units")}  # of all others: the census
RELEASED, REFUSED = 0, 3
PLAN = "import sys; from dpmask.cli import main; main(['plan', '--trial', '--json', *sys.argv[1:]])"


def planned(*arguments):
    """The plan, as JSON."""
    answer = subprocess.run([sys.executable, "-c", PLAN, *arguments], check=True, capture_output=True)
    return json.loads(answer.stdout)


def taken(*arguments):
    """CPU seconds of the run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([sys.executable, "-c", DPMASK, "run", *arguments], check=False, capture_output=True)
    if run.returncode not in {RELEASED, REFUSED}:
        raise RuntimeError(run.stderr.decode()[-2000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(name, rows, when, place):
    """Plan a job, run it, and print both. A plan compiles, too: the first run has an empty cache of its own."""
    shutil.rmtree("out", ignore_errors=True)
    job = (f"jobs/{name}/job.yaml", "--set", "seed=1")
    os.environ["NUMBA_CACHE_DIR"] = f"{place}/kernels/{name}{' of the plan' if when == 'cold' else ''}"
    plan = planned(*job)
    os.environ["NUMBA_CACHE_DIR"] = f"{place}/kernels/{name}"
    cpu = taken(*job)
    say(
        benchmark=f"plan: {name}, {when}",
        rows=rows,
        planned=plan["cpu_seconds"],
        kernels=plan["kernels_to_compile"],
        cpu=round(cpu, 1),
        ratio=plan["cpu_seconds"] / cpu,
        full=rows >= FULL,
        at_most={"ratio": 2.0},
        at_least={"ratio": 0.5},
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e5)
    parser.add_argument("--jobs", default=",".join(READY))
    chosen = parser.parse_args(arguments)
    rows, before = int(chosen.rows), Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        Path("jobs").symlink_to(JOBS)  # a job names its taxonomies from where it is run
        try:
            for name in chosen.jobs.split(","):
                source, *kind = SOURCES.get(name, ("lake/",))
                if not Path(source).exists():
                    cpu_of(DPMASK, "generate", source, "--rows", rows, *kind)
                for when in ("cold", "warm"):
                    compare(name, rows, when, place)
        finally:
            os.environ.pop("NUMBA_CACHE_DIR", None)
            os.chdir(before)


if __name__ == "__main__":
    within_limits(main)
