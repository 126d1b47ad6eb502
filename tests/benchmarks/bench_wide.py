"""A wide table: noise on 1,000 columns, from lake to verified release, with every attack of the default gate.

PYTHONPATH=tests python tests/benchmarks/bench_wide.py [--rows 2e4] [--columns 1000] [--folder DIR]

All columns are sensitive, so the gate links by all of them and filters the noise of all. CPU seconds and peak memory are those of the one
process that runs the job, a second time: the first run compiles what no later one does. The attacks' figures are printed beside them.
The limits are 15 CPU seconds and 1 GB; linkage by all columns takes more.
"""

import argparse
import json
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import Path, noise_job, os, say, within_limits

FULL_COLUMNS, FULL_ROWS = 1000, 20_000
_FACTORS = 13
_ATTACKS = ("distance_linkage", "noise_filter")
_RUN = """
import contextlib, json, resource, sys, time
from dpmask.cli import main
from dpmask.job.events import Recorder
spent, during = {}, Recorder.during

def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(one.ru_utime + one.ru_stime for one in used)

@contextlib.contextmanager
def counted(recorder, stage):
    begun = cpu()
    with during(recorder, stage):
        yield
    spent[stage] = round(cpu() - begun, 2)

Recorder.during = counted
try:
    main(["run", sys.argv[1], "--trial", "--json"])
finally:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    open(sys.argv[2], "w").write(json.dumps({"cpu": cpu(), "peak_mb": peak, "stages": spent}))
"""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=FULL_ROWS)
    parser.add_argument("--columns", type=int, default=FULL_COLUMNS)
    parser.add_argument("--folder")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=given.folder) as made:
        folder, rows = Path(made), int(given.rows)
        names = wide_lake(folder / "lake", rows, given.columns)
        changes = {"columns": {"sensitive": names}, "mask": [{"method": "noise", "columns": names, "scale": 0.5}]}
        changes["policy"] = ["gate.attacks <= 1", "gate.linkage <= 1"]
        for number in range(2):
            places = {name: str(folder / f"{name}-{number}") for name in ("target", "private")}
            found = _run(noise_job(folder, 1_000_000, **changes, **places), folder / "figures")
        full = given.columns >= FULL_COLUMNS and rows >= FULL_ROWS
        say(
            benchmark="wide", full=full, at_most={"cpu": 15, "peak_mb": 1024}, rows=rows, columns=given.columns, **found
        )
        return found


def wide_lake(folder, rows, columns):
    """Skewed amounts of a survey, each of which follows some factors and has a part of its own."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    names = [f"v{number:04d}" for number in range(columns)]
    logs = 0.2 * rng.normal(size=(columns, _FACTORS)) @ rng.normal(size=(_FACTORS, rows))
    values = 1000 * np.exp(logs + 0.3 * rng.normal(size=(columns, rows)))
    pq.write_table(pa.table(list(values), names=names), folder / "part-00000.parquet")
    return names


def _run(job, figures):
    """CPU seconds, peak memory and stages of a run, and what its attacks found."""
    outcome = subprocess.run(
        [sys.executable, "-c", _RUN, str(job), str(figures)],
        check=True, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    measures = json.loads(outcome.stdout)["measures"]
    rates = {one["measure"]: one["judged"] for one in measures if one["measure"] in _ATTACKS}
    return json.loads(figures.read_text()) | {"rates": rates}


if __name__ == "__main__":
    within_limits(main)
