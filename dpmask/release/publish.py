"""From the private folder to the public one: files first, the manifest last, leftovers at the very end.

A folder without a manifest is not a release. The files lie in a folder named after their content, so a new release
never writes over the files of an old one, and whoever dies on the way leaves the old state or the new.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from dpmask.engine.collection import Collection
from dpmask.errors import InputError, StorageError, TargetError, VerificationError, printable
from dpmask.lake.listing import MANIFEST
from dpmask.lake.locks import LOCK, locked
from dpmask.lake.storage import Place
from dpmask.release.folder import StagedFile
from dpmask.release.manifest import LARGEST, data_path, identity_of, named_paths, parse
from dpmask.release.manifest_model import DOCUMENTS
from dpmask.release.table import log_faults, log_paths, write_log

_OURS = re.compile(
    rf"(data/[0-9a-f]{{16}}/(?:[^/=]+=[^/=]+/){{0,10}}part-\d{{5,}}\.parquet|{'|'.join(DOCUMENTS)}|manifest\.json|attestation-[0-9a-f]{{16}}\.json"
    r"|dpmask\.lock|_delta_log/\d{20}\.json"
    r"|metadata/(?:v\d{1,9}\.metadata\.json|version-hint\.text|(?:snap|files)-[0-9a-f]{16}-\d{1,9}\.avro))"
    r"(\.[0-9a-f]{32}\.part)?"
)


_ENDINGS = {"croissant": "json", "dcat": "jsonld", "ddi": "xml"}


class Standing(NamedTuple):
    """What was found at the target: a manifest (None if it is damaged), and its file's version."""

    manifest: dict[str, Any] | None
    version: str

    @property
    def run(self) -> str | None:
        """The run that made the standing release."""
        return None if self.manifest is None else self.manifest["run"]


def standing_release(target: Place) -> Standing | None:
    """The release at the target, if there is one; a folder with other people's files is refused."""
    names = target.files()
    foreign = [name for name in names if not _OURS.fullmatch(name)]
    if foreign:
        name = printable(foreign[0], 200)
        raise TargetError(f"{target.url}: holds files that are not of a release, such as {name}. Take an empty folder.")
    if MANIFEST not in names:
        return None
    place = target / MANIFEST
    version = place.version()  # before it is read: one that is put in between must not go unseen
    try:
        if target.unsafe(MANIFEST):
            return Standing(None, version)
        return Standing(parse(place.read(LARGEST), place.url), version)
    except (VerificationError, InputError):
        return Standing(None, version)


def release_id(run: str, files: Sequence[StagedFile]) -> str:
    """The identity of the release that these files make."""
    return identity_of(run, [file.sha256 for file in files])


def statement_path(identity: str) -> str:
    """Where the readable statement lies in the release."""
    return f"report/{identity}/statement.md"


def page_path(identity: str) -> str:
    """Where the public report lies in the release."""
    return f"report/{identity}/report.html"


def metadata_path(identity: str, kind: str) -> str:
    """Where a description for catalogues lies in the release: beside the manifest."""
    return f"{kind}-{identity}.{_ENDINGS[kind]}"


@contextmanager
def alone_at(target: Place, old: Standing | None) -> Iterator[None]:
    """Have the target to oneself, as it was found: of runs that publish at once one does, and others touch nothing."""
    with locked(target, TargetError(f"{target.url}: another run is publishing here now. Look at its release first.")):
        now = standing_release(target)
        if (now and now.version) != (old and old.version):
            raise TargetError(
                f"{target.url}: another run has published here since this one began. Look at its release first."
            )
        yield


def publish(
    target: Place,
    staging: Place,
    names: Sequence[str],
    documents: Mapping[str, bytes],
    manifest: bytes,
    identity: str,
    old: Standing | None,
) -> None:
    """Bring the files, write the documents, check that all arrived, put the manifest, clear what it does not name.

    The log of a table follows the manifest: until then it names the files of the release before, which are still there.

    The target is locked meanwhile (``alone_at``).
    """
    Collection.of(names).map(partial(_bring, staging, target, identity), "publish")
    for path, text in documents.items():
        (target / path).write(text)
    wanted = {data_path(identity, name) for name in names} | set(documents)
    missing = wanted - set(target.files())
    if missing:
        raise StorageError(
            f"{target.url}: {len(missing)} files did not arrive, such as {min(missing)}. Run the job again."
        )
    place = target / MANIFEST
    try:
        if old is None:
            place.create(manifest)
        else:
            place.replace(manifest, old.version)
    except TargetError:
        _withdraw(target, wanted)
        raise
    named = json.loads(manifest)
    write_log(target, named)
    _keep_only(target, wanted | log_paths(target.files(), named))


def complete_table(target: Place, standing: Standing, manifest: dict[str, Any]) -> None:
    """Write the log of the table that a release is, if a run died before it did."""
    if manifest.get("table") and log_faults(target, manifest):
        with alone_at(target, standing):
            write_log(target, manifest)


def _withdraw(target: Place, ours: set[str]) -> None:
    """Take back the files of a run that came second, but for those that the other's manifest names."""
    standing = standing_release(target)
    theirs = named_paths(standing.manifest) if standing and standing.manifest else set()
    target.remove(sorted((ours & set(target.files())) - theirs))


def clear_leftovers(target: Place, standing: Standing, manifest: dict[str, Any]) -> None:
    """Delete files of ours that the standing manifest does not name: traces of a run that died, unless one is alive."""
    wanted = named_paths(manifest) | log_paths(target.files(), manifest)
    if _others(target, wanted):
        with alone_at(target, standing):
            _keep_only(target, wanted)


def _others(target: Place, wanted: set[str]) -> list[str]:
    return [name for name in target.files() if name not in wanted and name != MANIFEST and _OURS.fullmatch(name)]


def _keep_only(target: Place, wanted: set[str]) -> None:
    target.remove(_others(target, wanted | {LOCK}))


def _bring(staging: Place, target: Place, identity: str, name: str) -> None:
    (staging / name).bring_to(target / data_path(identity, name))
