"""Refinement of a generated census with a requirement of households, beside the same without it.

python tests/benchmarks/bench_households.py [--rows 1e6]

CPU of `fit`, in one process. Limit: at most 3 times that of the same refinement without households, for 1 million people in about 430,000. That one
leaves nobody out, while 5 % of the records may be left out with households: those that none is like cannot stay. Beside it the ratio to one that may, too.
"""

import argparse
import tempfile
import warnings

from common import Path, say, time, within_limits

import dpmask
from dpmask.lake.generate import generate_lake

TREES = Path(__file__).parents[2] / "jobs" / "taxonomies"
COLUMNS = ["age", "sex", "education", "occupation", "region"]
HOUSEHOLDS = {"columns": ["age", "sex", "region"], "k": 5, "of": "households"}
FULL, LIMIT, SUPPRESSED = 1e6, 3.0, 0.05


def cpu(lake, requirements, **options):
    method = dpmask.TopDownRefinement(
        requirements=requirements,
        taxonomies={name: str(TREES / f"{name}.yaml") for name in COLUMNS[2:]},
        domains={"age": [0, 120]},
        household="household_id",
        **options,
    )
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = method.fit(lake, seed=1)
    return time.process_time() - start, fitted


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=FULL)
    rows = int(parser.parse_args(arguments).rows)
    with tempfile.TemporaryDirectory() as folder:
        generate_lake(folder, rows=rows, files=4, seed=1, nulls=False)
        lake = dpmask.read_lake(folder)
        people = [(COLUMNS, 50)]
        cpu(lake, people, suppress_records=SUPPRESSED)  # compiles
        nobody, _ = cpu(lake, people)
        alone, _ = cpu(lake, people, suppress_records=SUPPRESSED)
        both, fitted = cpu(lake, [*people, HOUSEHOLDS], suppress_records=SUPPRESSED)
    say(
        benchmark="refinement of households",
        rows=rows,
        cpu_people=nobody,
        cpu_households=both,
        ratio=both / nobody,
        ratio_if_both_leave_out=both / alone,
        refinements=len(fitted.steps),
        dropped=fitted.figures.suppressed,
        full=rows >= FULL,
        at_most={"ratio": LIMIT},
    )
    return both / nobody


if __name__ == "__main__":
    within_limits(main)
