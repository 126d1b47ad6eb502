"""A run from a job file to an exit code: whatever happens, a machine-readable result is left behind."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from dpmask.engine.cluster import connected
from dpmask.engine.guard import told_safely
from dpmask.engine.progress import Listener, listening
from dpmask.errors import DpmaskError, Interrupted, PolicyRefusal
from dpmask.job.model import read_job
from dpmask.job.prepare import folders
from dpmask.job.stages import Run, run
from dpmask.lake.storage import Place
from dpmask.release.manifest import read_private_key

_RESULT = "result.json"


def run_job(
    url: str,
    *,
    scheduler: str | None = None,
    cluster: str | None = None,
    overwrite: bool = False,
    sign: str | None = None,
    tell: Callable[[str], None] = lambda stage: None,
    listener: Listener = lambda label, done, total: None,
) -> dict[str, Any]:
    """Run a job. The result says what came of it, with ``exit_code``; it is also written to the private folder."""
    outcome: dict[str, Any] = {"status": "failed", "exit_code": 0}
    log = _Log()

    def noted(stage: str) -> None:
        tell(stage)
        log.note(stage)

    try:
        job = read_job(url)
        _, log.place = folders(job)
        log.place.make_private()
        (log.place / _RESULT).write(json.dumps({"status": "running", "name": job.file.name}).encode())
        signer = read_private_key(sign) if sign else None
        with listening(listener), connected(scheduler, cluster):
            run(Run(job, overwrite, signer, noted, outcome))
    except KeyboardInterrupt:
        _fail(outcome, Interrupted("Interrupted; nothing was published."))
    except Exception as error:
        _fail(outcome, told_safely(error))
    if log.place is not None:
        _leave(log, outcome)
    return outcome


class _Log:
    """Lines with their time, kept in the private folder. What must not be lost is written at once."""

    def __init__(self) -> None:
        self.place: Place | None = None
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}")
        if self.place is not None:
            (self.place / "log.txt").write(("\n".join(self.lines) + "\n").encode())


def _fail(outcome: dict[str, Any], error: DpmaskError) -> None:
    status = {PolicyRefusal: "refused", Interrupted: "interrupted"}.get(type(error), "failed")
    outcome.update(status=status, exit_code=error.exit_code, kind=type(error).__name__, error=str(error))


def _leave(log: _Log, outcome: dict[str, Any]) -> None:
    """Write the result; a private folder that cannot be written to must not hide the first error."""
    try:
        log.note(outcome["error"] if outcome["exit_code"] else outcome["status"])
        if log.place is not None:
            (log.place / _RESULT).write(json.dumps(outcome, indent=1).encode())
    except DpmaskError as error:
        if outcome["exit_code"] == 0:
            _fail(outcome, error)
