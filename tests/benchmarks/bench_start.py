"""CPU of a first run on a fresh machine, with an empty cache, and of the next one: the README's job, fuzzy c-means, noise, --help.

python tests/benchmarks/bench_start.py [--rows 1e5]

CPU seconds of the whole process. Limits: README's job cold 20 (aim 12), first fit of fuzzy c-means cold 6, a run of 1,000 rows
warm 1.5, --help 0.3.
"""

import argparse
import shutil
import tempfile

from common import DPMASK, JOBS, Path, cpu_of, noise_job, numeric_lake, os, say, within_limits

FULL = 1e5
FIT = """
import numpy as np, pandas as pd, dpmask
frame = pd.DataFrame(np.random.default_rng(0).normal(size=(1000, 4)), columns=list("abcd"))
dpmask.FuzzyCMeans(clusters=3).fit(frame, seed=1)
"""


def cold_and_warm(name, limits, full, run):
    """CPU seconds with an empty cache, then with what that left."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache
        found = {"cold": run(), "warm": run()}
        del os.environ["NUMBA_CACHE_DIR"]
    say(benchmark=f"start: {name}", full=full, at_most=limits, **found)
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e5)
    rows = int(parser.parse_args(arguments).rows)
    full = rows >= FULL
    with tempfile.TemporaryDirectory() as place:
        folder, before = Path(place), Path.cwd()
        numeric_lake(folder / "lake", 1000, 1000)
        noise = noise_job(folder, 1000)
        (folder / "jobs").symlink_to(JOBS)  # a job names its taxonomies from where it is run

        def released(job):
            shutil.rmtree(folder / "out", ignore_errors=True)
            shutil.rmtree(folder / "release", ignore_errors=True)
            return cpu_of(DPMASK, "run", job)

        os.chdir(folder)
        try:
            small = cold_and_warm("noise, 1,000 rows", {"warm": 1.5}, full, lambda: released(noise))
            shutil.rmtree(folder / "lake")
            cpu_of(DPMASK, "generate", "lake/", "--rows", rows)
            main_job = cold_and_warm(
                "README's job", {"cold": 20}, full, lambda: released("jobs/household_income/job.yaml")
            )
            fit = cold_and_warm("FuzzyCMeans", {"cold": 6}, full, lambda: cpu_of(FIT))
        finally:
            os.chdir(before)
    say(benchmark="start: --help", cpu=cpu_of(DPMASK, "--help"), full=full, at_most={"cpu": 0.3})
    return main_job, fit, small


if __name__ == "__main__":
    within_limits(main)
