"""What happened in a run, event by event: for a log that programs read, for the private folder's log, for counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from dpmask.engine.progress import Watcher, retry_line, timestamp
from dpmask.errors import DpmaskError
from dpmask.lake.storage import Place

Event = dict[str, Any]
Sink = Callable[[Event], None]

_KNOWN = ("name", "run", "stage")
_TOLD = ("status", "exit_code", "kind", "error", "rows", "files", "source_bytes", "release_bytes", "passes", "retries")
_SECONDS_BETWEEN_WRITES = 10.0


class Recorder(Watcher):
    """Turns what a run says of itself into events: plain values with a time, no value of a record and no secret."""

    def __init__(self, outcome: dict[str, Any], sinks: Sequence[Sink]) -> None:
        self.outcome, self.sinks = outcome, sinks
        self.begun = time.perf_counter()
        self.again = False

    def event(self, kind: str, level: str = "info", /, **said: Any) -> None:
        """Tell everybody of an event, with the job, the run and the stage it belongs to, as far as they are known."""
        known = {name: self.outcome[name] for name in _KNOWN if name in self.outcome}
        told = {"time": timestamp(), "level": level, "event": kind} | known | said
        for sink in self.sinks:
            sink(told)

    def stage(self, name: str) -> None:
        """A stage begins."""
        self.event("stage")

    def passes(self, label: str, done: int, total: int) -> None:
        """A pass begins or is done; or a line is to be noted."""
        if not total:
            self.event("note", text=label)
        elif done == total:
            seconds = round(time.perf_counter() - self.begun, 3)
            self.event("pass", label=label, tasks=total, seconds=seconds, again=self.again)
            self.again = False
        elif done == 0:
            self.begun = time.perf_counter()

    def retried(self, label: str, tasks: int) -> None:
        """Tasks of a pass are tried again: what is done next is still the same pass."""
        self.again = True
        self.event("retry", "warning", label=label, tasks=tasks)

    def ended(self) -> None:
        """The run is over: its warnings, then what came of it."""
        for warning in self.outcome.get("warnings", []):
            self.event("warning", "warning", text=warning)
        told = {name: self.outcome[name] for name in _TOLD if name in self.outcome}
        self.event("end", "error" if self.outcome["exit_code"] else "info", **told)


def counting(outcome: dict[str, Any]) -> Sink:
    """Counts of passes, their tasks and retries, kept in the outcome by stage."""
    outcome.update(passes={}, tasks={}, retries={})

    def count(event: Event) -> None:
        if event["event"] == "pass":
            _add(outcome, "passes", event, 0 if event["again"] else 1)
            _add(outcome, "tasks", event, 0 if event["again"] else event["tasks"])
        elif event["event"] == "retry":
            _add(outcome, "retries", event, event["tasks"])

    return count


def _add(outcome: dict[str, Any], name: str, event: Event, number: int) -> None:
    stage = event.get("stage", "start")
    outcome[name][stage] = outcome[name].get(stage, 0) + number


class PrivateLog:
    """A line for each event, in the private folder's log.txt. Stages are written at once, passes now and then.

    A stage does not begin if the log cannot be written; a pass goes on, and the end of a run stays what it is.
    """

    def __init__(self) -> None:
        self.place: Place | None = None
        self.lines: list[str] = []
        self.written = 0.0

    def __call__(self, event: Event) -> None:
        """Note an event."""
        self.lines.append(f"{event['time']} {_line(event)}")
        if event["event"] == "stage":
            self._write()
        elif event["event"] == "end" or time.monotonic() > self.written + _SECONDS_BETWEEN_WRITES:
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
