"""Compiled kernels on disk, under a stamp of everything that machine code follows from.

numba's own cache looks at the file of the function that is called and not at those it calls into, and two processes
that compile at once may give one file to two kernels. Here the folder's name is a digest of all kernels' sources and of
the compiler, and a file's name one of the kernel and its types: what was compiled from something else is never found.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from dpmask.kernels.target import pin_target

pin_target()  # the stamp must not depend on which module is imported first

import llvmlite  # noqa: E402
import numba  # noqa: E402
import numpy as np  # noqa: E402
from llvmlite.binding import add_symbol  # noqa: E402
from numba.core.caching import _Cache  # noqa: E402
from numba.core.compiler import CompileResult  # noqa: E402
from numba.core.runtime import _nrt_python  # noqa: E402
from numba.core.serialize import dumps  # noqa: E402

_SOURCES = Path(__file__).parent
_SHIPPED = _SOURCES / "compiled"  # what a wheel for one platform carries; never written to
_FOLDER = re.compile(r"kernels-[0-9a-f]{20}")
_DAY = 86400.0
_UNUSED = 30 * _DAY


@cache
def stamp(sources: Path = _SOURCES) -> str:
    """A digest of all kernels' sources, the versions of the compiler, and the target."""
    config = numba.config
    versions = (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__)
    digest = hashlib.sha256(repr((versions, sys.platform, config.CPU_NAME, config.CPU_FEATURES)).encode())
    for path in sorted(sources.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"\n{path.relative_to(sources).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:20]


@cache
def folders() -> tuple[Path, ...]:
    """Where kernels may lie. The first that can be written takes new ones; all are read.

    NUMBA_CACHE_DIR and nothing else if it is set; otherwise what came with the package, which is only read, a folder
    beside it, which an image may carry, the user's cache, and a private folder among the temporary files.
    """
    named, home = os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("HOME")
    user = os.environ.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else "")
    others = [_SHIPPED, _SOURCES / "__pycache__", user and Path(user) / "dpmask", _private_temporary()]
    roots = [named] if named else others
    return tuple(Path(root).absolute() / f"kernels-{stamp()}" for root in roots if root)


def _private_temporary() -> Path | None:
    """A folder that only this user can write to: whoever puts a file there has us run it."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"dpmask-{user}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        return folder if status.st_uid == user and not status.st_mode & 0o022 else None
    return None


@cache
def writable_folder() -> Path | None:
    """The first folder that new kernels can be written to; None if there is none."""
    ours = (folder for folder in folders() if folder.parent != _SHIPPED.absolute())
    found = next((folder for folder in ours if _can_be_written(folder)), None)
    if found is not None:
        delete_unused(found.parent)
    return found


def delete_unused(root: Path) -> None:
    """Delete kernels of other versions that nobody has used for 30 days.

    A process that was about to use one after all compiles it again, as it does whenever a file is not there.
    """
    for folder in root.glob("kernels-*"):
        with suppress(OSError):
            old = time.time() - folder.lstat().st_mtime > _UNUSED
            if old and _FOLDER.fullmatch(folder.name) and folder.name != f"kernels-{stamp()}":
                shutil.rmtree(folder, ignore_errors=True)  # which leaves a link, and what it leads to, alone


@cache
def _note_use(folder: Path) -> None:
    """Have the folder's time say that it is in use, to a day."""
    with suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)


def _can_be_written(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


_watchers: list[Callable[[str], None]] = []


@contextmanager
def watching(watcher: Callable[[str], None]) -> Iterator[None]:
    """Call with the name of each kernel that is compiled in this process during the block, before it is."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def kept_kernels() -> set[str]:
    """The names of all kernels on disk, with their variants."""
    return {file.name.rpartition("-")[0] for file in _files()}


def kept_size() -> int:
    """The bytes of all kernels on disk."""
    return sum(file.stat().st_size for file in _files())


def _files() -> list[Path]:
    found: list[Path] = []
    for folder in folders():
        with suppress(OSError):
            found += [file for file in folder.iterdir() if not file.name.startswith("new-")]
    return found


@cache
def _provide_runtime() -> None:
    """What machine code that allocates arrays calls. All else that numba would load first is for compiling."""
    for name, address in _nrt_python.c_helpers.items():
        add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class KernelCache(_Cache):  # type: ignore[misc]
    """The compiled forms of one kernel, one file for each set of argument types."""

    def __init__(self, function: Callable[..., object], variant: tuple[object, ...] = ()) -> None:
        name = f"{function.__module__}.{function.__name__}".removeprefix("dpmask.kernels.")
        self.name = "-".join([name, *map(str, variant)])

    @property
    def cache_path(self) -> str:
        """Where new forms are kept."""
        return str(writable_folder() or "")

    def _file(self, types: Any) -> str:
        return f"{self.name}-{hashlib.sha256(str(types).encode()).hexdigest()[:16]}"

    def load_overload(self, types: Any, context: Any) -> Any:
        """The form for these types, None if it is not kept anywhere or cannot be read."""
        _provide_runtime()
        for folder in folders():
            with suppress(Exception):  # a file that is not there, or that a failing disk changed in any way
                kept = pickle.loads((folder / self._file(types)).read_bytes())  # noqa: S301 - a folder of this user's
                found = CompileResult._rebuild(context, *kept)
                _note_use(folder)
                return found
        for watcher in _watchers:
            watcher(self.name)
        return None

    def save_overload(self, types: Any, result: Any) -> None:
        """Keep a form, whole or not at all; without a folder, or with a full disk, it is compiled again next time."""
        folder = writable_folder()
        if folder is None:
            return
        with suppress(OSError):
            form = result._replace(type_annotation="")  # a text with paths of this machine
            with tempfile.NamedTemporaryFile(dir=folder, prefix="new-", delete=False) as file:
                file.write(dumps(form._reduce()))
            os.replace(file.name, folder / self._file(types))

    def enable(self) -> None:
        """It always is."""

    def disable(self) -> None:
        """It never is."""

    def flush(self) -> None:
        """Nothing waits to be written."""
