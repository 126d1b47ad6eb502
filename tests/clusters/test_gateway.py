"""A cluster of a real Dask Gateway, local backend, by cluster_config/gateway.yaml."""

import gc
import os
import sys
import urllib.request

import pytest
from servers import BIN, answers, cluster_file, free_port, process, until

pytestmark = pytest.mark.machine

pytest.importorskip("dask_gateway", reason="pip install 'dpmask[gateway]'")
pytest.importorskip("dask_gateway_server", reason="pip install 'dask-gateway-server[local]'")

AVX2 = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES")  # set by dpmask where the machine could do more
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
ENVIRONMENT |= {name: os.environ[name] for name in AVX2 if name in os.environ}
CONF = """
c.DaskGateway.address = "127.0.0.1:{api}"
c.DaskGateway.backend_class = "dask_gateway_server.backends.local.UnsafeLocalBackend"
c.DaskGateway.authenticator_class = "dask_gateway_server.auth.SimpleAuthenticator"
c.SimpleAuthenticator.password = "gatewaysecret"
c.Proxy.address = "127.0.0.1:{public}"
c.Proxy.tcp_address = "127.0.0.1:{tcp}"
c.LocalBackend.clusters_directory = "{folder}/clusters"
c.LocalBackend.api_url = "http://127.0.0.1:{public}/api"
c.LocalBackend.inherited_environment = ["PATH"]
c.ClusterConfig.scheduler_cmd = ["{bin}/dask", "scheduler"]
c.ClusterConfig.worker_cmd = ["{bin}/dask", "worker"]
c.LocalBackend.cluster_heartbeat_period = 1
c.ClusterConfig.worker_memory = "1 G"
c.ClusterConfig.environment = {environment!r}
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gateway")
    ports = {name: free_port() for name in ("api", "public", "tcp")}
    (folder / "config.py").write_text(CONF.format(folder=folder, bin=BIN, environment=ENVIRONMENT, **ports))
    command = (sys.executable, "-m", "dask_gateway_server", "-f", folder / "config.py")
    with process(*command, log=folder / "log", cwd=folder):
        until(lambda: answers(ports["public"]) and answers(ports["tcp"]), folder / "log")
        until(lambda: healthy(ports["public"]), folder / "log")
        yield folder, ports


@pytest.fixture(autouse=True)
def collected(monkeypatch):
    """dask-gateway's objects complain when they are collected later than their event loop."""
    yield
    monkeypatch.setattr(sys, "unraisablehook", lambda complaint: None)
    gc.collect()


def healthy(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=2):
            return True
    except OSError:
        return False


@pytest.fixture
def file(place, gateway, monkeypatch):
    ports = gateway[1]
    monkeypatch.setenv("GATEWAY_PASSWORD", "gatewaysecret")
    written = cluster_file(
        place.folder,
        "gateway",
        options__address=f"http://127.0.0.1:{ports['public']}",
        adapt={"minimum": 1, "maximum": 2},
        wait="120 s",
    )
    written.write_text(written.read_text().replace("options:\n", f"options:\n  proxy_address: {ports['tcp']}\n"))
    return written


def test_the_same_release(place, gateway, file):
    place.lake()
    assert place.run().code == 0
    ended = place.run("--cluster", file, target="again", private="p2")
    assert ended.code == 0, ended.err + (gateway[0] / "log").read_text()
    assert f"dashboard: http://127.0.0.1:{gateway[1]['public']}/clusters/" in ended.err
    assert place.bytes("again") == place.bytes()


def test_a_wrong_password(place, file, monkeypatch):
    monkeypatch.setenv("GATEWAY_PASSWORD", "guessed")
    place.lake()
    ended = place.run("--cluster", file)
    assert ended.code == 2, ended.err
    assert "guessed" not in ended.err


def test_no_password(place, file, monkeypatch):
    monkeypatch.delenv("GATEWAY_PASSWORD")
    place.lake()
    ended = place.run("--cluster", file)
    assert ended.code == 2
    assert "GATEWAY_PASSWORD" in ended.err


def test_no_gateway(place, file, gateway):
    file.write_text(file.read_text().replace(f":{gateway[1]['public']}", ":9"))
    place.lake()
    ended = place.run("--cluster", file)
    assert ended.code == 5
    assert "Connect call failed ('127.0.0.1', 9)" in ended.err


def test_an_option_the_gateway_does_not_offer(place, file):
    file.write_text(file.read_text().replace("options:\n", "options:\n  worker_memory: 64\n"))
    place.lake()
    ended = place.run("--cluster", file)
    assert ended.code == 2
    assert "worker_memory" in ended.err
