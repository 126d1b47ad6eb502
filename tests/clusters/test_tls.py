"""A cluster that talks TLS by cluster_config/tls.yaml: the same release, and strangers are refused."""

import os
import stat
import subprocess

import pytest
from servers import cluster_file, dask_cluster

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """A scheduler and a worker with certificates made by the command."""
    from dpmask.cli import main

    folder = tmp_path_factory.mktemp("tls")
    for name in ("own", "foreign"):
        with pytest.raises(SystemExit) as end:
            main(["certificates", str(folder / name)])
        assert end.value.code == 0
    own = folder / "own"

    def files(role):
        return (
            "--tls-ca-file",
            own / "ca.pem",
            "--tls-cert",
            own / f"{role}.pem",
            "--tls-key",
            own / f"{role}-key.pem",
        )

    env = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}
    scheduler = ("--host", "tls://127.0.0.1", *files("scheduler"))
    with dask_cluster(folder, *scheduler, worker=files("worker"), env=env) as address:
        yield folder, address


def tls_file(place, tls, ca="own", certificate="own"):
    folder, address = tls
    changed = {
        "address": address,
        "config__distributed.comm.tls.ca-file": str(folder / ca / "ca.pem"),
        "config__distributed.comm.tls.client.cert": str(folder / certificate / "client.pem"),
        "config__distributed.comm.tls.client.key": str(folder / certificate / "client-key.pem"),
    }
    return cluster_file(place.folder, "tls", **changed)


def test_the_same_release(place, tls):
    place.lake()
    assert place.run().code == 0
    ended = place.run("--cluster", tls_file(place, tls), target="again", private="p2")
    assert ended.code == 0, ended.err
    assert "cluster: workers 1, threads 1" in ended.err
    assert "dashboard: http://127.0.0.1:" in ended.err
    assert place.bytes("again") == place.bytes()


@pytest.mark.parametrize(("ca", "certificate"), [("foreign", "foreign"), ("own", "foreign"), ("foreign", "own")])
def test_who_has_certificates_of_another_authority_is_refused(place, tls, ca, certificate):
    place.lake()
    ended = place.run("--cluster", tls_file(place, tls, ca, certificate))
    assert ended.code == 2
    assert "do not trust each other's TLS certificates" in ended.err
    assert "dpmask certificates" in ended.err
    assert not (place.folder / "release").exists()


def test_a_plain_client_is_refused(place, tls):
    place.lake()
    ended = place.run("--scheduler", tls[1].replace("tls://", "tcp://"))
    assert ended.code == 5
    assert "hung up" in ended.err
    assert "cluster_config/tls.yaml" in ended.err


def test_tls_on_one_side_of_the_file_only(place, tls):
    place.lake()
    ended = place.run("--scheduler", tls[1])
    assert ended.code == 2
    assert "either the address" in ended.err
    file = tls_file(place, tls)
    file.write_text(file.read_text().replace("tls://", "tcp://"))
    ended = place.run("--cluster", file)
    assert ended.code == 2
    assert "either the address" in ended.err


def test_a_certificate_that_is_not_there(place, tls):
    place.lake()
    ended = place.run("--cluster", tls_file(place, tls, certificate="nowhere"))
    assert ended.code == 2
    assert "nowhere/client.pem. Make certificates: dpmask certificates FOLDER" in ended.err


def test_certificates_are_private_and_never_overwritten(place):
    made = place.dpmask("certificates", "certificates", "--days", "2")
    assert made.code == 0, made.err
    folder = place.folder / "certificates"
    assert (
        made.out.split() == [f"certificates/{name}" for name in place.bytes("certificates")]
        or len(made.out.split()) == 7
    )
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.glob("*-key.pem")} == {0o600}
    before = place.bytes("certificates")
    assert "ca-key.pem" not in before, "nobody can make further certificates of this authority"
    again = place.dpmask("certificates", "certificates")
    assert again.code == 2
    assert "is there already, nothing was changed" in again.err
    os.remove(folder / "ca.pem")
    assert place.dpmask("certificates", "certificates").code == 2
    assert place.bytes("certificates").items() == {k: v for k, v in before.items() if k != "ca.pem"}.items()


def test_what_openssl_says_of_the_certificates(place):
    assert place.dpmask("certificates", "own").code == 0
    assert place.dpmask("certificates", "foreign").code == 0
    for role in ("scheduler", "worker", "client"):
        for authority, code in (("own", 0), ("foreign", 2)):
            command = ["openssl", "verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", f"{authority}/ca.pem"]
            told = subprocess.run([*command, f"own/{role}.pem"], capture_output=True, text=True, check=False)
            assert told.returncode == code, told.stderr


def test_bad_arguments(place):
    (place.folder / "file").write_text("")
    assert place.dpmask("certificates", "file").code == 2
    assert place.dpmask("certificates", "new", "--days", "0").code == 2
    assert not (place.folder / "new").exists()
