"""What the terminal shows: progress of a run, results as tables, errors.

Written here and not by a library: importing rich takes 0.1 s of the 1.5 s of CPU that a small run may take, redraws in
a thread of its own, and lets names of columns style what it prints; a table and a bar are few lines.
"""

from dpmask.terminal.events import echo_event, log_as_events
from dpmask.terminal.output import count, echo, echo_error, settle_output
from dpmask.terminal.progress import Progress
from dpmask.terminal.shown import show_attacks, show_evaluation, show_failed, show_plan, show_released, show_sweep

__all__ = [
    "Progress",
    "count",
    "echo",
    "echo_error",
    "echo_event",
    "log_as_events",
    "settle_output",
    "show_attacks",
    "show_evaluation",
    "show_failed",
    "show_plan",
    "show_released",
    "show_sweep",
]
