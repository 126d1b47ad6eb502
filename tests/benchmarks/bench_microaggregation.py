"""Microaggregation: its loss beside exact runs, what cells cost and save, and how CPU and memory grow with the table.

python tests/benchmarks/bench_microaggregation.py [--rows 1e5 1e6 1e7] [--plain 2e4] [--sizes 4000 2000 1000] [--mdav 5e4]

Loss is the mean squared error of a standardised variable, k = 5 by default, fuzziness 1.1, draws with 1.05. Limits: on the CASC census data
(where the reference data is at hand) within 10 % of .032, .054 and .091 for k = 3, 5 and 10; cells on --plain rows within 10 % of no cells, and strata
with patterns of zeros and missing values at most 1.3 times the CPU of neither; a whole `dpmask run` over 1 million rows x 13 in at most 300 CPU seconds and 1.5 GB, and ten times the rows at most 11 times the CPU. sdcMicro's MDAV
took 27 CPU seconds for 50 thousand rows and grows with the square; ours is printed for as many.
"""

import argparse
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pandas as pd
from common import COLUMNS, DPMASK, Path, Population, noise_job, numeric_lake, os, say, time, within_limits

import dpmask

REFERENCE = Path(os.environ.get("DPMASK_REFERENCE_DATA", Path(__file__).parents[3] / "shared" / "data"))
EXACT = {3: 0.032, 5: 0.054, 10: 0.091}
FULL, FULL_PLAIN = 1_000_000, 20_000
MODEL = {"fuzziness": 1.1, "draw_fuzziness": 1.05}


def fitted(frame, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.process_time()
        fit = dpmask.FuzzyMicroaggregation(columns=list(frame.columns), **MODEL, **options).fit(frame, seed=1)
        return fit.figures, time.process_time() - begun


def census():
    """Loss on the census data, as a ratio to exact runs."""
    path = REFERENCE / "census.csv"
    if not path.exists():
        say(benchmark="microaggregation loss", skipped=f"no {path.name}; set DPMASK_REFERENCE_DATA")
        return
    frame = pd.read_csv(path)
    for k, exact in EXACT.items():
        loss = fitted(frame, k=k)[0].loss
        at_most = {"ratio": 1.1}  # its size is that of the data: always judged
        say(
            full=True,
            at_most=at_most,
            benchmark="microaggregation loss",
            k=k,
            loss=loss,
            exact=exact,
            ratio=loss / exact,
        )


def cells(rows, sizes):
    """What cells cost in loss and save in CPU."""
    frame = pd.DataFrame(Population().draw(rows).T, columns=COLUMNS)
    plain, plain_cpu = fitted(frame, k=5, cell_size=rows)  # brought to rest, hence the CPU
    ratios = {}
    for size in sizes:
        figures, cpu = fitted(frame, k=5, cell_size=size)
        ratios[size] = figures.loss / plain.loss
        say(
            benchmark="microaggregation cells",
            rows=rows,
            cell_size=size,
            loss=figures.loss,
            ratio_to_plain=ratios[size],
            full=rows >= FULL_PLAIN and size == sizes[0],
            at_most={"ratio_to_plain": 1.1},
            cpu=cpu,
            plain_cpu=plain_cpu,
        )
    return ratios[sizes[0]]


def run_of(rows, method):
    """CPU seconds and peak memory of a job from lake to verified release."""
    block = min(rows, 1_000_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        numeric_lake(folder / "lake", rows, block)
        job = noise_job(folder, block, mask=[method | {"columns": COLUMNS, "k": 5}])
        command = [sys.executable, "-c", DPMASK, "run", str(job)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, "the job failed"
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def growth(sizes):
    """The curve, each size beside the one before."""
    curve = []
    for rows in sizes:
        cpu, peak = run_of(rows, {"method": "fuzzy_microaggregation", **MODEL})
        curve.append(cpu)
        times = cpu / curve[-2] if len(curve) > 1 else 0.0
        limits = {"times_the_last": 11} | ({"cpu": 300, "peak_mb": 1500} if rows == FULL else {})
        figures = {"rows": rows, "cpu": cpu, "times_the_last": times, "peak_mb": peak}
        say(full=rows >= FULL, at_most=limits, benchmark="microaggregation growth", **figures)
    return curve


def mdav(rows):
    frame = pd.DataFrame(Population().draw(rows).T, columns=COLUMNS)
    for size in (min(4000, rows), rows):
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = dpmask.Microaggregation(columns=COLUMNS, k=5, cell_size=size).fit(frame, seed=1)
        cpu = time.process_time() - begun
        say(benchmark="mdav", rows=rows, cell_size=size, cpu=cpu, loss=fit.figures.loss)


def patterns(rows):
    """What strata, zeros and missing values cost beside one table of the same records without them: 13 columns, half of
    the values of three of them zero and some of a fourth missing, so that patterns are many and none is all zero."""
    rng = np.random.default_rng(1)
    plain = pd.DataFrame(Population().draw(rows).T, columns=COLUMNS)
    split = plain.assign(sex=rng.integers(0, 2, rows).astype(str))
    for name in COLUMNS[:3]:
        split.loc[rng.random(rows) < 0.5, name] = 0.0
    split.loc[rng.random(rows) < 0.02, COLUMNS[3]] = np.nan
    seconds = {}
    for name, frame, options in (("without", plain, {}), ("with", split, {"by": ["sex"], "zeros": "keep"})):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begun = time.process_time()
            dpmask.Microaggregation(columns=COLUMNS, k=5, **options).fit(frame, seed=1).mask(frame)
            seconds[name] = time.process_time() - begun
    ratio = seconds["with"] / seconds["without"]
    limits = {"full": rows >= FULL_PLAIN, "at_most": {"ratio": 1.3}}
    say(**limits, benchmark="microaggregation patterns", rows=rows, ratio=ratio, **seconds)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e5, 1e6, 1e7])
    parser.add_argument("--plain", type=float, default=2e4)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4000, 2000, 1000], help="of cells, the default first")
    parser.add_argument("--mdav", type=float, default=5e4)
    options = parser.parse_args(arguments)
    fitted(pd.DataFrame(np.random.default_rng(0).normal(size=(100, 13)), columns=COLUMNS), k=5)  # compile
    census()
    ratio = cells(int(options.plain), options.sizes)
    mdav(int(options.mdav))
    patterns(int(options.plain))
    return ratio, growth([int(rows) for rows in options.rows])


if __name__ == "__main__":
    within_limits(main)
