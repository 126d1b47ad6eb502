"""Re-reading a release and recomputing what its manifest claims, as far as that needs no original."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dpmask.engine.collection import Collection
from dpmask.errors import InputError, VerificationError, printable
from dpmask.lake.access import require_access
from dpmask.lake.listing import MANIFEST
from dpmask.lake.locks import LOCK, is_lock
from dpmask.lake.storage import Place
from dpmask.lake.writing import bare_schema, decode
from dpmask.masking.claims import broken_claims
from dpmask.release.attestation import check_attestation
from dpmask.release.manifest import (
    LARGEST,
    attestation_path,
    check_signature,
    identity_of,
    named_paths,
    own_signer,
    parse,
)
from dpmask.release.table import log_faults, log_paths
from dpmask.table.lake import read_lake

_SHOWN = 10
PUBLISHING = f"{LOCK} lies there: a run is publishing now, or died here; the next run clears what it left"


class Verified(NamedTuple):
    """What was checked of a release that is what it claims to be."""

    url: str
    name: str
    run: str
    rows: int
    files: int
    origin: str
    trial: bool
    publishing: bool
    """Whether a run is publishing here now, or died here: its lock lies beside the release."""


def verify(
    release: str,
    signer: Ed25519PublicKey | None = None,
    *,
    attested: bool = False,
    strict: bool = False,
) -> Verified:
    """Check a release; all that is wrong is named in one error.

    With ``attested`` it must have an attestation; if ``strict``, it must not be a trial. The lock of a run in a store
    is no fault.
    """
    target = Place(release)
    require_access(target, writing=False)
    manifest, data = _manifest(target)
    if attested and manifest["signature"] is None:
        raise VerificationError(f"{target.url}: is not signed, so it has no attestation.")
    if strict and manifest["trial"]:
        raise VerificationError(f"{target.url}: is a trial, not a release. Make a release without --trial.")
    wrong = _listing(target, manifest)
    publishing = LOCK in wrong and is_lock(target / LOCK)
    if publishing:
        del wrong[LOCK]
    origin = _origin(target, manifest, data, signer, wrong)
    present = [entry for entry in _entries(manifest) if entry["path"] not in wrong]
    schema = [(column["name"], column["type"]) for column in manifest["schema"]]
    schema = [one for one in schema if one[0] not in manifest.get("partition_by", ())]
    for found in Collection.of(present).map(partial(_check_file, target, schema), "verify"):
        wrong.update(found)
    if manifest.get("table") and not wrong:
        wrong.update(log_faults(target, manifest))
    if sum(file["rows"] for file in manifest["files"]) != manifest["rows"]:
        wrong[MANIFEST] = "claims another number of rows than its files have"
    elif identity_of(manifest["run"], [file["sha256"] for file in manifest["files"]]) != manifest["release"]:
        wrong[MANIFEST] = "claims to be another release than its files make"
    if manifest["claims"] and not wrong:
        broken = broken_claims(read_lake(release), manifest["claims"])
        wrong.update({MANIFEST: "; ".join(broken)} if broken else {})
    if wrong:
        raise VerificationError(_message(target.url, wrong, publishing=publishing))
    name, run, rows, trial = (manifest[key] for key in ("name", "run", "rows", "trial"))
    return Verified(target.url, name, run, rows, len(manifest["files"]), origin, trial, publishing)


def _manifest(target: Place) -> tuple[dict[str, Any], bytes]:
    """The manifest and its bytes."""
    place = target / MANIFEST
    if not place.exists():
        raise InputError(f"{target.url}: there is no {MANIFEST}, so it is not a release.")
    if fault := target.unsafe(MANIFEST):
        raise VerificationError(f"{place.url}: {fault}.")
    data = place.read(LARGEST)
    return parse(data, place.url), data


def _entries(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [*manifest["files"], *manifest["documents"]]


def _listing(target: Place, manifest: dict[str, Any]) -> dict[str, str]:
    """Files that are missing, files that should not be there, and what only looks like a file of the release."""
    found = set(target.files())
    claimed = named_paths(manifest) | log_paths(found, manifest)
    wrong = dict.fromkeys(sorted(claimed - found), "is missing")
    wrong.update(dict.fromkeys(sorted(found - claimed - {MANIFEST}), "is not in the manifest"))
    wrong.update({path: fault for path in sorted(found & claimed) if (fault := target.unsafe(path))})
    return wrong


def _check_file(target: Place, schema: list[tuple[str, str]], entry: dict[str, Any]) -> dict[str, str]:
    """What is wrong with one file, if anything."""
    data = (target / entry["path"]).map()
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        return {entry["path"]: "was changed: its bytes do not match the manifest's hash"}
    if len(data) != entry["bytes"]:
        return {entry["path"]: "has another size than the manifest claims"}
    if "rows" not in entry:
        return {}
    try:
        rows = decode(data, entry["rows"])
    except InputError as error:
        return {entry["path"]: str(error)}
    checks: dict[str, Callable[[], bool]] = {
        "has another number of rows than the manifest claims": lambda: rows.num_rows == entry["rows"],
        "has another schema than the manifest claims": lambda: [(f.name, str(f.type)) for f in rows.schema] == schema,
        "carries metadata": lambda: rows.schema.equals(bare_schema(rows.schema), check_metadata=True),
        "has another number of nulls than the manifest claims": lambda: all(
            rows.column(name).null_count == count for name, count in entry["nulls"].items()
        ),
    }
    for text, correct in checks.items():
        if not correct():
            return {entry["path"]: text}
    return {}


def _message(release: str, wrong: dict[str, str], *, publishing: bool) -> str:
    lines = [f"{release}: is not what its manifest claims."]
    lines += [f"  {PUBLISHING}"] if publishing else []
    lines += [f"  {printable(path, 200)} {text}" for path, text in list(wrong.items())[:_SHOWN]]
    if len(wrong) > _SHOWN:
        lines.append(f"  and {len(wrong) - _SHOWN} more files")
    return "\n".join(lines)


def _origin(
    target: Place, manifest: dict[str, Any], data: bytes, signer: Ed25519PublicKey | None, wrong: dict[str, str]
) -> str:
    """Who signed the manifest, and that its attestation says the same, unless that is among what is wrong."""
    if manifest["signature"] is None and signer is None:
        return "integrity only: it is not signed"
    if signer is not None:
        check_signature(manifest, signer, (target / MANIFEST).url)
        origin = "signed by the given signer"
    else:
        origin = "integrity only: it is signed; give --signer FILE to prove by whom"
    path = attestation_path(data)
    if path in wrong:
        return origin
    by = signer or own_signer(manifest, (target / MANIFEST).url)
    files = check_attestation((target / path).read(2 * LARGEST), data, by, path)
    return f"{origin}; {path} attests {files} files"
