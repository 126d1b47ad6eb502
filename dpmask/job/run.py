"""A run from a job file to an exit code: whatever happens, a machine-readable result is left behind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from dpmask import __version__
from dpmask.engine.cluster.connect import connected
from dpmask.engine.guard import safe_error
from dpmask.engine.progress import Watcher, listening
from dpmask.engine.tasks import tasks_named
from dpmask.errors import Interrupted
from dpmask.job.events import PrivateLog, Recorder, Sink
from dpmask.job.keys import hidden_key
from dpmask.job.metrics import exposition, metrics_file
from dpmask.job.model import Job, read_job
from dpmask.job.outcome import Outcome
from dpmask.job.prepare import alone_in, check_access, folders
from dpmask.job.stages import JobRun, run
from dpmask.job.warm_up import compiling_announced
from dpmask.lake.storage import Place
from dpmask.release.manifest import read_private_key

if TYPE_CHECKING:  # most runs have none
    from dpmask.job.lineage import Lineage

_RESULT = "result.json"
_INTERRUPTED = {
    False: "Interrupted; nothing was published.",
    True: "Interrupted while publishing: the release may stand. Run the job again, or dpmask verify.",
}


def run_job(
    url: str,
    *,
    settings: Sequence[str] = (),
    scheduler: str | None = None,
    cluster: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    trial: bool = False,
    fitted: str | None = None,
    sign: str | None = None,
    metrics: str | None = None,
    lineage: str | None = None,
    watcher: Watcher | None = None,
    record: Sink | None = None,
) -> Outcome:
    """Run a job. The outcome, with its ``exit_code``, is also written to the private folder.

    ``settings`` change the job file, such as ``source=lake/2026-11/``. ``fitted`` is a folder with fits of its steps
    (``dpmask fit``), to mask by in place of its own. ``watcher`` follows the run's progress,
    ``record`` gets each of its events; ``metrics`` is a file for Prometheus, ``lineage`` a file or a server's URL for
    OpenLineage.
    """
    log = PrivateLog()
    recorder = Recorder(watcher, [*([record] if record else []), log])
    figures: Place | None = None
    traced: Lineage | None = None
    with ExitStack() as stack:
        try:
            figures = metrics_file(metrics) if metrics is not None else None
            traced = _lineage(lineage) if lineage is not None else None
            job = _begun(url, settings, recorder, log, stack)
            if traced is not None:
                traced.started(job)
            signer = read_private_key(sign) if sign else None
            stack.enter_context(hidden_key(job.file.key))
            stack.enter_context(tasks_named(job.file.name))
            with listening(recorder.passes, recorder.retried), connected(scheduler, cluster), compiling_announced(job):
                run(JobRun(job, recorder, overwrite, signer, resume, trial, fitted, traced))
        except KeyboardInterrupt:
            _fail(recorder, Interrupted(_INTERRUPTED[recorder.outcome.stage in {"publish", "verify"}]))
        except Exception as error:
            _fail(recorder, error)
        _end_lineage(traced, recorder)
        _write_results(log.place, figures, recorder)
    return recorder.outcome


def _begun(url: str, settings: Sequence[str], recorder: Recorder, log: PrivateLog, stack: ExitStack) -> Job:
    """The job, once it has its private folder to itself; a run that has not leaves nothing there."""
    recorder.add(job=Place(url).url)  # one with a password is refused, and shown nowhere
    recorder.event("start", job=url, version=__version__)
    job = read_job(url, settings)
    recorder.add(name=job.file.name)
    check_access(job)
    _, private = folders(job)
    private.make_private()
    stack.enter_context(alone_in(private))
    log.place = private
    (private / _RESULT).write(json.dumps({"status": "running", "name": job.file.name}).encode())
    return job


def _fail(recorder: Recorder, error: Exception) -> None:
    recorder.outcome = recorder.outcome.failing(safe_error(error))


def _lineage(to: str) -> Lineage:
    from dpmask.job.lineage import Lineage

    return Lineage(to)


def _end_lineage(lineage: Lineage | None, recorder: Recorder) -> None:
    """The last event; a file that cannot be written is an error, unless there is one already."""
    try:
        if lineage is not None:
            lineage.ended(recorder.outcome)
            if lineage.undelivered:
                recorder.add(warnings=[*(recorder.outcome.warnings or []), lineage.undelivered])
    except Exception as error:
        if recorder.outcome.exit_code == 0:
            _fail(recorder, error)


def _write_results(private: Place | None, figures: Place | None, recorder: Recorder) -> None:
    """Write the metrics, the result and the log's end; one that cannot be written must not hide the first error."""
    result = None if private is None else private / _RESULT
    for place, content in ((figures, exposition), (result, _as_json)):
        try:
            if place is not None:
                place.write(content(recorder.outcome))
        except Exception as error:
            if recorder.outcome.exit_code == 0:
                _fail(recorder, error)
    recorder.ended()


def _as_json(outcome: Outcome) -> bytes:
    return json.dumps(outcome.to_dict(), indent=1).encode()
