"""A series of releases: the ledger, what is refused by it, and what several releases leave of people."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import write_lake
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from dpmask.errors import StorageError
from dpmask.lake.storage import Place

REGIONS = {"land": {"coast": ["north", "east"], "inland": ["south", "west"]}}
STEP = {
    "method": "refinement",
    "requirements": [{"columns": ["age", "region"], "k": 5}],
    "taxonomies": {"region": REGIONS},
    "domains": {"age": [0, 100]},
}
COLUMNS = {"identifier": ["id"], "quasi": ["age", "region"], "sensitive": ["illness"]}


def patients(rows, seed=0, most=3000):
    """The first people of a register."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": np.arange(most) * 7 + 3,
            "age": rng.integers(0, 100, most),
            "region": rng.choice(["north", "east", "south", "west"], most),
            "illness": rng.choice(["flu", "cough", "asthma", "none"], most, p=[0.1, 0.2, 0.1, 0.6]),
        }
    )[:rows]


class Office:
    """One who releases a table that grows, month by month."""

    def __init__(self, place):
        self.place, self.ledger = place, place.folder / "patients.ledger"

    def month(self, number, rows, *options, frame=None, **changes):
        shutil.rmtree(self.place.folder / "lake", ignore_errors=True)
        table = pa.Table.from_pandas(patients(rows) if frame is None else frame, preserve_index=False)
        self.place.lake(table)
        job = {"name": f"month {number}", "target": f"release-{number}", "series": "patients", "mask": [STEP]}
        return self.place.run(*options, **(job | {"columns": COLUMNS, "seed": None} | changes))

    def entries(self):
        return sorted(self.ledger.glob("entry-*.json"))


@pytest.fixture
def office(place):
    return Office(place)


def test_a_table_that_grows(office, place):
    """Three months: entered in order, each checked against all before it, and claimed by its manifest."""
    planned = []
    for number, rows in enumerate([300, 340, 400], 1):
        ended = office.month(number, rows)
        assert ended.code == 0, ended.err
        plan = place.dpmask("plan", "job.yaml", "--set", f"target=plan-{number}", "--set", "name=planned", "--json")
        planned.append(plan.json["passes"])
        manifest, _ = place.released(f"release-{number}")
        assert (manifest["series"]["name"], manifest["series"]["number"]) == ("patients", number)
    alone = place.dpmask("plan", "job.yaml", "--set", "target=plan", "--set", "series=null", "--json").json["passes"]
    assert planned == [alone + 2] * 3, "who the people are, and what is left of them"
    result = json.loads((place.folder / "private/result.json").read_text())
    figures = result["steps"][0]["figures"]["series"]
    assert {one["releases"] for one in figures} == {"all earlier releases", "release 1", "release 2"}
    assert {one["people"] for one in figures} == {"in both", "new since"}
    assert all(one["least"] >= one["k"] == 5 for one in figures)
    assert not (office.ledger.stat().st_mode | office.entries()[0].stat().st_mode) & 0o077
    shown = place.dpmask("ledger", "show", office.ledger, "--json").json
    assert [(one["number"], one["rows"], one["new"]) for one in shown] == [(1, 300, 300), (2, 340, 40), (3, 400, 60)]
    verified = place.dpmask("ledger", "verify", office.ledger, "--with", "release-2", "--with", "release-3")
    assert verified.code == 0, verified.err
    assert "3 releases, in their order and unchanged" in verified.out
    recounted = place.dpmask("verify", "release-3", "--with", "release-1", "--with", "release-2", "--json").json[
        "series"
    ]
    exact = {(one["releases"], one["people"]): one["least"] for one in figures}
    for number, one in enumerate(recounted, 1):
        assert one["k"] == 5
        assert one["holds"] in {True, None}
        assert 1 <= one["in_both"] <= exact[f"release {number}", "in both"]
        assert 1 <= one["new"] <= exact[f"release {number}", "new since"]
    assert "age, region: 5" in place.dpmask("ledger", "explain", office.ledger).out
    assert office.month(3, 400).code == 0  # already released: nothing is entered twice
    assert len(office.entries()) == 3
    for other in ("nowhere", "release-3"):  # a folder of something else is no ledger of nothing
        for command in ("show", "verify", "explain"):
            ended = place.dpmask("ledger", command, other)
            assert (ended.code, "there is no ledger" in ended.err) == (4, True)


@pytest.mark.parametrize(
    ("changes", "rows", "text"),
    [
        ({}, 303, "3 people who are new since are left among fewer than 5"),
        ({"frame": patients(300)[5:]}, 0, "5 people of release 1 are missing in this table"),
        ({"frame": patients(330).assign(age=lambda one: (one["age"] + 1) % 100)}, 0, "300 people of release 1 have other values"),
        ({"frame": patients(330).assign(pay=1)}, 0, "with other columns: pay"),
        ({"mask": [STEP | {"domains": {"age": [0, 120]}}]}, 330, "another tree"),
        ({"mask": [STEP | {"taxonomies": {"region": None}}]}, 330, "'region' has none"),
        ({"mask": [STEP | {"suppress_records": 0.1}]}, 330, "no record and no cell may be left out"),
        ({"mask": [STEP | {"search": "mondrian"}]}, 330, "regions have boxes of their own"),
        ({"mask": [{"method": "noise", "columns": ["age"], "scale": 1}]}, 330, "masked by one refinement"),
        ({"frame": patients(330).astype({"id": str})}, 0, "this one by id (large_string)"),
        ({"order": "within_files"}, 330, "rows must be shuffled"),
        ({"frame": pd.concat([patients(330), patients(1)])}, 0, "more than once"),
    ],
)  # fmt: skip
def test_what_is_refused(office, place, changes, rows, text):
    """With a sentence, before anything is published; the ledger stays as it was."""
    assert office.month(1, 300).code == 0
    changes = {"columns": COLUMNS | {"plain": ["pay"]}, **changes} if "pay" in text else changes
    ended = office.month(2, rows, **changes)
    assert ended.code == (4 if "more than once" in text else 3), ended.err
    assert text in ended.err
    assert len(office.entries()) == 1
    assert not (place.folder / "release-2").exists()


def test_other_people_are_not_checked(office):
    """A series may have releases of other people, by any method; those cannot be released again."""
    noise = [{"method": "noise", "columns": ["age"], "scale": 1}]
    assert office.month(1, 300).code == 0
    others = patients(200, 1).assign(id=lambda one: -one["id"] - 1)
    ended = office.month(2, 0, frame=others, mask=noise)
    assert ended.code == 0, ended.err
    assert office.month(3, 0, frame=others).code == 3
    assert office.month(3, 350).code == 0


def test_an_edited_removed_or_reordered_entry(office, place):
    """Whatever was done to the ledger, nothing is released by it."""
    for number, rows in enumerate([300, 340, 400], 1):
        assert office.month(number, rows).code == 0
    kept = place.folder / "kept"
    shutil.copytree(office.ledger, kept)
    first, second, third = office.entries()

    def edit(path, **changes):
        content = json.loads(path.read_text()) | changes
        path.write_text(json.dumps(content, sort_keys=True, ensure_ascii=False, indent=1) + "\n")

    def swap():
        one, other = first.read_bytes(), second.read_bytes()
        first.write_bytes(other)
        second.write_bytes(one)

    def resealed():
        """One who knows how entries are hashed, and edits the last one."""
        from dpmask.release.manifest import sealed

        content = json.loads(third.read_text())
        content = {name: value for name, value in content.items() if name not in {"sha256", "signature"}}
        third.write_bytes(sealed(content | {"required": [[["age"], 2]]}, None))

    deeds = [
        lambda: edit(second, rows=1),
        lambda: first.write_bytes(first.read_bytes() + b" "),
        second.unlink,
        third.unlink,
        first.unlink,
        swap,
        resealed,
        (office.ledger / "head.json").unlink,
        (office.ledger / "key").unlink,
        lambda: (office.ledger / "key").write_text("ab" * 32 + "\n"),
        lambda: [path.unlink() for path in office.ledger.glob("people-*")],
        lambda: next(office.ledger.glob("people-*")).write_bytes(b"\0" * 24),
    ]
    for number, deed in enumerate(deeds):
        deed()
        ended = office.month(4, 460)
        assert ended.code == 4, (number, ended.err)
        assert not (place.folder / "release-4").exists()
        shutil.rmtree(office.ledger)
        shutil.copytree(kept, office.ledger)
    shutil.rmtree(office.ledger)
    assert office.month(3, 400).code == 4, "a release stands that the ledger does not know"


def test_entries_are_signed_if_asked(office, place):
    """With a key, all entries must be of its signer."""
    for name in ("office", "other"):
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (place.folder / f"{name}.pem").write_bytes(private)
        (place.folder / f"{name}.pub").write_bytes(public)
    assert office.month(1, 300, "--sign", "office.pem").code == 0
    assert "all signed" in place.dpmask("ledger", "verify", office.ledger, "--signer", "office.pub").out
    assert place.dpmask("ledger", "verify", office.ledger, "--signer", "other.pub").code == 4
    assert office.month(2, 340, "--sign", "other.pem").code == 4
    assert office.month(2, 340, "--sign", "office.pem").code == 0
    assert office.month(3, 380).code == 0
    assert office.month(4, 420, "--sign", "office.pem").code == 4, "the third entry is not signed"


def test_two_runs_at_once(office, monkeypatch):
    """Both were checked against the same ledger: one wins, the other must begin again, and is then checked against it."""
    from dpmask.release.ledger import Ledger, read_ledger

    assert office.month(1, 300).code == 0
    before, add = read_ledger(Place(str(office.ledger))), Ledger.add
    assert office.month(2, 340).code == 0
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "add", lambda self, *given: add(before, *given))  # as it was when the run began
        ended = office.month(3, 400)
    assert ended.code == 5, ended.err
    assert "Run the job again" in ended.err
    assert not (office.place.folder / "release-3").exists()
    assert office.month(3, 400).code == 0
    assert len(office.entries()) == 3


def test_a_run_that_died_after_its_entry(office, place, monkeypatch):
    """Its release counts, and is published by the same job; others are checked against it."""
    from dpmask.job import stages

    assert office.month(1, 300).code == 0

    def die(*given):
        raise StorageError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(stages, "publish", die)
        assert office.month(2, 340).code == 5
    (entry,) = office.entries()[1:]
    written = entry.read_bytes()
    assert office.month(3, 400).code == 0, "checked against a release that nobody saw"
    assert office.month(2, 340).code == 0
    assert entry.read_bytes() == written
    assert place.released("release-2")[0]["series"]["number"] == 2
    assert len(office.entries()) == 3


def test_in_an_object_store(office, s3, place):
    """The ledger lies beside the private folder there, too."""
    for number, rows in enumerate([300, 340], 1):
        ended = office.month(number, rows, private=f"{s3}/private", target=f"{s3}/release-{number}")
        assert ended.code == 0, ended.err
    assert place.dpmask("ledger", "verify", f"{s3}/patients.ledger", "--with", f"{s3}/release-2").code == 0
    assert "2 releases" in place.dpmask("ledger", "show", f"{s3}/patients.ledger").out


def test_published_files_that_leave_too_few(office, place):
    """Releases that do not know of each other: what can be told from their files is told."""
    assert office.month(1, 300, series=None).code == 0
    fewer = [STEP | {"requirements": [{"columns": ["age", "region"], "k": 200}]}]
    assert office.month(3, 303, series=None, mask=fewer).code == 0
    ended = place.dpmask("verify", "release-3", "--with", "release-1")
    assert ended.code == 4, ended.out
    assert "new: among 3 or more; k = 200 is broken" in ended.err
    gone = place.dpmask("verify", "release-1", "--with", "release-3")
    assert (gone.code, "lacks" in gone.err) == (4, True)


NOISE = {"method": "noise", "columns": ["pay", "hours"], "scale": 0.5}
WORK = {"identifier": ["id"], "sensitive": ["pay", "hours"]}


def workers(rows):
    rng = np.random.default_rng(3)
    pay = rng.lognormal(8, 0.4, 12_000)
    return pd.DataFrame({"id": np.arange(12_000) * 7, "pay": pay, "hours": rng.normal(38, 6, 12_000)})[:rows]


def differencing(place):
    """What the last run found of all releases together."""
    result = json.loads((place.folder / "private/result.json").read_text())
    return {one["name"]: one["values"] for one in result["measures"]}.get("gate differencing")


def test_releases_that_draw_are_attacked_together(office, place):
    """Noise of two months is let through by the gate; that of more is averaged away. Rows that it goes by are checked."""
    changes = {"mask": [NOISE], "columns": WORK, "policy": ["gate.linkage <= 1", "gate.attacks <= 1"]}
    assert office.month(1, 0, frame=workers(6000), **changes).code == 0
    assert differencing(place) is None
    ended = office.month(2, 0, frame=workers(6400), **changes)
    assert ended.code == 0, ended.err
    first, second = differencing(place), place.released("release-2")[0]
    assert "gate.differencing <= 0.05" in [one["rule"] for one in second["policy"]]
    assert "gained" not in json.dumps(second)
    ended = office.month(3, 0, frame=workers(6800), **changes)
    assert ended.code == 3
    assert "gate.differencing <= 0.05 (a default of the gate)" in ended.err
    assert differencing(place)["gained"] > max(0.05, 1.2 * first["gained"])
    assert len(office.entries()) == 2
    shown = place.dpmask("ledger", "explain", office.ledger)
    assert "is measured: later releases" in shown.out
    kept = sorted(office.ledger.glob("rows-*"))
    kept[0].write_bytes(kept[0].read_bytes()[:-1] + b"x")
    assert place.dpmask("ledger", "verify", office.ledger).code == 4
    assert office.month(5, 0, frame=workers(7200), **changes).code == 4
    kept[0].unlink()
    assert office.month(5, 0, frame=workers(7200), **changes).code == 4


def test_only_what_is_new_in_a_lake_that_grows(office, place):
    """Each month's folder is a release; the ledger knows who was there before, and a folder of such people is refused."""
    everybody = patients(900)
    months = {"2026-10": everybody[:300], "2026-11": everybody[300:600], "2026-12": everybody[500:800]}
    job = {
        "name": "${MONTH}",
        "series": "patients",
        "new": "month = '${MONTH}'",
        "target": "out-${MONTH}",
        "mask": [STEP],
    }
    columns = {**COLUMNS, "drop": ["month"]}
    ends = {}
    for month, table in months.items():
        write_lake(place.folder / "lake" / f"month={month}", pa.Table.from_pandas(table, preserve_index=False))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MONTH", month)
            ends[month] = place.run(**job, columns=columns, seed=None)
    assert [one.code for one in ends.values()] == [0, 0, 3], [one.err for one in ends.values()]
    assert "100 people of month = '2026-12' are in release 2 of the series already" in ends["2026-12"].err
    assert [len(place.released(f"out-{month}")[1]) for month in list(months)[:2]] == [300, 300]
    for changes, code, text in (
        ({"new": "month = '2026-09'"}, 4, "no file is in a folder where month = '2026-09'"),
        ({"new": "month < 3 or"}, 2, "new: 'month < 3 or' must read COLUMN = VALUE"),
        ({"new": "month = '2026-10'", "series": None}, 2, "needs series: NAME"),
    ):
        ended = place.run(**{**job, "name": "other", "target": "other", **changes}, columns=columns, seed=None)
        assert (ended.code, text in ended.err) == (code, True), ended.err
