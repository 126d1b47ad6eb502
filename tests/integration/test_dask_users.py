"""What people who use Dask do: read Parquet their own way, call dpmask in a task, watch a dashboard and a log."""

import socket
import subprocess
import sys
import time

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from conftest import people, write_lake
from distributed.utils import key_split

import dpmask
from dpmask.errors import JobError

NOISE = dpmask.NoiseAddition(columns=["age", "income"], scale=0.1)


@pytest.fixture
def files(tmp_path):
    return str(write_lake(tmp_path / "lake", people(1000), files=9))


@pytest.mark.parametrize("how", ["plain", "projected", "columns", "assigned"])
def test_parquet_read_by_dask_keeps_its_partitions(files, how):
    """Dask reads several small files as one partition where few columns are wanted; records must not move."""
    given = {
        "plain": lambda: dd.read_parquet(files),
        "projected": lambda: dd.read_parquet(files)[["age", "income"]],
        "columns": lambda: dd.read_parquet(files, columns=["age", "income"]),
        "assigned": lambda: dd.read_parquet(files, columns=["age", "income"]).assign(more=1.5),
    }[how]()
    whole = people(1000).to_pandas()
    fitted = NOISE.fit(given, seed=7)
    assert fitted.key == NOISE.fit(whole, seed=7).key
    masked = fitted.mask(given)
    assert (masked.npartitions, masked.divisions) == (given.npartitions, given.divisions) == (9, (None,) * 10)
    assert masked.dtypes.equals(given.dtypes)
    wanted = fitted.mask(whole)
    for column in NOISE.columns:
        assert masked[column].compute().tolist() == wanted[column].tolist()
        assert masked[[column]].map_partitions(len).compute().tolist() == [111] * 8 + [112]


def test_records_that_meet_do_so_in_parquet_read_by_dask(files):
    given = dd.read_parquet(files)[["age", "income"]]
    swapping = dpmask.RankSwapping(columns=["income"], window=0.1)
    masked = swapping.fit(given, seed=7).mask(given).compute()
    whole = people(1000).to_pandas()
    assert masked["income"].tolist() == swapping.fit(whole, seed=7).mask(whole)["income"].tolist()


def test_an_index_that_starts_anew_in_each_file_pairs_nothing(files):
    given = dd.read_parquet(files)
    with pytest.raises(JobError, match=r"must be unique in both tables.*dpmask\.read_lake gives one over all"):
        dpmask.utility.il1s(given, given, columns=["income"])


def _masked_in_a_task(number):
    frame = pd.DataFrame({"a": np.random.default_rng(number).normal(size=500)})
    method = dpmask.RankSwapping(columns=["a"], window=0.1)
    return method.fit(frame, seed=number).mask(frame)["a"].sum()


def test_inside_tasks_of_a_cluster(client):
    """As many tasks as there are threads, each of which waits for passes of its own."""
    found = [future.result(timeout=120) for future in client.map(_masked_in_a_task, range(4), pure=False)]
    assert found == [_masked_in_a_task(number) for number in range(4)]


def test_a_dashboard_tells_jobs_apart(place, cluster, client):
    place.lake()
    assert place.run("--scheduler", cluster.scheduler_address, name="Übersicht 1: people/2026").code == 0
    seen = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    ours = {key_split(name) for name in seen if name.startswith("Übersicht")}
    assert "Übersicht_1_people_2026:content" in ours


def test_a_long_pass_says_how_far_it_is(capfd):
    from dpmask.terminal import Progress

    progress = Progress(quiet_seconds=0.1)
    progress.passes("noise", 0, 2)
    progress.passes("noise", 1, 2)
    time.sleep(0.5)
    progress.passes("noise", 2, 2)
    time.sleep(0.3)
    progress.close()
    lines = [line.split("]", 1)[1].strip() for line in capfd.readouterr().err.splitlines()]
    assert lines[-1] == "noise: 2 tasks"
    assert set(lines[:-1]) == {"noise: 1 of 2 tasks done"}
    assert 2 <= len(lines) <= 6


QUIET_END = """
import atexit, sys, time
from dpmask.engine.cluster.connect import connected

if __name__ == "__main__":
    with connected(cluster=sys.argv[1]) as client:
        client.run(atexit.register, time.sleep, 30)
"""


def test_a_cluster_ends_without_a_word(tmp_path):
    """A worker that takes long to end is killed, and a second dashboard has another port: nothing to read about."""
    file, script = tmp_path / "one.yaml", tmp_path / "script.py"
    script.write_text(QUIET_END)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = f'{{n_workers: 1, dashboard_address: "127.0.0.1:{taken.getsockname()[1]}"}}'
        file.write_text(f"cluster: distributed.LocalCluster\noptions: {options}\n")
        ended = subprocess.run([sys.executable, script, file], capture_output=True, text=True, check=True)
    assert ended.stderr == ""


def test_divisions_that_dask_guesses_wrong_are_not_believed(files):
    """Its ``set_index`` of files in order names quantiles as divisions, and leaves the partitions as they are."""
    frame = dd.read_parquet(files).set_index("id")
    masked = NOISE.fit(frame, seed=1).mask(frame)
    before = frame.compute()
    after = NOISE.fit(before, seed=1).mask(before)
    pd.testing.assert_frame_equal(masked.compute().sort_index(), after.sort_index())
    assert masked.loc[before.index[len(before) // 4 - 5]].compute().shape[0] == 1
    found = [
        dpmask.risk.distance_linkage(*pair, columns=["income"]).rate for pair in ((frame, masked), (before, after))
    ]
    assert found[0] == found[1]
