"""A setting on everything: masked and measured like a point of a sweep, in the background; nothing is published."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from dpmask.engine.guard import safe_error
from dpmask.engine.progress import listening
from dpmask.engine.tasks import tasks_named
from dpmask.errors import JobError
from dpmask.explore.session import Exact, Explorer, setting_key
from dpmask.job.sweep import measured_point


class FullRun:
    """At most one run on everything at a time, and how far it is."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._thread: threading.Thread | None = None
        self.progress = ""
        """The stage and the pass it is at."""
        self.error = ""
        """Why the last one failed."""

    @property
    def running(self) -> bool:
        """Whether one is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Run what is set now; on the cluster of the caller."""
        if self.running:
            raise JobError("A run on everything is under way. Wait for it.")
        self.progress, self.error = "started", ""
        changes, context = self._explorer.changes, copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run, changes), daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it is done."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self, changes: dict[str, Any]) -> None:
        explorer = self._explorer
        stage: list[str] = [""]

        def staged(text: str) -> None:
            stage[0] = self.progress = text.strip()

        try:
            job = explorer.job_at(changes)
            with listening(self._passes(stage)), tasks_named(job.file.name):
                point = measured_point(job, changes, explorer.goals, staged)
            found = Exact(dict(point.values), point.broken, point.risk, point.loss)
            explorer.exact[setting_key(changes)] = found
            self.progress = "done"
        except Exception as error:
            self.progress, self.error = "", str(safe_error(error))

    def _passes(self, stage: list[str]) -> Callable[[str, int, int], None]:
        def listener(label: str, done: int, total: int) -> None:
            self.progress = f"{stage[0]}: {label}" + (f", {done} of {total} tasks" if total else "")

        return listener
