"""A journal of the results of passes, so that a run that was killed need not compute them again.

The result of a pass follows from job, key and input alone, whatever the workers. So whoever runs a job may keep a
journal: each pass reads it first and adds to it afterwards. A pass is known by its label, its blocks and all passes
before it. What the journal lacks is computed, so an entry that was lost costs time and nothing else.

Entries are pickled; when they are read back, only plain containers, arrays and our own records of them are let in.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import pickle
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import is_dataclass
from typing import Any, Protocol

from dpmask.engine import progress
from dpmask.engine.draws import Subkey
from dpmask.engine.limits import current_limits
from dpmask.errors import StorageError

_AT_ONCE = 4 << 20
_LARGEST = 16 << 20
_MOST = 256 << 20
_PLAIN = {
    "builtins": {"bytearray", "complex", "frozenset", "range", "set", "slice"},
    "collections": {"Counter", "OrderedDict", "defaultdict"},
    "datetime": {"date", "datetime", "timedelta"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
}

Write = Callable[[dict[str, bytes]], None]


class JournalFiles(Protocol):
    """Files for what is costly to compute and too large for the driver: workers put it there and get it back."""

    def put(self, name: str, data: bytes) -> None:
        """Keep these bytes."""

    def get(self, name: str) -> bytes | None:
        """The bytes that were kept; none, if they are not there whole."""


class Journal:
    """Results found by an earlier run, and those of this one on their way to where ``write`` puts them."""

    def __init__(self, found: Mapping[str, bytes], write: Write, store: JournalFiles, *, resumed: bool) -> None:
        self.passes = self.files = 0
        self.store, self.resumed = store, resumed
        self._reported = not resumed
        self._found, self._write = dict(found), write
        self._name = ""
        self._new: dict[str, bytes] = {}
        self._size = sum(map(len, found.values()))
        self._started = self._written = time.monotonic()

    def named(self, label: str, spans: Iterable[tuple[int, int]]) -> str:
        """The name of the next pass: a hash of its label, its blocks and the name of the one before."""
        blocks = array("q", [number for span in spans for number in span])
        self._name = hashlib.sha256(f"{self._name} {label} ".encode() + blocks.tobytes()).hexdigest()
        return self._name

    def take(self, name: str) -> tuple[Any] | None:
        """What is known under a name, if anything is."""
        payload = self._found.pop(name, None)
        if payload is None:
            return None
        try:
            return (loads(payload),)
        except Exception:  # of another build, say: it is computed again
            return None

    def keep(self, name: str, result: Any) -> Any:
        """Note a result. It is given back as it will be read, to the last bit of an array's layout."""
        try:
            payload = dumps(result)
            result = loads(payload)
        except Exception:
            return result
        if len(payload) <= _LARGEST and self._size + len(payload) <= _MOST:
            self._new[name] = payload
            self._size += len(payload)
        now = time.monotonic()
        pause = max(current_limits().journal_seconds, current_limits().journal_share * (now - self._started))
        if now - self._written >= pause or sum(map(len, self._new.values())) >= _AT_ONCE:
            self.flush()
        return result

    def flush(self) -> None:
        """Write what is new; where storage fails just now it is tried again later."""
        self._written = time.monotonic()
        if self._new:
            with suppress(StorageError):
                self._write(self._new)
                self._new = {}

    def report(self) -> None:
        """Report how much is known, once there is something to compute."""
        if not self._reported:
            self._reported = True
            progress.note(f"resumed: {self.passes} passes and {self.files} files taken from the checkpoint")


_journal: ContextVar[Journal | None] = ContextVar("dpmask_journal", default=None)


@contextmanager
def journalled(journal: Journal | None) -> Iterator[None]:
    """Keep a journal of every pass inside the block; of none, with None."""
    token = _journal.set(journal)
    try:
        yield
    finally:
        _journal.reset(token)


def flush() -> None:
    """Write what the journal has, if there is one: a stage is over."""
    journal = _journal.get()
    if journal is not None:
        journal.flush()


def resuming() -> bool:
    """Whether what follows may be in the journal of an earlier run."""
    journal = _journal.get()
    return journal is not None and journal.resumed


def through_journal(label: str, spans: Iterable[tuple[int, int]], compute: Callable[[], Any]) -> Any:
    """The result of a pass: from the journal, or computed and noted there. Passes inside it are a part of it."""
    journal = _journal.get()
    if journal is None:
        return compute()
    name = journal.named(label, spans)
    known = journal.take(name)
    if known is not None:
        journal.passes += 1
        return known[0]
    journal.report()
    with journalled(None):
        result = compute()
    return journal.keep(name, result)


def journal_files(label: str, spans: Iterable[tuple[int, int]]) -> tuple[JournalFiles | None, str, bool]:
    """Where a pass may keep its tasks' results, under which name, and whether an earlier run may have done so."""
    journal = _journal.get()
    if journal is None:
        return None, "", False
    return journal.store, journal.named(label, spans)[:32], journal.resumed


class FileEntries:
    """The results of runs of blocks in a pass whose results are files: each is noted under its first block's number."""

    def __init__(self, label: str, spans: Sequence[tuple[int, int]]) -> None:
        self._journal = _journal.get()
        self._name = self._journal.named(label, spans) if self._journal else ""
        self.known = {number: found[0] for number, _ in spans if (found := self._taken(number)) is not None}

    def _taken(self, number: int) -> tuple[Any] | None:
        return self._journal.take(f"{self._name} {number}") if self._journal else None

    def found(self, files: int) -> None:
        """Note how many of the known files are still there."""
        if self._journal:
            self._journal.files += files
            self._journal.report()

    def keep(self, number: int, result: Any) -> None:
        """Note the result of the run that begins with this block."""
        if self._journal:
            self._journal.keep(f"{self._name} {number}", result)


class _EntryUnpickler(pickle.Unpickler):
    """Lets in containers, arrays, and our own tuples and dataclasses; no function, and no key."""

    def find_class(self, module: str, name: str) -> Any:
        if name in _PLAIN.get(module, ()):
            return getattr(importlib.import_module(module), name)
        if module.startswith("dpmask.") and name.isidentifier():
            found = getattr(importlib.import_module(module), name, None)
            if isinstance(found, type) and _is_record(found) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a journal")


def _is_record(kind: type) -> bool:
    return (issubclass(kind, tuple) or is_dataclass(kind)) and not issubclass(kind, Subkey)


def dumps(result: Any) -> bytes:
    """An entry's bytes."""
    return pickle.dumps(result, protocol=5)


def loads(payload: bytes) -> Any:
    """An entry from its bytes."""
    return _EntryUnpickler(io.BytesIO(payload)).load()
