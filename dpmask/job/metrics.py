"""A run in figures, in Prometheus' text format: for node_exporter's textfile collector, which watches scheduled jobs.

The names are gauges of the last run, labelled with the job's name: a batch job is over before anybody could scrape it.
"""

from __future__ import annotations

import os
import posixpath
import time
from typing import get_args

from dpmask.errors import JobError
from dpmask.job.outcome import Outcome, Status
from dpmask.job.prepare import check_writable
from dpmask.lake.storage import Place

_FIGURES = {
    "exit_code": "Exit code: 0 released or already released, 3 refused, 5 worth a retry.",
    "source_rows": "Records in the source.",
    "rows": "Records in the release, or masked for it.",
    "source_bytes": "Size of the source's files.",
    "release_bytes": "Size of the released files.",
}
_BY_STAGE = {
    "seconds": ("stage_seconds", "Wall time of each stage."),
    "passes": ("passes", "Passes over the blocks in each stage."),
    "tasks": ("tasks", "Tasks of those passes."),
    "retries": ("retries", "Tasks that failed and were tried again."),
}


def exposition(outcome: Outcome) -> bytes:
    """What came of a run, as a text file of metrics."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry = CollectorRegistry()
    name = outcome.name or outcome.job or ""

    def gauge(metric: str, about: str, *labels: str) -> Gauge:
        return Gauge(f"dpmask_run_{metric}", about, ["name", *labels], registry=registry)

    for metric, value in outcome.known(*_FIGURES).items():
        gauge(metric, _FIGURES[metric]).labels(name).set(value)
    for key, (metric, about) in _BY_STAGE.items():
        family = gauge(metric, about, "stage")
        for stage in outcome.seconds or ():
            family.labels(name, stage).set(getattr(outcome, key).get(stage, 0))
    status = gauge("status", "1 for what came of the run, 0 for all else.", "status")
    for one in get_args(Status):
        status.labels(name, one).set(one == outcome.status)
    gauge("end_time_seconds", "When the run ended, in Unix time.").labels(name).set(time.time())
    return bytes(generate_latest(registry))


def metrics_file(path: str) -> Place:
    """The file to write metrics to; one that cannot be written is refused before the run, so that none goes unseen."""
    place = Place(path)
    if place.local and os.path.isdir(place.path):
        raise JobError(f"--metrics: {path} is a folder, a file is needed.")
    check_writable(Place(posixpath.dirname(place.full_url)))
    return place
