"""A run of a series that is killed at random moments: never a release that its ledger does not have."""

import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from conftest import JOB
from fault_tools import cli
from open_gate import opened

from dpmask.lake.storage import Place
from dpmask.release.ledger import read_ledger, verify_ledger

KILLS = 20
FORKING = """
import os, signal, random
import dask, dask.dataframe, pandas, scipy.special, scipy.stats
import dpmask.job.run, dpmask.cli, dpmask.lake.local_files as local_files, dpmask.masking.refinement.method, pyarrow.parquet, numba

def told_to_die(after):
    settle, calls = local_files.settle, [0]
    def counted(path):
        calls[0] += 1
        if calls[0] == after: os.kill(os.getpid(), signal.SIGKILL)
        settle(path)
        if calls[0] == -after: os.kill(os.getpid(), signal.SIGKILL)
    local_files.settle = counted
    return calls

def begun(number, after):
    child = os.fork()
    if not child:
        for number_of in (1, 2): os.dup2(os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), number_of)
        calls = told_to_die(after)
        try: dpmask.cli.main(["run", f"job{number}.yaml"])
        except SystemExit as end: code = end.code or 0
        open("calls", "w").write(str(calls[0]))
        os._exit(code)
    return os.waitpid(child, 0)[1]

print(begun(1, 0), flush=True)
most, chance = int(open("calls").read()), random.Random(5)
for number in range(2, 2 + int(sys.argv[2])):
    moment = chance.choice([-1, 1]) * chance.randint(most // 3, most)
    print(begun(number, moment), os.path.exists(f"release-{number}/manifest.json"), flush=True)
    if chance.random() < 0.3: print(begun(number, 0), flush=True)
sys.exit(0)
"""


def test_killed_at_random_moments(place):
    """20 runs killed at a file they write: every release that stands is in the ledger, and the next run is checked."""
    rng = np.random.default_rng(0)
    rows = 300 + 20 * (KILLS + 1)
    table = pa.table(
        {"id": np.arange(rows), "age": rng.integers(0, 8, rows), "ill": rng.choice(["yes", "no"], rows, p=[0.2, 0.8])}
    )
    step = {"method": "refinement", "requirements": [{"columns": ["age"], "k": 5}], "domains": {"age": [0, 8]}}
    columns = {"identifier": ["id"], "quasi": ["age"], "sensitive": ["ill"]}
    for number in range(1, KILLS + 2):
        (place.folder / f"lake-{number}").mkdir()
        pq.write_table(table.slice(0, 300 + 20 * number), place.folder / f"lake-{number}/all.parquet")
        job = {"name": f"month {number}", "source": f"lake-{number}", "target": f"release-{number}", "series": "sick"}
        said = opened({**JOB, **job, "mask": [step], "columns": columns, "block_rows": 10_000})
        del said["seed"]
        (place.folder / f"job{number}.yaml").write_text(yaml.safe_dump(said))
    run = cli(place, "forked", str(KILLS), code=FORKING)
    out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    ended = out.splitlines()
    assert sum(line.split()[0] == str(int(signal.SIGKILL)) for line in ended) >= KILLS - 2, ended
    assert {line.split()[0] for line in ended} == {"0", str(int(signal.SIGKILL))}, (
        ended,
        (place.folder / "log").read_text(),
    )
    released = [path.parent for path in sorted(place.folder.glob("release-*/manifest.json"))]
    assert 2 < len(released) < KILLS + 1
    ledger = verify_ledger("sick.ledger", releases=[str(path) for path in released])
    assert len(ledger.entries) >= len(released)
    last = f"job{KILLS + 1}.yaml"
    assert place.dpmask("run", last).code == 0
    assert read_ledger(Place("sick.ledger")).of_run(place.released(f"release-{KILLS + 1}")[0]["run"]) is not None
    assert os.path.exists("sick.ledger/head.json")
