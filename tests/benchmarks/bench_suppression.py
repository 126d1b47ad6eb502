"""Local suppression of expanded Adult records: CPU of a fit that may set 2 % of the cells to missing, k = 5, 7 columns.

python tests/benchmarks/bench_suppression.py [--rows 1e6] [--sample 3000] [--data FOLDER]

Limit: 60 CPU seconds for 1 million records, from the frame to the solution. Beside it the cells that our rule and that of
sdcMicro (localSuppression, kAnon, by importance; plainly in tests/suppression_reference.py) set to missing in the same
sample of the complete Adult records, as they are, k = 5, and how many people an intruder who knows all of a person's
values then finds among fewer than k records: complete ones that are equal or have a cell missing.
"""

import argparse
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
from bench_refinement import DATA, adult, expanded, method
from common import Path, say, time, within_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

from suppression_reference import by_importance, candidates, matches

import dpmask

COLUMNS = ["age", "education", "marital_status", "occupation", "race", "sex", "native_country"]
K, FULL, LIMIT = 5, 1e6, 60.0


def named(frame):
    """The columns, however the file spells them."""
    spelled = {name.replace("-", "_").lower(): name for name in frame.columns}
    return [spelled[name] for name in COLUMNS]


def timed(frame, columns):
    asked = method(frame, [(columns, K)])
    ours = dpmask.TopDownRefinement(**asked.parameters() | {"suppress_cells": 0.02})
    start = time.process_time()
    fitted = ours.fit(frame, seed=1)
    return time.process_time() - start, fitted


def beside_peer(frame, columns):
    """Both rules on records as they are: each column's values are released, so that only cells can be lost."""
    table = frame[columns].astype(str)
    whole = {name: {"any": sorted(table[name].unique())} for name in columns}
    start = time.process_time()
    fitted = dpmask.TopDownRefinement(
        requirements=[(columns, K)], taxonomies=whole, suppress_cells=0.5, guide="distortion"
    ).fit(table, seed=1)
    seconds = time.process_time() - start
    refined = pd.DataFrame(
        {
            one.column: nodes[one.encode(pa.Table.from_pandas(table))]
            for one, nodes in zip(fitted.cells.encoders, fitted.cells.nodes, strict=True)
        }
    )
    masked = fitted.mask(table)
    ours = refined.to_numpy().astype(np.int64)
    ours[masked[columns].isna().to_numpy()] = -1
    start = time.process_time()
    theirs = by_importance(refined.to_numpy().astype(np.int64), K)
    say(
        benchmark="suppression, sdcMicro's rule",
        rows=len(table),
        cells=int((ours < 0).sum()),
        cells_sdcmicro=int((theirs < 0).sum()),
        fewest_matches=int(matches(pd.DataFrame(np.where(ours < 0, np.nan, ours))).min()),
        fewest_matches_sdcmicro=int(matches(pd.DataFrame(np.where(theirs < 0, np.nan, theirs))).min()),
        exposed=int((candidates(ours, refined.to_numpy()) < K).sum()),
        exposed_sdcmicro=int((candidates(theirs, refined.to_numpy()) < K).sum()),
        cpu=seconds,
        cpu_sdcmicro_plainly=time.process_time() - start,
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--sample", type=int, default=3000)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    frame, rng = adult(options.data), np.random.default_rng(1)
    columns = named(frame)
    timed(frame.head(2000), columns)  # compiles
    rows = int(options.rows)
    table = expanded(frame, rows, [name for name in frame.columns if name != "class"], rng)
    seconds, fitted = timed(table, columns)
    say(
        benchmark="suppression",
        rows=rows,
        cpu_fit=seconds,
        full=rows >= FULL,
        at_most={"cpu_fit": LIMIT * rows / 1e6},
        refinements=len(fitted.steps),
        cells=sum(fitted.figures.cells.values()),
        share=fitted.figures.suppressed_cells,
    )
    beside_peer(frame.sample(options.sample, random_state=1), columns)
    return seconds


if __name__ == "__main__":
    within_limits(main)
