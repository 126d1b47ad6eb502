"""From the private folder to the public one: files first, the manifest last, leftovers at the very end.

A folder without a manifest is not a release. The files lie in a folder named after their content, so a new release
never writes over the files of an old one, and whoever dies on the way leaves the old state or the new.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from dpmask.engine.collection import Collection
from dpmask.errors import StorageError, TargetError, VerificationError
from dpmask.lake.footers import MANIFEST
from dpmask.lake.storage import Place
from dpmask.release.manifest import data_path, identity_of, parse
from dpmask.release.staging import StagedFile

_MARK = "publishing-"
_OURS = re.compile(
    r"(data/[0-9a-f]{16}/part-\d{5,}\.parquet|report/[0-9a-f]{16}/(?:statement\.md|report\.html)|manifest\.json|publishing-[0-9a-f]{32})"
    r"(\.[0-9a-f]{32}\.part)?"
)


class Standing(NamedTuple):
    """What was found at the target: a manifest (None if it is damaged), its file's version, and runs that publish."""

    manifest: dict[str, Any] | None
    version: str
    publishing: tuple[str, ...]

    @property
    def run(self) -> str | None:
        """The run that made the standing release."""
        return None if self.manifest is None else self.manifest["run"]


def standing_release(target: Place) -> Standing | None:
    """The release at the target, if there is one; a folder with other people's files is refused."""
    names = target.files()
    foreign = [name for name in names if not _OURS.fullmatch(name)]
    if foreign:
        raise TargetError(
            f"{target.url}: holds files that are not of a release, such as {foreign[0]}. Choose an empty folder."
        )
    if MANIFEST not in names:
        return None
    place = target / MANIFEST
    version = place.version()  # before it is read: one that is put in between must not go unseen
    publishing = tuple(name.removeprefix(_MARK) for name in names if name.startswith(_MARK))
    try:
        return Standing(parse(place.read(), place.url), version, publishing)
    except VerificationError:
        return Standing(None, version, publishing)


def release_id(run: str, files: Sequence[StagedFile]) -> str:
    """The identity of the release that these files make."""
    return identity_of(run, [file.sha256 for file in files])


def statement_path(identity: str) -> str:
    """Where the readable statement lies in the release."""
    return f"report/{identity}/statement.md"


def page_path(identity: str) -> str:
    """Where the public report lies in the release."""
    return f"report/{identity}/report.html"


def publish(
    target: Place,
    run: str,
    staging: Place,
    names: Sequence[str],
    documents: Mapping[str, bytes],
    manifest: bytes,
    identity: str,
    old: Standing | None,
) -> None:
    """Bring the files, write the documents, check that all arrived, put the manifest, clear what it does not name."""
    (target / f"{_MARK}{run}").write(b"")  # until it is gone, nobody takes our files for leftovers
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
        _withdraw(target, wanted | {f"{_MARK}{run}"})
        raise
    _keep_only(target, wanted)


def _withdraw(target: Place, ours: set[str]) -> None:
    """Take back the files of a run that came second, but for those that the other's manifest names."""
    standing = standing_release(target)
    entries = [*standing.manifest["files"], *standing.manifest["documents"]] if standing and standing.manifest else []
    target.remove(sorted((ours & set(target.files())) - {entry["path"] for entry in entries}))


def clear_leftovers(target: Place, manifest: dict[str, Any]) -> None:
    """Delete files of ours that the standing manifest does not name: traces of a run that died."""
    _keep_only(target, {entry["path"] for entry in (*manifest["files"], *manifest["documents"])})


def _keep_only(target: Place, wanted: set[str]) -> None:
    target.remove(
        [name for name in target.files() if name not in wanted and name != MANIFEST and _OURS.fullmatch(name)]
    )


def _bring(staging: Place, target: Place, identity: str, name: str) -> None:
    (staging / name).bring_to(target / data_path(identity, name))
