"""Workers with other libraries are found at the start and named."""

import subprocess
import sys
import time

import pytest
from servers import dask_cluster, until

from dpmask.engine.cluster import same_workers
from dpmask.engine.cluster.connect import connected
from dpmask.engine.progress import listening

pytestmark = pytest.mark.machine

ABSENT = """
from importlib import metadata
found = metadata.version
def version(name):
    if name == "dpmask":
        raise metadata.PackageNotFoundError(name)
    return found(name)
metadata.version = version
"""
OTHER = {
    "another version": (
        "scipy-0.0.1.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: scipy\nVersion: 0.0.1\n",
        "has scipy 0.0.1, this process has",
    ),
    "none at all": ("sitecustomize.py", ABSENT, "has no dpmask, this process has"),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("case", OTHER)
def test_a_worker_with_other_libraries(place, tmp_path, case):
    """A real worker that finds another installation of a package before the one it has."""
    name, content, told = OTHER[case]
    file = tmp_path / "shim" / name
    file.parent.mkdir(parents=True)
    file.write_text(content)
    place.lake()
    with dask_cluster(tmp_path, "--host", "127.0.0.1", worker_env={"PYTHONPATH": str(tmp_path / "shim")}) as address:
        ended = place.run("--scheduler", address)
    assert ended.code == 5
    assert "The worker at tcp://127.0.0.1:" in ended.err
    assert told in ended.err
    assert "Install the same on both." in ended.err
    assert not (place.folder / "release").exists()


@pytest.mark.timeout(120)
def test_a_worker_that_computes_other_bits(place, tmp_path):
    """BLAS for another processor, as on a machine with AVX-512 that nobody told otherwise."""
    place.lake()
    with dask_cluster(tmp_path, "--host", "127.0.0.1", worker_env={"OPENBLAS_CORETYPE": "Nehalem"}) as address:
        ended = place.run("--scheduler", address)
    assert ended.code == 5
    assert "computes other last bits than this process" in ended.err
    assert not (place.folder / "release").exists()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("case", ["alike", "another version", "none at all", "other bits", "the job is gone"])
def test_workers_that_join_late_are_checked_before_they_take_a_task(monkeypatch, case):
    """The job believes to have another library, as if the new worker had: it goes away, unless the job itself is gone."""
    from distributed import Client, LocalCluster

    notes, real = [], same_workers._version
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        with listening(lambda text, done, total: notes.append(text)), connected(cluster.scheduler_address) as client:
            ours = {name: real(name) for name in same_workers._SAME}
            other = {
                "another version": ours | {"scipy": "0.0.1"},
                "none at all": ours | {"no-such-library": "1"},
                "the job is gone": ours | {"scipy": "0.0.1"},
            }.get(case, ours)
            asks = "nobody" if case == "the job is gone" else client.id
            check = same_workers._check_of(asks, other, "0" if case == "other bits" else same_workers.arithmetic())
            if case != "alike":
                first = next(iter(cluster.workers.values()))
                monkeypatch.setattr(first, "close", _stays)
                client.register_plugin(check, name="late")
            cluster.scale(2)
            if case in {"alike", "the job is gone"}:
                until(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) == 2, case)
                assert len({future.result() for future in client.map(_worker, range(60), pure=False)}) == 2
            else:
                wanted = {"another version": f"it has scipy {ours['scipy']}, the job has 0.0.1"}.get(case, "")
                wanted = {"none at all": "it has no no-such-library", "other bits": "other last bits"}.get(case, wanted)
                until(
                    lambda: any(wanted in one and "was sent away" in one for one in notes if first.address not in one),
                    case,
                )
                assert {future.result() for future in client.map(_worker, range(60), pure=False)} == {first.address}
        with Client(cluster.scheduler_address) as client:
            plugins = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.worker_plugins))
        assert not [name for name in plugins if name.startswith("dpmask")]


def test_workers_without_dpmask_can_read_what_they_are_given():
    from distributed.protocol.pickle import dumps

    code = "import sys; sys.modules['dpmask'] = None; import pickle; print(pickle.load(sys.stdin.buffer).difference())"
    check = dumps(same_workers._check_of("somebody", {"dpmask-not-there": "1"}, ""))
    ended = subprocess.run([sys.executable, "-c", code], input=check, capture_output=True, check=True)
    assert ended.stdout.decode().strip() == "it has no dpmask-not-there"


async def _stays(*_, **__):
    return None


def _worker(_):
    from distributed import get_worker

    time.sleep(0.01)
    return get_worker().address
