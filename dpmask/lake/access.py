"""Whether a store is where it should be and lets us in, found out before any work is done.

What fails here is a mistake of whoever set it up, and no retry mends it; later the same failures are faults of storage.
"""

from __future__ import annotations

import uuid
from http import HTTPStatus

from dpmask.errors import JobError
from dpmask.lake.storage import Place
from dpmask.lake.storage_errors import response_of, storage_errors

_READ_ONLY = ("http", "https")
_BUSY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_ALLOWED = {"PreconditionFailed", "NoSuchKey", "404", "412"}


def require_access(place: Place, *, writing: bool) -> None:
    """Refuse a store that cannot be reached, or be read or written to with these credentials. Nothing is left there."""
    if place.local:
        return
    protocol = place.full_url.split("://", 1)[0]
    if writing and protocol in _READ_ONLY:
        raise JobError(f"{place.url}: {protocol}:// can only be read. Give a folder, or a store such as s3://.")
    try:
        if not place.fs.exists(place.path) and protocol in _READ_ONLY:
            _ask_server(place)
        if writing and hasattr(place.fs, "call_s3"):
            _try_to_put(place)
    except Exception as error:
        if _is_mistake(error):
            raise _no_store(place, error) from None
        with storage_errors(place, writing=writing):
            raise


def _ask_server(place: Place) -> None:
    """Raise what stood in the way, if no server answers: to its client a file is just not there then."""
    try:
        place.fs.info(place.path)
    except FileNotFoundError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None


def _try_to_put(folder: Place) -> None:
    """Put a file on the condition that it replaces a version that there never was: the right to is checked first."""
    place = folder / f"dpmask.{uuid.uuid4().hex}.part"
    bucket, key, _ = place.fs.split_path(place.path)
    try:
        place.fs.call_s3("put_object", Bucket=bucket, Key=key, Body=b"", IfMatch='"none"')
    except Exception as error:
        if response_of(error).get("Error", {}).get("Code") not in _ALLOWED:
            raise
        return
    place.fs.rm_file(place.path)  # a store without conditions


def _is_mistake(error: Exception) -> bool:
    """Whether nobody answers, or somebody who is no store; one that is busy or ill, or knows us and says no, is one."""
    if isinstance(error, PermissionError | FileNotFoundError) or "Credentials" in type(error).__name__:
        return False
    status = _status(error)
    return not (status and (status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _BUSY))


def _status(error: Exception) -> int | None:
    """What an HTTP server answered, if it did."""
    found = response_of(error).get("ResponseMetadata", {}).get("HTTPStatusCode") or getattr(error, "status", None)
    return int(found) if found else None


def _no_store(place: Place, error: Exception) -> JobError:
    kind, where = type(error).__name__, place.endpoint or "the host it names"
    wrong = {
        "ValueError": f"the endpoint {where} is not a URL; it must begin with https:// or http://",
        "SSLError": f"what answers at {where} uses no TLS, or has a certificate that nobody here trusts ({kind})",
        "ConnectionClosedError": f"what answers at {where} hung up ({kind}); it may want https:// or http:// instead",
    }.get(kind, f"no store answers at {where} ({kind})")
    if _status(error):
        wrong = f"what answers at {where} refuses the request ({_status(error)}); it may want https:// or be no store"
    hint = "For S3, AWS_ENDPOINT_URL says where the store is, such as https://s3.example.org; without it, AWS itself."
    return JobError(f"{place.url}: {wrong}. {hint if hasattr(place.fs, 'call_s3') else 'Correct it.'}")
