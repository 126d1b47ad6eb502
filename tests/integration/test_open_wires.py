"""What workers and networks learn of a run: no key in a worker's environment, a warning where wires are open."""

import os
from types import SimpleNamespace

import psutil
import pytest
from conftest import SECRET

from dpmask.engine.cluster import connect
from dpmask.job import stages


def test_workers_do_not_inherit_the_key(place, monkeypatch):
    """Processes of a cluster that the run starts lack the variable; the run itself has read it, and puts it back."""
    from distributed import default_client

    monkeypatch.setenv("THE_KEY", SECRET)
    place.lake()
    (place.folder / "one.yaml").write_text(
        "cluster: distributed.LocalCluster\noptions: {n_workers: 1, threads_per_worker: 1, dashboard_address: null}\n"
    )
    fit, seen = stages.fitted_steps, []

    def asked(*arguments):
        seen.extend(default_client().run(lambda: dict(os.environ)).values())
        return fit(*arguments)

    monkeypatch.setattr(stages, "fitted_steps", asked)
    ended = place.run("--cluster", "one.yaml", seed=None, key="env:THE_KEY")
    assert ended.code == 0, ended.err
    assert len(seen) == 1
    assert "THE_KEY" not in seen[0]
    assert SECRET not in "".join(seen[0].values())
    assert os.environ["THE_KEY"] == SECRET


def test_this_machine_is_known_by_its_addresses():
    own = [one.address for some in psutil.net_if_addrs().values() for one in some if one.family.name == "AF_INET"]
    assert all(connect._is_here(f"tcp://{host}:8786") for host in (*own, "localhost", "127.0.0.1", "[::1]"))
    assert not connect._is_here("tcp://192.0.2.7:8786")  # a network for examples, RFC 5737
    assert not connect._is_here("tcp://no-such-host.invalid:8786")


@pytest.mark.parametrize(
    ("scheduler", "worker", "open_wire"),
    [
        ("tcp://127.0.0.1:8786", "tcp://127.0.0.1:4000", None),
        ("tls://192.0.2.7:8786", "tls://192.0.2.8:4000", None),
        ("inproc://192.0.2.7/1", "inproc://192.0.2.7/2", None),
        ("tcp://192.0.2.7:8786", "tcp://127.0.0.1:4000", "tcp://192.0.2.7:8786"),
        ("tcp://127.0.0.1:8786", "tcp://192.0.2.8:4000", "tcp://192.0.2.8:4000"),
    ],
)
def test_open_wires_to_other_hosts_are_warned_about(monkeypatch, scheduler, worker, open_wire):
    notes = []
    monkeypatch.setattr(connect, "note", notes.append)
    client = SimpleNamespace(scheduler=SimpleNamespace(address=scheduler), nthreads=lambda: {worker: 1})
    connect._warn_of_open_wires(client)
    assert len(notes) == (open_wire is not None)
    assert all(text.startswith(f"warning: {open_wire} is on another host and without TLS") for text in notes)


def test_a_run_says_so(place, cluster, monkeypatch):
    monkeypatch.setattr(connect, "_is_here", lambda address: False)
    place.lake()
    ended = place.run("--scheduler", cluster.scheduler_address)
    assert ended.code == 0, ended.err
    assert "is on another host and without TLS" in ended.err
    assert "without TLS" in (place.folder / "private" / "log.txt").read_text()
