"""The attacks that every job is put to cost at most a quarter of a ready job's CPU.

python tests/benchmarks/bench_gate.py [--rows 1e6] [--job public_use_file]

The job runs as its users run it, in a process of its own, in the order of its source so that rows pair by position. A second process takes
the gate's measures of source and release again: linkage by the strongest intruder, 20,000 attacked, and groups. Its CPU, less that of
starting, over that of the whole run is the ratio. Kernels are compiled before, by the same job on a few people.
"""

import argparse
import tempfile

from common import DPMASK, Path, cpu_of, say, within_limits

FULL = 1_000_000
JOBS = Path(__file__).parents[2] / "jobs"
READ = """
import json, sys
import dpmask
from dpmask.job.evaluate import label_sets_of
source, release, quasi, columns = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:])
table, masked, sets = dpmask.read_lake(source), dpmask.read_lake(release), label_sets_of(release, None)
"""
GATE = (
    READ
    + """
dpmask.risk.distance_linkage(table, masked, columns=columns, sample=20_000, sets={c: s for c, s in sets.items() if c in columns})
dpmask.risk.groups(table, masked, quasi=[quasi], sensitive=[])
"""
)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=FULL)
    parser.add_argument("--job", default="public_use_file")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), int(options.rows), options.job)


def measure(folder, rows, name):
    import yaml

    columns = yaml.safe_load((JOBS / name / "job.yaml").read_text(encoding="utf-8"))["columns"]
    known = [*columns.get("quasi", []), *columns.get("sensitive", []), *columns.get("weight", [])]
    for place, count in ((folder / "few", 5_000), (folder / "many", rows)):
        cpu_of(DPMASK, "generate", place / "lake", "--rows", count)
        whole = cpu_of(DPMASK, "run", _job(place, name))
        arguments = (
            place / "lake",
            place / "release",
            *(str(some).replace("'", '"') for some in (columns["quasi"], known)),
        )
        gate = cpu_of(GATE, *arguments) - cpu_of(READ, *arguments)
    figures = {"rows": rows, "job": name, "cpu": {"run": whole, "gate": gate}, "ratio": gate / whole}
    say(full=rows >= FULL, at_most={"ratio": 0.25}, benchmark="gate", **figures)
    return figures


def _job(place, name):
    """The ready job on this lake, released whatever is found."""
    import yaml

    job = yaml.safe_load((JOBS / name / "job.yaml").read_text(encoding="utf-8"))
    text = yaml.safe_dump(
        job
        | {
            "source": str(place / "lake"),
            "target": str(place / "release"),
            "private": str(place / "private"),
            "seed": 1,
            "order": "input",
            "accept": {"order": "people made for a benchmark"},
            "policy": ["gate.linkage <= 1", "gate.attacks <= 1"],
        }
    )
    path = place / "job.yaml"
    path.write_text(text.replace("jobs/taxonomies", str(JOBS / "taxonomies")), encoding="utf-8")
    return path


if __name__ == "__main__":
    within_limits(main)
