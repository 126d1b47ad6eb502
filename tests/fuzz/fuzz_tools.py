"""What the fuzzing tests share: bounded, repeatable settings, the command line in another process, and counts."""

from collections import Counter

import apart
from apart import Apart
from hypothesis import HealthCheck, settings

COUNTS = Counter()
ELSEWHERE = Apart()
"""Where examples run: one that hangs, takes more than 20 s of CPU or ends the process is a failure that shows it."""
EVERYTHING = [
    HealthCheck.too_slow,
    HealthCheck.function_scoped_fixture,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
]


def bounded(examples):
    """The same examples on every run, so many of them."""
    return settings(
        max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=EVERYTHING
    )


def command(*arguments):
    """The command line: its exit code and all it printed. No bug, no traceback, no hang."""
    return counted(arguments[0], ELSEWHERE(apart.command, *arguments))


def counted(name, ended):
    """How a command ended, which must be neither a bug nor a traceback."""
    COUNTS[f"{name}: exit code {ended.code}"] += 1
    assert ended.code != 1, ended.text[-1000:]
    assert "Traceback" not in ended.text
    return ended.code, ended.text


def refused_or_right(function, *arguments):
    """Whether a call is accepted, which either returns or raises one of our errors, other than a bug."""
    code, text = ELSEWHERE(_refused, function, *arguments)
    name = getattr(function, "__name__", str(function))
    COUNTS[f"{name}: {'refused' if code else 'accepted'}"] += 1
    assert code != 1, text
    assert all(len(line) <= 500 for line in text.split("\n"))
    return not code


def _refused(function, *arguments):
    """The exit code and the text of the error it ends with, if any."""
    from dpmask.errors import DpmaskError

    try:
        function(*arguments)
    except DpmaskError as error:
        return error.exit_code, str(error)
    return 0, ""


def print_counts():
    """How many examples were tried, and what came of them."""
    for name, number in sorted(COUNTS.items()):
        print(f"fuzzed {name}: {number}")
