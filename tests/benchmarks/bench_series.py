"""The check of a release against 11 earlier ones of a table that grows: CPU of a refinement with it, less one without.

python tests/benchmarks/bench_series.py [--rows 1e6]

Limit: 30 CPU seconds for 1 million people and the twelfth release. The cuts of earlier releases are those of a series of
a sample, so that each has another one; who is in which is as for all people.
"""

import argparse
import sys

import numpy as np
from common import Path, say, time, within_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

from series_tools import Monthly, method, population

K, MONTHS, FULL, LIMIT = 10, 12, 1e6, 30.0


def timed(work):
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=FULL)
    options = parser.parse_args(arguments)
    people = population(int(options.rows))
    held = np.linspace(0.7, 1, MONTHS)
    sample = people[:: max(len(people) // 20_000, 10)]
    sampled, monthly = Monthly(K), Monthly(K)
    for share in held[:-1]:
        sampled.fit(sample[: int(len(sample) * share)])
        monthly.blocks.append(monthly.series(people[: int(len(people) * share)])[1])
    monthly.releases = sampled.releases
    alone, _ = timed(lambda: method(K).fit(people, seed=1))
    checked, fitted = timed(lambda: monthly.fit(people))
    say(
        benchmark="series",
        full=len(people) >= FULL,
        at_most={"check": LIMIT},
        rows=len(people),
        releases=MONTHS,
        check=max(checked - alone, 0.0),
        cpu={"without": alone, "with": checked},
        refinements=len(fitted.steps),
        least=min(one.least for one in fitted.figures.series),
    )


if __name__ == "__main__":
    within_limits(main)
