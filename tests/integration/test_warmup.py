"""After a warm-up nothing is compiled, and before it a run and a plan say what is to be."""

import os
import re
import subprocess
import sys

import pytest
from conftest import as_trial, people

COUNTED = """
import sys
from numba.core import event
from dpmask.cli import main
with event.install_recorder("numba:compile") as compiled:
    try: main(sys.argv[1:])
    except SystemExit as end: assert not end.code, end.code
for _, one in compiled.buffer: print("compiled:", one.data["dispatcher"].py_func.__qualname__, one.data.get("args"))
print("compile events:", len(compiled.buffer))
"""


@pytest.fixture
def dpmask(place, monkeypatch):
    """The command line in a process with a cache of its own; what it says, and how many functions it compiled."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(place.folder / "cache"))

    def run(*arguments):
        ended = subprocess.run(
            [sys.executable, "-c", COUNTED, *as_trial(arguments, place.folder)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout + ended.stderr, int(re.search(r"compile events: (\d+)", ended.stdout)[1])

    return run


def test_a_run_after_a_warm_up_compiles_nothing(place, dpmask):
    place.lake()
    job = place.job(
        mask=[{"method": "microaggregation", "columns": ["income", "age"], "k": 5}],
        measure=[{"measure": "distance_linkage", "columns": ["income", "age"]}],
    )
    said, compiled = dpmask("plan", job)
    assert re.search(r"\d s of it to compile \d+ kernels, once on this machine: dpmask warmup", said)
    said, compiled = dpmask("warmup", job)
    assert compiled == 0, "others do it"
    assert re.search(rf"Compiled (\d+) kernels; \1 kept, .* MB\n  at {place.folder}/cache/kernels-", said)
    said, compiled = dpmask("run", job)
    assert compiled == 0, said
    assert "compiling" not in said
    said, compiled = dpmask("warmup", job)
    assert "Compiled 0 kernels" in said
    said, _ = dpmask("plan", job, "--overwrite")
    assert "to compile" not in said


def test_a_run_says_what_it_compiles_and_where_that_is_kept(place, dpmask):
    place.lake()
    said, compiled = dpmask("run", place.job())
    assert re.search(rf"compiling \d+ kernels, once on this machine; kept at {place.folder}/cache/kernels-", said)
    assert compiled > 0


def test_after_a_run_that_masks_no_numbers_a_plan_has_nothing_to_compile(place, dpmask):
    place.lake(people().select(["id", "age", "region"]))
    refined = {"requirements": [{"columns": ["age", "region"], "k": 10}], "domains": {"age": [0, 120]}}
    refined |= {"method": "refinement", "taxonomies": {"region": {"any": ["north", "south", "east"]}}}
    columns = {"identifier": ["id"], "quasi": ["age", "region"]}
    job = place.job(columns=columns, mask=[refined], measure=None, policy=None, accept=None)
    _, compiled = dpmask("run", job)
    assert compiled > 0
    said, _ = dpmask("plan", job, "--overwrite")
    assert "to compile" not in said
