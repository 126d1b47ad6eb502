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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from dpmask.errors import AccessError, DpmaskError, InputError, JobError, StorageError, TargetError

_EXTRAS = {"s3": "s3", "s3a": "s3"}
_UPLOAD = 16 << 20
_CREDENTIALS = re.compile(r"\w+://[^/]*@")


class Place:
    """A file or folder behind a URL."""

    def __init__(self, url: str) -> None:
        if _CREDENTIALS.match(url):
            raise JobError("A user or password does not belong in a URL. Give it in the environment.")
        if not url.strip() or "\0" in url:
            raise JobError(f"{url!r} is not a path or a URL.")
        self.url = url
        protocol = url.split("://", 1)[0] if "://" in url else "file"
        try:
            self.fs, path = fsspec.core.url_to_fs(url)
        except ImportError:
            extra = _EXTRAS.get(protocol)
            hint = f"pip install 'dpmask[{extra}]'" if extra else f"the fsspec package for {protocol}"
            raise JobError(f"{url}: reading {protocol}:// needs {hint}.") from None
        except ValueError:
            raise JobError(f"{url}: '{protocol}' is not a protocol that fsspec knows.") from None
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
        with storage_errors(self.url):
            self.fs.invalidate_cache()
            return bool(self.fs.exists(self.path))

    def files(self) -> list[str]:
        """The paths of all files below, relative to here, sorted. Of an empty folder some stores list itself."""
        inside = f"{self.path.rstrip('/')}/"
        with storage_errors(self.url):
            self.fs.invalidate_cache()
            found = self.fs.find(self.path) if self.fs.exists(self.path) else []
            return sorted(path.removeprefix(inside) for path in found if path.startswith(inside))

    def read(self) -> bytes:
        """The file's bytes."""
        with storage_errors(self.url):
            return bytes(self.fs.cat_file(self.path))

    def map(self) -> Any:
        """The file's bytes as a buffer; a local file is mapped, not read."""
        if not self.local:
            return self.read()
        with storage_errors(self.url), open(self.path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.path.getsize(self.path) else b""

    @contextmanager
    def replaced(self) -> Iterator[Any]:
        """A file to write to that takes this place when the block ends well: a reader sees the old bytes or the new."""
        with storage_errors(self.url, writing=True):
            if not self.local:
                with _upload(self.fs, self.path) as file:
                    yield file
                return
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with _temporary(self.path) as (file, temporary):
                yield file
                file.flush()
                _settle(temporary)
                os.replace(temporary, self.path)
            _settle(os.path.dirname(self.path))

    def write(self, data: Any) -> None:
        """Write the file whole."""
        with self.replaced() as file:
            file.write(data)

    def create(self, data: bytes) -> None:
        """Write the file only if there is none; of two who try, one gets a TargetError."""
        try:
            with storage_errors(self.url, writing=True, conditional=True):
                if not self.local:
                    self.fs.pipe_file(self.path, data, mode="create")
                    return
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
                with _temporary(self.path) as (file, temporary):
                    file.write(data)
                    file.flush()
                    _settle(temporary)
                    os.link(temporary, self.path)
                _settle(os.path.dirname(self.path))
        except _Taken:
            raise TargetError(f"{self.url}: another run has just published here. Look at its release first.") from None

    def replace(self, data: bytes, version: str) -> None:
        """Write the file only if it is still the version that was seen."""
        with ExitStack() as stack:
            if self.local:  # of two who replace it, one looks after the other has written
                stack.enter_context(_locked(os.path.dirname(self.path), wait=True))
            if self.version() != version:
                raise self._changed()
            if self.local or not hasattr(self.fs, "call_s3"):
                self.write(data)
                return
        try:
            with storage_errors(self.url, writing=True, conditional=True):
                self.fs.pipe_file(self.path, data, IfMatch=f'"{version}"')
        except _Taken:
            raise self._changed() from None

    def _changed(self) -> TargetError:
        return TargetError(f"{self.url}: changed while this run was under way. Look at it first.")

    def version(self) -> str:
        """What changes when the file does: its ETag, or its size and time."""
        with storage_errors(self.url):
            self.fs.invalidate_cache()
            return version_of(self.fs.info(self.path))

    def bring_to(self, target: Place) -> None:
        """Have the file in another place, too: as a second name on one disk, by the store itself inside one."""
        if type(self.fs) is not type(target.fs):
            target.write(self.read())
            return
        with storage_errors(self.url):
            self.fs.info(self.path)
        with storage_errors(target.url, writing=True):
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
        with storage_errors(self.url, writing=True):
            self.fs.rm([posixpath.join(self.path, name) for name in names])
        if self.local:
            for folder in sorted({posixpath.dirname(name) for name in names}, key=len, reverse=True):
                _remove_empty(self.path, folder)
        left = set(names) & set(self.files())
        if left:
            raise AccessError(f"{self.url}: {len(left)} old files could not be deleted, such as {min(left)}.")

    def make_private(self) -> None:
        """Make a local folder that nobody but this user can look into; one that is there keeps its rights."""
        if self.local:
            with storage_errors(self.url, writing=True):
                os.makedirs(self.path, mode=0o700, exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Have a local folder to oneself: a second run that asks for it meanwhile is refused. A store has no locks."""
        if not self.local:
            yield
            return
        self.make_private()
        try:
            with _locked(self.path, wait=False):
                yield
        except BlockingIOError:
            raise StorageError(f"{self.url}: this very job is being run. Wait for it, then run it again.") from None

    def clear(self) -> None:
        """Delete the folder and all that is in it, if it is there."""
        if not self.local:
            self.remove(self.files())
        elif os.path.isdir(self.path):
            with storage_errors(self.url, writing=True):
                shutil.rmtree(self.path)


def version_of(info: dict[str, Any]) -> str:
    """A file's version by its listing."""
    etag = info.get("ETag") or info.get("etag")
    if etag:
        return str(etag).strip('"')
    return f"{info.get('size')}-{info.get('mtime') or info.get('LastModified') or info.get('last_modified')}"


class _Taken(Exception):  # noqa: N818 - caught here, never seen
    """A conditional write found somebody else's file."""


@contextmanager
def storage_errors(url: str, *, writing: bool = False, conditional: bool = False) -> Iterator[None]:
    """Turn what a file system raises into our errors, which name the place and no secret."""
    try:
        yield
    except DpmaskError:
        raise
    except Exception as error:
        if conditional and (isinstance(error, FileExistsError) or "pre-conditions" in str(error)):
            raise _Taken from None
        raise _translated(error, url, writing) from None


def _translated(error: Exception, url: str, writing: bool) -> Exception:
    kind = type(error).__name__
    number = getattr(error, "errno", None)
    if isinstance(error, PermissionError) or "Credentials" in kind or number in {errno.EROFS, errno.EPERM}:
        deed = "write to" if writing else "read"
        return AccessError(f"{url}: no permission to {deed} it. Check the credentials or the rights of this user.")
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
    if isinstance(error, OSError) or type(error).__module__.split(".")[0] in {"botocore", "aiobotocore", "aiohttp"}:
        return StorageError(f"{url}: storage failed ({kind}). Run the job again.")
    return error


@contextmanager
def _locked(folder: str, *, wait: bool) -> Iterator[None]:
    """Have a local folder to oneself, as long as others ask for it, too; where folders have no locks, nobody minds.

    Who does not wait gets a BlockingIOError if it is taken. The lock ends with the process, however that ends.
    """
    number = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
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
def _temporary(path: str) -> Iterator[tuple[Any, str]]:
    """A new file beside ``path`` for the moment, and its name."""
    with _beside(path) as temporary, open(temporary, "xb") as file:
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
