"""The attestation of a signed release, for tools that know nothing of dpmask: an in-toto Statement in a DSSE envelope.

Subjects are all files of the release with their SHA-256, the manifest among them; the predicate is the manifest's
content. The envelope is signed by the key that signed the manifest (in-toto Attestation Framework, Statement v1; DSSE
v1.0, https://github.com/secure-systems-lab/dsse).
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpmask.errors import VerificationError
from dpmask.lake.listing import MANIFEST
from dpmask.release.manifest import attestation_path, canonical, parse, raw, read_json, require_spelling, spelled

PAYLOAD_TYPE = "application/vnd.in-toto+json"
_STATEMENT = "https://in-toto.io/Statement/v1"
_PREDICATE = "urn:dpmask:release:2"


def attestation(manifest: bytes, signer: Ed25519PrivateKey | None) -> dict[str, bytes]:
    """The attestation of a manifest and the path it belongs to; none without a signer."""
    if signer is None:
        return {}
    payload = canonical(_statement(manifest))
    return {attestation_path(manifest): _envelope(payload, raw(signer.public_key()), signer.sign(_encoded(payload)))}


def check_attestation(data: bytes, manifest: bytes, signer: Ed25519PublicKey, url: str) -> int:
    """Refuse an attestation that is not this signer's of this manifest; how many files it attests."""
    envelope, statement = read_json(data, url), _statement(manifest)
    payload = canonical(statement)
    try:
        signature = base64.b64decode(envelope["signatures"][0]["sig"], validate=True)
        signer.verify(signature, _encoded(payload))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, InvalidSignature):
        raise VerificationError(f"{url}: is no attestation of this manifest by this signer.") from None
    require_spelling(envelope, data, url)
    if data != _envelope(payload, raw(signer), signature):
        raise VerificationError(f"{url}: attests something else than this manifest.")
    return len(statement["subject"])


def _statement(manifest: bytes) -> dict[str, Any]:
    content = parse(manifest, MANIFEST)
    subjects = _subjects(manifest, content)
    return {"_type": _STATEMENT, "subject": subjects, "predicateType": _PREDICATE, "predicate": content}


def _subjects(manifest: bytes, content: dict[str, Any]) -> list[dict[str, Any]]:
    hashes = {entry["path"]: entry["sha256"] for entry in (*content["files"], *content["documents"])}
    hashes[MANIFEST] = hashlib.sha256(manifest).hexdigest()
    return [{"name": path, "digest": {"sha256": digest}} for path, digest in sorted(hashes.items())]


def _encoded(payload: bytes) -> bytes:
    """What is signed: DSSE's pre-authentication encoding."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def _envelope(payload: bytes, public_key: bytes, signature: bytes) -> bytes:
    signed = {"keyid": hashlib.sha256(public_key).hexdigest(), "sig": base64.b64encode(signature).decode()}
    return spelled({"payloadType": PAYLOAD_TYPE, "payload": base64.b64encode(payload).decode(), "signatures": [signed]})
