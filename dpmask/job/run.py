"""A run from a job file to an exit code: whatever happens, a machine-readable result is left behind."""

from __future__ import annotations

import json

from dpmask import __version__
from dpmask.engine.cluster.connect import connected
from dpmask.engine.guard import safe_error
from dpmask.engine.progress import Watcher, listening
from dpmask.errors import Interrupted
from dpmask.job.events import PrivateLog, Recorder, Sink
from dpmask.job.metrics import exposition, metrics_file
from dpmask.job.model import read_job
from dpmask.job.outcome import Outcome
from dpmask.job.prepare import folders
from dpmask.job.stages import JobRun, run
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
) -> Outcome:
    """Run a job. The outcome, with its ``exit_code``, is also written to the private folder.

    ``watcher`` follows the run's progress, ``record`` gets each of its events; ``metrics`` is a file for Prometheus.
    """
    log = PrivateLog()
    recorder = Recorder(watcher, [*([record] if record else []), log])
    figures: Place | None = None
    try:
        figures = metrics_file(metrics) if metrics is not None else None
        recorder.add(job=Place(url).url)  # one with a password is refused, and shown nowhere
        recorder.event("start", job=url, version=__version__)
        job = read_job(url)
        recorder.add(name=job.file.name)
        _, log.place = folders(job)
        log.place.make_private()
        (log.place / _RESULT).write(json.dumps({"status": "running", "name": job.file.name}).encode())
        signer = read_private_key(sign) if sign else None
        with listening(recorder.passes, recorder.retried), connected(scheduler, cluster), compiling_announced(job):
            run(JobRun(job, recorder, overwrite, signer, resume))
    except KeyboardInterrupt:
        _fail(recorder, Interrupted(_INTERRUPTED[recorder.outcome.stage in {"publish", "verify"}]))
    except Exception as error:
        _fail(recorder, error)
    _write_results(log.place, figures, recorder)
    return recorder.outcome


def _fail(recorder: Recorder, error: Exception) -> None:
    recorder.outcome = recorder.outcome.failing(safe_error(error))


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
