"""The attacks that every job is put to cost at most a quarter of a ready job's CPU.

python tests/benchmarks/bench_gate.py [--rows 1e6] [--job public_use_file ...]

Each ready job runs as its users run it, in a process of its own, and is released whatever is found. There the CPU of each measure is taken
as it is measured, by all threads. The gate's are linkage by the strongest intruder, 20,000 attacked, groups, and what the methods say that
undoes them; their sum over the CPU of the whole process is the ratio. Reading the staged rows of few blocks, which then stay in memory for all
measures, counts as the gate's, too. Where a job asks for groups with more, such as sensitive columns,
the gate takes its plain ones beside them here. Kernels are compiled before, by the same job on a few people.
"""

import argparse
import json
import subprocess
import sys
import tempfile

import yaml
from common import DPMASK, JOBS, READY, Path, cpu_of, say, within_limits

FULL = 1_000_000
KINDS = {"tax_units": ["--kind", "tax_units"]}
RUN = """
import json, sys, time
import dpmask.job.decision as decision
import dpmask.job.gate as gate
import dpmask.job.stages as stages
from dpmask.cli import main
spent, judged = {}, []
keep, taken, risk = stages.few_in_memory, decision.taken, decision.GateMeasures.risk

def counted(name, take):
    def work():
        begun = time.process_time()
        try:
            return take()
        finally:
            spent[name] = time.process_time() - begun
    return work

def kept(table):
    judged.append("reading")
    return counted("reading", lambda: keep(table))()

def gate_risk(measures, rows, results, attacks, *rest):
    judged.extend([*attacks, *(one.name for one in (measures.linkage, measures.groups) if one is not None)])
    return risk(measures, rows, results, attacks, *rest)

def one_by_one(takers, attacks, *, at_once=1):
    assert at_once == 1, "CPU of measures that are taken beside each other is not told apart"
    return taken({name: counted(name, take) for name, take in takers.items()}, attacks)

stages.few_in_memory, decision.taken = kept, one_by_one
decision.GateMeasures.risk = gate_risk
gate._own = lambda own, asked, same: asked
try:
    main(["run", sys.argv[1], "--trial"])
finally:
    parts = {name: spent[name] for name in judged}
    open(sys.argv[2], "w").write(json.dumps({"run": time.process_time(), "gate": sum(parts.values()), "parts": parts}))
"""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=FULL)
    parser.add_argument("--job", nargs="+", choices=READY, default=READY)
    options = parser.parse_args(arguments)
    for name in options.job:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), int(options.rows), name)


def measure(folder, rows, name):
    for place, count in ((folder / "few", 20_000), (folder / "many", rows)):
        cpu_of(DPMASK, "generate", place / "lake", "--rows", count, *KINDS.get(name, []))
        command = [sys.executable, "-c", RUN, str(_job(place, name)), str(place / "cpu")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cpu = json.loads((folder / "many" / "cpu").read_text())
    figures = {"rows": rows, "job": name, "cpu": cpu, "ratio": cpu["gate"] / cpu["run"]}
    say(full=rows >= FULL, at_most={"ratio": 0.25}, benchmark="gate", **figures)


def _job(place, name):
    """The ready job on this lake, released whatever is found."""
    job = yaml.safe_load((JOBS / name / "job.yaml").read_text(encoding="utf-8"))
    text = yaml.safe_dump(
        job
        | {
            "source": str(place / "lake"),
            "target": str(place / "release"),
            "private": str(place / "private"),
            "seed": 1,
            "policy": ["gate.linkage <= 1", "gate.attacks <= 1"],
        }
    )
    path = place / "job.yaml"
    path.write_text(text.replace("jobs/taxonomies", str(JOBS / "taxonomies")), encoding="utf-8")
    return path


if __name__ == "__main__":
    within_limits(main)
