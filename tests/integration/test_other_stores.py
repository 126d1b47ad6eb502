"""Stores other than S3, as far as there are emulators: Google's from PyPI; Azurite, if `azurite-blob` can be called."""

import logging
import shutil
import socket
import subprocess

import fsspec
import pytest
from conftest import people, write_lake
from servers import until

from dpmask.errors import AccessError, StorageError, TargetError
from dpmask.lake.storage import Place
from dpmask.lake.storage_errors import storage_errors

AZURE = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;BlobEndpoint=http://127.0.0.1:{}/devstoreaccount1;AccountKey="
AZURE += "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # the one that all emulators have


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def google(monkeypatch):
    pytest.importorskip("gcsfs")
    server = pytest.importorskip("gcp_storage_emulator.server")
    port = free_port()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    logging.getLogger("gcsfs").setLevel(logging.CRITICAL)
    started = server.create_server("127.0.0.1", port, in_memory=True, default_bucket="lake")
    started.start()
    yield "gs://lake"
    started.stop()


@pytest.fixture
def azure(monkeypatch, tmp_path):
    pytest.importorskip("adlfs")
    if shutil.which("azurite-blob") is None:
        pytest.skip("azurite-blob is not installed (npm install azurite)")
    port = free_port()
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", AZURE.format(port))
    options = f"--blobHost 127.0.0.1 --blobPort {port} --location {tmp_path}/azure --skipApiVersionCheck --silent --disableTelemetry"
    server = subprocess.Popen(["azurite-blob", *options.split()])
    until(lambda: answers(port), "azurite")
    fsspec.filesystem("abfs").mkdir("lake")
    yield "abfs://lake"
    server.kill()
    server.wait(30)


@pytest.fixture(params=["google", "azure"])
def root(request):
    found = request.getfixturevalue(request.param)
    yield found
    type(Place(found).fs).clear_instance_cache()


def test_a_job_from_and_to_a_store(place, root):
    fs = Place(root).fs
    for file in write_lake(place.folder / "lake", people(300), files=2).iterdir():
        fs.put_file(str(file), f"lake/people/{file.name}")
    said = {"source": f"{root}/people", "target": f"{root}/release", "private": f"{root}/private"}
    ended = place.run(**said)
    assert ended.code == 0, ended.err
    again = place.run(**said)
    assert (again.code, "nothing was changed" in again.out) == (0, True), again.err
    other = place.run(**said, seed=8)
    assert (other.code, "holds another release" in other.err) == (2, True)
    assert place.run("--overwrite", **said, seed=8).code == 0
    assert place.dpmask("verify", f"{root}/release").code == 0
    assert place.run(target="release").code == 0
    if root.startswith("abfs"):  # Google's emulator does not know the condition
        (Place(root) / "new").create(b"one")
        with pytest.raises(TargetError, match="another run has just published here"):
            (Place(root) / "new").create(b"two")


class _Answer(Exception):
    def __init__(self, status):
        self.code = self.status_code = status


@pytest.mark.parametrize(
    ("module", "status", "kind"),
    [("gcsfs.retry", 403, AccessError), ("azure.core", 401, AccessError), ("google.auth", 503, StorageError)],
)
def test_what_their_clients_raise_is_an_error_of_storage(tmp_path, module, status, kind):
    error = type("HttpError", (_Answer,), {"__module__": module})(status)
    with pytest.raises(kind), storage_errors(Place(str(tmp_path))):
        raise error
