"""The key of a job: made and kept by the first run, stretched with the release's salt, bound to the input."""

import os

import numpy as np
import pytest
from conftest import SECRET, people

STEP = {"method": "noise", "columns": ["income", "age"], "scale": 0.5}
OWN = {"seed": None, "order": "input", "mask": [STEP]}


def incomes(place, target="release"):
    return place.released(target)[1]["income"].to_numpy()


def mode_of(path):
    return path.stat().st_mode & 0o777


def test_a_key_is_made_and_kept(place):
    """The first run makes it; later ones take it: the same bytes, and a release that stands is left alone."""
    place.lake()
    assert place.run(**OWN).code == 0
    kept = {path: path.read_bytes() for path in (place.folder / "private").glob("*") if path.is_file()}
    key, (salt,) = place.folder / "private" / "key", (place.folder / "private" / "salts").iterdir()
    assert len(key.read_text().strip()) == 64
    assert (mode_of(key), mode_of(salt), mode_of(key.parent)) == (0o600, 0o600, 0o700)
    assert "Already released" in place.run(**OWN).out
    assert place.run(**OWN, target="again").code == 0
    assert place.bytes("again") == place.bytes()
    assert key.read_bytes() == kept[key]
    manifest, _ = place.released()
    assert manifest["trial"] is False
    assert manifest["key"]["salt"] == salt.read_text().strip()
    for data in place.bytes().values():
        assert key.read_text().strip().encode() not in data


def test_another_private_folder_draws_anew(place, monkeypatch):
    """Also with one secret: the salt is another."""
    monkeypatch.setenv("THE_KEY", SECRET)
    table = people()
    place.lake(table)
    for number in range(2):
        assert place.run(**OWN, key="env:THE_KEY", target=f"r{number}", private=f"p{number}").code == 0
    noise = [incomes(place, f"r{number}") - table["income"].to_numpy() for number in range(2)]
    # 600 pairs: five standard errors of a correlation of 0
    assert abs(np.corrcoef(*noise)[0, 1]) < 5 / np.sqrt(600)
    assert len({place.released(f"r{number}")[0]["key"]["fingerprint"] for number in range(2)}) == 2


def test_other_blocks_and_a_resumed_run_draw_the_same(place):
    place.lake(people(300), files=3)
    assert place.run(**OWN).code == 0
    assert place.run("--resume", **OWN, target="resumed").code == 0
    assert place.bytes("resumed") == place.bytes()
    assert place.run(**OWN, target="blocks", block_rows=37).code == 0
    np.testing.assert_allclose(incomes(place, "blocks"), incomes(place), rtol=1e-9)


def test_plan_makes_nothing(place):
    place.lake()
    assert place.dpmask("plan", place.job(**OWN)).code == 0
    assert not (place.folder / "private").exists()


def test_a_damaged_key_is_refused(place):
    place.lake()
    assert place.run(**OWN).code == 0
    (place.folder / "private" / "key").write_text("x")
    ended = place.run(**OWN)
    assert ended.code == 2
    assert "is damaged. Restore it from a backup" in ended.err


REFUSED = {
    "zeros": (lambda path: path.write_text(32 * "0"), "1 different characters. Make one: openssl rand -hex 32"),
    "a pipe": (os.mkfifo, "must be a regular file"),
    "a folder": (os.mkdir, "must be a regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "must be a regular file"),
    "a lake": (lambda path: path.write_bytes(bytes(1 << 17)), "is no key: it has more than 65,536 bytes"),
    "nothing": (lambda path: None, "is not set, empty or not readable. Make a key: openssl rand -hex 32 > secret"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_key_is_refused_at_once(place, name):
    make, reason = REFUSED[name]
    make(place.folder / "secret")
    place.lake()
    ended = place.run(seed=None, key="file:secret")
    assert ended.code == 2
    assert "job.yaml" in ended.err
    assert reason in ended.err


def test_a_key_is_kept_in_a_bucket(place, s3):
    from dpmask.lake.storage import Place

    place.lake()
    where = {"target": f"{s3}/release", "private": f"{s3}/private"}
    assert place.run(**OWN, **where).code == 0
    key = (Place(where["private"]) / "key").read()
    assert len(key.strip()) == 64
    assert "Already released" in place.run(**OWN, **where).out
    assert (Place(where["private"]) / "key").read() == key
