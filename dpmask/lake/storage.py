"""Files anywhere fsspec reaches: paths, whole-file reads and writes, conditional puts.

Credentials come from the environment or the cloud's own chain, on the driver and on each worker; none is ever passed.
"""

from __future__ import annotations

import logging
import mmap
import os
import posixpath
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from dpmask.errors import AccessError, InputError, JobError, TargetError, printable
from dpmask.lake import local_files
from dpmask.lake.storage_errors import NameTaken, storage_errors

OWNER_ONLY = 0o600
"""The rights of a file that nobody but its owner may read."""
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfs", "az": "abfs"}
_CONNECTIONS = 64
_UPLOAD = 16 << 20
_LONGEST_URL = 8192
_CREDENTIALS = re.compile(r"\w+://[^/]*@")
_ONE_SLASH = re.compile(rf"({'|'.join(_EXTRAS)}|https?|hdfs|file):/(?!/)")
logging.getLogger("gcsfs").addHandler(logging.NullHandler())  # what it prints of an error, it also raises


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
        if _ONE_SLASH.match(url):
            raise JobError(f"{self.url}: a URL has two slashes after its protocol, such as s3://bucket/folder.")
        protocol = url.split("://", 1)[0] if "://" in url else "file"
        try:
            self.fs, path = fsspec.core.url_to_fs(url, **_options(protocol))
        except ImportError:
            extra = _EXTRAS.get(protocol)
            hint = f"pip install 'dpmask[{extra}]'" if extra else f"the fsspec package for {protocol}"
            raise JobError(f"{url}: reading {protocol}:// needs {hint}.") from None
        except ValueError:
            if protocol in fsspec.available_protocols():
                raise JobError(
                    f"{self.url}: {protocol}:// cannot be opened: the environment names no account, or no credentials."
                ) from None
            raise JobError(f"{self.url}: '{protocol}' is not a protocol that fsspec knows.") from None
        except OSError as error:  # Hadoop's file system is connected here
            raise JobError(
                f"{self.url}: {protocol}:// cannot be opened ({type(error).__name__}): its client is not installed on "
                "this machine, or nobody answers there. Copy the lake to a disk or an object store, or install it."
            ) from None
        self.local = isinstance(self.fs, LocalFileSystem)
        self.path = os.path.abspath(path) if self.local else path.rstrip("/")
        if not self.path and protocol in _EXTRAS:
            raise JobError(f"{self.url}: names no bucket. Give one, such as {protocol}://bucket/folder.")

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
    def replaced(self, mode: int | None = None, *, settled: bool = True) -> Iterator[Any]:
        """A file to write to that takes this place when the block ends well: a reader sees the old bytes or the new.

        One that need not be ``settled`` may be damaged if the machine goes down: who reads it after that must check it.
        """
        with storage_errors(self, writing=True):
            if not self.local:
                with _upload(self.fs, self.path) as file:
                    yield file
                return
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with local_files.temporary(self.path, mode) as (file, temporary):
                yield file
                file.flush()
                if settled:
                    local_files.settle(temporary)
                os.replace(temporary, self.path)
            if settled:
                local_files.settle(os.path.dirname(self.path))

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
                with local_files.temporary(self.path, mode) as (file, temporary):
                    file.write(data)
                    file.flush()
                    local_files.settle(temporary)
                    os.link(temporary, self.path)
                local_files.settle(os.path.dirname(self.path))
        except NameTaken:
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
        except NameTaken:
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
            with local_files.beside(target.path) as temporary:
                local_files.link_or_copy(self.path, temporary)
                os.replace(temporary, target.path)
            local_files.settle(folder)

    def remove(self, names: list[str]) -> None:
        """Delete these files below here, then the folders they leave empty; an error if any stays."""
        if not names:
            return
        with storage_errors(self, writing=True):
            self.fs.rm([posixpath.join(self.path, name) for name in names])
        if self.local:
            for folder in sorted({posixpath.dirname(name) for name in names}, key=len, reverse=True):
                local_files.remove_empty(self.path, folder)
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
