"""An office to try pipelines in: a small lake, jobs that end in every way, and a dpmask that notes how it was called.

DPMASK names the real command, in an environment of its own. The first time it ends with 5 the cluster it wanted is
started: so a retry finds it.
"""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from open_gate import opened

REAL = os.environ["DPMASK"]
JOB = {
    "name": "office",
    "source": "lake",
    "target": "release",
    "private": "private",
    "columns": {
        "identifier": ["person_id", "household_id"],
        "quasi": ["age", "sex", "education", "occupation", "region"],
        "sensitive": ["net", "tax", "gross", "hours"],
        "weight": ["weight"],
    },
    "mask": [{"method": "noise", "columns": ["net", "tax", "gross", "hours"], "scale": 0.2}],
    "measure": [{"measure": "il1s", "columns": ["net"]}],
    "policy": ["il1s.value <= 0.5"],
}
ENDS = {  # how a run ends: changes to the job, exit code
    "released": ({}, 0),
    "refused by the policy": ({"policy": ["il1s.value <= 0"]}, 3),
    "a bad job file": ({"mask": [{"method": "nothing"}]}, 2),
    "no input": ({"source": "nowhere"}, 4),
}
SHIM = """#!/bin/sh
echo "$@" >> {folder}/calls
{real} "$@"
code=$?
echo $code >> {folder}/codes
[ $code -ne 5 ] || touch {folder}/wanted
for _ in $(seq 300); do [ $code -eq 5 ] && [ ! -e {folder}/started ] || break; sleep 0.2; done
exit $code
"""


class Checks:
    """What holds for every pipeline. ``run`` runs it in an office and says whether it ended well."""

    def run(self, office, *options):
        raise NotImplementedError

    def test_a_month_is_a_release_of_its_own(self, tmp_path):
        office = Office(tmp_path, {"name": "office ${MONTH}"})
        assert self.run(office, "--set", "target=release/${MONTH}/")
        (manifest,) = (tmp_path / "release").glob("20??-??/manifest.json")
        assert json.loads(manifest.read_text())["name"] == f"office {manifest.parent.name}"

    @pytest.mark.parametrize("end", ENDS)
    def test_what_no_retry_can_mend_is_not_retried(self, tmp_path, end):
        changes, code = ENDS[end]
        office = Office(tmp_path, changes)
        assert self.run(office) == (code == 0)
        assert office.codes == [code]
        assert office.calls == ["run job.yaml"]
        assert office.released == (code == 0)

    def test_a_failed_cluster_is_tried_again_and_the_run_goes_on(self, tmp_path):
        office = Office(tmp_path)
        with office.late_cluster() as address:
            assert self.run(office, "--scheduler", address)
        assert office.codes == [5, 0]
        assert office.calls == [f"run job.yaml --scheduler {address}{again}" for again in ("", " --resume")]
        assert office.released


class Office:
    """A folder, and how dpmask was called in it."""

    def __init__(self, folder, changes=None):
        self.folder = Path(folder)
        subprocess.run([REAL, "generate", "lake", "--rows", "2000"], cwd=folder, check=True)
        (self.folder / "job.yaml").write_text(json.dumps(opened(JOB | (changes or {}))))
        shim = self.folder / "dpmask"
        shim.write_text(SHIM.format(folder=shlex.quote(str(folder)), real=shlex.quote(REAL)))
        shim.chmod(0o755)
        os.environ.update(DPMASK=str(shim), DPMASK_RETRY_SECONDS="1", DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="3s")

    @property
    def calls(self):
        return (self.folder / "calls").read_text().splitlines()

    @property
    def codes(self):
        return [int(line) for line in (self.folder / "codes").read_text().split()]

    @property
    def released(self):
        return (self.folder / "release" / "manifest.json").exists()

    @contextmanager
    def late_cluster(self):
        """The address of a cluster that is started when a run has failed for want of it."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        address = f"tcp://127.0.0.1:{port}"
        watcher = subprocess.Popen(
            [sys.executable, __file__, str(self.folder), address], env=os.environ | {"DPMASK": REAL}
        )
        try:
            yield address
        finally:
            watcher.terminate()
            watcher.wait(30)


def be_the_cluster_when_wanted(folder, address, running):
    """Wait until a run has failed, then start the cluster it wanted, and wait for the end."""
    dask, port = Path(REAL).parent / "dask", address.rsplit(":", 1)[1]
    while not (folder / "wanted").exists():
        time.sleep(0.2)
    for command in (
        ["scheduler", "--host", "127.0.0.1", "--port", port, "--dashboard-address", "127.0.0.1:0"],
        ["worker", address, "--nthreads", "1", "--no-dashboard", "--local-directory", folder / "spill"],
    ):
        running.append(subprocess.Popen([dask, *command]))
    while not answers(int(port)):
        time.sleep(0.2)
    (folder / "started").touch()
    signal.pause()


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    processes = []
    try:
        be_the_cluster_when_wanted(Path(sys.argv[1]), sys.argv[2], processes)
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(30)
