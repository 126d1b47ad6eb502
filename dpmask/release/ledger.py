"""The ledger of a series: one entry for each release, which is never changed, and who was in it.

Entries are files of their own, entry-00001.json and so on, each put only if there is none of its number: of two runs
that end at once one wins, on disks and in object stores. Each holds the hash of the one before it, and its own; a run
that signs signs it. ``head.json`` counts them, so that a lost last entry is found. An entry stands before its release
is published: a run that dies in between leaves one that is counted though nobody saw it, never the reverse.

The people of an entry are those no earlier one has: keyed digests of their identifiers and values, three words of 64
bits each, the low byte first. Of a release that draws or averages the released rows are kept, too, by these digests:
later ones are attacked with it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from numpy.typing import NDArray

from dpmask.errors import InputError, StorageError, TargetError, VerificationError
from dpmask.lake.listing import MANIFEST
from dpmask.lake.locks import locked
from dpmask.lake.storage import OWNER_ONLY, Place
from dpmask.release.manifest import (
    LARGEST,
    check_signature,
    content_hash,
    own_signer,
    parse,
    read_json,
    require_spelling,
    sealed,
    spelled,
)

_FORMAT = "dpmask ledger 1"
_ENTRY = re.compile(r"entry-(\d{5,12})\.json")
_HEAD = "head.json"
_LARGEST = 64 << 20
_READS = 20
"""How often a ledger is read that changes meanwhile."""
_WORD = np.dtype("<u8")


class Entry(NamedTuple):
    """One release, as the ledger has it."""

    content: Mapping[str, Any]
    hash: str

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return int(self.content["number"])


class Ledger(NamedTuple):
    """A ledger whose entries have been checked, in their order."""

    place: Place
    name: str
    entries: tuple[Entry, ...]

    @property
    def head(self) -> str:
        """The hash of the last entry."""
        return self.entries[-1].hash if self.entries else ""

    def of_run(self, run: str) -> Entry | None:
        """The entry of a run, if it has one."""
        return next((one for one in self.entries if one.content["run"] == run), None)

    def people(self, entry: Entry) -> NDArray[np.uint64]:
        """The digests of those whom an entry released first (people x 3 words)."""
        described = entry.content["people"]
        data = (self.place / described["file"]).read()
        if hashlib.sha256(data).hexdigest() != described["sha256"]:
            raise _damaged(self.place, f"the people of entry {entry.number} were changed")
        return np.frombuffer(data, _WORD).reshape(-1, 3).astype(np.uint64)

    def add(
        self, content: Mapping[str, Any], people: NDArray[np.uint64], signer: Ed25519PrivateKey | None
    ) -> tuple[Ledger, Entry]:
        """Put the next entry. Where another run has put one since, nothing is changed: this one must begin again."""
        busy = f"{self.place.url}: another run enters a release of the series now. Run the job again."
        with locked(self.place, StorageError(busy)):
            return self._added(content, people, signer)

    def _added(
        self, content: Mapping[str, Any], people: NDArray[np.uint64], signer: Ed25519PrivateKey | None
    ) -> tuple[Ledger, Entry]:
        data = people.astype(_WORD).tobytes()
        digest = hashlib.sha256(data).hexdigest()
        number, file = len(self.entries) + 1, f"people-{digest[:32]}.bin"
        (self.place / file).write(data, OWNER_ONLY)
        whole = {
            "format": _FORMAT,
            "series": self.name,
            "number": number,
            "previous": self.head,
            **content,
            "people": {"file": file, "sha256": digest, "number": len(people)},
        }
        text = sealed(whole, signer)
        try:
            (self.place / _entry_name(number)).create(text, mode=OWNER_ONLY)
        except TargetError:
            raise StorageError(
                f"{self.place.url}: another release of the series was entered as number {number} meanwhile. Nothing "
                "was published. Run the job again: it is then checked against that one, too."
            ) from None
        entry = Entry(whole, content_hash(whole))
        entered = self._replace(entries=(*self.entries, entry))
        entered.write_head()
        return entered, entry

    def write_head(self) -> None:
        """Count the entries."""
        (self.place / _HEAD).write(spelled({"entries": len(self.entries), "sha256": self.head}), OWNER_ONLY)


def kept_files(entry: Entry) -> list[tuple[str, str, int]]:
    """The files of what a release showed of each person, if it is kept: name, hash and number of rows."""
    kept = entry.content.get("kept") or {"files": []}
    return [tuple(one) for one in kept["files"]]


def _entry_name(number: int) -> str:
    return f"entry-{number:05d}.json"


def _damaged(place: Place, what: str) -> VerificationError:
    return VerificationError(
        f"{place.url}: {what}, so it is not known what earlier releases show. Nothing may be released in this "
        "series until the ledger is restored from a backup."
    )


def read_ledger(place: Place, name: str | None = None, signer: Ed25519PublicKey | None = None) -> Ledger:
    """The ledger at a place; one that was edited, or lacks an entry, is refused. There may be none yet, if it is named.

    With ``signer`` every entry must be signed by it. What looks damaged while another run enters one is read again.
    """
    files = set(place.files())
    for _ in range(_READS):
        try:
            return _read_files(place, files, name, signer)
        except VerificationError:
            before, files = files, set(place.files())
            if files == before:
                raise
    raise StorageError(f"{place.url}: other runs enter releases of the series all the time. Run the job again.")


def _read_files(place: Place, files: set[str], name: str | None, signer: Ed25519PublicKey | None) -> Ledger:
    numbers = sorted(int(match[1]) for match in map(_ENTRY.fullmatch, files) if match)
    if not numbers and _HEAD not in files and name is None:
        raise InputError(f"{place.url}: there is no ledger.")
    if numbers != list(range(1, len(numbers) + 1)):
        gap = next(want for want, found in enumerate([*numbers, 0], 1) if want != found)
        raise _damaged(place, f"entry {gap} is missing")
    entries: list[Entry] = []
    for number in numbers:
        entries.append(_read_entry(place, number, entries[-1] if entries else None, name, signer))
        name = entries[-1].content["series"]
    for one in entries:
        if one.content["people"]["file"] not in files:
            raise _damaged(place, f"the people of entry {one.number} are missing")
        if not files.issuperset(name for name, *_ in kept_files(one)):
            raise _damaged(place, f"rows that entry {one.number} keeps are missing")
    ledger = Ledger(place, str(name), tuple(entries))
    _check_head(ledger, present=_HEAD in files)
    return ledger


def _read_entry(
    place: Place, number: int, before: Entry | None, name: str | None, signer: Ed25519PublicKey | None
) -> Entry:
    file = place / _entry_name(number)
    data = file.read(_LARGEST)
    try:
        content = read_json(data, file.url)
        require_spelling(content, data, file.url)
    except VerificationError:
        raise _damaged(place, f"entry {number} was edited") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise _damaged(place, f"entry {number} is not of the format '{_FORMAT}'")
    digest = content_hash(content)
    if content.get("sha256") != digest:
        raise _damaged(place, f"entry {number} was edited")
    if content["number"] != number or content["previous"] != (before.hash if before else ""):
        raise _damaged(place, f"entry {number} does not follow the one before it: entries were changed or reordered")
    if name is not None and content["series"] != name:
        raise VerificationError(f"{place.url}: is the ledger of another series than '{name}'.")
    if signer is not None:
        check_signature(content, signer, file.url)
    elif content["signature"] is not None:
        own_signer(content, file.url)
    return Entry({key: value for key, value in content.items() if key not in {"sha256", "signature"}}, digest)


def _check_head(ledger: Ledger, *, present: bool) -> None:
    """Refuse a head that counts other entries than there are; it may lack the last, whose run died just then."""
    place, entries = ledger.place, ledger.entries
    if not present:
        if len(entries) > 1:
            raise _damaged(place, f"{_HEAD} is missing")
        return
    head = read_json((place / _HEAD).read(_LARGEST), (place / _HEAD).url)
    count = head.get("entries") if isinstance(head, dict) else None
    if count not in {len(entries), len(entries) - 1} or count == 0:
        raise _damaged(place, f"{_HEAD} counts {count} entries, {len(entries)} are there: some were removed")
    if head.get("sha256") != entries[count - 1].hash:
        raise _damaged(place, f"{_HEAD} is of other entries: some were changed")


def verify_ledger(url: str, signer: Ed25519PublicKey | None = None, releases: Sequence[str] = ()) -> Ledger:
    """Check all of a ledger, the files of its people, too, and that it has an entry of each of these releases."""
    ledger = read_ledger(Place(url), signer=signer)
    for one in ledger.entries:
        ledger.people(one)
        for name, digest, _ in kept_files(one):
            if hashlib.sha256((ledger.place / name).read()).hexdigest() != digest:
                raise _damaged(ledger.place, f"rows that entry {one.number} keeps were changed")
    for release in releases:
        place = Place(release) / MANIFEST
        claimed = parse(place.read(LARGEST), place.url).get("series") or {}
        if not any(one.hash == claimed.get("entry") for one in ledger.entries):
            raise _damaged(ledger.place, f"it has no entry of {Place(release).url}")
    return ledger


def described(entry: Entry) -> dict[str, Any]:
    """What a reader of the ledger wants to see of a release."""
    content = entry.content
    shown = {name: content[name] for name in ("number", "name", "release", "rows")}
    return {**shown, "new": content["people"]["number"], "hash": entry.hash}


def explained(entry: Entry) -> str:
    """What an entry says, in sentences; no value of a record."""
    content = entry.content
    lines = [
        f"Release {entry.number}, '{content['name']}' ({content['release']}), has {content['rows']:,} records; "
        f"{content['people']['number']:,} of them are of people whom no earlier release of the series holds.",
        f"It shows {', '.join(content['columns'])}.",
    ]
    if kept_files(entry):
        lines.append(
            "What it shows with another release is measured: later releases of its people are attacked with it "
            "(gate.differencing), by the rows that are kept here."
        )
    elif content["cuts"] is None:
        lines.append("What it shows with another release cannot be counted: later releases of its people are refused.")
    else:
        required = [f"{', '.join(columns)}: {k}" for columns, k in content["required"]]
        lines.append(
            f"Later releases of its people must cut the same trees of {', '.join(content['cuts'])}, and leave every "
            f"person among so many records by these columns: {'; '.join(required)}."
        )
    return "\n  ".join(lines)
