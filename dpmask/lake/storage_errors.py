"""What file systems and stores raise, as errors of our own that name the place and no secret."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from dpmask.errors import AccessError, DpmaskError, InputError, JobError, StorageError, TargetError

if TYPE_CHECKING:
    from dpmask.lake.storage import Place

_CLIENTS = {"botocore", "aiobotocore", "aiohttp", "gcsfs", "google", "azure"}
"""The libraries by which stores are reached: what they raise is a fault of storage."""
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired", "400"}
"""What S3 says of a session that is over; where an answer has no text, as that to HEAD, a bare 400."""


class NameTaken(Exception):  # noqa: N818 - caught by who writes, never seen
    """A conditional write found somebody else's file."""


def response_of(error: BaseException) -> dict[str, Any]:
    """What an S3 server answered that led to an error; nothing, if it did not."""
    found = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
    return found if isinstance(found, dict) else {}


@contextmanager
def storage_errors(place: Place, *, writing: bool = False, conditional: bool = False) -> Iterator[None]:
    """Turn what a file system raises into our errors, which name the place and no secret."""
    try:
        yield
    except DpmaskError:
        raise
    except Exception as error:
        if conditional and (isinstance(error, FileExistsError) or "pre-conditions" in str(error)):
            raise NameTaken from None
        raise _translated(error, place, writing) from None


def _translated(error: Exception, place: Place, writing: bool) -> Exception:
    kind, url, where = type(error).__name__, place.url, f" at {place.endpoint}" if place.endpoint else ""
    number = getattr(error, "errno", None)
    expired = response_of(error).get("Error", {}).get("Code") in _EXPIRED
    if expired or _is_denied(error) or number in {errno.EROFS, errno.EPERM}:
        deed = "write to" if writing else "read"
        return AccessError(
            f"{url}: the credentials have expired{where}. Get new ones and run the job again; with --resume a run "
            "that had begun goes on from where it stopped."
            if expired
            else f"{url}: no permission to {deed} it{where}. Check the credentials or the rights of this user."
        )
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError | FileExistsError):
        found = (
            "does not exist"
            if isinstance(error, FileNotFoundError)
            else "a file is in the way of a folder, or the reverse"
        )
        return (TargetError if writing else InputError)(f"{url}: {found}.")
    if number == errno.ENAMETOOLONG:
        return JobError(f"{url}: the name is too long for this file system.")
    if number in {errno.ENOSPC, errno.EDQUOT}:
        return StorageError(f"{url}: no space is left there. Free some and run the job again.")
    if isinstance(error, OSError) or type(error).__module__.split(".")[0] in _CLIENTS:
        return StorageError(f"{url}: storage failed ({kind}){where}. Run the job again.")
    return error


def _is_denied(error: Exception) -> bool:
    """Whether a store does not know us, or does not let us."""
    kind, status = type(error).__name__, getattr(error, "status_code", None) or getattr(error, "code", None)
    denied = status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN} or kind == "ClientAuthenticationError"
    return denied or isinstance(error, PermissionError) or "Credentials" in kind
