"""Where a pass reports how far it is. Whoever runs a job listens; by default nobody does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]
"""Called with a label, how many tasks are done and how many there are; of none, with a line to show."""

Retries = Callable[[str, int], None]
"""Called with a label and how many tasks are tried again."""


class StepLine(str):
    """A line about one of many steps of a loop: a terminal shows the latest of them alone."""


_listener: ContextVar[Listener | None] = ContextVar("dpmask_progress", default=None)
_retries: ContextVar[Retries | None] = ContextVar("dpmask_retries", default=None)


class Watcher:
    """Called with the stages, passes and retries of a run. This one does nothing with them."""

    def stage(self, name: str) -> None:
        """A stage begins."""

    def passes(self, label: str, done: int, total: int) -> None:
        """How far a pass is; of none, a line to show."""

    def retried(self, label: str, tasks: int) -> None:
        """Tasks of a pass are tried again."""


@contextmanager
def listening(listener: Listener, retries: Retries | None = None) -> Iterator[None]:
    """Send the progress of every pass inside the block to ``listener``; retries as a line, unless asked for."""
    tokens = _listener.set(listener), _retries.set(retries)
    try:
        yield
    finally:
        _listener.reset(tokens[0])
        _retries.reset(tokens[1])


def note(text: str) -> None:
    """Report a line about a pass that is done."""
    current()(text, 0, 0)


def step(text: str) -> None:
    """Report a line about one of many steps of a loop."""
    note(StepLine(text))


def retried(label: str, tasks: int) -> None:
    """Report that tasks of a pass failed and are tried again."""
    (_retries.get() or _as_line)(label, tasks)


def _as_line(label: str, tasks: int) -> None:
    note(retry_line(label, tasks))


def retry_line(label: str, tasks: int) -> str:
    """A retry in words."""
    return f"{label}: {tasks} task{'s' * (tasks != 1)} failed, trying again"


def current() -> Listener:
    """Whoever listens now."""
    return _listener.get() or (lambda label, done, total: None)


def timestamp(seconds: float | None = None) -> str:
    """Now, or another moment, in UTC to the millisecond, as RFC 3339 writes it."""
    whole, part = divmod(int(1000 * (time.time() if seconds is None else seconds)), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{part:03d}Z"
