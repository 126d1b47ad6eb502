"""Workers reached by SSH, by cluster_config/ssh.yaml, with a real sshd on loopback."""

import getpass
import os
import subprocess

import pytest
from servers import answers, cluster_file, free_port, need, process, until

pytestmark = pytest.mark.machine

pytest.importorskip("asyncssh", reason="pip install 'dpmask[ssh]'")

CONF = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/client.pub
PidFile {folder}/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
"""


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    """An SSH server with keys of its own, that lets this user in."""
    need("/usr/sbin/sshd", "ssh-keygen", root=True)
    folder = tmp_path_factory.mktemp("ssh")
    for name in ("host", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    port = free_port()
    host = (folder / "host.pub").read_text()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host}")
    (folder / "sshd.conf").write_text(CONF.format(folder=folder, port=port))
    os.makedirs("/run/sshd", exist_ok=True)
    with process("/usr/sbin/sshd", "-D", "-e", "-f", folder / "sshd.conf", log=folder / "log"):
        until(lambda: answers(port), folder / "log")
        yield folder, port


@pytest.fixture
def file(place, sshd):
    folder, port = sshd
    assert place.dpmask("certificates", "certificates").code == 0
    connect = {
        "known_hosts": str(folder / "known_hosts"),
        "connect_timeout": "30s",
        "port": port,
        "username": getpass.getuser(),
        "client_keys": [str(folder / "client")],
    }
    written = cluster_file(
        place.folder,
        "ssh",
        options__hosts=["127.0.0.1", "127.0.0.1"],
        options__connect_options=connect,
        options__worker_options={
            "n_workers": 2,
            "nthreads": 1,
            "memory_limit": "1GiB",
            "host": "127.0.0.1",
            "protocol": "tls",
        },
        options__scheduler_options={"host": "127.0.0.1", "protocol": "tls", "dashboard_address": "127.0.0.1:0"},
    )
    written.write_text(written.read_text().replace("/etc/dpmask", str(place.folder / "certificates")))
    return written


def test_the_same_release(place, file):
    place.lake()
    assert place.run().code == 0
    ended = place.run("--cluster", file, target="again", private="p2")
    assert ended.code == 0, ended.err
    assert "cluster: workers 2, threads 2" in ended.err
    assert "dashboard: http://127.0.0.1:" in ended.err
    assert place.bytes("again") == place.bytes()


@pytest.mark.parametrize("wrong", ["known_hosts", "client"])
def test_who_is_not_known_is_refused(place, file, sshd, wrong, tmp_path):
    (tmp_path / "known_hosts").write_text("")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "client"], check=True)
    file.write_text(file.read_text().replace(str(sshd[0] / wrong), str(tmp_path / wrong)))
    place.lake()
    ended = place.run("--cluster", file)
    assert ended.code == 2
    assert "distributed.SSHCluster could not be started: " in ended.err
    assert {"known_hosts": "Host key is not trusted", "client": "Permission denied"}[wrong] in ended.err
