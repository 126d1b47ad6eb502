"""Parts of a cluster that go away for good: the run goes on without them, or ends in bounded time with exit code 5."""

import os
import signal
import subprocess
import time

import pyarrow as pa
import pytest
from conftest import people
from fault_tools import DaskProcesses, cli, wait_until

pytestmark = pytest.mark.machine

IMPATIENT = "from dpmask.engine import dispatch\ndispatch._QUIET = 1.0\n"
"""Code that asks a cluster for a sign of life sooner than in ten seconds."""
SOON = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s", "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "4s"}
"""Settings of a driver that waits less than Dask does."""


@pytest.fixture
def cluster_of(place):
    """Makes clusters of processes that end with the test."""
    made = []

    def make(**options):
        made.append(DaskProcesses(place.folder, **options))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def staged(place):
    return len(list(place.folder.glob("private/*/staging/*")))


def slow_job(place):
    """A job of many small blocks, and its release."""
    place.lake(people(1_400), files=7, row_group_size=20)
    assert place.run(block_rows=20, target="undisturbed", private="p2").code == 0
    return place.job(block_rows=20)


GOES = {
    # what is done to whom: what is said
    "scheduler killed": ("scheduler", signal.SIGKILL, "The Dask scheduler is gone."),
    "scheduler frozen": ("scheduler", signal.SIGSTOP, "The Dask scheduler is gone."),
    "all workers killed": ("worker", signal.SIGKILL, "The cluster has lost all its workers."),
}


@pytest.mark.parametrize("case", GOES)
def test_what_goes_away_ends_the_run_cleanly(place, cluster_of, case):
    who, sent, message = GOES[case]
    job = slow_job(place)
    processes = cluster_of()
    worker = processes.worker("--no-nanny")
    processes.wait_for(1)
    run = cli(place, "run", job, "--scheduler", processes.address, code=IMPATIENT, env=processes.environment | SOON)
    assert wait_until(lambda: staged(place) > 5), run.communicate()
    (worker if who == "worker" else processes.scheduler).send_signal(sent)
    start = time.monotonic()
    _, err = run.communicate(timeout=100)
    assert run.returncode == 5, err
    assert message in err
    assert "run it again with --resume" in err
    assert "Traceback" not in err
    assert time.monotonic() - start < 60
    assert 5 < staged(place) < 70
    assert not (place.folder / "release").exists()
    ended = place.run("--resume", block_rows=20)
    assert ended.code == 0, ended.err
    assert place.bytes() == place.bytes("undisturbed")


LIMITS = {
    # how workers keep their limit: what is said
    "killed": ({"PAUSE": "False", "SPILL": "False", "TARGET": "False"}, "A task lost its worker again and again."),
    "paused": ({"PAUSE": "0.4", "TERMINATE": "False"}, "All workers have paused, as their memory is full."),
}


@pytest.mark.parametrize("case", LIMITS)
def test_the_memory_limit_is_reached(place, cluster_of, case):
    """A message that says what to do, and nothing is published."""
    settings, message = LIMITS[case]
    rows = 6_000_000
    numbers = pa.table({"id": pa.nulls(rows, pa.int8()), "income": pa.array([1.0, 2.0] * (rows // 2))})
    place.lake(numbers, files=1, row_group_size=rows)
    said = {"columns": {"identifier": ["id"], "sensitive": ["income"]}, "block_rows": rows}
    said["mask"] = [{"method": "noise", "columns": ["income"], "scale": 0.1}]
    settings = {f"DISTRIBUTED__WORKER__MEMORY__{name}": value for name, value in settings.items()}
    processes = cluster_of(settings=settings | {"DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"})
    processes.worker("--nanny", "--memory-limit", "450MB")
    processes.wait_for(1)
    environment = processes.environment | SOON
    run = cli(place, "run", place.job(**said), "--scheduler", processes.address, code=IMPATIENT, env=environment)
    _, err = run.communicate(timeout=100)
    assert run.returncode == 5, err
    assert f"{message} Give workers more memory, or lower block_rows." in err.replace("\n", " ")
    assert not (place.folder / "release").exists()
    if case == "killed":
        assert any("memory budget" in path.read_text() for path in place.folder.glob("dask-*.log"))


@pytest.fixture
def island(tmp_path):
    """A network of its own, reached over a cable that can be cut."""
    name = f"dp{os.getpid() % 100000}"
    here, there = f"10.213.{os.getpid() % 200}.1", f"10.213.{os.getpid() % 200}.2"
    lines = [
        f"ip netns add {name}",
        f"ip link add {name}a type veth peer name {name}b netns {name}",
        f"ip addr add {here}/30 dev {name}a",
        f"ip link set {name}a up",
        f"ip -n {name} addr add {there}/30 dev {name}b",
        f"ip -n {name} link set {name}b up",
        f"ip -n {name} link set lo up",
    ]
    try:
        made = [subprocess.run(line.split(), capture_output=True, check=False).returncode for line in lines]
    except FileNotFoundError:
        pytest.skip("needs iproute2")
    try:
        if any(made):
            pytest.skip("needs the right to make network namespaces")
        yield name, here
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def test_a_worker_cut_off_the_network(place, cluster_of, island):
    """The rest of the cluster does its share: the same release."""
    name, here = island
    job = slow_job(place)
    settings = {"DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s", "DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s"}
    settings["DISTRIBUTED__SCHEDULER__WORKER_TTL"] = "8s"
    processes = cluster_of(settings=settings, host=here)
    processes.worker("--no-nanny", "--host", here)
    processes.worker("--no-nanny", within=["ip", "netns", "exec", name])
    processes.wait_for(2)
    run = cli(place, "run", job, "--scheduler", processes.address, env=processes.environment)
    assert wait_until(lambda: staged(place) > 5), run.communicate()
    subprocess.run(["ip", "-n", name, "link", "set", f"{name}b", "down"], check=True)
    _, err = run.communicate(timeout=200)
    assert run.returncode == 0, err
    assert place.bytes() == place.bytes("undisturbed")
