"""What stands between a task and the world: no error leaves a worker with a value of a record in its text.

Third-party errors quote cells, and Dask logs the arguments of a task that raises. So a task never raises: it returns a
Failure that carries one of our own errors, and the driver raises that.
"""

from __future__ import annotations

import errno
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

from dpmask.errors import ClusterError, DpmaskError, StorageError

Function = TypeVar("Function", bound=Callable[..., Any])


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
    return DpmaskError(
        f"Unexpected {kind} at {_place(error)}: this is a bug in dpmask. "
        "Its text is withheld, it may hold values of records."
    )


def _place(error: BaseException) -> str:
    """Where in dpmask it happened: file, line and function, no values."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "dpmask" in frame.filename]
    if not frames:
        return "an unknown place"
    last = frames[-1]
    module = last.filename.replace("\\", "/").rsplit("dpmask/", 1)[-1]
    return f"dpmask/{module}:{last.lineno} ({last.name})"
