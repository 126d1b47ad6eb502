"""Re-reading a release and recomputing what its manifest claims, as far as that needs no original."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dpmask.engine.collection import Collection
from dpmask.errors import InputError, VerificationError
from dpmask.lake.footers import MANIFEST
from dpmask.lake.storage import Place
from dpmask.lake.writing import bare_schema, decode
from dpmask.release.claims import broken_claims
from dpmask.release.manifest import check_own_signature, check_signature, identity_of, parse
from dpmask.table.lake import read_lake

_SHOWN = 10


class Verified(NamedTuple):
    """What was checked of a release that is what it claims to be."""

    url: str
    name: str
    run: str
    rows: int
    files: int
    origin: str


def verify(release: str, signer: Ed25519PublicKey | None = None) -> Verified:
    """Check a release; everything that is wrong is named in one error."""
    target = Place(release)
    place = target / MANIFEST
    if not place.exists():
        raise InputError(f"{release}: there is no {MANIFEST}, so it is not a release.")
    manifest = parse(place.read(), place.url)
    if signer is not None:
        check_signature(manifest, signer, place.url)
    wrong = _listing(target, manifest)
    present = [entry for entry in _entries(manifest) if entry["path"] not in wrong]
    schema = [(column["name"], column["type"]) for column in manifest["schema"]]
    for found in Collection.of(present).map(partial(_check_file, target, schema), "verify"):
        wrong.update(found)
    if sum(file["rows"] for file in manifest["files"]) != manifest["rows"]:
        wrong[MANIFEST] = "claims another number of rows than its files have"
    elif identity_of(manifest["run"], [file["sha256"] for file in manifest["files"]]) != manifest["release"]:
        wrong[MANIFEST] = "claims to be another release than its files make"
    claims = manifest.get("claims", [])
    if claims and not wrong:
        broken = broken_claims(read_lake(release), claims)
        wrong.update({MANIFEST: "; ".join(broken)} if broken else {})
    if wrong:
        raise VerificationError(_message(release, wrong))
    return Verified(
        release, manifest["name"], manifest["run"], manifest["rows"], len(manifest["files"]), _origin(manifest, signer)
    )


def _entries(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [*manifest["files"], *manifest["documents"]]


def _listing(target: Place, manifest: dict[str, Any]) -> dict[str, str]:
    """Files that are missing, and files that should not be there."""
    found, claimed = set(target.files()), {entry["path"] for entry in _entries(manifest)}
    wrong = dict.fromkeys(sorted(claimed - found), "is missing")
    wrong.update(dict.fromkeys(sorted(found - claimed - {MANIFEST}), "is not in the manifest"))
    return wrong


def _check_file(target: Place, schema: list[tuple[str, str]], entry: dict[str, Any]) -> dict[str, str]:
    """What is wrong with one file, if anything."""
    data = (target / entry["path"]).map()
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        return {entry["path"]: "was changed: its bytes do not match the manifest's hash"}
    if "rows" not in entry:
        return {}
    rows = decode(data)
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


def _message(release: str, wrong: dict[str, str]) -> str:
    lines = [f"{release}: is not what its manifest claims."]
    lines += [f"  {path} {text}" for path, text in list(wrong.items())[:_SHOWN]]
    if len(wrong) > _SHOWN:
        lines.append(f"  and {len(wrong) - _SHOWN} more files")
    return "\n".join(lines)


def _origin(manifest: dict[str, Any], signer: Ed25519PublicKey | None) -> str:
    if signer is not None:
        return "signed by the given signer"
    if manifest.get("signature"):
        check_own_signature(manifest, MANIFEST)
        return "integrity only: it is signed; give --signer FILE to prove by whom"
    return "integrity only: it is not signed"
