"""Manifests of any shape: each is refused with exit code 4 and what is wrong, and nothing a name holds is obeyed."""

import base64
import json
import os
import shutil
import subprocess

import pytest

from dpmask.release.manifest import content_hash, spelled


@pytest.fixture(scope="module")
def office(once):
    """A signed release of a small table."""
    once.lake()
    for arguments in (
        ["genpkey", "-algorithm", "ed25519", "-out", "office.pem"],
        ["pkey", "-in", "office.pem", "-pubout", "-out", "office.pub"],
    ):
        subprocess.run(["openssl", *arguments], check=True, cwd=once.folder)
    return once.run_once(sign="office.pem")


@pytest.fixture
def signed(place, office):
    return place.copy_of(office)


def attestation_of(place):
    return next((place.folder / "release").glob("attestation-*.json"))


def at(*path, value=None, gone=False):
    """A change of one value of the manifest, by the path of its keys."""

    def change(manifest):
        place = manifest
        for part in path[:-1]:
            place = place[part]
        if gone:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        return manifest

    return change


HUGE = 10**400
VALUES = [None, True, -1, 1.5, HUGE, "", "x" * 2_000_000, [], {}, [[]], {"a": {}}, "\x1b[2J", "\u202e"]
KEYS = [
    "format", "release", "run", "name", "dpmask", "libraries", "key", "rows", "order", "schema", "dropped", "claims", "steps",
    "information_loss", "policy", "files", "documents", "sha256", "signature",
]  # fmt: skip
INSIDE = [
    ("files", 0, "path"), ("files", 0, "rows"), ("files", 0, "bytes"), ("files", 0, "sha256"), ("files", 0, "nulls"),
    ("files", 0, "nulls", "age"), ("documents", 0, "path"), ("schema", 0), ("schema", 0, "name"), ("schema", 0, "type"),
    ("steps", 0, "parameters"), ("signature", "value"), ("signature", "public_key"), ("signature", "algorithm"),
]  # fmt: skip


def test_every_key_with_every_kind_of_value(signed):
    """Content with another value at each key, sealed again so that only the value itself is wrong."""
    path = signed.folder / "release" / "manifest.json"
    good, tried = path.read_bytes(), 0
    accepted = []
    for where in [*((key,) for key in KEYS), *INSIDE]:
        for value in [*VALUES, "gone"]:
            changed = at(*where, value=value, gone=value == "gone")(json.loads(good))
            if changed == json.loads(good):
                continue
            if where[0] not in {"sha256", "signature"}:
                changed["sha256"] = content_hash(changed)
            path.write_bytes(spelled(changed))
            ended = signed.dpmask("verify", "release")
            tried += 1
            assert len(ended.err) < 12_000
            assert "\x1b" not in ended.err + ended.out
            if ended.code != 4:
                accepted.append((where, str(value)[:20], ended.code))
    print(f"{tried} manifests tried")
    assert accepted == []
    assert tried > 400


def duplicate(data):
    return data.replace(b'\n "name":', b'\n "name": "forged",\n "name":', 1)


SPELLINGS = {
    "a key twice": (duplicate, "'name' stands twice"),
    "a key twice, inside": (lambda d: d.replace(b'"public_key"', b'"value": "00",\n  "public_key"', 1), "stands twice"),
    "UTF-16": (lambda d: d.decode().encode("utf-16"), "is not UTF-8"),
    "a mark": (lambda d: b"\xef\xbb\xbf" + d, "is not valid JSON"),
    "more bytes": (lambda d: d + b"\n", "was written again"),
    "more JSON": (lambda d: d + b"{}", "is not valid JSON"),
    "no newline": (lambda d: d[:-1], "was written again"),
    "other spaces": (lambda d: json.dumps(json.loads(d), sort_keys=True).encode(), "was written again"),
    "other order": (
        lambda d: json.dumps(dict(reversed(json.loads(d).items())), indent=1).encode() + b"\n",
        "was written",
    ),
    "another number": (lambda d: d.replace(b'"scale": 0.1', b'"scale": 0.10', 1), "was written again"),
    "an escape": (lambda d: d.replace(b'"name": "people"', b'"name": "\\u0070eople"', 1), "was written again"),
    "half a pair": (lambda d: d.replace(b'"scale": 0.1', b'"scale": "\\ud800"', 1), "was written again"),
    "not a number": (lambda d: d.replace(b'"scale": 0.1', b'"scale": NaN', 1), "is not valid JSON"),
    "too large": (lambda d: d.replace(b'"scale": 0.1', b'"scale": 1e999', 1), "was written again"),
    "deep": (lambda d: b"[" * 100_000, "is not valid JSON"),
    "long": (lambda d: b"9" * 100_000, "is not valid JSON"),
    "a list": (lambda d: b"[]\n", "is no manifest"),
    "empty": (lambda d: b"", "is not valid JSON"),
    "binary": (lambda d: bytes(range(256)), "is not UTF-8"),
}


def test_only_the_canonical_bytes_count(signed):
    path = signed.folder / "release" / "manifest.json"
    good = path.read_bytes()
    assert signed.dpmask("verify", "release", "--signer", "office.pub").code == 0
    for case, (change, text) in SPELLINGS.items():
        path.write_bytes(change(good))
        assert path.read_bytes() != good, case
        ended = signed.dpmask("verify", "release", "--signer", "office.pub")
        assert (case, ended.code) == (case, 4)
        assert text in ended.err, (case, ended.err)
        assert "signed by" not in ended.out


def test_an_unsigned_field_in_the_signature_is_refused(signed):
    path = signed.folder / "release" / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest["signature"]["note"] = "approved by the office"
    path.write_bytes(spelled(manifest))
    ended = signed.dpmask("verify", "release", "--signer", "office.pub")
    assert ended.code == 4
    assert "signature.note" in ended.err


def test_names_cannot_write_lines_of_their_own(signed):
    """A name that prints a line like verify's own, or turns the text around, is refused or escaped."""
    root = signed.folder / "release"
    false = "x\n  signed by the given signer\x1b[8m\u202e"
    (root / false).write_text("x")
    ended = signed.dpmask("verify", "release")
    assert ended.code == 4
    assert not any(line.strip() == "signed by the given signer" for line in (ended.out + ended.err).splitlines())
    assert "\\n  signed by the given signer\\x1b[8m\\u202e is not in the manifest" in ended.err
    (root / false).unlink()
    path = root / "manifest.json"
    manifest = json.loads(path.read_bytes()) | {"name": "people\u202egnp", "signature": None}
    manifest["sha256"] = content_hash(manifest)
    path.write_bytes(spelled(manifest))
    attestation_of(signed).unlink()
    ended = signed.dpmask("verify", "release")
    assert ended.code == 0
    assert ended.out.startswith("people\\u202egnp: 600 records")


def test_links_and_pipes_are_refused(signed):
    root = signed.folder / "release"
    data = sorted((root / "data").rglob("*.parquet"))[0]
    elsewhere = signed.folder / "elsewhere.parquet"
    shutil.move(data, elsewhere)
    data.symlink_to(elsewhere)
    ended = signed.dpmask("verify", "release")
    assert (ended.code, "is a link that leaves the release" in ended.err) == (4, True)
    data.unlink()
    os.mkfifo(data)
    ended = signed.dpmask("verify", "release")
    assert (ended.code, "is a pipe or a device" in ended.err) == (4, True)
    data.unlink()
    shutil.move(elsewhere, data)
    assert signed.dpmask("verify", "release").code == 0
    manifest = root / "manifest.json"
    shutil.move(manifest, signed.folder / "manifest.json")
    manifest.symlink_to(signed.folder / "manifest.json")
    ended = signed.dpmask("verify", "release")
    assert (ended.code, "is a link that leaves" in ended.err) == (4, True)
    manifest.unlink()
    os.mkfifo(manifest)
    ended = signed.dpmask("verify", "release")
    assert (ended.code, "is a pipe" in ended.err) == (4, True)


def test_another_tool_verifies_the_attestation(signed):
    """securesystemslib, which in-toto and cosign-like tools build on, reads the envelope and checks its signature."""
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import SSlibKey

    assert "attests 10 files" in signed.dpmask("verify", "release", "--attestation", "--signer", "office.pub").out
    envelope = json.loads(attestation_of(signed).read_text())
    key_id = envelope["signatures"][0]["keyid"]
    public = {"keytype": "ed25519", "scheme": "ed25519"}
    value = {"public": json.loads((signed.folder / "release/manifest.json").read_text())["signature"]["public_key"]}
    key = SSlibKey.from_dict(key_id, {**public, "keyval": value})
    read = Envelope.from_dict(json.loads(json.dumps(envelope)))
    assert list(read.verify([key], 1)) == [key_id]
    statement = json.loads(read.payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    for subject in statement["subject"]:
        summed = subprocess.run(["sha256sum", f"release/{subject['name']}"], check=True, capture_output=True, text=True)
        assert summed.stdout.split()[0] == subject["digest"]["sha256"]
    assert statement["predicate"] == json.loads((signed.folder / "release/manifest.json").read_text())


def test_openssl_verifies_the_attestation(signed):
    envelope = json.loads(attestation_of(signed).read_text())
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
    (signed.folder / "signed").write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload))
    (signed.folder / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    checked = [
        "openssl",
        "pkeyutl",
        "-verify",
        "-pubin",
        "-inkey",
        "office.pub",
        "-rawin",
        "-in",
        "signed",
        "-sigfile",
        "sig",
    ]
    assert subprocess.run(checked, check=False, capture_output=True).returncode == 0


def test_an_attestation_that_is_not_this_manifests(signed):
    path = attestation_of(signed)
    good = json.loads(path.read_text())
    changes = {
        "payload": base64.b64encode(b"{}").decode(),
        "payloadType": "text/plain",
        "signatures": [],
        "more": 1,
    }
    for name, value in changes.items():
        path.write_bytes(spelled(good | {name: value}))
        assert signed.dpmask("verify", "release", "--attestation").code == 4, name
    path.write_bytes(spelled(good) + b"\n")
    assert signed.dpmask("verify", "release").code == 4
    path.write_bytes(b"[[")
    assert signed.dpmask("verify", "release").code == 4
    path.unlink()
    ended = signed.dpmask("verify", "release")
    assert (ended.code, "attestation-" in ended.err) == (4, True)


def test_a_release_without_a_signature_has_no_attestation(place):
    place.lake()
    assert place.run().code == 0
    ended = place.dpmask("verify", "release", "--attestation")
    assert (ended.code, "is not signed, so it has no attestation" in ended.err) == (4, True)
