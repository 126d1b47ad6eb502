"""Cluster files: those of cluster_config/ that need no server, and every way to get one wrong."""

import importlib.util
import sys

import dask
import pytest
import yaml
from servers import CONFIG, cluster_file, dask_cluster, free_port

from dpmask.engine.cluster.file import read_description

pytestmark = pytest.mark.machine

WAYS = {"gateway", "kubernetes", "local", "scheduler", "slurm", "ssh", "tls"}


def test_there_is_a_file_for_every_way():
    assert {path.stem for path in CONFIG.glob("*.yaml")} == WAYS
    for way in WAYS:
        assert read_description(str(CONFIG / f"{way}.yaml")).file


@pytest.mark.parametrize("way", sorted(WAYS))
def test_what_is_set_has_a_comment(way):
    """Memory limits, spill folders, BLAS threads and timeouts are where the file says, each explained."""
    text = (CONFIG / f"{way}.yaml").read_text(encoding="utf-8")
    if way == "kubernetes":
        text += (CONFIG / "kubernetes" / "cluster.yaml").read_text(encoding="utf-8")
    for word in ("memory", "BLAS", "spill", "distributed.comm.timeouts.tcp"):
        assert word in text, word
    for line in text.splitlines():
        if "timeouts" in line or "memory_limit:" in line:
            assert "#" in line, line


def test_worker_processes_on_this_machine(place):
    place.lake()
    assert place.run().code == 0
    ended = place.run("--cluster", CONFIG / "local.yaml", target="again", private="p2")
    assert ended.code == 0, ended.err
    assert "cluster: workers 2, threads 2" in ended.err
    assert "dashboard" not in ended.err
    assert place.bytes("again") == place.bytes()


def test_adaptive_workers(place):
    file = cluster_file(place.folder, "local", options__n_workers=0, adapt={"minimum": 1, "maximum": 2})
    place.lake()
    ended = place.run("--cluster", file)
    assert ended.code == 0, ended.err
    assert "cluster: workers 1, threads 1" in ended.err


def test_a_cluster_by_its_address(place, tmp_path):
    place.lake()
    assert place.run().code == 0
    with dask_cluster(tmp_path, "--host", "127.0.0.1") as address:
        file = cluster_file(place.folder, "scheduler", address=address)
        ended = place.run("--cluster", file, target="again", private="p2")
    assert ended.code == 0, ended.err
    assert "dashboard: http://127.0.0.1:" in ended.err
    assert place.bytes("again") == place.bytes()


def test_nobody_at_the_address(place):
    file = cluster_file(place.folder, "scheduler", address=f"tcp://127.0.0.1:{free_port()}")
    file.write_text(file.read_text().replace("connect: 30s", "connect: 1s"))
    ended = place.dpmask("generate", "lake", "--cluster", file)
    assert ended.code == 5
    assert "No Dask scheduler answers at tcp://127.0.0.1:" in ended.err
    assert dask.config.get("scheduler", None) is None
    ended = place.dpmask("generate", "lake")
    assert ended.code == 0, "what failed is not in the way of what comes next"


def test_no_workers_in_time(place, cluster_without_workers):
    file = cluster_file(place.folder, "scheduler", address=cluster_without_workers, wait="1 s")
    ended = place.dpmask("generate", "lake", "--cluster", file)
    assert ended.code == 5
    assert "has no workers. Start some." in ended.err
    file = cluster_file(place.folder, "local", options__n_workers=0, wait="0.5 s")
    ended = place.dpmask("generate", "lake", "--cluster", file)
    assert ended.code == 5
    assert "local.yaml: no worker came within 0.5 s" in ended.err


@pytest.fixture
def cluster_without_workers():
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, dashboard_address=None) as made:
        yield made.scheduler_address


WRONG = {
    "no such file": (None, "there is no such cluster file"),
    "no YAML": ("cluster: [", "is not valid YAML"),
    "no mapping": ("- cluster", "must be a mapping with the keys"),
    "empty": ("", "must be a mapping with the keys"),
    "neither": ("workers: 2", "needs either cluster, a class that makes one, or address"),
    "both": ("cluster: distributed.LocalCluster\naddress: tcp://a:1", "needs either cluster"),
    "unknown key": (
        "cluster: distributed.LocalCluster\noption: {}",
        "no key 'option' in a cluster file. Did you mean 'options'?",
    ),
    "number as key": ("cluster: distributed.LocalCluster\n1: {}", "no key '1'"),
    "a program": ("cluster: subprocess.Popen\noptions: {args: [touch, ran]}", "must be a cluster class of dask"),
    "no cluster": ("cluster: distributed.Client", "must be a cluster class of dask"),
    "no class": ("cluster: distributed.LocaCluster", "no cluster class 'distributed.LocaCluster' here"),
    "no module": ("cluster: LocalCluster", "no cluster class 'LocalCluster' here"),
    "wrong option": ("cluster: distributed.LocalCluster\noptions: {n_worker: 2}", "does not start with these options"),
    "options no mapping": ("cluster: distributed.LocalCluster\noptions: 2", "options must be a mapping"),
    "workers no number": ("cluster: distributed.LocalCluster\nworkers: two", "workers must be a whole number"),
    "no workers": ("cluster: distributed.LocalCluster\nworkers: 0", "workers must be a whole number, 1 or more"),
    "workers and adapt": (
        "cluster: distributed.LocalCluster\nworkers: 1\nadapt: {maximum: 1}",
        "give either workers, a fixed number, or adapt",
    ),
    "wrong adapt": ("cluster: distributed.LocalCluster\nadapt: {least: 1}", "adapt takes minimum and maximum"),
    "adapt upside down": ("cluster: distributed.LocalCluster\nadapt: {minimum: 2, maximum: 1}", "adapt takes minimum"),
    "cannot scale": ("cluster: servers.Unscalable\nworkers: 2", "servers.Unscalable does not take this workers"),
    "options of an address": ("address: tcp://a:1\nworkers: 2", "workers is for a cluster that is made"),
    "wrong wait": ("address: tcp://a:1\nwait: soon", "wait must be a time such as 10 minutes; got soon"),
    "wrong address": ("address: nowhere://a:1", "is no address of a scheduler"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file(place, monkeypatch, case):
    monkeypatch.setenv("DPMASK_TRUSTED_CLUSTERS", "somebody, servers")
    text, told = WRONG[case]
    if text is not None:
        (place.folder / "cluster.yaml").write_text(text)
    ended = place.dpmask("generate", "lake", "--cluster", "cluster.yaml")
    assert ended.code == 2, ended.err
    assert told in ended.err
    assert not (place.folder / "ran").exists()


def test_a_class_of_another_package_needs_trust(place, monkeypatch):
    (place.folder / "cluster.yaml").write_text("cluster: servers.Unscalable\nworkers: 2")
    monkeypatch.delenv("DPMASK_TRUSTED_CLUSTERS", raising=False)
    ended = place.dpmask("generate", "lake", "--cluster", "cluster.yaml")
    assert (ended.code, "DPMASK_TRUSTED_CLUSTERS=servers" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("way", "module", "extra"),
    [
        ("slurm", "dask_jobqueue", "slurm"),
        ("kubernetes", "dask_kubernetes", "kubernetes"),
        ("gateway", "dask_gateway", "gateway"),
        ("ssh", "asyncssh", "ssh"),
    ],
)
def test_a_missing_package_is_named_with_the_line_to_type(place, monkeypatch, way, module, extra):
    found = importlib.util.find_spec
    monkeypatch.setattr("dpmask.engine.cluster.file.find_spec", lambda name: None if name == module else found(name))
    ended = place.dpmask("generate", "lake", "--cluster", CONFIG / f"{way}.yaml")
    assert ended.code == 2
    assert f"needs {module}. Type: pip install 'dpmask[{extra}]'" in ended.err


def test_what_a_file_configures_ends_with_it(place):
    import distributed

    before = dask.config.get("distributed.comm.timeouts")
    said = {"address": "tcp://127.0.0.1:9", "config": {"distributed.comm.timeouts.connect": "100ms", "mine.own": 1}}
    (place.folder / "cluster.yaml").write_text(yaml.safe_dump(said))
    assert place.dpmask("generate", "lake", "--cluster", "cluster.yaml").code == 5
    assert dask.config.get("distributed.comm.timeouts") == before
    assert "mine" not in dask.config.config
    assert distributed.__name__ in sys.modules
