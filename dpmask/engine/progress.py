"""Where a pass says how far it is. Whoever runs a job listens; by default nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]
"""Called with a label, how many tasks are done and how many there are; of none, with a line to show."""

_listener: ContextVar[Listener | None] = ContextVar("dpmask_progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send the progress of every pass inside the block to ``listener``."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def note(text: str) -> None:
    """Say a line about a pass that is done."""
    current()(text, 0, 0)


def current() -> Listener:
    """Whoever listens now."""
    return _listener.get() or (lambda label, done, total: None)
