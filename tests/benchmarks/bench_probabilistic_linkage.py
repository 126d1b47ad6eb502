"""Probabilistic linkage of a million records by seven columns, exact over all 10^12 pairs: under 60 CPU seconds.

python tests/benchmarks/bench_probabilistic_linkage.py [--rows 1e6] [--columns 7] [--rounds 1] [--folder DIR]

The original is a numeric lake, the masked table the same with noise of a tenth of each standard deviation. CPU is that of a
process of its own, with reading, masking, two links (true m, and m by EM) and all imports.
"""

import argparse
import tempfile

from common import COLUMNS, Path, cpu_of, numeric_lake, say, within_limits

FULL = 1e6
CODE = """
import sys
import dpmask
lake = dpmask.read_lake(sys.argv[1], block_rows=250_000)
columns = sys.argv[2].split(",")
masked = lake.masked_by(dpmask.NoiseAddition(columns=tuple(columns), scale=0.1).fit(lake, seed=1))
found = dpmask.risk.probabilistic_linkage(lake, masked, columns=columns)
open(sys.argv[3], "w").write(str(found.rate))
"""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--columns", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        return measure(Path(folder), int(options.rows), options.columns, options.rounds)


def measure(folder, rows, columns, rounds):
    lake = numeric_lake(folder / "lake", rows, min(rows, 250_000))
    names = ",".join(COLUMNS[:columns])
    cpu = min(cpu_of(CODE, lake, names, folder / "rate") for _ in range(rounds))
    rate = float((folder / "rate").read_text())
    full, figures = rows >= FULL, {"rows": rows, "columns": columns, "cpu": cpu, "rate": rate}
    say(full=full, at_most={"cpu": 60}, benchmark="probabilistic_linkage", **figures)
    return cpu


if __name__ == "__main__":
    within_limits(main)
