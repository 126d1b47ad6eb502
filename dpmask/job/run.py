"""A run from a job file to an exit code: whatever happens, a machine-readable result is left behind."""

from __future__ import annotations

import json
from typing import Any

from dpmask import __version__
from dpmask.engine.cluster.connect import connected
from dpmask.engine.guard import told_safely
from dpmask.engine.progress import Watcher, listening
from dpmask.errors import DpmaskError, Interrupted, PolicyRefusal
from dpmask.job.events import PrivateLog, Recorder, Sink, counting
from dpmask.job.metrics import exposition, metrics_file
from dpmask.job.model import read_job
from dpmask.job.prepare import folders
from dpmask.job.stages import Run, run
from dpmask.job.warm_up import compiling_announced
from dpmask.lake.storage import Place
from dpmask.release.manifest import read_private_key

_RESULT = "result.json"
_INTERRUPTED = {
    False: "Interrupted; nothing was published.",
    True: "Interrupted while publishing: the release may stand. Run the job again, or dpmask verify.",
}


def run_job(
    url: str,
    *,
    scheduler: str | None = None,
    cluster: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    sign: str | None = None,
    metrics: str | None = None,
    watcher: Watcher | None = None,
    record: Sink | None = None,
) -> dict[str, Any]:
    """Run a job. The result says what came of it, with ``exit_code``; it is also written to the private folder.

    ``watcher`` is told how far the run is, ``record`` of each event in it; ``metrics`` is a file for Prometheus.
    """
    outcome: dict[str, Any] = {"status": "failed", "exit_code": 0}
    log = PrivateLog()
    recorder = Recorder(outcome, [counting(outcome), *([record] if record else []), log])
    watched = _Both(watcher or Watcher(), recorder)
    figures: Place | None = None
    try:
        figures = metrics_file(metrics) if metrics is not None else None
        outcome["job"] = Place(url).url  # one with a password is refused and told to nobody
        recorder.event("start", job=url, version=__version__)
        job = read_job(url)
        outcome["name"] = job.file.name
        _, log.place = folders(job)
        log.place.make_private()
        (log.place / _RESULT).write(json.dumps({"status": "running", "name": job.file.name}).encode())
        signer = read_private_key(sign) if sign else None
        with listening(watched.passes, watched.retried), connected(scheduler, cluster), compiling_announced(job):
            run(Run(job, overwrite, signer, watched.stage, outcome, resume))
    except KeyboardInterrupt:
        _fail(outcome, Interrupted(_INTERRUPTED[outcome.get("stage") in {"publish", "verify"}]))
    except Exception as error:
        _fail(outcome, told_safely(error))
    _leave(log.place, figures, recorder)
    return outcome


class _Both(Watcher):
    """Two who watch the same run."""

    def __init__(self, one: Watcher, other: Watcher) -> None:
        self.watchers = one, other

    def stage(self, name: str) -> None:
        for watcher in self.watchers:
            watcher.stage(name)

    def passes(self, label: str, done: int, total: int) -> None:
        for watcher in self.watchers:
            watcher.passes(label, done, total)

    def retried(self, label: str, tasks: int) -> None:
        for watcher in self.watchers:
            watcher.retried(label, tasks)


def _fail(outcome: dict[str, Any], error: DpmaskError) -> None:
    status = {PolicyRefusal: "refused", Interrupted: "interrupted"}.get(type(error), "failed")
    outcome.update(status=status, exit_code=error.exit_code, kind=type(error).__name__, error=str(error))


def _leave(private: Place | None, figures: Place | None, recorder: Recorder) -> None:
    """Write the metrics, the result and the log's end; one that cannot be written must not hide the first error."""
    outcome = recorder.outcome
    result = None if private is None else private / _RESULT
    for place, content in ((figures, exposition), (result, _as_json)):
        try:
            if place is not None:
                place.write(content(outcome))
        except Exception as error:
            if outcome["exit_code"] == 0:
                _fail(outcome, told_safely(error))
    recorder.ended()


def _as_json(outcome: dict[str, Any]) -> bytes:
    return json.dumps(outcome, indent=1).encode()
