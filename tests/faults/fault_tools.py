"""What the tests of failures share: the command line as a process of its own, and ways to make it die."""

import json
import os
import signal
import subprocess
import sys
import time

import yaml
from conftest import JOB, as_trial
from open_gate import opened

AT_ONCE = """
from dpmask.engine.limits import limits
at_once = limits(journal_seconds=0.0, journal_share=0.0)
at_once.__enter__()
"""
"""Code that makes a run write its checkpoint after every pass."""

LARGE = """
from dpmask.engine.limits import limits
large = limits(largest_cell=100, clustering_sample=100)
large.__enter__()
"""
"""Code that makes fuzzy clustering of a small table go through passes, as it does for a large one."""


def as_if_large(limit):
    """The same in this process."""
    limit(largest_cell=100, clustering_sample=100)


def cli(place, *arguments, code="", **options):
    """The command line, with some code run before it."""
    script = f"import sys, os, signal\n{code}\nfrom dpmask.cli import main\nmain(sys.argv[1:])"
    return subprocess.Popen(
        [sys.executable, "-c", script, *as_trial(arguments, place.folder)],
        cwd=place.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - a shell's background jobs ignore it
        **options,
    )


def wait_until(true, seconds=60):
    """Whether something came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.01)
    return False


def dying_in(label, passes):
    """Code that kills the run when it begins its next pass of this label after some."""
    return f"""{AT_ONCE}
from dpmask.engine import collection, files
computed, seen = collection.computed, []
def counted(work, runs, label, *on_result):
    if label == {label!r}:
        seen.append(1)
        if len(seen) > {passes}: os.kill(os.getpid(), signal.SIGKILL)
    return computed(work, runs, label, *on_result)
collection.computed = files.computed = counted
"""


class DaskProcesses:
    """A scheduler and workers as processes of their own, each stopped by its own id."""

    def __init__(self, folder, settings=None, host="127.0.0.1"):
        self.folder, self.started = folder, []
        self.environment = os.environ | {f"DASK_{name}": value for name, value in (settings or {}).items()}
        self.scheduler = self.start(
            "scheduler", "--host", host, "--port", "0", "--no-dashboard", "--scheduler-file", "s.json"
        )
        told = folder / "s.json"
        assert wait_until(lambda: told.exists() and told.read_text().rstrip().endswith("}"))
        self.address = json.loads(told.read_text())["address"]

    def start(self, *arguments, within=()):
        command = [*within, sys.executable, "-m", "dask", *arguments]
        with (self.folder / f"dask-{len(self.started)}.log").open("w") as log:
            process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=log, stderr=log)
        self.started.append(process)
        return process

    def worker(self, *options, within=()):
        """A worker of one thread; its nanny, if it has one, is the process."""
        return self.start("worker", self.address, "--nthreads", "1", "--no-dashboard", *options, within=within)

    def wait_for(self, workers):
        """Wait until so many workers are there."""
        from distributed import Client

        with Client(self.address, set_as_default=False, timeout="60s") as client:
            client.wait_for_workers(workers, timeout=60)

    def stop(self):
        for process in reversed(self.started):
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in reversed(self.started):
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


TOGETHER = """
import pathlib, time
import dpmask.job.run, pyarrow.parquet, numba
pathlib.Path(sys.argv[2] + ".ready").touch()
while not pathlib.Path("go").exists(): time.sleep(0.001)
"""
"""Code that makes a run wait for the word, once it has imported all it needs."""


def started(place, number, changes, options):
    """A run that waits for the word."""
    name = f"job{number}.yaml"
    (place.folder / name).write_text(yaml.safe_dump(opened(JOB | changes)))
    return cli(place, "run", name, *options, code=TOGETHER)


def both_run(place, jobs, options):
    """How two runs ended that were started together: exit codes and what they said."""
    for old in (place.folder / "go", *place.folder.glob("*.ready")):
        old.unlink(missing_ok=True)
    runs = [started(place, number, job, options) for number, job in enumerate(jobs)]
    while len(list(place.folder.glob("*.ready"))) < len(runs):
        assert all(run.poll() is None for run in runs), runs[0].communicate()
    (place.folder / "go").touch()
    said = ["".join(run.communicate(timeout=200)) for run in runs]
    return [run.returncode for run in runs], said
