"""Events of a run as lines of JSON, for programs that collect logs."""

from __future__ import annotations

import json
import logging
import os
from typing import Any

from dpmask.engine.progress import timestamp
from dpmask.terminal.output import echo


def echo_event(event: dict[str, Any]) -> None:
    """An event of a run as a line of JSON, for programs that collect logs."""
    echo(json.dumps(event), err=True)


class EventFormatter(logging.Formatter):
    """What a library logs, as an event. The text of an exception is withheld, it may hold values of records."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        event = {"time": timestamp(record.created), "level": record.levelname.lower(), "event": "log"}
        kind = record.exc_info[0] if record.exc_info else None
        content = {"logger": record.name, "text": record.getMessage()} | ({"kind": kind.__name__} if kind else {})
        return json.dumps(event | content)


def log_as_events() -> None:
    """Have libraries log events, too. Dask reads its settings when it is imported, also in workers that it starts."""
    from logging.config import dictConfig

    settings = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"event": {"()": f"{__name__}.EventFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "event"}},
        "root": {"level": "WARNING", "handlers": ["stderr"]},
        "loggers": {"tornado": {"level": "CRITICAL"}},
    }
    os.environ.setdefault("DASK_LOGGING", repr(settings))
    dictConfig(settings)
    logging.captureWarnings(True)
