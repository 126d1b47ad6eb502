"""The same job gives the same bytes: on any scheduler, with any number of workers, retried or not."""

import numpy as np
import pyarrow as pa
import pytest
from conftest import JOB, people

from dpmask.errors import StorageError

MEASURE = [{"measure": "il1s", "columns": ["income", "age"]}]


@pytest.fixture(scope="module")
def runs(once):
    """A lake of three files in six blocks, its release, and another one in the order of the input."""
    once.lake(files=3, row_group_size=70)
    once.run_once(measure=MEASURE)
    return once.run_once(order="input", target="here", private="p2")


@pytest.fixture
def lake(place, runs):
    return place.copy_of(runs)


def test_on_a_cluster_of_two_processes(lake, cluster):
    ended = lake.run("--scheduler", cluster.scheduler_address, target="again", private="p2", measure=MEASURE)
    assert ended.code == 0, ended.err
    assert lake.bytes("again") == lake.bytes()


def test_on_four_workers_from_a_file(lake):
    (lake.folder / "four.yaml").write_text(
        "{cluster: distributed.LocalCluster,"
        " options: {n_workers: 4, threads_per_worker: 1, processes: false, dashboard_address: null}}"
    )
    ended = lake.run("--cluster", "four.yaml", target="again", private="p2", measure=MEASURE)
    assert ended.code == 0, ended.err
    assert lake.bytes("again") == lake.bytes()


def test_after_storage_failed_for_a_while(lake, monkeypatch, limit):
    from dpmask.lake.storage import Place

    limit(retry_seconds=0.0)
    replaced, fails, failed = Place.replaced, iter([True, False, True]), []

    def flaky(self, *mode, **settled):
        if self.path.endswith((".arrow", ".parquet")) and next(fails, False):
            failed.append(self.path)
            raise StorageError("down")
        return replaced(self, *mode, **settled)

    monkeypatch.setattr(Place, "replaced", flaky)
    assert lake.run(target="again", private="p2", measure=MEASURE).code == 0
    assert len(failed) == 2
    assert lake.bytes("again") == lake.bytes()


@pytest.mark.parametrize("block_rows", [37, 10**6])
def test_other_blocks_give_the_same_values(lake, block_rows):
    """The same draws: floats to 1e-9, all else exactly."""
    assert lake.run(order="input", target="there", private="p2", block_rows=block_rows).code == 0
    here, there = lake.released("here")[1], lake.released("there")[1]
    for name in here.schema.names:
        if pa.types.is_floating(here.schema.field(name).type):
            one, other = (table[name].to_numpy() for table in (here, there))
            np.testing.assert_allclose(other, one, rtol=1e-9)
        else:
            assert there[name].to_pylist() == here[name].to_pylist(), name


def test_other_files_give_the_same_values(place):
    table = people(300)
    mask = [{"method": "noise", "columns": ["income"], "scale": 0.1}]
    for number, options in enumerate([{"files": 1, "row_group_size": 300}, {"files": 5, "row_group_size": 17}]):
        place.lake(table, name=f"lake{number}", **options)
        assert place.run(source=f"lake{number}", target=f"r{number}", mask=mask, order="input").code == 0
    one, other = (place.released(f"r{number}")[1]["income"].to_numpy() for number in range(2))
    np.testing.assert_allclose(other, one, rtol=1e-9)


def test_another_key_gives_other_values(lake):
    assert lake.run(seed=8, target="again", private="p2", order="input").code == 0
    assert lake.released("again")[1]["income"] != lake.released("here")[1]["income"]


def test_the_manifest_holds_no_time_host_user_or_path(lake):
    manifest = lake.bytes()["manifest.json"].decode()
    import getpass
    import socket
    import time

    for word in (
        str(lake.folder),
        socket.gethostname(),
        f'"{getpass.getuser()}"',
        JOB["source"] + "/",
        time.strftime("%Y-"),
    ):
        assert word not in manifest
