"""Files on a disk: locks of folders, names for the moment, bytes that are there for good."""

from __future__ import annotations

import fcntl
import os
import posixpath
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


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
def beside(path: str) -> Iterator[str]:
    """A name beside ``path`` for a file that is gone afterwards, whatever happens."""
    temporary = f"{path}.{uuid.uuid4().hex}.part"
    try:
        yield temporary
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


@contextmanager
def temporary(path: str, mode: int | None) -> Iterator[tuple[Any, str]]:
    """A new file beside ``path`` for the moment, and its name."""
    with beside(path) as temporary, open(temporary, "xb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        yield file, temporary


def link_or_copy(source: str, target: str) -> None:
    """A link costs nothing but keeps the old folder's group: the file gets the one a new file would have."""
    try:
        os.link(source, target)
    except OSError:  # another disk
        shutil.copyfile(source, target)
        settle(target)
        return
    folder = os.stat(os.path.dirname(target))
    if folder.st_mode & stat.S_ISGID:
        with suppress(PermissionError):
            os.chown(target, -1, folder.st_gid)


def settle(path: str) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def remove_empty(root: str, folder: str) -> None:
    """Remove a folder below the root, and those above it that are empty then, too."""
    while folder:
        try:
            os.rmdir(os.path.join(root, folder))
        except OSError:
            return
        folder = posixpath.dirname(folder)
