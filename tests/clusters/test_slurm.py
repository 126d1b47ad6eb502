"""Workers as jobs of a real SLURM on one node, by cluster_config/slurm.yaml."""

import os
import socket
import subprocess
from contextlib import ExitStack

import pytest
import yaml
from servers import CONFIG, cluster_file, free_port, need, process, until

pytestmark = pytest.mark.machine

pytest.importorskip("dask_jobqueue", reason="pip install 'dpmask[slurm]'")

PROLOGUE = yaml.safe_load((CONFIG / "slurm.yaml").read_text(encoding="utf-8"))["options"]["job_script_prologue"]
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmdParameters=config_overrides
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=normal Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """munged, slurmctld and slurmd with a folder and loopback ports of their own, beside any that the machine has."""
    need("munged", "slurmctld", "slurmd", "sbatch", root=True)
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o400)
    conf, log = folder / "slurm.conf", folder / "log"
    said = CONF.format(folder=folder, host=socket.gethostname(), controller=free_port(), node=free_port())
    conf.write_text(said)
    munge = {"socket": "socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed", "log-file": "log"}
    files = [f"--{option}={folder}/munge.{name}" for option, name in munge.items()]
    with ExitStack() as stack:
        stack.enter_context(process("munged", "--foreground", "--force", *files, log=log))
        until((folder / "munge.socket").exists, log)
        stack.enter_context(process("slurmctld", "-D", "-f", conf, log=log))
        stack.enter_context(process("slurmd", "-D", "-N", "one", "-f", conf, log=log))
        until(lambda: "idle" in _slurm(conf, "sinfo", "-h"), log)
        yield conf


def _slurm(conf, *command):
    told = subprocess.run(
        command, env=os.environ | {"SLURM_CONF": str(conf)}, capture_output=True, text=True, check=False
    )
    return told.stdout


@pytest.fixture
def file(place, slurm, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", str(slurm))
    monkeypatch.setenv("DPMASK_TEST_SECRET", "not-for-workers")
    return cluster_file(
        place.folder,
        "slurm",
        options__cores=1,
        options__processes=1,
        options__memory="1GiB",
        options__interface="lo",
        options__local_directory=str(place.folder / "spill"),
        options__job_script_prologue=[*PROLOGUE, f"env > {place.folder}/environment"],
        options__job_extra_directives=["--export=PATH,HOME,LANG"],
        adapt={"minimum": 1, "maximum": 2},
        wait="120 s",
    )


def test_the_same_release(place, slurm, file):
    place.lake()
    assert place.run().code == 0
    ended = place.run("--cluster", file, target="again", private="p2")
    assert ended.code == 0, ended.err
    assert place.bytes("again") == place.bytes()
    logs = "".join(path.read_text() for path in (place.folder / "slurm-logs").iterdir())
    assert "tls://127.0.0.1" in logs, "workers talk TLS"
    environment = (place.folder / "environment").read_text()
    assert "LANG=" in environment
    assert "DPMASK_TEST_SECRET" not in environment, "workers get what the file names and no more"
    assert not list(place.folder.glob("*.pem")), "no certificate is left behind"
    until(lambda: not _slurm(slurm, "squeue", "-h"), "jobs end with the run")


def test_a_queue_that_is_not_there(place, file):
    """Found when the first job is refused, not after waiting for it."""
    file.write_text(file.read_text().replace("queue: normal", "queue: nowhere"))
    place.lake()
    ended = place.run("--cluster", file)
    assert ended.code == 5
    assert "no worker could be started: RuntimeError: sbatch: error" in ended.err
    assert "Traceback" not in ended.err


def test_no_sbatch(place, file, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    place.lake()
    ended = place.run("--cluster", file)
    assert ended.code == 5
    assert "No such file or directory: 'sbatch'" in ended.err
