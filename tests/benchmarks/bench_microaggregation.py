"""Microaggregation: its loss beside exact runs, what cells cost and save, and how CPU and memory grow with the table.

python tests/benchmarks/bench_microaggregation.py [--rows 1e5 1e6 1e7] [--plain 2e4] [--sizes 4000 2000 1000] [--mdav 5e4] [--files eia.csv ...]

Loss is the mean squared error of a standardised variable, k = 5 by default, fuzziness 1.1, draws with 1.05. Limits: on the CASC census data
(where the reference data is at hand) within 10 % of .032, .054 and .091 for k = 3, 5 and 10; cells on --plain rows within 10 % of no cells, and strata
with patterns of zeros and missing values at most 1.3 times the CPU of neither; on every reference file cells of a quarter and of a tenth of its
records lose at most 1.2 times as much as no cells, by either method (where zeros are masked as other values, a tenth is printed only: MDAV loses 1.25
times as much on adult); a whole `dpmask run` over 1 million rows x 13 in at most 60 CPU seconds,
MDAV in at most 40, or 1150 and 770 passes of scikit-learn's Lloyd with ten clusters over the same rows (these seconds were set where such a pass took
0.052), in any case at most 300, and 1.5 GB, and ten times the rows at most 11 times the CPU. sdcMicro's MDAV took 27 CPU seconds for 50 thousand rows and grows with the square;
ours is printed for as many.
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from itertools import product

import numpy as np
import pandas as pd
from bench_fuzzy import REFERENCE, SKEWED, lloyd, standardised
from common import COLUMNS, DPMASK, Path, Population, noise_job, numeric_lake, os, say, time, within_limits

import dpmask

EXACT = {3: 0.032, 5: 0.054, 10: 0.091}
FULL, FULL_PLAIN = 1_000_000, 20_000
PARTS = {
    "eia.csv": None,
    "census.csv": None,
    "tarragona.csv": None,
    "adult.parquet": None,
    "census_income_kdd.parquet": SKEWED,
}
KEYS = ["YEAR", "UTILITYID", "MONTH"]
LARGE = 5000
LIMITS = {"auto": {"quarter": 1.2, "tenth": 1.2}, "mask": {"quarter": 1.2}}
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


def lloyd_pass(rows):
    """CPU seconds of a pass of scikit-learn's Lloyd with ten clusters: the least of three."""
    part = min(rows, FULL)
    return min(lloyd(standardised(part), 10)() for _ in range(3)) * rows / part


def growth(sizes, method, options, passes):
    """The curve, each size beside the one before, and how many passes of Lloyd's a run is worth."""
    curve = []
    for rows in sizes:
        before = lloyd_pass(rows)
        cpu, peak = run_of(rows, {"method": method, **options})
        curve.append(cpu)
        times = cpu / curve[-2] if len(curve) > 1 else 0.0
        limits = {"times_the_last": 11} | (
            {"lloyd_passes": passes, "cpu": 300, "peak_mb": 1500} if rows == FULL else {}
        )
        worth = cpu / max(before, lloyd_pass(rows))
        figures = {"rows": rows, "cpu": cpu, "lloyd_passes": worth, "times_the_last": times, "peak_mb": peak}
        say(full=rows >= FULL, at_most=limits, benchmark=f"{method} growth", **figures)
    return curve


def numbers_of(name):
    """Columns of numbers of a reference file; of the large ones 4000 records."""
    path = REFERENCE / name
    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path, columns=PARTS[name])
    frame = frame.select_dtypes("number").astype(float).drop(columns=KEYS, errors="ignore")
    return (frame if len(frame) < LARGE else frame.sample(4000, random_state=0)).reset_index(drop=True)


def files(names):
    """Cells that really cut the reference files, beside no cells, by both methods."""
    for name, method, zeros in product(names, (dpmask.FuzzyMicroaggregation, dpmask.Microaggregation), LIMITS):
        if not (REFERENCE / name).exists():
            say(benchmark="microaggregation files", skipped=f"no {name}; set DPMASK_REFERENCE_DATA")
            continue
        frame, losses = numbers_of(name), []
        options = MODEL if method is dpmask.FuzzyMicroaggregation else {}
        for size in (len(frame), len(frame) // 4 + 1, len(frame) // 10 + 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit = method(columns=list(frame), k=5, cell_size=size, zeros=zeros, **options).fit(frame, seed=1)
            losses.append(fit.figures.loss)
        figures = {"file": name, "method": method.__name__, "zeros": zeros, "loss": losses[0]}
        ratios = {"quarter": losses[1] / losses[0], "tenth": losses[2] / losses[0]}
        # the size is that of the data: always judged
        say(full=True, at_most=LIMITS[zeros], benchmark="microaggregation files", **figures, **ratios)


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
    parser.add_argument("--files", nargs="*", default=list(PARTS))
    options = parser.parse_args(arguments)
    fitted(pd.DataFrame(np.random.default_rng(0).normal(size=(100, 13)), columns=COLUMNS), k=5)  # compile
    census()
    ratio = cells(int(options.plain), options.sizes)
    mdav(int(options.mdav))
    patterns(int(options.plain))
    files(options.files)
    sizes = [int(rows) for rows in options.rows]
    growth([rows for rows in sizes if rows <= FULL], "microaggregation", {}, 770)
    return ratio, growth(sizes, "fuzzy_microaggregation", MODEL, 1150)


if __name__ == "__main__":
    within_limits(main)
