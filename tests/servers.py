"""Real servers on loopback, each started for a test and stopped by its own process id."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

CONFIG = Path(__file__).parents[1] / "cluster_config"
BIN = Path(sys.executable).parent


def kill_a_worker(cluster, seconds=60):
    """Kill one worker of a cluster with nannies. Where all were killed just before, wait for one to be started again.

    One that is starting is left alone: Dask's nanny does not start it again.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for nanny in list(cluster.workers.values()):
            if _runs(nanny):
                os.kill(nanny.pid, signal.SIGKILL)
                return
        time.sleep(0.01)
    pytest.fail(f"no worker was started again within {seconds} s")


def all_workers_run(cluster, seconds=30):
    """Whether all workers of a cluster with nannies run, or do so again within this time."""
    with suppress(TimeoutError):
        return until(lambda: all(map(_runs, list(cluster.workers.values()))), "workers", seconds)
    return False


def _runs(nanny):
    """Whether a nanny's worker runs, and would be started again if it ended: not so before the nanny itself runs."""
    return nanny.pid and nanny.status.name == nanny.process.status.name == "running"


@contextmanager
def process(*command, log, env=None, cwd=None):
    """A process that runs inside the block; its output goes to ``log``, where a failing test can look."""
    with log.open("a") as file:
        started = subprocess.Popen(
            [str(part) for part in command], stdout=file, stderr=file, cwd=cwd, env={**os.environ, **(env or {})}
        )
    try:
        yield started
    finally:
        started.send_signal(signal.SIGTERM)
        try:
            started.wait(10)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait(10)


def until(found, what, seconds=90):
    """What ``found()`` gives, once it gives something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := found():
            return result
        time.sleep(0.05)
    raise TimeoutError(what)


def answers(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def need(*programs, root=False):
    """Skip where a server's programs are not installed, or only root may run it."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}; .ci/run installs the Debian packages")
    if root and os.geteuid() != 0:
        pytest.skip("needs to be root")


def cluster_file(folder, name, **changes):
    """A file of cluster_config/ with other addresses, queues and the like: key or key.option, and its value."""
    said = yaml.safe_load((CONFIG / f"{name}.yaml").read_text(encoding="utf-8"))
    for path, value in changes.items():
        key, _, option = path.partition("__")
        if not option:
            said[key] = value
        else:
            assert option in said[key], f"{name}.yaml has no {key}: {option} to change"
            said[key][option] = value
    written = folder / f"{name}.yaml"
    written.write_text(yaml.safe_dump(said), encoding="utf-8")
    return written


@contextmanager
def dask_cluster(folder, *options, worker=(), env=None, worker_env=None):
    """A scheduler and a worker as processes of their own; yields the scheduler's address. Both log to dask.log."""
    file, log = folder / "scheduler.json", folder / "dask.log"
    command = (BIN / "dask", "scheduler", "--scheduler-file", file, "--port", "0", "--dashboard-address", "127.0.0.1:0")
    with process(*command, *options, log=log, env=env, cwd=folder):
        until(file.exists, log)
        address = until(lambda: yaml.safe_load(file.read_text()), log)["address"]
        command = (BIN / "dask", "worker", address, "--nthreads", "1", "--dashboard-address", "127.0.0.1:0")
        with process(*command, *worker, log=log, env={**(env or {}), **(worker_env or {})}, cwd=folder):
            yield address


class Recorder:
    """A way through to a port on loopback that keeps every byte that passes, both ways."""

    def __init__(self, port):
        self.seen, self.to = bytearray(), port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                ends = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.to))
                for here, there in (ends, ends[::-1]):
                    threading.Thread(target=self._pass_on, args=(here, there), daemon=True).start()

    def _pass_on(self, here, there):
        with suppress(OSError), here, there:
            while data := here.recv(1 << 16):
                self.seen += data
                there.sendall(data)


class Store(NamedTuple):
    """Where an S3 server is, and who may write and who only read."""

    endpoint: str
    right: tuple[str, str]
    reader: tuple[str, str]


@contextmanager
def object_store(folder):
    """A real S3 server on loopback, stopped by its own process id."""
    right, reader = ("holder", "holdersecret"), ("reader", "readersecret")
    rights = {right: ["Admin", "Read", "Write", "List", "Tagging"], reader: ["Read", "List"]}
    identities = [
        {"name": key, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}
        for (key, secret), actions in rights.items()
    ]
    (folder / "s3.json").write_text(json.dumps({"identities": identities}))
    master, volume, filer, s3 = _ports(4)
    command = f"{Path(sys.executable).parent / 'weed'} server -dir={folder} -ip=127.0.0.1 -ip.bind=127.0.0.1"
    command += f" -master.port={master} -master.port.grpc={master + 10000} -volume.port={volume} -volume.port.grpc={volume + 10000}"
    command += (
        f" -filer -filer.port={filer} -filer.port.grpc={filer + 10000} -s3 -s3.port={s3} -s3.port.grpc={s3 + 10000}"
    )
    command += (
        f" -s3.ip.bind=127.0.0.1 -s3.port.iceberg=0 -s3.port.lance=0 -s3.config={folder / 's3.json'} -s3.iam=false"
    )
    # A bucket takes seven volumes. By default they are counted against the free disk, and a nearly full one has none left.
    command += " -master.volumeSizeLimitMB=512 -volume.max=10000 -volume.minFreeSpace=0"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command.split(), env=environment, stdout=log, stderr=log, cwd=folder)
    try:
        _wait(f"http://127.0.0.1:{s3}/healthz", server)
        yield Store(f"http://127.0.0.1:{s3}", right, reader)
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait(30)


def _ports(count):
    """Free ports whose gRPC companions, 10000 above, are free too.

    Both lie below those that the system gives out by itself, and far from those another process of the tests looks at.
    """
    ports, candidate = [], 10000 + os.getpid() * 37 % 9900
    while len(ports) < count:
        candidate += 1
        try:
            for port in (candidate, candidate + 10000):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            ports.append(candidate)
        except OSError:
            continue
    return ports


def _wait(url, server):
    for _ in range(120):
        assert server.poll() is None, "the object store died"
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.25)
    raise TimeoutError(url)


class Unscalable:
    """A cluster as Dask lets others write one, whose number of workers is fixed."""

    def scale(self, workers):
        raise NotImplementedError("its workers are counted")

    def close(self):
        pass
