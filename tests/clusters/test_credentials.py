"""Workers take storage credentials from their own environment; nothing that travels or is shown has them in it."""

import json
import urllib.request

import pytest
from conftest import people
from servers import Recorder, dask_cluster

pytestmark = pytest.mark.machine

PAGES = [
    "status",
    "tasks",
    "workers",
    "graph",
    "info/main/workers.html",
    "info/logs.html",
    "info/main/logs.html",
    "metrics",
]
PAGES += [
    "json/counts.json",
    "json/index.html",
    "sitemap.json",
    "info/call-stacks/x.html",
    "health",
    "individual-task-stream",
]


def shown(port):
    """All the dashboard says at addresses that need no browser to run scripts."""
    found = b""
    for page in PAGES:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10) as answer:
                found += answer.read()
        except urllib.error.HTTPError:
            continue
    return found


def remembered(client):
    """All the scheduler remembers of tasks that are done, their names among it, and what all processes logged."""

    def found(dask_scheduler):  # inside, so that it travels whole: the scheduler has no tests
        transitions = [str(transition) for transition in dask_scheduler.transition_log]
        events = [str(event) for topic in dask_scheduler.get_events().values() for event in topic]
        return "\n".join([*transitions, *map(str, dask_scheduler.task_groups), *events])

    logs = [client.get_worker_logs(), client.get_scheduler_logs()]
    return client.run_on_scheduler(found) + json.dumps(logs)


def test_no_credential_travels_or_is_shown(place, s3, store, monkeypatch, tmp_path):
    import s3fs
    from distributed import Client

    store_files = s3fs.S3FileSystem()
    store_files.put(str(place.lake(people())), f"{s3}/lake", recursive=True)
    where = {"source": f"{s3}/lake", "target": f"{s3}/release", "private": f"{s3}/private"}
    key, bucket, secret = "m4sterkey-9f3b6c0e71d85a2c4d6eb07f", s3.removeprefix("s3://"), store.right[1]
    monkeypatch.setenv("DPMASK_KEY", key)
    loud = {"DASK_LOGGING__DISTRIBUTED": "debug", "DPMASK_KEY": ""}
    without = {"AWS_SECRET_ACCESS_KEY": "", "AWS_ACCESS_KEY_ID": ""}
    own = {"AWS_SECRET_ACCESS_KEY": secret, "AWS_ACCESS_KEY_ID": store.right[0]}
    with (
        dask_cluster(tmp_path, "--host", "127.0.0.1", env=loud | without, worker_env=own) as address,
        Recorder(int(address.rpartition(":")[2])) as wire,
    ):
        ended = place.run("--scheduler", f"tcp://127.0.0.1:{wire.port}", **where, seed=None, key="env:DPMASK_KEY")
        assert ended.code == 0, ended.err
        with Client(address) as client:
            port = client.scheduler_info()["services"]["dashboard"]
            told = remembered(client)
            pages = shown(port)
    store_files.invalidate_cache()
    job = (place.folder / "job.yaml").read_text()
    seen = {
        "wire": bytes(wire.seen),
        "told": told.encode(),
        "dashboard": pages,
        "logs": (tmp_path / "dask.log").read_bytes(),
        "terminal": (ended.out + ended.err + job).encode(),
        "bucket": b"".join(store_files.cat_file(path) for path in store_files.find(bucket)),
    }
    # each of them is looked into for real: what must be there is
    assert bucket.encode() in seen["wire"], "recipes travel, readable"
    assert b"mask-" in seen["told"], "names of tasks"
    assert b"dask" in seen["dashboard"].lower()
    assert b"distributed.worker" in seen["logs"]
    assert b"DEBUG" in seen["logs"]
    assert b"manifest" in seen["bucket"]
    for place_of, content in seen.items():
        assert secret.encode() not in content, place_of
        assert key.encode() not in content, place_of
