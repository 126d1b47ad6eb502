"""What happens in a run, event by event: for its outcome, for logs that programs read, for the private folder's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from dpmask.engine.progress import Watcher, retry_line, timestamp
from dpmask.errors import DpmaskError, printable_lines
from dpmask.job.outcome import Outcome
from dpmask.lake.storage import Place

Event = dict[str, Any]
Sink = Callable[[Event], None]

_ALWAYS = ("name", "run", "stage")
_AT_THE_END = (
    "status", "exit_code", "kind", "error", "rows", "files", "source_bytes", "release_bytes", "passes", "retries"
)  # fmt: skip


class Recorder(Watcher):
    """Keeps the outcome of a run so far, and sends its events to ``sinks``: no value of a record and no secret.

    Stages, passes and retries are passed on to another watcher, such as the terminal's.
    """

    def __init__(self, watcher: Watcher | None = None, sinks: Sequence[Sink] = ()) -> None:
        self.outcome = Outcome(status="failed", exit_code=0, passes={}, tasks={}, retries={})
        self.watcher, self.sinks = watcher or Watcher(), sinks
        self._pass_start = time.perf_counter()
        self._retried = False

    def add(self, **found: Any) -> None:
        """Add to the outcome what was found."""
        self.outcome = self.outcome.adding(**found)

    def event(self, kind: str, level: str = "info", /, **content: Any) -> None:
        """Send an event, with the job, the run and the stage it belongs to, as far as they are known."""
        event = {"time": timestamp(), "level": level, "event": kind} | self.outcome.known(*_ALWAYS) | content
        for sink in self.sinks:
            sink(event)

    @contextmanager
    def during(self, stage: str) -> Iterator[None]:
        """Announce a stage, and note how long it took."""
        self.add(stage=stage)
        self.watcher.stage(stage)
        self.event("stage")
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = round(time.perf_counter() - start, 3)
            self.add(seconds=(self.outcome.seconds or {}) | {stage: seconds})

    def passes(self, label: str, done: int, total: int) -> None:
        """A pass begins or is done; with no task in all, a note."""
        self.watcher.passes(label, done, total)
        if not total:
            self.event("note", text=label)
        elif done == total:
            seconds, again = round(time.perf_counter() - self._pass_start, 3), self._retried
            self._count("passes", 0 if again else 1)
            self._count("tasks", 0 if again else total)
            self.event("pass", label=label, tasks=total, seconds=seconds, again=again)
            self._retried = False
        elif done == 0:
            self._pass_start = time.perf_counter()

    def retried(self, label: str, tasks: int) -> None:
        """Tasks of a pass are tried again: what is done next is still the same pass."""
        self.watcher.retried(label, tasks)
        self._retried = True
        self._count("retries", tasks)
        self.event("retry", "warning", label=label, tasks=tasks)

    def ended(self) -> None:
        """The run is over: its warnings, then what came of it."""
        for warning in self.outcome.warnings or []:
            self.event("warning", "warning", text=warning)
        self.event("end", "error" if self.outcome.exit_code else "info", **self.outcome.known(*_AT_THE_END))

    def _count(self, counts: str, number: int) -> None:
        self.outcome = self.outcome.counting(counts, self.outcome.stage or "start", number)


class PrivateLog:
    """A line for each event, in the private folder's log.txt. Stages are written at once, passes now and then.

    A stage does not begin if the log cannot be written; a pass goes on, and the end of a run stays what it is.
    """

    def __init__(self, seconds_between_writes: float = 10.0) -> None:
        self.seconds_between_writes = seconds_between_writes
        self.place: Place | None = None
        self.lines: list[str] = []
        self.written = 0.0

    def __call__(self, event: Event) -> None:
        """Take down an event."""
        self.lines.append(f"{event['time']} {printable_lines(_line(event))}")
        if event["event"] == "stage":
            self._write()
        elif event["event"] == "end" or time.monotonic() > self.written + self.seconds_between_writes:
            with suppress(DpmaskError):
                self._write()

    def _write(self) -> None:
        self.written = time.monotonic()
        if self.place is not None:
            (self.place / "log.txt").write(("\n".join(self.lines) + "\n").encode())


def _line(event: Event) -> str:
    kind = event["event"]
    if kind == "stage":
        return str(event["stage"])
    if kind == "pass":
        return f"  {event['label']}: {event['tasks']} task{'s' * (event['tasks'] != 1)}, {event['seconds']:.3f} s"
    if kind == "retry":
        return f"  {retry_line(event['label'], event['tasks'])}"
    if kind == "start":
        return f"dpmask {event['version']} run {event['job']}"
    if kind == "end":
        return str(event.get("error", event["status"]))
    return f"  {event['text']}"
