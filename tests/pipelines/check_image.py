"""What the compose file starts, started here by the same commands: only hosts, ports and folders are this machine's."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

DOCKER = Path(__file__).parents[2] / "docker"
DPMASK = Path(os.environ["DPMASK"])
SERVICES = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """What the compose file's hosts, ports and folders are here."""
    folder = tmp_path_factory.mktemp("compose")
    scheduler, dashboard, storage = free_ports(3)
    return {
        "/data": str(folder),
        "/scratch": str(folder / "scratch"),
        "storage:8333": f"127.0.0.1:{storage}",
        "scheduler:8786": f"127.0.0.1:{scheduler}",
        ":8787": f":{dashboard}",
        "8786": str(scheduler),
        "8333": str(storage),
        "0.0.0.0": "127.0.0.1",
        "-ip=storage": "-ip=127.0.0.1",
    }


def free_ports(count):
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def translated(text, here):
    return re.sub("|".join(map(re.escape, here)), lambda match: here[match[0]], text)


def environment(service, here):
    said = {name: translated(value, here) for name, value in SERVICES[service].get("environment", {}).items()}
    own = {"AWS_ACCESS_KEY_ID": "office", "AWS_SECRET_ACCESS_KEY": "officesecret"}
    given = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    path = f"{DPMASK.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return given | {"PATH": path} | {name: own.get(name, value) for name, value in said.items() if "DPMASK" not in name}


@contextmanager
def started(service, here, *more):
    command = [*shlex.split(translated(SERVICES[service]["command"], here)), *more]
    process = subprocess.Popen(command, env=environment(service, here), cwd=here["/data"])
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def wait_for(url):
    for _ in range(240):
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return answer.read()
        except OSError:
            time.sleep(0.25)
    raise TimeoutError(url)


@pytest.fixture(scope="module")
def compose(here):
    """Storage, scheduler and two workers; hosts and ports of the storage's inner parts are given, they have defaults there."""
    master, volume, filer, *grpc = map(str, free_ports(7))
    ports = [f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}"]
    names = ["master", "volume", "filer", "s3"]
    ports += [f"-{name}.port.grpc={port}" for name, port in zip(names, grpc, strict=True)]
    ports += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.volumeSizeLimitMB=128", "-volume.max=0"]
    with ExitStack() as stack:
        SERVICES["storage"]["command"] = "weed " + SERVICES["storage"]["command"]  # the image's entry point
        stack.enter_context(started("storage", here, *ports))
        stack.enter_context(started("scheduler", here))
        wait_for(f"http://{here['storage:8333']}/healthz")
        assert wait_for(f"http://127.0.0.1{here[':8787']}/health") == b"ok"
        for _ in range(SERVICES["worker"]["deploy"]["replicas"]):
            stack.enter_context(started("worker", here))
        yield here


def client(here, command):
    ended = subprocess.run(
        shlex.split(translated(command, here)),
        env=environment("client", here),
        cwd=DOCKER,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended


def test_the_client_releases_from_storage_to_storage(compose):
    scheduler = "--scheduler tcp://scheduler:8786"
    client(compose, f"dpmask generate s3://office/lake/ --rows 1e4 {scheduler}")
    ended = client(compose, SERVICES["client"]["command"] + " --json --log-format json")
    result = json.loads(ended.stdout)
    assert (result["status"], result["rows"]) == ("released", 10_000)
    told = [json.loads(line) for line in ended.stderr.splitlines()]
    notes = [event["text"] for event in told if event["event"] == "note"]
    assert any("workers 2" in text for text in notes), notes
    assert any(f"{compose[':8787']}/status" in text for text in notes), "the dashboard's link"
    assert "Already released" in client(compose, SERVICES["client"]["command"]).stdout
    client(compose, f"dpmask verify s3://office/release/ {scheduler}")


def test_scheduler_and_workers_show_metrics(compose):
    assert b"dask_scheduler_workers" in wait_for(f"http://127.0.0.1{compose[':8787']}/metrics")
