"""What others see of a run: the log as events, the metrics, the private folder's log."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import SECRET, people
from prometheus_client.parser import text_string_to_metric_families

from dpmask.errors import StorageError

STAGES = ["read", "mask", "measure", "decide", "shuffle", "publish", "verify"]


def events(text):
    return [json.loads(line) for line in text.splitlines()]


def figures(path):
    """Every sample of a metrics file, by its name and its labels but for the job's."""
    return {
        (sample.name.removeprefix("dpmask_run_"), *(v for k, v in sample.labels.items() if k != "name")): sample.value
        for family in text_string_to_metric_families(path.read_text(encoding="utf-8"))
        for sample in family.samples
    }


def test_events_and_metrics_of_a_release(place):
    place.lake()
    ended = place.run("--log-format", "json", "--metrics", "run.prom")
    assert ended.code == 0, ended.err
    told = events(ended.err)
    assert [event["stage"] for event in told if event["event"] == "stage"] == STAGES
    assert told[0]["event"] == "start"
    assert {event["name"] for event in told[1:]} == {"people"}
    run = place.released()[0]["run"]
    assert {event["run"] for event in told if event.get("stage") not in {None, "read"}} == {run}
    masked = [event for event in told if event["event"] == "pass" and event["stage"] == "mask"]
    assert {"label": "mask", "tasks": 4, "again": False}.items() <= masked[-1].items()
    last = told[-1]
    assert (last["event"], last["level"], last["status"], last["rows"]) == ("end", "info", "released", 600)
    assert last["passes"]["mask"] == len(masked)

    found = figures(place.folder / "run.prom")
    assert found["exit_code",] == 0
    assert found["source_rows",] == found["rows",] == 600
    assert found["source_bytes",] == sum(path.stat().st_size for path in (place.folder / "lake").iterdir())
    assert found["release_bytes",] == sum(path.stat().st_size for path in place.folder.glob("release/data/*/*"))
    assert found["passes", "mask"] == len(masked)
    assert {key[1] for key in found if key[0] == "stage_seconds"} == set(STAGES)
    assert [key[1] for key, value in found.items() if key[0] == "status" and value] == ["released"]
    assert abs(found["end_time_seconds",] - time.time()) < 60

    again = place.run("--metrics", "run.prom")
    assert "nothing was changed" in again.out
    assert figures(place.folder / "run.prom")["status", "already released"] == 1


def test_a_password_in_the_job_s_url_is_told_to_nobody(place):
    ended = place.dpmask(
        "run", "s3://me:hunter2@bucket/job.yaml", "--log-format", "json", "--metrics", "run.prom", "--json"
    )
    assert ended.code == 2
    assert "does not belong in a URL" in ended.err
    assert "hunter2" not in ended.out + ended.err + (place.folder / "run.prom").read_text(encoding="utf-8")


def test_a_refused_and_a_failed_run_are_seen(place):
    place.lake()
    measured = {"measure": [{"measure": "il1s", "columns": ["income"]}], "policy": ["il1s.value > 99"]}
    refused = place.run("--log-format", "json", "--metrics", "run.prom", name='a "new" \\name', **measured)
    told = events(refused.err)
    assert (refused.code, told[-1]["exit_code"], told[-1]["status"], told[-1]["level"]) == (3, 3, "refused", "error")
    assert "il1s.value > 99" in told[-1]["error"]
    assert figures(place.folder / "run.prom")["exit_code",] == 3
    assert 'name="a \\"new\\" \\\\name"' in (place.folder / "run.prom").read_text()
    missing = place.dpmask("run", "nowhere.yaml", "--log-format", "json", "--metrics", "run.prom")
    assert (missing.code, events(missing.err)[-1]["kind"]) == (2, "JobError")
    assert 'exit_code{name="nowhere.yaml"} 2' in (place.folder / "run.prom").read_text()


def test_metrics_that_cannot_be_written_are_refused_before_the_run(place):
    place.lake()
    ended = place.run("--metrics", "job.yaml/run.prom")
    assert ended.code == 2
    assert "job.yaml is a file, a folder is needed" in ended.err
    ended = place.run("--metrics", "lake")
    assert (ended.code, "lake is a folder, a file is needed" in ended.err) == (2, True)
    assert not (place.folder / "release").exists()


def test_metrics_that_fail_at_the_end_are_worth_a_retry(place, monkeypatch):
    from dpmask.job import run

    def full(outcome):
        raise StorageError("no space is left")

    place.lake()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(run, "exposition", full)
        ended = place.run("--metrics", "run.prom", "--json")
    assert (ended.code, ended.json["exit_code"]) == (5, 5)
    assert json.loads((place.folder / "private" / "result.json").read_text()) == ended.json
    again = place.run("--metrics", "run.prom")
    assert "nothing was changed" in again.out
    assert figures(place.folder / "run.prom")["exit_code",] == 0


def test_the_private_log_has_the_passes(place):
    place.lake()
    assert place.run().code == 0
    lines = [line.split(" ", 1)[1] for line in (place.folder / "private" / "log.txt").read_text().splitlines()]
    assert [line for line in lines[1:-1] if not line.startswith("  ")] == STAGES
    assert any(line.startswith("  mask: 4 tasks, ") for line in lines)
    assert lines[-1] == "released"


def test_a_note_such_as_the_dashboards_link_is_shown_and_logged(place, monkeypatch):
    from contextlib import contextmanager

    from dpmask.engine import progress
    from dpmask.job import run

    @contextmanager
    def connected(*_):
        progress.note("dashboard: http://127.0.0.1:8787/status")
        yield

    monkeypatch.setattr(run, "connected", connected)
    place.lake()
    assert "]   dashboard: http://127.0.0.1:8787/status" in place.run().err
    assert "  dashboard: http://127.0.0.1:8787/status" in (place.folder / "private" / "log.txt").read_text()
    notes = [event for event in events(place.run("--log-format", "json").err) if event["event"] == "note"]
    assert [(note["name"], note["text"]) for note in notes] == [("people", "dashboard: http://127.0.0.1:8787/status")]


def test_what_is_tried_again_is_counted_and_shown(place, monkeypatch, limit):
    from dpmask.release import shuffled

    limit(retry_seconds=0.0)
    write, failed = shuffled.write_pieces, []

    def failing(rows, sizes, where):
        if len(failed) < 3:
            failed.append(where)
            raise StorageError("storage is tired")
        return write(rows, sizes, where)

    monkeypatch.setattr(shuffled, "write_pieces", failing)
    place.lake()
    ended = place.run("--metrics", "run.prom", "--json")
    assert ended.code == 0, ended.err
    assert "mask: 3 tasks failed, trying again" in ended.err
    assert ended.json["retries"] == {"mask": 3}
    assert figures(place.folder / "run.prom")["retries", "mask"] == 3
    failed.clear()
    told = events(place.run("--log-format", "json", target="other").err)
    masked = [event for event in told if event["event"] in {"pass", "retry"} and event["label"] == "mask"]
    assert [(event["event"], event.get("again")) for event in masked] == [
        ("pass", False),
        ("retry", None),
        ("pass", True),
    ]
    assert told[-1]["passes"]["mask"] == ended.json["passes"]["mask"]


@pytest.mark.machine
def test_every_line_is_an_event_also_when_workers_die(place, monkeypatch):
    """Dask's own lines, of the driver and of workers it starts, are events too; no secret and no value is in any."""
    monkeypatch.setenv("THE_KEY", SECRET)
    table = people(1000)
    place.lake(table, row_group_size=125)
    (place.folder / "cluster.yaml").write_text(
        "{cluster: distributed.LocalCluster, options: {n_workers: 2, threads_per_worker: 1, dashboard_address: null}}"
    )
    job = place.job(seed=None, key="env:THE_KEY")
    command = [sys.executable, "-m", "dpmask", "run", job, "--cluster", "cluster.yaml", "--log-format", "json"]
    run = subprocess.Popen(
        command, cwd=place.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    stop = threading.Timer(120, run.kill)
    stop.start()
    lines = []
    for line in run.stderr:
        lines.append(line)
        if '"label": "noise: standard deviations"' in line:
            os.kill(worker_of(run.pid), signal.SIGKILL)
    stop.cancel()
    assert run.wait(30) == 0, "".join(lines)
    told = [json.loads(line) for line in lines]
    died = [event for event in told if event["event"] == "log" and event["level"] in {"warning", "error"}]
    assert any(event["logger"].startswith("distributed") for event in died), lines
    assert SECRET not in "".join(lines)
    for value in table["income"].to_pylist():
        assert str(value) not in "".join(lines)


def worker_of(pid):
    import psutil

    children = psutil.Process(pid).children(recursive=True)
    return next(child.pid for child in children if "spawn_main" in " ".join(child.cmdline()))


@pytest.mark.parametrize("option", [["--log-format", "xml"]])
def test_other_formats_are_refused(place, option):
    assert place.dpmask("run", "job.yaml", *option).code == 2
