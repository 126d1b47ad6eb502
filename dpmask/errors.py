"""Every error dpmask raises on purpose.

A message names who raises it, what was expected, what was found and what to do about it. It never contains the value
of a record or a secret, and nothing that a terminal or a page would obey. The exit code shows a pipeline whether a
retry is worth it.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


LONGEST_LINE, MOST_LINES = 500, 20
"""What a message has at most: characters in a line, and lines."""


def printable(text: str, most: int = LONGEST_LINE) -> str:
    """A text in one line of ``most`` characters; control, format and bidi characters are shown as their escapes."""
    text = _shortened(text, most)
    if text.isprintable():
        return text
    escaped = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    return _shortened(escaped, most)


def _shortened(text: str, most: int) -> str:
    """The text without its middle, as what to do stands at the end of a message."""
    if len(text) <= most:
        return text
    end = (most - 5) // 3
    return f"{text[: most - 5 - end]} ... {text[-end:]}"


def printable_lines(text: str) -> str:
    """The same for a text of several lines."""
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"and {len(lines) - MOST_LINES + 1} lines more"]
    return "\n".join(map(printable, lines))


class DpmaskError(Exception):
    """The root of the tree. Raised as such it means a bug."""

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(printable_lines(message))


class JobError(DpmaskError):
    """The job file, an argument or a parameter is wrong."""

    exit_code = 2


class AccessError(DpmaskError):
    """Wrong credentials or missing permission."""

    exit_code = 2


class TargetError(DpmaskError):
    """Something else is in the way of the release."""

    exit_code = 2


class ProcessorError(DpmaskError):
    """The machine cannot run the kernels, or the process would compile them for another one."""

    exit_code = 2


class PolicyRefusal(DpmaskError):  # noqa: N818 - a refusal is a decision, not a fault
    """The release would break the stated policy. Nothing was published; a retry cannot help."""

    exit_code = 3


class InputError(DpmaskError):
    """The input data are missing or cannot be used."""

    exit_code = 4


class ColumnError(InputError):
    """A column is missing, infinite, empty or constant where it must not be, which no step that masks numbers mends."""


class VerificationError(DpmaskError):
    """A published release is not what its manifest claims."""

    exit_code = 4


class StorageError(DpmaskError):
    """Storage failed; a retry is worth it."""

    exit_code = 5


class ClusterError(DpmaskError):
    """The cluster failed; a retry is worth it."""

    exit_code = 5


class Interrupted(DpmaskError):  # noqa: N818 - it is what somebody did
    """Somebody pressed Ctrl-C, or sent SIGTERM."""

    exit_code = 130


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint naming the closest known name, or listing them all when none is close."""
    names = sorted(known)
    folded = {one.casefold(): one for one in names}
    close = get_close_matches(name, names, n=1) or get_close_matches(name.casefold(), folded, n=1)
    if close:
        return f"Did you mean '{close[0] if close[0] in names else folded[close[0]]}'?"
    return f"Known: {', '.join(names)}." if names else ""
