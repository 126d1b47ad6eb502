"""Verification: every change to a release is found and named."""

import hashlib
import json
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmask.release.manifest import content_hash, identity_of, spelled


@pytest.fixture(scope="module")
def whole(once):
    once.lake()
    return once.run_once()


@pytest.fixture
def release(place, whole):
    place.copy_of(whole)
    assert place.dpmask("verify", "release").code == 0
    return place


def part(place):
    return sorted((place.folder / "release" / "data").rglob("*.parquet"))[2]


def change_a_byte(place):
    path = part(place)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def rewrite_manifest(**changes):
    def make(place):
        path = place.folder / "release" / "manifest.json"
        manifest = json.loads(path.read_text()) | changes
        manifest = {key: value for key, value in manifest.items() if value is not None or key == "signature"}
        manifest["sha256"] = content_hash(manifest)
        path.write_bytes(spelled(manifest))

    return make


def edit_manifest(place):
    path = place.folder / "release" / "manifest.json"
    path.write_text(path.read_text().replace('"rows": 600', '"rows": 601', 1))


def edit_statement(place):
    path = next((place.folder / "release" / "report").rglob("*.md"))
    path.write_text(path.read_text() + "All is well.")


def other_file(place, change):
    """Another file, with the manifest made to match its hash: only what is inside tells."""
    path = part(place)
    pq.write_table(change(pq.read_table(path)), path)
    manifest = json.loads((place.folder / "release" / "manifest.json").read_text())
    for file in manifest["files"]:
        if file["path"].endswith(path.name):
            file["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
            file["bytes"] = path.stat().st_size
    hashes = [file["sha256"] for file in manifest["files"]]
    move(place, manifest, identity_of(manifest["run"], hashes))


def move(place, manifest, identity):
    """The release's folders and paths under another identity."""
    old, root = manifest["release"], place.folder / "release"
    for folder in ("data", "report"):
        (root / folder / old).rename(root / folder / identity)
    for entry in (*manifest["files"], *manifest["documents"]):
        entry["path"] = entry["path"].replace(old, identity)
    rewrite_manifest(files=manifest["files"], documents=manifest["documents"], release=identity)(place)


def another_release(place):
    move(place, json.loads((place.folder / "release/manifest.json").read_text()), "0" * 16)


def swap_file(place):
    other_file(place, lambda table: table.slice(1))


def other_nulls(place):
    def change(table):
        at = table.schema.get_field_index("income")
        return table.set_column(at, "income", pa.array([None, *table["income"].to_pylist()[1:]], pa.float64()))

    other_file(place, change)


def with_metadata(place):
    other_file(place, lambda table: table.replace_schema_metadata({"source": "secret"}))


def other_schema(place):
    schema = json.loads((place.folder / "release/manifest.json").read_text())["schema"]
    schema[0]["type"] = "int8"
    rewrite_manifest(schema=schema)(place)


CASES = {
    "a changed byte": (change_a_byte, "part-00002.parquet was changed"),
    "a missing file": (lambda p: part(p).unlink(), "part-00002.parquet is missing"),
    "an extra file": (lambda p: (p.folder / "release" / "more.txt").write_text("x"), "more.txt is not in the manifest"),
    "an edited manifest": (edit_manifest, "manifest.json: was edited"),
    "an edited statement": (edit_statement, "statement.md was changed"),
    "no manifest": (
        lambda p: (p.folder / "release/manifest.json").unlink(),
        "no manifest.json, so it is not a release",
    ),
    "no JSON": (lambda p: (p.folder / "release/manifest.json").write_text("{"), "is not valid JSON"),
    "another format": (rewrite_manifest(format="dpmask release 99"), "its format is not 'dpmask release 2'"),
    "another total": (rewrite_manifest(rows=999), "claims another number of rows than its files have"),
    "another release": (another_release, "claims to be another release than its files make"),
    "a claim less": (rewrite_manifest(documents=None), "documents: Field required"),
    "other nulls": (other_nulls, "has another number of nulls than the manifest claims"),
    "source metadata": (with_metadata, "carries metadata"),
    "other rows": (swap_file, "has another number of rows than the manifest claims"),
    "another schema": (
        other_schema,
        "has another schema than the manifest claims",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_was_done_to_it_is_found(release, case):
    make, text = CASES[case]
    make(release)
    ended = release.dpmask("verify", "release")
    assert ended.code == 4
    assert text in ended.err


def test_several_faults_are_all_named(release):
    change_a_byte(release)
    (release.folder / "release" / "more.txt").write_text("x")
    ended = release.dpmask("verify", "release")
    assert "was changed" in ended.err
    assert "more.txt" in ended.err


def test_a_damaged_release_is_not_already_released(release):
    change_a_byte(release)
    ended = release.run()
    assert ended.code == 2
    assert "was changed" in ended.err
    assert release.run("--overwrite").code == 0
    assert release.dpmask("verify", "release").code == 0


def make_keys(folder, name):
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", folder / f"{name}.pem"], check=True)
    subprocess.run(
        ["openssl", "pkey", "-in", folder / f"{name}.pem", "-pubout", "-out", folder / f"{name}.pub"], check=True
    )


def test_signatures(release):
    make_keys(release.folder, "office")
    make_keys(release.folder, "other")
    unsigned = release.dpmask("verify", "release", "--signer", "office.pub")
    assert (unsigned.code, "is not signed" in unsigned.err) == (4, True)
    assert "integrity only" in release.dpmask("verify", "release").out
    assert release.run("--sign", "office.pem").code == 2, "an unsigned release is in the way"
    assert release.run("--sign", "office.pem", "--overwrite").code == 0
    assert "signed by the given signer" in release.dpmask("verify", "release", "--signer", "office.pub").out
    assert "integrity only: it is signed" in release.dpmask("verify", "release").out
    foreign = release.dpmask("verify", "release", "--signer", "other.pub")
    assert (foreign.code, "was not signed by this signer" in foreign.err) == (4, True)
    assert "nothing was changed" in release.run("--sign", "office.pem").out
    garbage = {"algorithm": "Ed25519", "public_key": "zz", "value": "5"}
    rewrite_manifest(signature=garbage)(release)
    assert release.dpmask("verify", "release").code == 4
    rewrite_manifest(name="forged")(release)
    assert release.dpmask("verify", "release", "--signer", "office.pub").code == 4


def test_wrong_key_files(release):
    (release.folder / "x.pem").write_text("not a key")
    for command in (["run", "job.yaml", "--sign", "x.pem"], ["verify", "release", "--signer", "x.pem"]):
        ended = release.dpmask(*command)
        assert ended.code == 2
        assert "x.pem" in ended.err
        assert "openssl" in ended.err


def test_a_release_reads_as_a_lake(release):
    import dpmask

    lake = dpmask.read_lake("release")
    assert lake.rows == 600
    assert pa.types.is_dictionary(lake.schema.field("region").type)
