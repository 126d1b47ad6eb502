"""The manifest: what a release claims of itself; a hash finds accidents, a signature proves origin.

A manifest has one spelling: UTF-8 without a mark, sorted keys, one space of indent, one newline at the end. Other bytes
with the same content are refused, so nothing can be read in two ways.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from dpmask.errors import DpmaskError, JobError, VerificationError, printable
from dpmask.lake.storage import Place
from dpmask.release.folder import StagedFile
from dpmask.release.manifest_model import FORMAT, faults_of

LARGEST = 256 << 20
"""Bytes of a manifest, at most."""
_OWN = ("sha256", "signature")
_LARGEST_KEY = 1 << 16


def data_path(identity: str, name: str) -> str:
    """Where a file of data lies in the release."""
    return f"data/{identity}/{name}"


def attestation_path(manifest: bytes) -> str:
    """Where the attestation of a signed manifest lies in the release."""
    return f"attestation-{hashlib.sha256(manifest).hexdigest()[:16]}.json"


def named_paths(manifest: Mapping[str, Any]) -> set[str]:
    """The files that belong to a release, but for the manifest itself."""
    paths = {entry["path"] for entry in (*manifest["files"], *manifest["documents"])}
    return paths | ({attestation_path(spelled(manifest))} if manifest["signature"] else set())


def identity_of(run: str, hashes: Sequence[str]) -> str:
    """The name of a release's folder: the same for the same bytes of the same run, and for nothing else."""
    return hashlib.sha256("\n".join([run, *hashes]).encode()).hexdigest()[:16]


def canonical(content: Any) -> bytes:
    """The one spelling of a JSON value, for hashes."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def spelled(content: Any) -> bytes:
    """The one spelling of a JSON file of a release, for people, too."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"


def content_hash(manifest: Mapping[str, Any]) -> str:
    """The hash of all content of a manifest, but for the hash and the signature themselves."""
    return hashlib.sha256(canonical({name: value for name, value in manifest.items() if name not in _OWN})).hexdigest()


def sealed(content: Mapping[str, Any], signer: Ed25519PrivateKey | None) -> bytes:
    """The manifest's bytes, with its hash and, given a key, its signature."""
    digest = content_hash(content)
    signature = None
    if signer is not None:
        value = signer.sign(bytes.fromhex(digest)).hex()
        signature = {"algorithm": "Ed25519", "public_key": raw(signer.public_key()).hex(), "value": value}
    return spelled({**content, "sha256": digest, "signature": signature})


def build(
    public: dict[str, Any],
    identity: str,
    files: Sequence[StagedFile],
    documents: Mapping[str, bytes],
    signer: Ed25519PrivateKey | None,
) -> bytes:
    """The manifest of a release: the public account of the run, and every file with its hash."""
    data = data_entries(identity, files)
    texts = [
        {"path": path, "bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
        for path, text in documents.items()
    ]
    made = sealed({"format": FORMAT, "release": identity, **public, "files": data, "documents": texts}, signer)
    if wrong := faults_of(json.loads(made)):
        raise DpmaskError(f"The manifest of this release would be refused, which is a bug in dpmask: {wrong[0]}")
    return made


def data_entries(identity: str, files: Sequence[StagedFile]) -> list[dict[str, Any]]:
    """The files of data, as a manifest lists them."""
    found = [{"path": data_path(identity, file.name), **file._asdict()} for file in files]
    for entry in found:
        del entry["name"]
    return found


def parse(data: bytes, url: str) -> dict[str, Any]:
    """A manifest from its bytes; one that was edited, or written in other bytes than dpmask writes, is refused."""
    manifest = read_json(data, url)
    if not isinstance(manifest, dict) or not str(manifest.get("format", "")).startswith("dpmask release"):
        raise VerificationError(f"{url}: is no manifest of a dpmask release.")
    if manifest["format"] != FORMAT:
        raise VerificationError(f"{url}: its format is not '{FORMAT}'. Verify it with the dpmask that wrote it.")
    if wrong := faults_of(manifest):
        raise VerificationError("\n".join([f"{url}: is malformed.", *(f"  {one}" for one in wrong)]))
    require_spelling(manifest, data, url)
    if manifest["sha256"] != content_hash(manifest):
        raise VerificationError(f"{url}: was edited: its content does not match its own hash.")
    return manifest


def read_json(data: bytes, url: str) -> Any:
    """A JSON value that can be read in one way only: UTF-8, no key twice, no number that JSON does not have."""
    try:
        return json.loads(data.decode(), object_pairs_hook=_no_key_twice, parse_constant=_no_constant)
    except _KeyTwice as error:
        raise VerificationError(f"{url}: the key '{printable(str(error), 100)}' stands twice.") from None
    except UnicodeDecodeError:
        raise VerificationError(f"{url}: is not UTF-8, so it is no manifest of a dpmask release.") from None
    except (ValueError, RecursionError):
        raise VerificationError(f"{url}: is not valid JSON, so it is no manifest of a dpmask release.") from None


def require_spelling(content: Any, data: bytes, url: str) -> None:
    """Refuse bytes that are not the one spelling of their content."""
    try:
        same = spelled(content) == data
    except ValueError:  # half of a surrogate pair
        same = False
    if not same:
        raise VerificationError(
            f"{url}: was written again: these are not the bytes that dpmask writes for its content."
        )


class _KeyTwice(Exception):  # noqa: N818 - caught here, never seen
    """An object of JSON has one key more than once."""


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _KeyTwice(name)
        found[name] = value
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def check_signature(manifest: Mapping[str, Any], signer: Ed25519PublicKey, url: str) -> None:
    """Refuse a manifest that this signer did not sign."""
    signature = manifest["signature"]
    if signature is None:
        raise VerificationError(f"{url}: is not signed.")
    try:
        if signature["public_key"] != raw(signer).hex():
            raise InvalidSignature
        signer.verify(bytes.fromhex(signature["value"]), bytes.fromhex(manifest["sha256"]))
    except InvalidSignature:
        raise VerificationError(f"{url}: was not signed by this signer.") from None


def own_signer(manifest: Mapping[str, Any], url: str) -> Ed25519PublicKey:
    """The public key beside a manifest's signature, which must fit it; whose key that is remains to be shown."""
    try:
        signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(manifest["signature"]["public_key"]))
    except ValueError:
        raise VerificationError(f"{url}: its signature is damaged.") from None
    check_signature(manifest, signer, url)
    return signer


def read_private_key(path: str) -> Ed25519PrivateKey:
    """An Ed25519 private key in PEM, as ``openssl genpkey -algorithm ed25519`` writes it."""
    hint = "Make one: openssl genpkey -algorithm ed25519 -out KEYFILE"
    try:
        key = load_pem_private_key(Place(path).read(_LARGEST_KEY), password=None)
    except (ValueError, TypeError):
        raise JobError(f"{printable(path)}: is no unencrypted private key in PEM. {hint}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise JobError(f"{printable(path)}: must be an Ed25519 key. {hint}")
    return key


def read_public_key(path: str) -> Ed25519PublicKey:
    """An Ed25519 public key in PEM, as ``openssl pkey -in KEYFILE -pubout`` writes it."""
    try:
        key = load_pem_public_key(Place(path).read(_LARGEST_KEY))
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise JobError(
            f"{printable(path)}: is no Ed25519 public key in PEM. Make one: openssl pkey -in KEYFILE -pubout"
        )
    return key


def raw(key: Ed25519PublicKey) -> bytes:
    """The 32 bytes of a public key."""
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)
