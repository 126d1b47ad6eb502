"""The key of a job: its secret, from the environment, a file or the private folder, stretched with the release's salt.

The private folder keeps what a re-run needs to draw the same again: ``key``, if the job names no secret of its own, and
``salts/``, one for each name of a release. Both are random, and made by the first run.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from dpmask.engine.draws import Key, make_key
from dpmask.engine.secrets import HOW_TO_MAKE, SALT_BYTES, new_secret, require_strong
from dpmask.errors import AccessError, InputError, JobError, TargetError
from dpmask.job.model import Job
from dpmask.lake.storage import OWNER_ONLY, Place

_KEY, _SALTS = "key", "salts"
_LARGEST_FILE = 1 << 16
_HEX = re.compile(r"[0-9a-f]{32,}")


_hidden: dict[str, str] = {}
"""Variables that are out of the environment for now."""


@contextmanager
def hidden_key(key: object) -> Iterator[None]:
    """Have the variable of a job's ``key:`` out of the environment, so that processes started meanwhile lack it."""
    name = key.removeprefix("env:") if isinstance(key, str) and key.startswith("env:") else None
    value = os.environ.pop(name, None) if name else None
    if name is None or value is None:
        yield
        return
    _hidden[name] = value
    try:
        yield
    finally:
        os.environ[name] = _hidden.pop(name)


def refuse_seed(job: Job, *, trial: bool) -> None:
    """Refuse a seed but for trials: an integer is guessed in no time, and the masking undone."""
    if job.file.seed is not None and not trial:
        text = (
            "is for trials: whoever guesses it can undo the masking. For a release, take this line out: a key is made "
            "and kept in the private folder. For a trial, run it with --trial."
        )
        raise JobError(job.text.error(("seed",), text))


def secret_of(job: Job) -> str | None:
    """The secret that the job names, if it names one; one that is missing or weak is refused."""
    if job.file.key is None:
        return None
    kind, name = job.file.key.split(":", 1)
    secret = os.environ.get(name, _hidden.get(name)) if kind == "env" else _file_secret(job, name)
    if not secret:
        make = f"export {name}=$({HOW_TO_MAKE})" if kind == "env" else f"{HOW_TO_MAKE} > {name}"
        raise _refused(job, f"{name} is not set, empty or not readable. Make a key: {make}")
    try:
        require_strong(secret.encode(), "key")
    except JobError as error:
        raise _refused(job, str(error)) from None
    return secret


def _refused(job: Job, text: str) -> JobError:
    return JobError(job.text.error(("key",), text))


def _file_secret(job: Job, name: str) -> str | None:
    """The content of a key file. Only a regular one is opened: a pipe would wait, a device never end."""
    place = Place(name)
    try:
        if place.local and not stat.S_ISREG(os.stat(place.path).st_mode):
            raise _refused(job, f"{name} must be a regular file; it is a folder, a pipe or a device.")
        if place.size() > _LARGEST_FILE:
            raise _refused(job, f"{name} is no key: it has more than {_LARGEST_FILE:,} bytes.")
        return place.read().decode(errors="replace").strip()
    except (OSError, InputError, AccessError):
        return None


def key_of(job: Job, secret: str | None, private: Place, *, trial: bool, keep: bool) -> Key:
    """The key of a release; what the private folder lacks is made, and kept if it may be. A trial makes nothing."""
    if job.file.seed is not None or (trial and secret is None):
        made = make_key("seed", seed=job.file.seed or 0)
    else:
        secret = secret or kept(private / _KEY, new_secret, keep=keep)
        own = private / _SALTS / hashlib.sha256(job.file.name.encode()).hexdigest()[:32]
        salt = None if trial else kept(own, lambda: secrets.token_hex(SALT_BYTES), keep=keep)
        made = make_key("key", key=secret, salt=salt)
    assert isinstance(made, Key)
    return made


def kept(place: Place, make: Callable[[], str], *, keep: bool) -> str:
    """What an earlier run kept here, or something new. Of two runs that begin at once the second takes the first's."""
    with suppress(InputError):
        return _read(place)
    made = make()
    if keep:
        try:
            place.create(f"{made}\n".encode(), mode=OWNER_ONLY)
        except TargetError:
            return _read(place)
    return made


def _read(place: Place) -> str:
    text = place.read().decode(errors="replace").strip()
    if not _HEX.fullmatch(text):
        raise JobError(
            f"{place.url}: is damaged. Restore it from a backup to repeat the releases made with it, or delete it to "
            "have a new one made."
        )
    return text
