"""Refinement by regions (search: mondrian) of expanded Adult records, nine columns, k = 10: CPU of all of `fit`.

python tests/benchmarks/bench_mondrian.py [--rows 1e6 1e7] [--data FOLDER]

Records are expanded as in bench_refinement.py. Limits: 30 CPU seconds for 1 million records, 12 times that of 1 million for 10 million,
of `fit`, and of `fit` and `mask` together. Beside it the growth of masking alone, which is more, in part as the tree of 10 million records is larger than
a processor's cache; and the loss (normalised certainty penalty) with that of the one-cut search, which `fit` runs, too.
"""

import argparse

import numpy as np
from bench_refinement import DATA, FULL, Path, adult, expanded, say, taxonomies, time, within_limits

import dpmask

COLUMNS = [
    *("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "hours-per-week"),
    "native-country",
]
K, LIMIT_PER_MILLION, GROWTH = 10, 30.0, 12.0


def regions(frame):
    trees = {name: tree for name, tree in taxonomies().items() if name in COLUMNS}
    domains = {name: [int(frame[name].min()), int(frame[name].max()) + 1] for name in COLUMNS if name not in trees}
    asked = {"requirements": [(COLUMNS, K)], "taxonomies": trees, "domains": domains}
    return dpmask.TopDownRefinement(search="mondrian", **asked)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    frame, rng = adult(options.data)[COLUMNS], np.random.default_rng(1)
    regions(frame).fit(frame.head(2000), seed=1).mask(frame.head(2000))  # compiles
    first = None
    for rows in map(int, options.rows):
        table = expanded(frame, rows, COLUMNS, rng)
        start = time.process_time()
        fitted = regions(frame).fit(table, seed=1)
        seconds = time.process_time() - start
        fitted.mask(table)
        masking = time.process_time() - start - seconds
        first = first or (seconds / rows, masking / rows)
        say(
            benchmark="mondrian",
            rows=rows,
            cpu_fit=seconds,
            cpu_mask=masking,
            growth=seconds / (first[0] * options.rows[0]),
            growth_mask=masking / (first[1] * options.rows[0]),
            growth_of_both=(seconds + masking) / (sum(first) * options.rows[0]),
            regions=fitted.figures.regions,
            loss=fitted.figures.loss,
            loss_of_one_cut=fitted.figures.loss_of_one_cut,
            full=rows >= FULL,
            at_most={"cpu_fit": LIMIT_PER_MILLION * rows / 1e6}
            | ({"growth": GROWTH, "growth_of_both": GROWTH} if rows == 10 * options.rows[0] else {}),
        )


if __name__ == "__main__":
    within_limits(main)
