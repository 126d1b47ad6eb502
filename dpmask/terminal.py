"""What the terminal shows: progress of a run, results as lines and tables, errors."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from dpmask.engine.progress import Watcher, retry_line, timestamp
from dpmask.errors import Interrupted, StorageError

if TYPE_CHECKING:
    from dpmask.job.outcome import Outcome


def echo(text: str, *, err: bool = False, end: bool = True) -> None:
    """Print; a closed pipe must neither stop a release nor change its exit code."""
    with suppress(OSError, ValueError, AttributeError):
        click.echo(text, nl=end, err=err)


def echo_error(text: str) -> None:
    """Print on stderr what went wrong."""
    echo(f"dpmask: {text}", err=True)


def count(number: int, thing: str) -> str:
    """A number with its noun: 1 file, 2 files."""
    return f"{number} {thing}" + "s" * (number != 1)


class Progress(Watcher):
    """Stages and passes: one line that changes on a terminal; otherwise a line for each stage and each kind of pass."""

    def __init__(self) -> None:
        self.terminal = sys.stderr is not None and sys.stderr.isatty()
        self.started = time.monotonic()
        self._shown: set[str] = set()

    def stage(self, name: str) -> None:
        """Announce a stage of the run."""
        self._shown.clear()
        self._line(name)

    def passes(self, label: str, done: int, total: int) -> None:
        """Show how far a pass is; with no task in all, a note."""
        if not total:
            self._line(f"  {label}")
        elif self.terminal:
            echo(f"\r\033[K           {label}: {done}/{total}", err=True, end=False)
        elif done == total and label not in self._shown:
            self._shown.add(label)
            self._line(f"  {label}: {count(total, 'task')}")

    def retried(self, label: str, tasks: int) -> None:
        """Show that tasks failed and are tried again."""
        self._line(f"  {retry_line(label, tasks)}")

    def _line(self, text: str) -> None:
        self.close()
        echo(f"[{time.monotonic() - self.started:6.1f} s] {text}", err=True)

    def close(self) -> None:
        """Leave the terminal's line empty."""
        if self.terminal:
            echo("\r\033[K", err=True, end=False)


def echo_event(event: dict[str, Any]) -> None:
    """An event of a run as a line of JSON, for programs that collect logs."""
    echo(json.dumps(event, ensure_ascii=False), err=True)


class EventFormatter(logging.Formatter):
    """What a library logs, as an event. The text of an exception is withheld, it may hold values of records."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        event = {"time": timestamp(record.created), "level": record.levelname.lower(), "event": "log"}
        kind = record.exc_info[0] if record.exc_info else None
        content = {"logger": record.name, "text": record.getMessage()} | ({"kind": kind.__name__} if kind else {})
        return json.dumps(event | content, ensure_ascii=False)


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


def show_released(outcome: Outcome) -> None:
    """What came of a run that ended well."""
    for warning in outcome.warnings or []:
        echo(f"Warning: {warning}")
    for measure in outcome.measures or []:
        echo(f"{measure.name}: {measure.explanation}")
    for rule in outcome.policy or []:
        echo(f"policy: {rule.rule} holds")
    echo(f"Internal report: {outcome.report}")
    if outcome.status == "released":
        echo(f"Released {outcome.rows:,} records in {count(outcome.files or 0, 'file')} to {outcome.release}")
    else:
        echo(f"Already released {outcome.rows:,} records at {outcome.release}; nothing was changed")


def show_failed(outcome: Outcome) -> None:
    """Why a run ended without a release."""
    echo_error(outcome.error or "")
    if outcome.report:
        echo(f"Internal report: {outcome.report}", err=True)
    if outcome.checkpoint and outcome.exit_code in {StorageError.exit_code, Interrupted.exit_code}:
        echo("To go on from where it stopped, run it again with --resume.", err=True)


def show_plan(planned: dict[str, Any]) -> None:
    """What a plan found."""
    size = f"{planned['rows']:,} rows in {count(planned['files'], 'file')}, {planned['columns']} columns released"
    echo(f"{planned['name']}: {size}")
    echo(f"  blocks (partitions): {planned['blocks']}, passes over the data: {planned['passes']}")
    echo(f"  memory per worker thread: up to {planned['memory_per_thread_mb']} MB above an idle worker")
    echo(f"  time: about {planned['seconds']} s on {planned['threads']} threads")
    if planned["kernels_to_compile"]:
        kernels = count(planned["kernels_to_compile"], "kernel")
        echo(f"    {planned['compile_seconds']} s of it to compile {kernels}, once on this machine: dpmask warmup")
    echo(f"  at the target now: {planned['standing']}")
    if planned["nulls"]:
        counts = ", ".join(f"{name} ({'?' if null is None else null})" for name, null in planned["nulls"].items())
        echo(f"  nulls, which stay null: {counts}")
    if planned["unmasked"]:
        echo(f"  quasi-identifiers and sensitive columns that no step masks: {', '.join(planned['unmasked'])}")


def show_sweep(swept: dict[str, Any]) -> None:
    """A table of all points, and the recommendation."""
    names = list(swept["points"][0]["parameters"])
    header = [*names, swept["risk"], swept["loss"], "policy", "frontier"]
    rows = [
        [
            *point["typed"].values(),
            f"{point['risk']:.4g}",
            f"{point['loss']:.4g}",
            "holds" if point["holds"] else "broken",
            "*" if point["frontier"] else "",
        ]
        for point in swept["points"]
    ]
    _show_table(header, rows)
    echo(swept["recommendation"])
    echo(f"Map: {swept['report']}")


def _show_table(header: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(line[column]) for line in [header, *rows]) for column in range(len(header))]
    for line in [header, *rows]:
        echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def show_evaluation(found: dict[str, Any]) -> None:
    """All numbers of an evaluation as a table, then in words."""
    by = found["pairing"]["by"]
    echo(f"{found['original']['rows']:,} original and {found['masked']['rows']:,} masked records, paired by {by}")
    for key in ("originals_without_masked", "masked_without_original"):
        if found["pairing"].get(key):
            echo(f"  {key.replace('_', ' ')}: {found['pairing'][key]:,}")
    lines = [
        (one["measure"], field, "none" if value is None else f"{value:.6g}")
        for one in found["measures"]
        for field, value in one["judged"].items()
    ]
    widths = [max(len(line[place]) for line in lines) for place in range(3)]
    for measure, field, value in lines:
        echo(f"  {measure:<{widths[0]}}  {field:<{widths[1]}}  {value:>{widths[2]}}")
    for one in found["measures"]:
        echo(f"{one['measure']}: {one['explanation']}")
    for one in found["not_measured"]:
        echo(f"not measured: {one['reason']}")


def settle_output() -> None:
    """Flush what is left; a closed stream is pointed to nowhere, or Python would end with an exit code of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            with suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
