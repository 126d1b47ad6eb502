"""Refinement of expanded Adult records: CPU from codes to the solution, for one quasi-identifier of 14 columns and for several.

python tests/benchmarks/bench_refinement.py [--rows 1e6 1e7] [--requirements 30] [--suppress 0.05] [--data FOLDER] [--peer PYTHON]

Records are expanded as in Fung et al. 2009, section 5.1.6: variations of each complete Adult record with 1 to 14 values drawn anew from
their columns' domains. k = 50, classes from the income column. Limits: 1.5 CPU seconds for 1 million records, 16.5 for 10 million, from coded
blocks to the solution, and 11 times the CPU of a million for each pass. `growth` is the plain ratio, which more refinements make larger; beside it all of `fit`, a pandas group-by of the same columns, the mean over random sets of 2 to 5
quasi-identifiers as a ratio to the single one, and the same with a share of records that may be dropped.

Then the same with a model of each kind for a drawn sensitive column of 14 values: at most 2 times k alone; and all 495 sets of
four of twelve columns with a confidence: at most 60 CPU seconds for 1 million records.

Last, the 45,222 complete records with nine quasi-identifiers, k = 50: all of `fit`, a pandas group-by, and anjana's k-anonymity with the
same trees, without dropped records and with up to 5 %. anjana asks for older numpy and pandas, so it has an interpreter of its own:
python -m venv peer && peer/bin/pip install anjana pyarrow, then --peer peer/bin/python; without it that line says null.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd
from common import Path, PeakMemory, say, time, within_limits

sys.path.append(str(Path(__file__).parents[2] / "jobs" / "papers"))

from fung_2009.runtime import expanded

import dpmask
from dpmask.masking.refinement import fitting as refinement
from dpmask.table.taxonomy import read_taxonomy

DATA = Path(os.environ.get("DPMASK_REFERENCE_DATA", Path(__file__).parents[3] / "shared" / "data"))
TREES = Path(__file__).parents[2] / "jobs" / "refined_adult" / "taxonomies"
K, FULL = 50, 1e6
LIMIT_PER_MILLION, GROWTH = 1.5, 11  # of 10 million, in those of 1 million
LIMIT_MODEL, LIMIT_KNOWN = 2.0, 60.0
MODELS = [
    {"model": "distinct_l", "l": 5},
    {"model": "entropy_l", "l": 5},
    {"model": "recursive_l", "c": 2, "l": 2},
    {"model": "confidence", "most": 0.5},
    {"model": "t_closeness", "t": 0.3},
]


def adult(data):
    frame = pd.read_parquet(data / "adult.parquet")
    return frame[(frame.astype(str) != "?").all(axis=1)].reset_index(drop=True)


def method(frame, requirements, suppress=0.0):
    named = [one["columns"] if isinstance(one, dict) else one[0] for one in requirements]
    columns = dict.fromkeys(name for names in named for name in names)
    trees = {name: tree for name, tree in taxonomies().items() if name in columns}
    domains = {name: [int(frame[name].min()), int(frame[name].max()) + 1] for name in columns if name not in trees}
    options = {"guide": {"column": "class"}, "suppress_records": suppress}
    return dpmask.TopDownRefinement(requirements=requirements, taxonomies=trees, domains=domains, **options)


def taxonomies():
    return {path.stem: str(path) for path in sorted(TREES.glob("*.yaml"))}


class Clock:
    """CPU seconds of one function of the module, wherever it is called from."""

    def __init__(self, name):
        self.name, self.plain, self.seconds = name, getattr(refinement, name), 0.0

    def __call__(self, *arguments, **options):
        start = time.process_time()
        try:
            return self.plain(*arguments, **options)
        finally:
            self.seconds += time.process_time() - start

    def __enter__(self):
        setattr(refinement, self.name, self)
        return self

    def __exit__(self, *_):
        setattr(refinement, self.name, self.plain)


def timed(frame, requirements, suppress=0.0):
    """CPU seconds from codes to the solution, of all of fit, and what was fitted."""
    with Clock("refine") as clock:
        start = time.process_time()
        fitted = method(frame, requirements, suppress).fit(frame, seed=1)
        return clock.seconds, time.process_time() - start, fitted


def group_by(frame, columns):
    start = time.process_time()
    frame.groupby(columns, observed=True, sort=False).size()
    return time.process_time() - start


def levels_of(tree):
    """The values of a taxonomy and what each is on every level above, the shorter ways up filled with the root."""
    ways = []

    def walk(branch, above):
        if branch.children:
            for child in branch.children:
                walk(child, [branch.value, *above])
        else:
            ways.append([branch.value, *above])

    walk(tree, [])
    most = max(map(len, ways))
    return [list(level) for level in zip(*([*way, *[tree.value] * (most - len(way))] for way in ways), strict=True)]


def ages(frame):
    """Ages in spans of 5, 10, 20 and 40 years, as a tree for both."""
    values = sorted(frame["age"].unique().tolist())
    spans = [[f"{value // width * width} ({width})" for value in values] for width in (5, 10, 20, 40)]
    return [[str(value) for value in values], *spans, ["any age"] * len(values)]


def as_table(levels, path):
    path.write_text("\n".join(";".join(row) for row in zip(*levels, strict=True)) + "\n", encoding="utf-8")
    return str(path)


def beside_peers(frame, peer, rounds=3):
    """The complete records: ours, a pandas group-by and anjana, the same trees for the first and the last."""
    levels = {name: levels_of(read_taxonomy(path, "bench")) for name, path in taxonomies().items()}
    for name, one in levels.items():
        there = [value in set(frame[name].astype(str)) for value in one[0]]
        levels[name] = [[value for value, seen in zip(level, there, strict=True) if seen] for level in one]
    levels["age"] = ages(frame)
    columns = list(levels)
    with tempfile.TemporaryDirectory() as folder:
        trees = {name: as_table(one, Path(folder) / f"{name}.csv") for name, one in levels.items()}
        for share in (0.0, 0.05):
            ours = dpmask.TopDownRefinement(
                requirements=[(columns, K)], taxonomies=trees, guide={"column": "class"}, suppress_records=share
            )
            seconds = []
            for _ in range(rounds):
                start = time.process_time()
                fitted = ours.fit(frame, seed=1)
                seconds.append(time.process_time() - start)
            masked = fitted.mask(frame)
            theirs = anjana(frame[columns], levels, 100 * share, Path(folder), peer)
            say(
                benchmark="refinement, adult",
                suppress=share,
                cpu_fit=min(seconds),
                rows=len(masked),
                groups=len(masked.groupby(columns, observed=True)),
                cpu_pandas_group_by=min(group_by(frame, columns) for _ in range(rounds)),
                anjana=theirs,
                anjana_to_ours=theirs and theirs["cpu"] / min(seconds),
            )


def anjana(frame, levels, suppressed, folder, peer):
    """anjana on these records, if there is an interpreter that has it."""
    frame.to_parquet(folder / "table.parquet")
    (folder / "levels.json").write_text(json.dumps(levels))
    script = Path(__file__).with_name("peer_anjana.py")
    asked = [peer, "-W", "ignore", script, folder / "table.parquet", folder / "levels.json", K, suppressed]
    ended = subprocess.run(list(map(str, asked)), capture_output=True, text=True, check=False)
    return json.loads(ended.stdout.splitlines()[-1]) if ended.returncode == 0 else None


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--requirements", type=int, default=30)
    parser.add_argument("--suppress", type=float, default=0.05)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--peer", default=sys.executable)
    options = parser.parse_args(arguments)
    frame, rng = adult(options.data), np.random.default_rng(1)
    columns = [name for name in frame.columns if name != "class"]
    timed(frame.head(2000), [(columns, K)])  # compiles
    found, passes = [], []
    for rows in map(int, options.rows):
        table = expanded(frame, rows, columns, rng)
        with PeakMemory([os.getpid()]) as memory:
            rounds, whole, fitted = timed(table, [(columns, K)])
        found.append(rounds)
        passes.append(rounds / (len(fitted.steps) + 1))
        growth = passes[-1] / passes[0] / (rows / options.rows[0])
        say(
            benchmark="refinement",
            rows=rows,
            cpu_rounds=rounds,
            full=rows >= FULL,
            growth=rounds / found[0],
            growth_of_a_pass=growth,
            at_most={
                "cpu_rounds": LIMIT_PER_MILLION * (rows / 1e6) ** np.log10(GROWTH),
                "growth_of_a_pass": GROWTH / 10,
            },
            cpu_fit=whole,
            refinements=len(fitted.steps),
            peak_grown_mb=(memory.peak[os.getpid()] - memory.start[os.getpid()]) / 1e6,
            cpu_pandas_group_by=group_by(table, columns),
        )
        if rows == int(options.rows[0]):
            several = [timed(table, random_requirements(columns, rng))[0] for _ in range(options.requirements)]
            say(benchmark="refinement, several", ratio_to_one=float(np.mean(several) / rounds), worst=max(several))
            dropping, _, fitted = timed(table, [(columns, K)], options.suppress)
            told = {"refinements": len(fitted.steps), "dropped": fitted.figures.suppressed}
            say(benchmark="refinement, dropping", rows=rows, cpu_rounds=dropping, ratio=dropping / rounds, **told)
            models(table, columns, rounds, rng)
    beside_peers(frame, options.peer)
    return found


def models(table, columns, alone, rng):
    """k alone beside one model of each kind, and all sets of four of twelve columns."""
    full = len(table) >= FULL
    table = table.assign(ill=rng.choice(list("abcdefghijklmn"), len(table)))
    ratios = {}
    for one in MODELS:
        asked = [{"columns": columns, "k": K, "models": [one | {"column": "ill"}]}]
        timed(table.head(2000), [asked[0] | {"k": 2}])  # compiles
        ratios[one["model"]] = timed(table, asked)[0] / alone
    say(
        benchmark="refinement, models",
        rows=len(table),
        **ratios,
        worst=max(ratios.values()),
        full=full,
        at_most={"worst": LIMIT_MODEL},
    )
    twelve = [name for name in columns if name not in {"fnlwgt", "native-country"}]
    asked = {"columns": twelve, "k": K, "known": 4, "models": [{"model": "confidence", "column": "ill", "most": 0.5}]}
    seconds, _, fitted = timed(table, [asked])
    say(
        benchmark="refinement, known",
        rows=len(table),
        cpu_rounds=seconds,
        refinements=len(fitted.steps),
        full=full,
        at_most={"cpu_rounds": LIMIT_KNOWN * len(table) / 1e6},
    )


def random_requirements(columns, rng):
    """Two to five quasi-identifiers of three to eight columns."""
    sets = [rng.choice(columns, rng.integers(3, 9), replace=False).tolist() for _ in range(rng.integers(2, 6))]
    return [(names, K) for names in sets]


if __name__ == "__main__":
    within_limits(main)
