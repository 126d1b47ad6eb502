"""The checkpoint of a run: what its passes came to so far, in the private folder, to go on from after a failure.

It is written every few seconds, in segments that are never changed. What a pass came to may hold values of records, as
a sample does, so each is encrypted and authenticated under a subkey of the job's key for the header, which
identifies the run. A segment that is damaged or not ours is left out, and what it contained is computed again.
"""

from __future__ import annotations

import json
import os
import platform
import re
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dpmask import __version__
from dpmask.engine.cluster.same_workers import computing_libraries
from dpmask.engine.draws import Subkey
from dpmask.engine.journal import Journal, dumps, journalled, loads
from dpmask.errors import DpmaskError, InputError, JobError
from dpmask.job.prepare import PAIRING, SOURCE, STAGING, Prepared
from dpmask.lake.storage import OWNER_ONLY, Place
from dpmask.release.manifest import canonical

_FORMAT = "dpmask checkpoint 3"
_FOLDER, _HEADER = "checkpoint", "header.json"
_HEADERS = re.compile(rf"([0-9a-f]{{32}})/{_FOLDER}/{_HEADER}")
_SEGMENT = re.compile(r"[0-9a-f]{12}-\d{6,}")
_PERSISTED = "persisted"
_NONCE_BYTES = 12


class Checkpoint:
    """Where one run keeps what it has found."""

    def __init__(self, prepared: Prepared) -> None:
        self.private, self.place = prepared.private, prepared.private / prepared.run / _FOLDER
        self._standing = prepared.standing.run if prepared.standing else None
        self.identity = _identity(prepared)
        self._header = canonical(self.identity)
        self._seal = _Seal(prepared.key.subkey(f"checkpoint {self._header.decode()}"))
        self._attempt, self._written = uuid.uuid4().hex[:12], 0

    @contextmanager
    def journal(self, *, resume: bool) -> Iterator[Journal]:
        """A journal of the passes inside the block: one that goes on from the checkpoint, or a new one."""
        stands = resume and self._stands()
        if not stands:
            self._start(resume)
        journal = Journal(
            self._found(), self._write, _PersistedFiles(self.place / _PERSISTED, self._seal), resumed=stands
        )
        with journalled(journal):
            try:
                yield journal
            finally:
                with suppress(DpmaskError):  # must not hide why the block ended
                    journal.flush()

    def clear(self) -> None:
        """Delete it."""
        self.place.clear()

    def _stands(self) -> bool:
        """Whether there is a checkpoint of this run; one of another run of this job is refused."""
        own = _read(self.place / _HEADER)
        if own is None:
            for run, theirs in self._others():
                raise JobError(_refusal(self.private / run / _FOLDER, theirs, self.identity))
        elif own | {"series": None} == self.identity | {"series": None} and own != self.identity:
            return False  # another release was entered in its series: all must be counted again
        elif own != self.identity:
            raise JobError(_refusal(self.place, own, self.identity))
        return own is not None

    def _others(self) -> list[tuple[str, dict[str, Any]]]:
        """Other runs of this job with a checkpoint: of another key, other input, or before it was changed."""
        found = []
        for match in map(_HEADERS.fullmatch, self.private.files()):
            if match and match[1] != self.identity["run"]:
                theirs = _read(self.private / match[0]) or {}
                found += [(match[1], theirs)] if theirs.get("name") == self.identity["name"] else []
        return found

    def _start(self, resume: bool) -> None:
        """An empty checkpoint. Those of other runs of this job are of no use when none is to be resumed."""
        self.clear()
        for run, _ in [] if resume else self._others():
            self._abandon(run)
        (self.place / _HEADER).write(self._header, OWNER_ONLY)

    def _abandon(self, run: str) -> None:
        """Delete what another run left to go on from: its checkpoint last, as that shows there is something."""
        own = self.private / run
        released = run == self._standing or (own / SOURCE).exists()
        for folder in (STAGING, *([] if released else [PAIRING]), _FOLDER):
            (own / folder).clear()

    def _found(self) -> dict[str, bytes]:
        """The content of all intact segments."""
        found: dict[str, bytes] = {}
        for name in self.place.files():
            if _SEGMENT.fullmatch(name):
                body = self._seal.opened(name, (self.place / name).read())
                found |= {} if body is None else loads(zlib.decompress(body))
        return found

    def _write(self, entries: dict[str, bytes]) -> None:
        self._written += 1
        name = f"{self._attempt}-{self._written:06d}"
        body = zlib.compress(dumps(entries), level=1)
        (self.place / name).write(self._seal.closed(name, body), OWNER_ONLY)


class _Seal(NamedTuple):
    """AES-256-GCM under a subkey of the job's key for this header: hides a file, and shows if it is whole and ours."""

    key: Subkey

    def closed(self, name: str, body: bytes) -> bytes:
        """The bytes, encrypted, with their nonce before them."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.key.secret).encrypt(nonce, body, name.encode())

    def opened(self, name: str, data: bytes) -> bytes | None:
        """The bytes themselves, if they are what was kept under this name."""
        try:
            return AESGCM(self.key.secret).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], name.encode())
        except (InvalidTag, ValueError):  # changed, or too short to be anything
            return None


class _PersistedFiles(NamedTuple):
    """The files in which workers persist what is expensive to compute."""

    place: Place
    seal: _Seal

    def put(self, name: str, data: bytes) -> None:
        (self.place / name).write(self.seal.closed(name, data), OWNER_ONLY)

    def get(self, name: str) -> bytes | None:
        try:
            return self.seal.opened(name, (self.place / name).read())
        except InputError:
            return None


def _identity(prepared: Prepared) -> dict[str, Any]:
    """What must be the same for a checkpoint to be of use."""
    return {
        "format": _FORMAT,
        "name": prepared.job.file.name,
        "key": prepared.key.fingerprint,
        "source": prepared.versions,
        "run": prepared.run,
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "dpmask": __version__,
        **computing_libraries(),
        **({} if prepared.series is None else {"series": prepared.series.head}),
    }


def _refusal(place: Place, theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """Why a checkpoint cannot be used, by what differs first, and what to type."""
    differs = next(name for name in ours if theirs.get(name) != ours[name])
    reason = {
        "key": "is of a run with another key",
        "source": "is of a run on other source files, or they were written again since",
        "run": "is of another state of this job",
    }.get(differs, f"was written with {differs} {theirs.get(differs)}, this is {ours[differs]}")
    return f"{place.url}: the checkpoint {reason}. Run without --resume to start anew."


def _read(header: Place) -> dict[str, Any] | None:
    """The content of a header; nothing, if there is none or it is damaged."""
    try:
        return dict(json.loads(header.read()))
    except (InputError, ValueError, TypeError):
        return None
