"""Folders that one run at a time has to itself, on disks and in object stores.

On a disk the kernel locks the folder, and lets go when the process ends, however it ends. In a store a small file is
the lock: put there only if there is none, and rewritten every few seconds by its owner. Who finds one watches it: if it
changes, its owner is alive; if it stays as it is, its owner is dead and the lock is taken over. No clock is compared.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from dpmask.engine.limits import current_limits
from dpmask.errors import DpmaskError, InputError, TargetError
from dpmask.lake.local_files import flocked
from dpmask.lake.storage import Place
from dpmask.lake.storage_errors import storage_errors

LOCK = "dpmask.lock"
"""The file in a store that is a folder's lock: a random name of its owner and how often it was renewed, no more."""
_CONTENT = re.compile(rb'\{"owner": "[0-9a-f]{32}", "beats": \d{1,12}\}')
_LARGEST = 100


@contextmanager
def locked(folder: Place, busy: DpmaskError) -> Iterator[None]:
    """Have a folder to oneself, or raise ``busy`` at once and touch nothing."""
    with ExitStack() as stack:
        if folder.local:
            if not os.path.isdir(folder.path):
                with storage_errors(folder, writing=True):
                    os.makedirs(folder.path, exist_ok=True)
                stack.callback(_remove_if_empty, folder.path)
            try:
                stack.enter_context(flocked(folder.path))
            except (BlockingIOError, FileNotFoundError):  # somebody has it, or just took it away again
                raise busy from None
        else:
            stack.enter_context(_kept_alive(_Lease.of(folder / LOCK, busy)))
        yield


def is_lock(place: Place) -> bool:
    """Whether a file of that name, seen in a folder, is the lock of a run: in a store, and with a lock's content."""
    if place.local:
        return False
    try:
        if place.size() > _LARGEST:
            return False
        return _CONTENT.fullmatch(place.read()) is not None
    except InputError:  # given back since it was seen
        return True


def _remove_if_empty(path: str) -> None:
    with suppress(OSError):
        os.rmdir(path)


class _Lease:
    """A lock file in a store that is ours."""

    def __init__(self, place: Place) -> None:
        self.place, self.owner, self.beats = place, uuid.uuid4().hex, 0
        self.version = ""

    @classmethod
    def of(cls, place: Place, busy: DpmaskError) -> _Lease:
        """A new lease: on a file that was not there, or in place of one whose owner is dead."""
        lease = cls(place)
        try:
            place.create(lease._content())
            lease.version = place.version()
        except TargetError:
            lease._take_over(busy)
        if not lease.ours():
            raise busy
        return lease

    def _take_over(self, busy: DpmaskError) -> None:
        """Replace a lock that does not change for a while; of several who try, one does it."""
        try:
            found = self.place.version()
            patience = time.monotonic() + current_limits().lock_patience
            while time.monotonic() < patience:
                time.sleep(current_limits().lock_seconds / 4)
                if self.place.version() != found:
                    raise busy
            self.version = found
            self.renew()
        except (InputError, TargetError):  # it was just given back, or another one was quicker
            raise busy from None

    def ours(self) -> bool:
        """Whether the file in the store is still the one that we wrote."""
        with suppress(InputError, ValueError, TypeError):
            return bool(json.loads(self.place.read())["owner"] == self.owner)
        return False

    def renew(self) -> None:
        """Show that we are alive; a TargetError if somebody thought otherwise."""
        self.beats += 1
        self.place.replace(self._content(), self.version)
        self.version = self.place.version()

    def give_back(self) -> None:
        """Delete the file, if it is ours."""
        with suppress(DpmaskError):
            if self.ours():
                self.place.parent.remove([LOCK])

    def _content(self) -> bytes:
        return json.dumps({"owner": self.owner, "beats": self.beats}).encode()


@contextmanager
def _kept_alive(lease: _Lease) -> Iterator[None]:
    """Renew the lease every few seconds in a thread of its own, and give it back at the end."""
    over, seconds = threading.Event(), current_limits().lock_seconds

    def renew() -> None:
        while not over.wait(seconds):
            with suppress(DpmaskError):  # storage may be away for a while; the manifest is put conditionally anyway
                lease.renew()

    thread = threading.Thread(target=renew, name="dpmask-lock", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        lease.give_back()
