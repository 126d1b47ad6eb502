"""A run that was killed goes on from its checkpoint: the same release, and less to compute. Others' are refused."""

import json
import shutil
import signal
import zlib

import pytest
from conftest import JOB, people
from fault_tools import AT_ONCE, LARGE, as_if_large, cli, dying_in

from dpmask.engine import checkpoint, passes, tasks
from dpmask.errors import StorageError
from dpmask.job import stages
from dpmask.job.checkpoint import _SEGMENT, _Seal
from dpmask.kernels.order import order_keys
from dpmask.lake.storage import Place
from dpmask.masking import cells

NUMBERS = ["age", "income"]
FUZZY = {"method": "fuzzy_microaggregation", "columns": NUMBERS, "clusters": 5, "fuzziness": 1.4}
REFINEMENT = {
    "method": "refinement",
    "requirements": [{"columns": ["age", "region"], "k": 10}, {"columns": ["children", "born"], "k": 5}],
    "taxonomies": {"region": {"land": {"coast": ["north", "east"], "inland": ["south"]}}},
    "domains": {"age": [0, 100], "children": [0, 10], "born": ["1970-01-01", "2030-01-01"]},
    "guide": {"column": "member"},
}
DROPPING = REFINEMENT | {"suppress_records": 0.1}
MASKS = {
    "noise": [JOB["mask"][0]],
    "few clusters": [FUZZY],
    "cells": [
        {"method": "microaggregation", "columns": NUMBERS, "k": 3, "cell_size": 100},
        {"method": "fuzzy_microaggregation", "columns": NUMBERS, "k": 3, "cell_size": 100},
    ],
    "refinement": [REFINEMENT],
    "dropped, then swapped": [DROPPING, {"method": "swapping", "columns": ["income"], "share": 0.5, "window": 0.1}],
    "dropped, then cells": [DROPPING, {"method": "microaggregation", "columns": ["income"], "k": 3, "cell_size": 100}],
    "transforms": [
        {"method": "membership_transform", "columns": NUMBERS, "function": "s"},
        {"method": "swapping", "columns": NUMBERS, "share": 0.5, "window": 0.1},
        {"method": "rotation", "columns": NUMBERS},
    ],
    "synthesis": [
        {"method": "regression_synthesis", "dependents": ["income"], "independents": ["age", "region"], "clusters": 2},
        {"method": "ipso", "variant": "C", "dependents": ["income"], "independents": ["age"]},
    ],
}
MEASURES = [
    {"measure": name, "columns": NUMBERS}
    for name in (
        "il1s", "probabilistic_information_loss", "moments", "correlations", "kolmogorov_smirnov", "total_variation",
        "hellinger", "propensity", "distance_linkage", "interval_disclosure", "probabilistic_linkage", "known_records",
    )
]  # fmt: skip
MEASURES += [
    {"measure": "cluster_distance", "columns": NUMBERS, "clusters": 3},
    {"measure": "misclassification", "columns": NUMBERS, "clusters": 3},
    {"measure": "partition_agreement", "columns": NUMBERS, "clusters": 3},
    {"measure": "groups", "quasi": ["region", "member"]},
    {"measure": "attribute_inference", "columns": NUMBERS, "target": "member"},
]


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)


@pytest.fixture
def stopped(place, monkeypatch):
    """A job that was run until nothing was left to do but to publish."""

    def stop(*options, **said):
        def fail(*_):
            raise StorageError("not today")

        with monkeypatch.context() as broken:
            broken.setattr(stages, "publish", fail)
            ended = place.run(*options, **said)
        assert ended.code == 5, ended.err
        assert "run it again with --resume" in ended.err
        return ended

    return stop


def resumed(ended):
    return json.loads(ended.out)["resumed"]


@pytest.fixture
def computed(monkeypatch):
    """The labels of the passes that are computed in this process."""
    original, seen = passes.computed, []

    def counted(work, runs, label, *heard):
        seen.extend([label] * bool(runs))
        return original(work, runs, label, *heard)

    monkeypatch.setattr(passes, "computed", counted)
    return seen


def computed_before_publishing(computed):
    return [label for label in computed if not label.startswith(("verify", "publish"))]


def measured(case):
    if MASKS[case][0]["method"] == "refinement":
        return []
    return MEASURES if case == "noise" else MEASURES[:1]


@pytest.mark.parametrize("case", MASKS)
def test_nothing_is_computed_twice(place, stopped, computed, case):
    """Every pass of every method and measure is known again, and so is every file."""
    place.lake(people(600))
    said = {"mask": MASKS[case], "measure": measured(case)}
    assert place.run(**said, target="undisturbed", private="p2").code == 0
    computed.clear()
    stopped(**said)
    once = len(computed)
    computed.clear()
    ended = place.run("--resume", "--json", **said)
    assert ended.code == 0, ended.err
    assert all(label.endswith("before") for label in computed_before_publishing(computed)), "files were looked at"
    assert "taken from the checkpoint" in ended.err
    assert 0 < resumed(ended)["passes"] < once
    assert resumed(ended)["files"] == 4
    assert place.bytes() == place.bytes("undisturbed")
    assert not list(place.folder.rglob("checkpoint")), "it is of no use any more"


@pytest.mark.parametrize("case", ["dropped, then swapped", "dropped, then cells", "transforms"])
def test_staged_files_that_have_gone_are_made_again(place, stopped, case):
    """All passes before them are known, but what these left on the workers is not."""
    place.lake(people(600))
    said = {"mask": MASKS[case], "measure": measured(case)}
    assert place.run(**said, target="undisturbed", private="p2").code == 0
    stopped(**said)
    for path in sorted(place.folder.glob("private/*/staging/*"))[1:]:
        path.unlink()
    ended = place.run("--resume", "--json", **said)
    assert ended.code == 0, ended.err
    assert resumed(ended)["passes"] > 0
    assert resumed(ended)["files"] == 1
    assert place.bytes() == place.bytes("undisturbed")


CELLS = MASKS["cells"]
KILLS = {
    # where the driver dies: its masking, the pass, after how many of them, on a cluster, resumed on one
    "fuzzy clustering": ([FUZZY], "fuzzy c-means", 3, False, False),
    "fuzzy clustering on a cluster": ([FUZZY], "fuzzy c-means", 3, True, False),
    "refinement rounds": ([REFINEMENT], "refinement: count", 4, False, True),
    "records on their way": (CELLS, "cells: figures", 1, True, True),
    "staging": (CELLS, "mask", 2, False, True),
    "measuring": (CELLS, "linkage: links", 0, False, False),
    "publishing": (CELLS, "publish", 0, False, False),
}


@pytest.mark.parametrize("case", KILLS)
def test_the_driver_killed_and_resumed(place, cluster, computed, monkeypatch, case):
    as_if_large(monkeypatch)
    mask, label, passes, before, after = KILLS[case]
    place.lake()
    said = {"mask": mask, "measure": [] if mask == [REFINEMENT] else MEASURES[:1] + MEASURES[8:9]}
    assert place.run(**said, target="undisturbed", private="p2").code == 0
    whole = len(computed_before_publishing(computed))
    computed.clear()
    dying = DYING.get(case) or dying_in(label, passes)
    where = ["--scheduler", cluster.scheduler_address]
    died = cli(place, "run", place.job(**said), *where * before, code=LARGE + dying)
    _, err = died.communicate(timeout=120)
    assert died.returncode == -signal.SIGKILL, err
    assert not (place.folder / "release" / "manifest.json").exists()
    ended = place.run("--resume", "--json", *where * after, **said)
    assert ended.code == 0, ended.err
    assert place.bytes() == place.bytes("undisturbed")
    assert resumed(ended)["passes"] > 0
    assert len(computed_before_publishing(computed)) < whole
    assert (resumed(ended)["files"] > 0) == (case in {"staging", "measuring", "publishing"})


DYING = {
    "fitting": f"""{AT_ONCE}
from dpmask.job.checkpoint import _Held
put = _Held.put
def dying(self, name, data):
    put(self, name, data)
    os.kill(os.getpid(), signal.SIGKILL)
_Held.put = dying
import dask
dask.config.set(scheduler="synchronous")
""",
    "staging": f"""{AT_ONCE}
keep, seen = checkpoint.Parts.keep, []
def dying(self, number, result):
    keep(self, number, result)
    seen.append(number)
    if len(seen) > 2: os.kill(os.getpid(), signal.SIGKILL)
checkpoint.Parts.keep = dying
""",
    "publishing": f"""{AT_ONCE}
from dpmask.lake.storage import Place
from dpmask.masking import cells
bring, seen = Place.bring_to, []
def dying(self, target):
    bring(self, target)
    seen.append(target)
    if len(seen) > 2: os.kill(os.getpid(), signal.SIGKILL)
Place.bring_to = dying
""",
}


def test_fitted_cells_are_kept_one_by_one(place, monkeypatch):
    """Killed when the first of two shards was fitted: the resumed run fits the other one."""
    place.lake()
    said = {"mask": CELLS[:1]}
    assert place.run(**said, target="undisturbed", private="p2").code == 0
    died = cli(place, "run", place.job(**said), code=DYING["fitting"])
    _, err = died.communicate(timeout=120)
    assert died.returncode == -signal.SIGKILL, err
    fitted, fit = [], cells._fit_shard
    monkeypatch.setattr(cells, "_fit_shard", lambda *given: (fitted.append(given[-1]), fit(*given))[1])
    assert len(list(place.folder.glob("private/*/checkpoint/held/*-?"))) == 1
    ended = place.run("--resume", **said)
    assert ended.code == 0, ended.err
    assert len(fitted) == 1
    assert place.bytes() == place.bytes("undisturbed")


def rewritten(place):
    path = place.folder / "lake" / "part-1.parquet"
    path.write_bytes(path.read_bytes())


OTHERS = {
    # what was changed since: the message
    "key": (lambda place: {"seed": 8}, "is of a run with another key"),
    "job": (lambda place: {"order": "input"}, "is of another state of this job"),
    "data": (lambda place: place.lake(people(seed=1)) and {}, "is of a run on other source files"),
    "same data, written again": (lambda place: rewritten(place) or {}, "is of a run on other source files"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_checkpoint_of_something_else_is_refused(place, stopped, case):
    change, message = OTHERS[case]
    place.lake()
    stopped()
    said = change(place)
    ended = place.run("--resume", **said)
    assert ended.code == 2
    assert message in ended.err
    assert "Run without --resume to start anew." in ended.err
    assert not (place.folder / "release").exists()
    assert place.run(**said).code == 0
    for left in ("checkpoint", "staging"):
        assert not list(place.folder.rglob(left)), "cleared by the run without --resume"
    assert len(list(place.folder.rglob("pairing"))) == (said.get("order") != "input"), "that of the release"


def test_what_pairs_a_release_outlives_its_abandoned_checkpoint(place, stopped):
    """A run that was released and then begun again: a run of another state clears its checkpoint and no more."""
    place.lake()
    assert place.run().code == 0
    (pairing,) = place.folder.rglob("pairing")
    shutil.rmtree(place.folder / "release")
    stopped()
    said = {"order": "input", "target": "other"}
    header(place).write_text(header(place).read_text().replace(pairing.parent.name, "../elsewhere"))
    assert place.run(**said).code == 0
    assert list(pairing.iterdir())
    for left in ("checkpoint", "staging", "elsewhere"):
        assert not list(place.folder.rglob(left)), "what a header says is not where anything is cleared"


@pytest.mark.parametrize("resume", [(), ("--resume",)])
def test_a_folder_made_for_a_file_that_was_not_written(place, monkeypatch, resume):
    """As a full disk leaves it: it is in no later run's way."""
    place.lake()
    write = Place.replaced

    def full(self):
        if "/held/" in self.path:
            Place(self.path.rpartition("/")[0]).make_private()
            raise StorageError("no space is left there")
        return write(self)

    with monkeypatch.context() as broken:
        broken.setattr(Place, "replaced", full)
        broken.setattr(tasks, "_TRIES", 1)
        ended = place.run(mask=CELLS[:1])
    assert ended.code == 5, ended.err
    (held,) = place.folder.glob("private/*/checkpoint/held")
    assert not list(held.iterdir())
    assert place.run(*resume, mask=CELLS[:1]).code == 0
    assert not list(place.folder.rglob("checkpoint"))


def segments(place):
    return list(place.folder.glob("private/*/checkpoint/*-0*"))


def header(place):
    return next(place.folder.glob("private/*/checkpoint/header.json"))


@pytest.mark.parametrize(("name", "other"), [("numpy", "1.0"), ("format", "dpmask checkpoint 2")])
def test_a_checkpoint_of_other_libraries_is_refused(place, stopped, name, other):
    place.lake()
    stopped()
    told = json.loads(header(place).read_text())
    header(place).write_text(json.dumps(told | {name: other}))
    ended = place.run("--resume")
    assert ended.code == 2
    assert f"was made with {name} {other}, this is" in ended.err


DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "changed": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
}


@pytest.mark.parametrize("case", [*DAMAGE, "header", "of another run", "staged file"])
def test_damage_costs_time_and_nothing_else(place, stopped, at_once, case):
    """What is not whole, or not ours, is computed again."""
    place.lake()
    assert place.run(target="undisturbed", private="p2").code == 0
    stopped()
    if case == "header":
        header(place).write_text("{")
    elif case == "staged file":
        for path in list(place.folder.glob("private/*/staging/*"))[1:]:
            path.write_bytes(b"PAR1")
    else:
        (first, *rest) = sorted(segments(place))
        damage = DAMAGE.get(case, lambda data: rest[0].read_bytes())  # whole, and under a name that it was not given
        first.write_bytes(damage(first.read_bytes()))
    count = len(list(place.folder.glob("private/*/staging/*")))
    ended = place.run("--resume", "--json")
    assert ended.code == 0, ended.err
    assert resumed(ended) == {
        "passes": {"header": 0, "staged file": 3}.get(case, 2),
        "files": {"header": 0, "staged file": 1}.get(case, count),
    }
    assert place.bytes() == place.bytes("undisturbed")


def test_nothing_to_resume(place):
    place.lake()
    assert place.run("--resume").code == 0
    assert "Already released" in place.run("--resume").out


@pytest.fixture
def sealed(monkeypatch):
    """What is put into checkpoints, before it is encrypted."""
    bodies, closed = [], _Seal.closed

    def noted(self, name, body):
        bodies.append(zlib.decompress(body) if _SEGMENT.fullmatch(name) else body)
        return closed(self, name, body)

    monkeypatch.setattr(_Seal, "closed", noted)
    return bodies


def test_no_value_of_a_record_in_a_checkpoint(place, stopped, sealed, monkeypatch):
    """Passes that sample or order records bring values of them to the driver; who lacks the key finds none."""
    monkeypatch.setenv("DPMASK_TEST_KEY", 40 * "s")
    table = people(999)
    place.lake(table)
    stopped(seed=None, key="env:DPMASK_TEST_KEY", mask=[*MASKS["transforms"][1:2], *CELLS], measure=MEASURES[:8])
    incomes = table["income"].to_numpy()
    forms = [form for one in (incomes, order_keys(incomes)) for form in one.view("V8").tolist()]
    forms += [str(income).encode() for income in incomes]
    inside = b"".join(sealed)
    assert sum(form in inside for form in forms) > len(incomes) // 2, "they are there for who has the key"
    files = [path.read_bytes() for path in place.folder.glob("private/*/checkpoint/**/*") if path.is_file()]
    assert len(files) > 2
    for data in files:
        assert not [form for form in forms if form in data]
        for start in range(min(64, len(data))):  # nor is it merely packed
            with pytest.raises(zlib.error):
                zlib.decompress(data[start:])


def test_no_key_in_a_checkpoint(place, stopped, sealed, monkeypatch):
    """Neither the secret nor what is made of it."""
    from dpmask.engine.draws import Subkey, make_key

    secrets, subkey = [make_key("x", key=40 * "s").secret, 40 * b"s"], Subkey.subkey

    def noted(self, purpose):
        made = subkey(self, purpose)
        secrets.append(made.secret)
        return made

    monkeypatch.setattr(Subkey, "subkey", noted)
    monkeypatch.setenv("DPMASK_TEST_KEY", 40 * "s")
    place.lake()
    stopped(seed=None, key="env:DPMASK_TEST_KEY", mask=[FUZZY, *CELLS])
    found = b"".join(sealed) + header(place).read_bytes()
    assert b"part-00001.parquet" in found
    assert len(secrets) > 5
    for secret in secrets:
        assert secret not in found
        assert secret.hex().encode() not in found


def test_a_forged_entry_runs_nothing(tmp_path):
    """A checkpoint made with a known seed may be anything: only records and arrays are let in."""
    import os
    import pickle

    class Forged:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    for forged in (Forged(), [cli], {"a": len}, checkpoint.remembered):
        with pytest.raises(pickle.UnpicklingError, match="has no place in a checkpoint"):
            checkpoint.loads(pickle.dumps(forged))
    assert not (tmp_path / "made").exists()


def test_of_two_at_the_same_moment_one_is_told(place, stopped):
    place.lake()
    stopped()
    own = header(place).parent.parent
    with Place(str(own)).locked():
        ended = place.run("--resume")
    assert ended.code == 5
    assert "this very job is being run" in ended.err
    assert place.run("--resume").code == 0
