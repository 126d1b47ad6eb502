"""Refinement of expanded Adult records: CPU from codes to the solution, for one quasi-identifier of 14 columns and for several.

python tests/benchmarks/bench_refinement.py [--rows 1e6 1e7] [--requirements 30] [--data FOLDER]

Records are expanded as in Fung et al. 2009, section 5.1.6: variations of each complete Adult record with 1 to 14 values drawn anew from
their columns' domains. k = 50, classes from the income column. Limits: 6 CPU seconds for 1 million records, 60 for 10 million, from coded
blocks to the solution; beside it all of `fit`, a pandas group-by of the same columns, and the mean over random sets of 2 to 5
quasi-identifiers as a ratio to the single one. anjana's k-anonymity of the 45,222 records (k = 50, nine columns) is timed where it is
installed; it asks for older numpy and pandas, so mostly it is not.
"""

import argparse
import os
import resource

import numpy as np
import pandas as pd
from common import Path, say, time

import dpmask
from dpmask.lake.taxonomy import read_taxonomy
from dpmask.masking import refinement

DATA = Path(os.environ.get("DPMASK_REFERENCE_DATA", Path(__file__).parents[3] / "shared" / "data"))
TREES = Path(__file__).parents[2] / "jobs" / "refined_adult" / "taxonomies"
K = 50
LIMIT_PER_MILLION = 6.0


def adult(data):
    frame = pd.read_parquet(data / "adult.parquet")
    return frame[(frame.astype(str) != "?").all(axis=1)].reset_index(drop=True)


def expanded(frame, rows, columns, rng):
    """Each record and its variations, as many as it takes."""
    parts = [frame]
    while sum(map(len, parts)) < rows:
        varied = frame.copy()
        count = rng.integers(1, len(columns) + 1, len(frame))
        picked = rng.random((len(frame), len(columns))).argsort(axis=1).argsort(axis=1) < count[:, None]
        for place, name in enumerate(columns):
            where = picked[:, place]
            domain = frame[name].unique()
            values = varied[name].to_numpy().copy()
            values[where] = rng.choice(np.asarray(domain), where.sum())
            varied[name] = pd.Series(values).astype(frame[name].dtype)
        parts.append(varied)
    return pd.concat(parts, ignore_index=True).iloc[:rows]


def method(frame, requirements):
    columns = dict.fromkeys(name for names, _ in requirements for name in names)
    trees = {name: str(TREES / f"{name}.yaml") for name in columns if (TREES / f"{name}.yaml").exists()}
    domains = {name: [int(frame[name].min()), int(frame[name].max()) + 1] for name in columns if name not in trees}
    guide = {"column": "class"}
    return dpmask.TopDownRefinement(requirements=requirements, taxonomies=trees, domains=domains, guide=guide)


def timed(frame, requirements):
    """CPU seconds from codes to the solution, of all of fit, and how many refinements there were."""
    inside = []
    plain = refinement.refine

    def clocked(*arguments, **options):
        start = time.process_time()
        outcome = plain(*arguments, **options)
        inside.append(time.process_time() - start)
        return outcome

    refinement.refine = clocked
    try:
        start = time.process_time()
        fitted = method(frame, requirements).fit(frame, seed=1)
        return inside[0], time.process_time() - start, len(fitted.steps)
    finally:
        refinement.refine = plain


def group_by(frame, columns):
    start = time.process_time()
    frame.groupby(columns, observed=True, sort=False).size()
    return time.process_time() - start


def anjana_seconds(frame):
    """anjana on the complete records, if it is there."""
    try:
        from anjana.anonymity import k_anonymity
    except ImportError:
        return None
    names = [path.stem for path in sorted(TREES.glob("*.yaml"))]
    levels = {}
    for name in names:
        tree = read_taxonomy(str(TREES / f"{name}.yaml"), "bench")
        values = sorted(frame[name].astype(str).unique())
        levels[name] = {0: np.array(values, dtype=object), 1: np.array([tree.value] * len(values), dtype=object)}
    start = time.process_time()
    k_anonymity(frame[names].astype(str), [], names, K, 0, levels)
    return time.process_time() - start


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--requirements", type=int, default=30)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    frame, rng = adult(options.data), np.random.default_rng(1)
    columns = [name for name in frame.columns if name != "class"]
    timed(frame.head(2000), [(columns, K)])  # compiles
    found = []
    for rows in map(int, options.rows):
        table = expanded(frame, rows, columns, rng)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        rounds, whole, steps = timed(table, [(columns, K)])
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
        found.append(rounds)
        say(
            benchmark="refinement",
            rows=rows,
            cpu_rounds=rounds,
            limit=LIMIT_PER_MILLION * rows / 1e6,
            cpu_fit=whole,
            refinements=steps,
            peak_grown_mb=grown,
            cpu_pandas_group_by=group_by(table, columns),
        )
        if rows == int(options.rows[0]):
            several = [timed(table, random_requirements(columns, rng))[0] for _ in range(options.requirements)]
            say(benchmark="refinement, several", ratio_to_one=float(np.mean(several) / rounds), worst=max(several))
    one = timed(frame, [(columns, K)])[1]
    say(benchmark="refinement, adult", cpu_fit=one, cpu_anjana=anjana_seconds(frame))
    return found


def random_requirements(columns, rng):
    """Two to five quasi-identifiers of three to eight columns."""
    sets = [rng.choice(columns, rng.integers(3, 9), replace=False).tolist() for _ in range(rng.integers(2, 6))]
    return [(names, K) for names in sets]


if __name__ == "__main__":
    main()
