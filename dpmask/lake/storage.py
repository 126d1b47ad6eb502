"""Files anywhere fsspec reaches: paths, whole-file reads and writes, conditional puts, and errors in our own words.

Credentials come from the environment or the cloud's own chain, on the driver and on each worker; none is ever passed.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import posixpath
import re
import shutil
import stat
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from dpmask.errors import AccessError, DpmaskError, InputError, JobError, StorageError, TargetError, printable

OWNER_ONLY = 0o600
"""The rights of a file that nobody but its owner may read."""
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfs", "az": "abfs"}
_CLIENTS = {"botocore", "aiobotocore", "aiohttp", "gcsfs", "google", "azure"}
"""The libraries that speak with stores: what they raise is a fault of storage."""
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired", "400"}
"""What S3 says of a session that is over; where an answer has no text, as that to HEAD, a bare 400."""
_CONNECTIONS = 64
_UPLOAD = 16 << 20
_LONGEST_URL = 8192
_CREDENTIALS = re.compile(r"\w+://[^/]*@")


def _options(protocol: str) -> dict[str, Any]:
    """How a store is opened: S3 with more connections than its client has by default, 10, unless it is set up."""
    if _EXTRAS.get(protocol) != "s3":
        return {}
    own = fsspec.config.conf.get(protocol, {}).get("config_kwargs", {})
    return {"config_kwargs": {"max_pool_connections": _CONNECTIONS} | own}


class Place:
    """A file or folder behind a URL."""

    def __init__(self, url: str) -> None:
        if _CREDENTIALS.match(url):
            raise JobError("A user or password does not belong in a URL. Give it in the environment.")
        if not url.strip() or "\0" in url or len(url) > _LONGEST_URL:
            raise JobError(f"{printable(url, 80)!r} is not a path or a URL.")
        self.url = printable(url)  # to be shown; full_url is to be opened
        protocol = url.split("://", 1)[0] if "://" in url else "file"
        try:
            self.fs, path = fsspec.core.url_to_fs(url, **_options(protocol))
        except ImportError:
            extra = _EXTRAS.get(protocol)
            hint = f"pip install 'dpmask[{extra}]'" if extra else f"the fsspec package for {protocol}"
            raise JobError(f"{url}: reading {protocol}:// needs {hint}.") from None
        except ValueError:
            raise JobError(f"{url}: '{protocol}' is not a protocol that fsspec knows.") from None
        except OSError as error:  # Hadoop's file system is connected here
            raise JobError(
                f"{self.url}: {protocol}:// cannot be opened ({type(error).__name__}): its client is not installed on "
                "this machine, or nobody answers there. Copy the lake to a disk or an object store, or install it."
            ) from None
        self.local = isinstance(self.fs, LocalFileSystem)
        self.path = os.path.abspath(path) if self.local else path.rstrip("/")

    def __repr__(self) -> str:
        return f"Place({self.url!r})"

    def __reduce__(self) -> Any:
        return Place, (self.full_url,)

    @property
    def full_url(self) -> str:
        """The URL with the path made absolute, for workers with another working folder."""
        return str(self.path) if self.local else str(self.fs.unstrip_protocol(self.path))

    @property
    def endpoint(self) -> str:
        """Where the store is that it lies in, as far as that is known: of S3, the address of the server."""
        if not hasattr(self.fs, "call_s3"):
            return ""
        client = getattr(self.fs, "_s3", None)
        names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        url = client.meta.endpoint_url if client else next(filter(None, map(os.environ.get, names)), "")
        return printable(re.sub(r"//[^/]*@", "//", url or ""))

    @property
    def parent(self) -> Place:
        """The folder that it lies in."""
        return Place(posixpath.dirname(self.full_url))

    def __truediv__(self, name: str) -> Place:
        return Place(posixpath.join(self.full_url, name))

    def contains(self, other: Place) -> bool:
        """Whether the other place is this one or lies inside it."""
        if type(self.fs) is not type(other.fs):
            return False
        outer, inner = ((os.path.realpath(place.path) if place.local else place.path) for place in (self, other))
        return f"{inner}/".startswith(f"{outer}/".replace("//", "/"))

    def exists(self) -> bool:
        """Whether there is a file or a non-empty folder."""
        with storage_errors(self):
            self.fs.invalidate_cache()
            return bool(self.fs.exists(self.path))

    def files(self) -> list[str]:
        """The paths of all files below, relative to here, sorted. Of an empty folder some stores list itself."""
        inside = f"{self.path.rstrip('/')}/"
        with storage_errors(self):
            self.fs.invalidate_cache()
            found = self.fs.find(self.path) if self.fs.exists(self.path) else []
            return sorted(path.removeprefix(inside) for path in found if path.startswith(inside))

    def read(self, most: int | None = None) -> bytes:
        """The file's bytes; one of more than ``most`` is refused, and so is a pipe or a device, which may not end."""
        if self.is_special():
            raise JobError(f"{self.url}: is a pipe or a device; a regular file is needed.")
        with storage_errors(self):
            if most is not None and self.fs.size(self.path) > most:
                raise InputError(f"{self.url}: has more than {most:,} bytes, which is too large for what it should be.")
            return bytes(self.fs.cat_file(self.path))

    def is_special(self) -> bool:
        """Whether there is something local that is neither a file nor a folder: a pipe, a socket, a device."""
        if not self.local:
            return False
        try:
            mode = os.stat(self.path).st_mode
        except OSError:
            return False
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))

    def unsafe(self, name: str) -> str | None:
        """What is wrong with a name below here that should be a file of this folder: a link that leaves it, a pipe."""
        if not self.local:
            return None
        file = self / name
        if file.is_special():
            return "is a pipe or a device"
        return None if self.contains(file) else "is a link that leaves the release"

    def map(self) -> Any:
        """The file's bytes as a buffer; a local file is mapped, not read."""
        if not self.local:
            return self.read()
        with storage_errors(self), open(self.path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.path.getsize(self.path) else b""

    @contextmanager
    def replaced(self, mode: int | None = None) -> Iterator[Any]:
        """A file to write to that takes this place when the block ends well: a reader sees the old bytes or the new."""
        with storage_errors(self, writing=True):
            if not self.local:
                with _upload(self.fs, self.path) as file:
                    yield file
                return
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with _temporary(self.path, mode) as (file, temporary):
                yield file
                file.flush()
                _settle(temporary)
                os.replace(temporary, self.path)
            _settle(os.path.dirname(self.path))

    def write(self, data: Any, mode: int | None = None) -> None:
        """Write the file whole, a local one with these rights."""
        with self.replaced(mode) as file:
            file.write(data)

    def size(self) -> int:
        """The file's bytes."""
        with storage_errors(self):
            return int(self.fs.size(self.path))

    def create(self, data: bytes, *, mode: int | None = None) -> None:
        """Write the file only if there is none; of two who try, one gets a TargetError."""
        try:
            with storage_errors(self, writing=True, conditional=True):
                if not self.local:
                    self.fs.pipe_file(self.path, data, mode="create")
                    return
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
                with _temporary(self.path, mode) as (file, temporary):
                    file.write(data)
                    file.flush()
                    _settle(temporary)
                    os.link(temporary, self.path)
                _settle(os.path.dirname(self.path))
        except _NameTaken:
            raise TargetError(f"{self.url}: another run has just published here. Look at its release first.") from None

    def replace(self, data: bytes, version: str) -> None:
        """Write the file only if it is still the version that was seen. A local folder must be locked by the caller."""
        if self.version() != version:
            raise self._changed()
        if self.local or not hasattr(self.fs, "call_s3"):
            self.write(data)
            return
        try:
            with storage_errors(self, writing=True, conditional=True):
                self.fs.pipe_file(self.path, data, IfMatch=f'"{version}"')
        except _NameTaken:
            raise self._changed() from None

    def _changed(self) -> TargetError:
        return TargetError(f"{self.url}: changed while this run was under way. Look at it first.")

    def version(self) -> str:
        """What changes when the file does: its ETag, or its size and time."""
        with storage_errors(self):
            self.fs.invalidate_cache()
            return version_of(self.fs.info(self.path))

    def bring_to(self, target: Place) -> None:
        """Have the file in another place, too: as a second name on one disk, by the store itself inside one."""
        if type(self.fs) is not type(target.fs):
            target.write(self.read())
            return
        with storage_errors(self):
            self.fs.info(self.path)
        with storage_errors(target, writing=True):
            if not self.local:
                self.fs.cp_file(self.path, target.path)
                return
            folder = os.path.dirname(target.path)
            os.makedirs(folder, exist_ok=True)
            with _beside(target.path) as temporary:
                _link_or_copy(self.path, temporary)
                os.replace(temporary, target.path)
            _settle(folder)

    def remove(self, names: list[str]) -> None:
        """Delete these files below here, then the folders they leave empty; an error if any stays."""
        if not names:
            return
        with storage_errors(self, writing=True):
            self.fs.rm([posixpath.join(self.path, name) for name in names])
        if self.local:
            for folder in sorted({posixpath.dirname(name) for name in names}, key=len, reverse=True):
                _remove_empty(self.path, folder)
        left = set(names) & set(self.files())
        if left:
            raise AccessError(f"{self.url}: {len(left)} old files could not be deleted, such as {min(left)}.")

    def make_private(self) -> None:
        """Make a local folder that nobody but this user can look into; one that others can is refused."""
        if not self.local:
            return
        with storage_errors(self, writing=True):
            os.makedirs(self.path, mode=0o700, exist_ok=True)
        self.require_private()

    def require_private(self) -> None:
        """Refuse a local folder, if it is there, that others can look into. A store's own rules are not seen."""
        with suppress(OSError):
            rights = stat.S_IMODE(os.stat(self.path).st_mode) if self.local else 0
            if rights & 0o077:
                raise AccessError(
                    f"{self.url}: must be for its owner only, as what it holds shows records; its mode is "
                    f"{rights:04o}. Type: chmod 700 {self.path}"
                )

    def clear(self) -> None:
        """Delete the folder and all that is in it, if it is there."""
        if not self.local:
            self.remove(self.files())
        elif os.path.isdir(self.path):
            with storage_errors(self, writing=True):
                shutil.rmtree(self.path)


def read_ranges(places: Sequence[Place], starts: Sequence[int], ends: Sequence[int]) -> list[bytes]:
    """Bytes starts..ends-1 of files of one store, asked for at once: from far away, many take no longer than one."""
    if not places:
        return []
    found = places[0].fs.cat_ranges([place.path for place in places], list(starts), list(ends), on_error="return")
    for place, one in zip(places, found, strict=True):
        if isinstance(one, Exception):
            with storage_errors(place):
                raise one
    return list(found)


def version_of(info: dict[str, Any]) -> str:
    """A file's version by its listing."""
    etag = info.get("ETag") or info.get("etag")
    if etag:
        return str(etag).strip('"')
    return f"{info.get('size')}-{info.get('mtime') or info.get('LastModified') or info.get('last_modified')}"


class _NameTaken(Exception):  # noqa: N818 - caught here, never seen
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
            raise _NameTaken from None
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


@contextmanager
def flocked(folder: str) -> Iterator[None]:
    """Have a local folder to oneself, as long as others ask for it, too; where folders have no locks, nobody minds.

    A BlockingIOError if it is taken. The lock ends with the process, however that ends.
    """
    number = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            pass
        yield
    finally:
        os.close(number)


@contextmanager
def _upload(fs: Any, path: str) -> Iterator[Any]:
    """A file in a store, there when the block ends well and not at all otherwise."""
    file = fs.open(path, "wb", block_size=_UPLOAD)
    try:
        yield file
    except BaseException:
        # fsspec finishes an upload when its file is closed, also a broken one: throw it away, leave nothing to close
        file.discard()
        with suppress(AttributeError):
            file.closed = True
        raise
    file.close()


@contextmanager
def _beside(path: str) -> Iterator[str]:
    """A name beside ``path`` for a file that is gone afterwards, whatever happens."""
    temporary = f"{path}.{uuid.uuid4().hex}.part"
    try:
        yield temporary
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


@contextmanager
def _temporary(path: str, mode: int | None) -> Iterator[tuple[Any, str]]:
    """A new file beside ``path`` for the moment, and its name."""
    with _beside(path) as temporary, open(temporary, "xb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        yield file, temporary


def _link_or_copy(source: str, target: str) -> None:
    """A link costs nothing but keeps the old folder's group: the file gets the one a new file would have."""
    try:
        os.link(source, target)
    except OSError:  # another disk
        shutil.copyfile(source, target)
        _settle(target)
        return
    folder = os.stat(os.path.dirname(target))
    if folder.st_mode & stat.S_ISGID:
        with suppress(PermissionError):
            os.chown(target, -1, folder.st_gid)


def _settle(path: str) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _remove_empty(root: str, folder: str) -> None:
    while folder:
        try:
            os.rmdir(os.path.join(root, folder))
        except OSError:
            return
        folder = posixpath.dirname(folder)
