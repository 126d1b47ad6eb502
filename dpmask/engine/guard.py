"""What stands between a task and the world: no error leaves a worker with a value of a record in its text.

Third-party errors quote cells, and Dask logs the arguments of a task that raises. So a task never raises: it returns a
Failure that carries one of our own errors, and the driver raises that.
"""

from __future__ import annotations

import errno
import sysconfig
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from dpmask.errors import ClusterError, DpmaskError, StorageError

Function = TypeVar("Function", bound=Callable[..., Any])
_PACKAGE = Path(__file__).parents[1]
_UNKNOWN = "an unknown place"


class Failure(NamedTuple):
    """What a task returns instead of raising."""

    error: DpmaskError

    @property
    def worth_a_retry(self) -> bool:
        """Whether the same task may succeed when it is run again."""
        return self.error.exit_code == StorageError.exit_code


def guarded(task: Callable[..., Any], *arguments: Any) -> Any:
    """The task's result, or the Failure that says why there is none."""
    try:
        return task(*arguments)
    except DpmaskError as error:
        return Failure(error.with_traceback(None))
    except Exception as error:
        return Failure(safe_error(error))


def raising_safely(function: Function) -> Function:
    """For what runs in a caller's own lazy graph and so must raise: our errors pass, foreign ones lose their text."""

    @wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except Exception as error:
            raise safe_error(error) from None

    return cast(Function, wrapped)


def safe_error(error: BaseException) -> DpmaskError:
    """One of our errors in place of a foreign one, without its text."""
    if isinstance(error, DpmaskError):
        return error
    kind = type(error).__name__
    if isinstance(error, MemoryError):
        return ClusterError("A worker ran out of memory. Lower block_rows, or give the workers more memory.")
    if isinstance(error, OSError):
        if error.errno == errno.ENOSPC:
            return StorageError("No space is left where dpmask writes. Free some and run the job again.")
        name = errno.errorcode.get(error.errno or 0, "no error number")
        return StorageError(f"Storage failed ({kind}, {name}) at {_place(error)}. Run the job again.")
    where = _place(error)
    whose = "this is a bug in dpmask" if where.startswith(("dpmask/", _UNKNOWN)) else "this is not dpmask's own code"
    return DpmaskError(f"Unexpected {kind} at {where}: {whose}. Its text is withheld, it may hold values of records.")


def _place(error: BaseException) -> str:
    """Where it happened: the last line of code that dpmask was given, if it ran any, or of its own; no values."""
    frames = [(Path(frame.filename), frame) for frame in reversed(traceback.extract_tb(error.__traceback__))]
    given = [f"{file.name}:{frame.lineno} ({frame.name})" for file, frame in frames if _is_given(file)]
    own = [
        f"{file.relative_to(_PACKAGE.parent).as_posix()}:{frame.lineno} ({frame.name})"
        for file, frame in frames
        if file.is_relative_to(_PACKAGE)
    ]
    return next(iter([*given, *own]), _UNKNOWN)


def _is_given(file: Path) -> bool:
    """Whether a file is neither dpmask's nor of Python or an installed package: a method of the user's own."""
    library = any(file.is_relative_to(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
    installed = library or not {"site-packages", "dist-packages"}.isdisjoint(file.parts)
    return file.is_absolute() and not installed and not file.is_relative_to(_PACKAGE)
