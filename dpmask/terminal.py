"""What the terminal shows: progress of a run, results as lines and tables, errors."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from dpmask.engine.progress import Watcher, retry_line, timestamp
from dpmask.errors import Interrupted, StorageError, printable

if TYPE_CHECKING:
    from dpmask.job.attack import Attacks
    from dpmask.job.estimate import Plan
    from dpmask.job.evaluate import Evaluation
    from dpmask.job.outcome import Outcome
    from dpmask.job.roles import PlannedColumn, PlannedWeight
    from dpmask.report.sweep_map import Sweep


_REWRITE = "\r\033[K"
"""To the start of the terminal's line, and clear it."""


def echo(text: str, *, err: bool = False) -> None:
    """Print. What a terminal would obey is shown escaped; a closed pipe stops no release and changes no exit code."""
    _print("\n".join(line if line.isprintable() else printable(line, len(line) * 10) for line in text.split("\n")), err)


def _print(text: str, err: bool, end: bool = True) -> None:
    with suppress(OSError, ValueError, AttributeError):
        click.echo(text, nl=end, err=err)


def echo_error(text: str) -> None:
    """Print on stderr what went wrong."""
    echo(f"dpmask: {text}", err=True)


def count(number: int, thing: str) -> str:
    """A number with its noun: 1 file, 2 files."""
    return f"{number} {thing}" + "s" * (number != 1)


class Progress(Watcher):
    """Stages and passes: one line that changes on a terminal; otherwise a line for each stage and each kind of pass.

    Where there is no terminal, a line comes at least every ``quiet_seconds`` while a pass is under way.
    """

    def __init__(self, quiet_seconds: float = 10.0) -> None:
        self.terminal = sys.stderr is not None and sys.stderr.isatty()
        self.started = self._written = time.monotonic()
        self.quiet_seconds = quiet_seconds
        self._shown: set[str] = set()
        self._under_way = ""
        self._over = threading.Event()
        if not self.terminal:
            threading.Thread(target=self._break_silence, name="dpmask-progress", daemon=True).start()

    def _break_silence(self) -> None:
        while not self._over.wait(max(self._written + self.quiet_seconds - time.monotonic(), 0.01)):
            if time.monotonic() < self._written + self.quiet_seconds:
                continue
            if self._under_way:
                self._line(f"  {self._under_way}")
            self._written = time.monotonic()

    def stage(self, name: str) -> None:
        """Announce a stage of the run."""
        self._shown.clear()
        self._line(name)

    def passes(self, label: str, done: int, total: int) -> None:
        """Show how far a pass is; with no task in all, a note."""
        self._under_way = f"{label}: {done} of {count(total, 'task')} done" if done < total else ""
        if not total:
            self._line(f"  {label}")
        elif self.terminal:
            _print(f"{_REWRITE}           {printable(label, 200)}: {done}/{total}", err=True, end=False)
        elif done == total and label not in self._shown:
            self._shown.add(label)
            self._line(f"  {label}: {count(total, 'task')}")

    def retried(self, label: str, tasks: int) -> None:
        """Show that tasks failed and are tried again."""
        self._line(f"  {retry_line(label, tasks)}")

    def _line(self, text: str) -> None:
        self._written = time.monotonic()
        self._clear()
        echo(f"[{time.monotonic() - self.started:6.1f} s] {text}", err=True)

    def close(self) -> None:
        """Leave the terminal's line empty, and say no more."""
        self._over.set()
        self._clear()

    def _clear(self) -> None:
        if self.terminal:
            _print(_REWRITE, err=True, end=False)


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


def show_released(outcome: Outcome) -> None:
    """What came of a run that ended well."""
    for warning in outcome.warnings or []:
        echo(f"Warning: {warning}")
    for measure in outcome.measures or []:
        echo(f"{measure.name}: {measure.explanation}")
    for rule in outcome.policy or []:
        echo(f"policy: {rule.rule} holds")
    echo(f"Internal report: {outcome.report}")
    new, records = outcome.status == "released", f"{outcome.rows:,} records"
    there = f"{records} at {outcome.release}; nothing was changed"
    written = f"{records} in {count(outcome.files or 0, 'file')} to {outcome.release}"
    if outcome.trial:
        echo(f"TRIAL, not a release: {f'wrote {written}' if new else f'there are already {there}'}")
    else:
        echo(f"Released {written}" if new else f"Already released {there}")


def show_failed(outcome: Outcome) -> None:
    """Why a run ended without a release."""
    echo_error(outcome.error or "")
    if outcome.report:
        echo(f"Internal report: {outcome.report}", err=True)
    if outcome.checkpoint and outcome.exit_code in {StorageError.exit_code, Interrupted.exit_code}:
        echo("To go on from where it stopped, run it again with --resume.", err=True)


def show_plan(planned: Plan) -> None:
    """What a plan found."""
    size = f"{planned.rows:,} rows in {count(planned.files, 'file')}, {planned.columns} columns released"
    echo(f"{planned.name}: {size}")
    echo(f"  blocks (partitions): {planned.blocks}, passes over the data: {planned.passes}")
    echo(f"  memory per worker thread: up to {planned.memory_per_thread_mb} MB above an idle worker")
    echo(f"  time: about {planned.seconds} s on {planned.threads} threads; CPU: about {planned.cpu_seconds} s")
    if planned.kernels_to_compile:
        kernels = count(planned.kernels_to_compile, "kernel")
        echo(f"    {planned.compile_seconds} s of it to compile {kernels}, once on this machine: dpmask warmup")
    echo(f"  at the target now: {planned.standing}")
    if planned.nulls:
        counts = ", ".join(f"{name} ({'?' if null is None else null})" for name, null in planned.nulls.items())
        echo(f"  nulls, which stay null: {counts}")
    header = ["  column", "role", "type", "nulls", "zeros", "distinct", "from", "to", "masked by"]
    _show_table(header, [_column_line(one) for one in planned.column_table])
    if planned.blocks > 1:
        echo("  zeros, distinct values and extremes (to two digits) are those of the first records")
    for weight in planned.weights:
        echo(f"  {_weight_line(weight)}")
    echo(f"  rules: {'; '.join(planned.rules)}")
    for name, found in planned.suspected.items():
        echo(f"  the gate may refuse {name}: in the first block, {found}")
    for name, reason in planned.accepted.items():
        echo(f"  accepted: {name}: {reason}")


def _weight_line(one: PlannedWeight) -> str:
    """What a weight reveals."""
    steps = ", ".join(one.masked_by)
    then = f"masked by {steps}" if steps else "no step masks it, so that it finds them, and shows who lives together"
    return (
        f"weight {printable(one.name, 60)}: {one.distinct:,} different ones in the first {one.records:,} records, of "
        f"which {one.alone:,} share theirs with nobody but their household; {then}"
    )


def _column_line(one: PlannedColumn) -> list[str]:
    zeros = "" if one.zeros is None else f"{one.zeros:.0%}"
    ends = ["" if end is None else f"{end:g}" for end in (one.low, one.high)]
    nulls, distinct = ("?" if number is None else f"{number:,}" for number in (one.nulls, one.distinct))
    name = f"  {printable(one.name, 60)}"
    return [name, one.role, printable(one.type, 40), nulls, zeros, distinct, *ends, ", ".join(one.masked_by)]


def show_sweep(swept: Sweep) -> None:
    """A table of all points, and the recommendation."""
    header = [*swept.points[0].parameters, swept.risk, swept.loss, "policy", "frontier"]
    rows = [
        [
            *point.typed.values(),
            f"{point.risk:.4g}",
            f"{point.loss:.4g}",
            "holds" if point.holds else "broken",
            "*" if frontier else "",
        ]
        for point, frontier in zip(swept.points, swept.frontier, strict=True)
    ]
    _show_table(header, rows)
    echo(swept.explain())
    echo(f"Map: {swept.report}")


def _show_table(header: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(line[column]) for line in [header, *rows]) for column in range(len(header))]
    for line in [header, *rows]:
        echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def show_evaluation(found: Evaluation) -> None:
    """All numbers of an evaluation as a table, then in words."""
    by, originals, masked = found.pairing
    echo(f"{found.original.rows:,} original and {found.masked.rows:,} masked records, paired by {by}")
    for what, left in (("originals without masked", originals), ("masked without original", masked)):
        if left:
            echo(f"  {what}: {left:,}")
    lines = [
        (one.measure, field, "none" if value is None else f"{value:.6g}")
        for one in found.measures
        for field, value in one.judged.items()
    ]
    widths = [max(len(line[place]) for line in lines) for place in range(3)]
    for measure, field, value in lines:
        echo(f"  {measure:<{widths[0]}}  {field:<{widths[1]}}  {value:>{widths[2]}}")
    for one in found.measures:
        echo(f"{one.measure}: {one.explanation}")
    for missing in found.not_measured:
        echo(f"not measured: {missing.reason}")


def show_attacks(found: Attacks) -> None:
    """A table of attacks with their rates, intervals and what guessing finds."""
    echo(f"{found.rows:,} released records, paired with the register by {found.pairing.by}")
    header = ["attack", "share", "rate", "95 % interval", "guessing", "attacked", "known"]
    rows = [
        [
            one.attack,
            one.share.replace("_", " "),
            f"{one.rate:.2%}",
            f"{one.low:.2%} to {one.high:.2%}",
            f"{one.guessing:.2%}",
            f"{one.attacked:,}",
            ", ".join(one.columns),
        ]
        for one in found.attacks
    ]
    _show_table(header, rows)
    for reason in found.not_tried.values():
        echo(f"not tried: {reason}")


def settle_output() -> None:
    """Flush what is left; a closed stream is pointed to nowhere, or Python would end with an exit code of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            with suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
