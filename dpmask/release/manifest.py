"""The manifest: what a release claims of itself; a hash finds accidents, a signature proves origin."""

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

from dpmask.errors import JobError, VerificationError
from dpmask.lake.storage import Place
from dpmask.release.staging import StagedFile

FORMAT = "dpmask release 1"
_OWN = ("sha256", "signature")
_CLAIMS = {"name", "run", "release", "rows", "schema", "files", "documents"}


def data_path(identity: str, name: str) -> str:
    """Where a file of data lies in the release."""
    return f"data/{identity}/{name}"


def identity_of(run: str, hashes: Sequence[str]) -> str:
    """The name of a release's folder: the same for the same bytes of the same run, and for nothing else."""
    return hashlib.sha256("\n".join([run, *hashes]).encode()).hexdigest()[:16]


def canonical(content: Any) -> bytes:
    """The one spelling of a JSON value."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def content_hash(manifest: dict[str, Any]) -> str:
    """The hash of all content of a manifest, but for the hash and the signature themselves."""
    return hashlib.sha256(canonical({name: value for name, value in manifest.items() if name not in _OWN})).hexdigest()


def sealed(content: dict[str, Any], signer: Ed25519PrivateKey | None) -> bytes:
    """The manifest's bytes, with its hash and, given a key, its signature."""
    digest = content_hash(content)
    signature = None
    if signer is not None:
        value = signer.sign(bytes.fromhex(digest)).hex()
        signature = {"algorithm": "Ed25519", "public_key": _raw(signer.public_key()).hex(), "value": value}
    return (
        json.dumps({**content, "sha256": digest, "signature": signature}, indent=1, ensure_ascii=False).encode() + b"\n"
    )


def build(
    public: dict[str, Any],
    identity: str,
    files: Sequence[StagedFile],
    documents: Mapping[str, bytes],
    signer: Ed25519PrivateKey | None,
) -> bytes:
    """The manifest of a release: the public account of the run, and every file with its hash."""
    data = [{"path": data_path(identity, file.name), **file._asdict()} for file in files]
    for entry in data:
        del entry["name"]
    texts = [
        {"path": path, "bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
        for path, text in documents.items()
    ]
    return sealed({"format": FORMAT, "release": identity, **public, "files": data, "documents": texts}, signer)


def parse(data: bytes, url: str) -> dict[str, Any]:
    """A manifest from its bytes; an edited one is refused."""
    try:
        manifest = json.loads(data)
        known = manifest["format"] == FORMAT
        intact = manifest["sha256"] == content_hash(manifest)
        if known and not set(manifest) >= _CLAIMS:
            raise KeyError
    except (ValueError, KeyError, TypeError):
        raise VerificationError(f"{url}: is no manifest of a dpmask release.") from None
    if not known:
        raise VerificationError(f"{url}: its format is not '{FORMAT}'. Verify it with the dpmask that wrote it.")
    if not intact:
        raise VerificationError(f"{url}: was edited: its content does not match its own hash.")
    return dict(manifest)


def check_signature(manifest: dict[str, Any], signer: Ed25519PublicKey, url: str) -> None:
    """Refuse a manifest that this signer did not sign."""
    signature = manifest.get("signature")
    if signature is None:
        raise VerificationError(f"{url}: is not signed.")
    try:
        signer.verify(bytes.fromhex(signature["value"]), bytes.fromhex(manifest["sha256"]))
    except (InvalidSignature, ValueError, KeyError, TypeError):
        raise VerificationError(f"{url}: was not signed by this signer.") from None


def check_own_signature(manifest: dict[str, Any], url: str) -> None:
    """Refuse a signature that does not fit the public key beside it; whose key that is remains to be shown."""
    try:
        signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(manifest["signature"]["public_key"]))
    except (ValueError, KeyError, TypeError):
        raise VerificationError(f"{url}: its signature is damaged.") from None
    check_signature(manifest, signer, url)


def read_private_key(path: str) -> Ed25519PrivateKey:
    """An Ed25519 private key in PEM, as ``openssl genpkey -algorithm ed25519`` writes it."""
    hint = "Make one: openssl genpkey -algorithm ed25519 -out KEYFILE"
    try:
        key = load_pem_private_key(Place(path).read(), password=None)
    except (ValueError, TypeError):
        raise JobError(f"{path}: is no unencrypted private key in PEM. {hint}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise JobError(f"{path}: must be an Ed25519 key. {hint}")
    return key


def read_public_key(path: str) -> Ed25519PublicKey:
    """An Ed25519 public key in PEM, as ``openssl pkey -in KEYFILE -pubout`` writes it."""
    try:
        key = load_pem_public_key(Place(path).read())
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise JobError(f"{path}: is no Ed25519 public key in PEM. Make one: openssl pkey -in KEYFILE -pubout")
    return key


def _raw(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)
