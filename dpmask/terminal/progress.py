"""How far a run is: on a terminal one line for each stage, with a bar, elsewhere plain lines."""

from __future__ import annotations

import sys
import threading
import time

from dpmask.engine.progress import StepLine, Watcher, retry_line
from dpmask.errors import printable
from dpmask.terminal.output import count, echo, is_terminal, places, width_of, write

_REWRITE = "\r\033[K"
"""To the start of the terminal's line, and clear it."""
_TICK = 0.5
_BAR = 20
_LONGEST_NAME = 9
_WORTH_AN_ESTIMATE = 2.0
"""Seconds that a pass has taken before it says how long the rest of it takes."""


class Progress(Watcher):
    """Stages and passes of a run.

    On a terminal a stage is one line: the bar and the time left are those of the pass under way, since how many passes
    follow is not known before they converge. Elsewhere there is a line for each stage and each kind of pass, and at
    least every ``quiet_seconds`` one while a pass is under way.
    """

    def __init__(self, quiet_seconds: float = 10.0) -> None:
        self.terminal = is_terminal(err=True)
        self.started = self._written = self._stage_start = self._pass_start = time.monotonic()
        self.quiet_seconds = quiet_seconds
        self._lock = threading.RLock()
        self._shown: set[str] = set()
        self._stage = self._label = self._under_way = ""
        self._done = self._total = self._passes = 0
        self._over = threading.Event()
        work = self._keep_drawing if self.terminal else self._break_silence
        threading.Thread(target=work, name="dpmask-progress", daemon=True).start()

    def _break_silence(self) -> None:
        while not self._over.wait(max(self._written + self.quiet_seconds - time.monotonic(), 0.01)):
            if time.monotonic() < self._written + self.quiet_seconds:
                continue
            if self._under_way:
                self._line(f"  {self._under_way}")
            self._written = time.monotonic()

    def _keep_drawing(self) -> None:
        while not self._over.wait(_TICK):
            self._draw()

    def stage(self, name: str) -> None:
        """Announce a stage of the run."""
        self._shown.clear()
        if not self.terminal:
            self._line(name)
            return
        with self._lock:
            self._end_stage(heading=_is_below(name, self._stage))
            self._stage, self._label, self._passes = name, "", 0
            self._stage_start = time.monotonic()
            self._draw()

    def passes(self, label: str, done: int, total: int) -> None:
        """Show how far a pass is; with no task in all, a note, which stays on a terminal unless it is one of many."""
        self._under_way = f"{label}: {done} of {count(total, 'task')} done" if done < total else ""
        if self.terminal and (total or isinstance(label, StepLine)):
            self._follow(label, done, total)
        elif not total:
            self._line(f"  {label}")
        elif done == total and label not in self._shown:
            self._shown.add(label)
            self._line(f"  {label}: {count(total, 'task')}")

    def _follow(self, label: str, done: int, total: int) -> None:
        with self._lock:
            if done == 0 or label != self._label:
                self._pass_start = time.monotonic()
            self._passes += done == total > 0
            self._label, self._done, self._total = label, done, total
            if time.monotonic() > self._written + _TICK / 5:  # as often as anybody can read
                self._draw()

    def retried(self, label: str, tasks: int) -> None:
        """Show that tasks failed and are tried again."""
        self._line(f"  {retry_line(label, tasks)}")

    def _line(self, text: str) -> None:
        with self._lock:
            self._written = time.monotonic()
            self._clear()
            echo(f"[{time.monotonic() - self.started:6.1f} s] {text}", err=True)

    def _draw(self) -> None:
        """The line of the stage, as it is now."""
        with self._lock:
            if self._over.is_set() or not (self._stage or self._label):
                return
            self._written = now = time.monotonic()
            name = f"{_named(self._stage)} " if self._stage else ""
            text = f"{name}{self._bar()} {_time(now - self._stage_start)}"
            rest = self._estimate(now)
            text += f", about {_time(rest)} left of {printable(self._label, 200)}" if rest else self._what()
            write(f"{_REWRITE}{_cut(text, (width_of(err=True) or 80) - 1)}", err=True, end=False)

    def _bar(self) -> str:
        full, empty = ("█", "░") if _has_blocks() else ("#", ".")
        filled = _BAR * self._done // self._total if self._label and self._total else 0
        return full * filled + empty * (_BAR - filled)

    def _what(self) -> str:
        if not self._label:
            return ""
        return f"  {printable(self._label, 200)}" + (f" {self._done}/{self._total}" if self._total else "")

    def _estimate(self, now: float) -> float | None:
        """Seconds that the rest of the pass takes, at the pace so far."""
        taken = now - self._pass_start
        if not self._label or not 0 < self._done < self._total or taken < _WORTH_AN_ESTIMATE:
            return None
        return taken * (self._total - self._done) / self._done

    def _end_stage(self, *, heading: bool = False) -> None:
        """Leave a line behind: how long the stage took; of one that heads others, its name alone."""
        if self._stage and heading:
            self._clear()
            echo(printable(self._stage, 200), err=True)
        elif self._stage:
            self._clear()
            passes = f"  {self._passes} pass{'es' * (self._passes != 1)}" if self._passes else ""
            echo(f"{_named(self._stage)} {_time(time.monotonic() - self._stage_start):>7}{passes}", err=True)
        self._stage = ""

    def close(self) -> None:
        """Leave the last stage's line, and say no more."""
        with self._lock:
            if self.terminal and not self._over.is_set():
                self._end_stage()
                self._clear()
            self._over.set()

    def _clear(self) -> None:
        if self.terminal:
            write(_REWRITE, err=True, end=False)


def _is_below(name: str, stage: str) -> bool:
    """Whether a stage is one of those that another heads: further in."""
    return name.startswith(" ") and not stage.startswith(" ")


def _named(stage: str) -> str:
    return printable(stage, 200).ljust(_LONGEST_NAME)


def _time(seconds: float) -> str:
    """Seconds for people: 4.2 s, 3:07, 1:02:03."""
    if seconds < 60:  # noqa: PLR2004
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _cut(text: str, width: int) -> str:
    """As much of a line as fits, so that it stays one."""
    text = text[:width]
    while places(text) > width:
        text = text[:-1]
    return text


def _has_blocks() -> bool:
    return (getattr(sys.stderr, "encoding", None) or "").lower().replace("-", "").startswith("utf")
