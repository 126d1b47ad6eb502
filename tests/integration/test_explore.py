"""The explorer without a browser: what may move, what a setting comes to, undo, points, saving, and its server."""

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
from contextlib import chdir, contextmanager

import numpy as np
import pyarrow as pa
import pytest
import yaml
from conftest import people, write_lake
from explore_job import TEXT, write_job

from dpmask.engine.draws import make_key
from dpmask.errors import InputError, JobError, TargetError
from dpmask.explore.controls import settings_of
from dpmask.explore.everything import FullRun
from dpmask.explore.job_edit import edited
from dpmask.explore.proportion import in_proportion, with_as_large_clusters
from dpmask.explore.server import ExplorerServer
from dpmask.explore.session import Explorer
from dpmask.job.sweep import sweep
from dpmask.masking.microaggregation.mdav import Microaggregation
from dpmask.masking.of_households import method_of_step
from dpmask.table.keyed_sample import keyed_sample
from dpmask.table.lake import read_lake


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explore")
    write_job(folder)
    with chdir(folder):
        yield folder


@pytest.fixture(scope="module")
def explorer(home):
    return Explorer("job.yaml")


def rows_of(table):
    return pa.concat_tables([block.content.rows for block in table.blocks])


def test_the_sample_is_the_same_for_any_partitioning(tmp_path):
    write_lake(tmp_path / "lake", people(2000))
    key = make_key("test", seed=1).subkey("sample")
    found = [rows_of(keyed_sample(read_lake(tmp_path / "lake", block_rows=n), 300, key)) for n in (50, 700, 5000)]
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])
    assert 230 < found[0].num_rows < 370
    ids = found[0]["id"].to_pylist()
    assert ids != sorted(ids), "any run of it is a sample again"
    other = rows_of(keyed_sample(read_lake(tmp_path / "lake"), 300, make_key("test", seed=2).subkey("sample")))
    assert set(ids) != set(other["id"].to_pylist())


def test_households_are_sampled_whole(tmp_path):
    table = people(2000).append_column("home", pa.array(np.arange(2000) // 4))
    write_lake(tmp_path / "lake", table)
    found = keyed_sample(read_lake(tmp_path / "lake"), 400, make_key("test", seed=1).subkey("s"), household="home")
    _, counts = np.unique(rows_of(found)["home"].to_numpy(), return_counts=True)
    assert set(counts) == {4}
    assert 300 < counts.sum() < 500


def test_what_may_move(explorer):
    found = {one.name: one for one in explorer.controls}
    k = found["mask[0].requirements[0].k"]
    assert (k.kind, k.value, k.low, k.high, k.step) == ("number", 20, 1, 80, 1)
    assert found["mask[0].guide.clusters+measure[0].clusters"].value == 6
    assert found["mask[0].guide.algorithm"].choices[0] == "bisecting_kmeans"
    assert found["mask[0].importance.age"].value == 1.0
    assert {"mask[1].k", "columns.age", "columns.income", "columns.member"} <= set(found)


def test_a_whole_sample_has_the_numbers_of_a_sweep(home, explorer):
    swept = sweep("job.yaml", ["mask[1].k=4,9"])
    assert explorer.sample.whole
    for k, point in zip((4, 9), swept.points, strict=True):
        found = explorer.move("mask[1].k", k)
        assert {name: one.value for name, one in found.values.items() if one.interval is None} == pytest.approx(
            {name: point.values[name] for name, one in found.values.items() if one.interval is None}, rel=1e-9
        )
        assert [line.rule for line in found.verdict if not line.held] == list(point.broken)
    explorer.undo()


def test_verdict_changes_with_what_is_moved(explorer):
    explorer.go({})
    found = explorer.current()
    assert found.held
    assert found.trees["refinement"]["age"]["value"] == "[0, 100)"
    assert found.clusters is not None
    assert 0 < found.clusters.f_measure <= 1
    assert sum(one.records for one in found.clusters.original) == 400
    assert sum(size * count for size, count in found.sizes.items()) == 400
    assert min(found.sizes) >= 20
    changed = explorer.move("mask[0].requirements[0].k", 5)
    assert [line.rule for line in changed.verdict if not line.held] == ["gate.smallest >= 20"]
    assert changed.values["refinement.loss"].value < found.values["refinement.loss"].value
    explorer.undo()


def test_undo_redo_and_points(explorer):
    explorer.go({})
    before = len(explorer.tried)
    first = explorer.move("mask[1].k", 6)
    second = explorer.move("mask[1].k", 7)
    assert explorer.changes == {"mask[1].k": 7}
    assert explorer.undo() is first, "what was computed is kept"
    assert explorer.redo() is second
    explorer.undo()
    explorer.move("mask[1].k", 4)
    assert explorer.changes == {}, "a value of the file is no change"
    assert not explorer.can_redo
    assert len(explorer.tried) == before + 2
    again = Explorer("job.yaml")
    assert again.tried == explorer.tried, "points are kept for the next session"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mask[1].k", "many", "must be a whole number"),
        ("mask[1].k", 4.5, "must be a whole number"),
        ("mask[1].k", 1, "k must be an integer >= 2"),
        ("mask[0].requirements[0].k", 5000, "400 records, fewer than k = 5000"),
        ("mask[0].guide.algorithm", "best", "must be bisecting_kmeans or"),
        ("mask[1].kk", 3, "Did you mean"),
        ("columns.income", None, "on or off"),
    ],
)
def test_bad_values_leave_everything_as_it_was(explorer, name, value, message):
    before = explorer.changes
    with pytest.raises(Exception, match=message):
        explorer.move(name, value)
    assert explorer.changes == before


def test_columns_in_and_out(explorer):
    explorer.go({})
    found = explorer.move("columns.rate", False)
    assert {one.column for one in found.columns} == {"age", "income", "region", "born"}
    text = yaml.safe_load(explorer.text())
    assert text["columns"]["drop"] == ["rate"]
    assert text["mask"][1]["columns"] == text["measure"][1]["columns"] == ["income"]
    explorer.undo()


def test_a_sample_says_so(tmp_path):
    write_job(tmp_path, rows=1500)
    with chdir(tmp_path):
        explorer = Explorer("job.yaml", rows=300)
        found = explorer.current()
        share = explorer.sample.share
    assert 0.1 < share < 0.3
    assert not explorer.sample.whole
    for one in (found.risk, found.loss):
        assert one.interval is not None
        assert one.interval[0] <= one.value <= one.interval[1]
    linkage = next(line for line in found.verdict if line.rule.startswith("gate.linkage"))
    assert linkage.judged == found.values["gate.linkage"].interval[1], "judged by the worse end"
    assert found.values["gate.smallest"].value >= 20, "risks are taken with k as it is"
    assert found.scaled["mask[0].requirements[0].k"] == (20, max(2, round(20 * share)))
    assert min(found.sizes) < 20, "pictures in proportion"
    with chdir(tmp_path), pytest.raises(InputError, match=r"fewer than k = 1000.* larger one may do: --rows"):
        explorer.move("mask[0].requirements[0].k", 1000)


def test_what_moves_reuse_is_what_is_computed_anew(tmp_path, monkeypatch):
    """Moves of each step in turn, back and forth: the same as of a session that starts there."""
    write_job(tmp_path, 1500, TEXT.replace("measure:", "  - {method: noise, columns: [rate], scale: 0.2}\nmeasure:", 1))
    fitted = []
    real = Microaggregation.fit_table
    monkeypatch.setattr(Microaggregation, "fit_table", lambda *given: fitted.append(1) or real(*given))
    with chdir(tmp_path):
        explorer = Explorer("job.yaml", rows=300)
        explorer.current()
        assert len(fitted) == 2, "for risks and for losses"
        moves = [
            ("mask[0].requirements[0].k", 8), ("mask[2].scale", 0.5), ("mask[0].guide.algorithm", "kmeans"),
            ("mask[1].k", 30), ("columns.born", False), ("mask[1].k", 4), ("columns.born", True),
        ]  # fmt: skip
        counts = [(explorer.move(*move), len(fitted))[1] for move in moves]
        assert counts[:3] == [2, 2, 2], "other steps leave it alone"
        assert counts[3:] == [4, 4, 4, 4], "what was there before is there again"
        found = explorer.current()
        anew = Explorer("job.yaml", rows=300, settings=explorer.settings_at(explorer.changes)).current()
    for name in ("values", "verdict", "sizes", "columns", "trees", "clusters"):
        assert repr(getattr(found, name)) == repr(getattr(anew, name)), name


def test_numbers_of_records_in_proportion():
    job = {
        "mask": [
            {"method": "refinement", "requirements": [{"columns": ["a"], "k": 1000}, [["b"], 50]]},
            {"method": "fuzzy_microaggregation", "columns": ["c"], "k": 500, "minimum_size": 20},
            {"method": "fuzzy_microaggregation", "columns": ["c"], "clusters": 300},
        ]
    }
    steps = [dict(step) for step in job["mask"]]
    methods = [method_of_step(step.pop("method"), step) for step in steps]
    scaled, changed = in_proportion(job, methods, 0.01)
    assert [one["k"] if isinstance(one, dict) else one[1] for one in scaled["mask"][0]["requirements"]] == [10, 2]
    assert (scaled["mask"][1]["k"], scaled["mask"][1]["minimum_size"]) == (5, 2)
    assert changed["mask[1].k"] == (500, 5)
    assert scaled["mask"][2]["clusters"] == 300
    assert with_as_large_clusters(job, methods, 0.01)["mask"][2]["clusters"] == 3


EDITS = [
    (("mask", 1, "k"), 9, "  - {method: microaggregation, columns: [income, rate], k: 9}\n"),
    (("mask", 0, "requirements", 0, "k"), 7, "k: 7}   # one in twenty\n"),
    (
        ("mask", 0, "importance"),
        {"age": 2.0},
        "guide: {clusters: 6}      # to stay apart\n    importance: {age: 2.0}\n",
    ),
    (("mask", 0, "guide", "algorithm"), "kmeans", "guide: {clusters: 6, algorithm: kmeans}      # to stay apart\n"),
    (("columns", "sensitive"), ["income"], "    - income                  # of a year\n  plain:"),
    (("columns", "sensitive"), ["rate"], "  sensitive:\n    - rate\n"),
    (("columns", "identifier"), ["name", "seen"], "identifier: [name, seen]\n"),
    (("columns", "identifier"), ["id", "seen", "money", "x"], "identifier: [id, seen, money, x]\n"),
    (("columns", "identifier"), [], "identifier: []\n"),
    (("columns", "drop"), ["rate"], "  plain: [member, children]\n  drop: [rate]\naccept:"),
    (("seed",), 8, "seed: 8                       # a trial\n"),
    (("new",), {"a": [1]}, "  - gate.linkage <= 1\nnew: {a: [1]}\n"),
]


@pytest.mark.parametrize(("path", "value", "expected"), EDITS, ids=[str(one[0]) for one in EDITS])
def test_files_are_edited_in_place(path, value, expected):
    after = yaml.safe_load(TEXT)
    place = after
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    new = edited(TEXT, after, "job.yaml")
    assert yaml.safe_load(new) == after
    assert expected in new
    comments = {line.split("#")[1] for line in TEXT.splitlines() if "#" in line}
    lost = {" of a year"} if path[-1] == "sensitive" and value == ["rate"] else set()  # which goes with its line
    assert {one for one in comments if one not in new} == lost
    assert settings_of(yaml.safe_load(TEXT), after)


def test_a_key_taken_out_of_a_file():
    after = yaml.safe_load(TEXT)
    del after["mask"][0]["domains"]["age"], after["seed"], after["accept"]
    new = edited(TEXT, after, "job.yaml")
    assert "domains: {born: [1970-01-01, 2030-01-01]}\n" in new
    assert "private: private\ncolumns:" in new


def test_saving(tmp_path):
    write_job(tmp_path, 200, TEXT.replace("k: 20}", "k: 10}"))
    with chdir(tmp_path):
        explorer = Explorer("job.yaml", settings=["name=november"])
        assert explorer.difference() == ""
        explorer.move("mask[1].k", 5)
        assert "-  - {method: microaggregation, columns: [income, rate], k: 4}" in explorer.difference()
        assert explorer.settings_at(explorer.changes) == ["name=november", "mask[1].k=5"]
        explorer.save("other.yaml")
        with pytest.raises(TargetError, match="is there already"):
            explorer.save("other.yaml")
        for bad in ("../other.yaml", "job.txt", "a/b.yaml", ".yaml"):
            with pytest.raises(JobError, match="name of a file beside"):
                explorer.save(bad)
        explorer.save()
        written = (tmp_path / "job.yaml").read_text(encoding="utf-8")
        assert written == TEXT.replace("k: 20}", "k: 10}").replace("k: 4}", "k: 5}"), "without what --set gave"
        assert explorer.difference() == ""
        assert explorer.settings_at(explorer.changes) == ["name=november"]
        (tmp_path / "job.yaml").write_text(written + "# mine\n", encoding="utf-8")
        explorer.move("mask[1].k", 6)
        with pytest.raises(TargetError, match="was changed by somebody"):
            explorer.save()


def test_on_everything(home, explorer, monkeypatch):
    explorer.go({"mask[1].k": 5})
    run = FullRun(explorer)
    run.start()
    with pytest.raises(JobError, match="under way"):
        run.start()
    run.wait()
    assert (run.progress, run.error) == ("done", "")
    (exact,) = explorer.exact.values()
    assert exact.loss == pytest.approx(explorer.current().loss.value, rel=1e-9)
    assert not (home / "release").exists(), "nothing is published"
    monkeypatch.setattr("dpmask.explore.everything.measured_point", _lost)
    run.start()
    run.wait()
    assert run.error == "the cluster is gone"
    explorer.undo()


def _lost(*_):
    from dpmask.errors import ClusterError

    raise ClusterError("the cluster is gone")


def test_a_series_is_refused(tmp_path):
    write_job(tmp_path, 200, TEXT + "series: monthly\n")
    with chdir(tmp_path), pytest.raises(JobError, match="series: a release of a series depends"):
        Explorer("job.yaml")


@contextmanager
def served(explorer):
    with ExplorerServer(explorer) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def asked(server, path, content=None, method="POST", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request(method, path, json.dumps(content or {}) if method == "POST" else None, headers)
    answer = connection.getresponse()
    found = answer.read().decode()
    connection.close()
    return answer, found


def test_the_server_answers_its_own_page_alone(explorer):
    with served(explorer) as server:
        assert server.server_address[0] == "127.0.0.1"
        answer, page = asked(server, "/", method="GET")
        assert answer.status == 200
        assert "people" not in page
        assert server.token not in page
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        own = f"http://127.0.0.1:{server.server_port}"
        token, name = server.token, {"name": "mask[1].k", "value": 8}
        assert asked(server, "/session", {"token": "guessed"})[0].status == 403
        assert asked(server, "/session", {"token": token}, Origin="http://evil.example")[0].status == 403
        assert asked(server, "/session", {"token": token}, Host="evil.example")[0].status == 403
        secret = json.loads(asked(server, "/session", {"token": token}, Origin=own)[1])["secret"]
        assert asked(server, "/session", {"token": token})[0].status == 403, "it works once"
        session = {"X-Session": secret}
        for headers in (
            {},
            {"X-Session": "guessed"},
            {**session, "Origin": "null"},
            {**session, "Origin": f"http://127.0.0.1:{server.server_port + 1}"},
            {**session, "Host": f"evil.example:{server.server_port}"},
            {**session, "Sec-Fetch-Site": "cross-site"},
        ):
            assert asked(server, "/move", name, **headers)[0].status == 403, headers
        assert asked(server, "/job.yaml", method="GET")[0].status == 403
        assert asked(server, "/../session.py", method="GET")[0].status == 403
        assert asked(server, "/nothing", **session)[0].status == 403
        answer, found = asked(server, "/move", name, **session, Origin=own)
        assert answer.status == 200
        assert json.loads(found)["can_undo"]
        assert explorer.changes == {"mask[1].k": 8}
        wrong = json.loads(asked(server, "/move", {"name": "mask[1].k", "value": 1}, **session)[1])
        assert "k must be an integer >= 2" in wrong["error"]
        assert json.loads(asked(server, "/point", {"number": 99}, **session)[1])["error"] == "There is no such point."
        json.loads(asked(server, "/undo", **session)[1])
        assert explorer.changes == {}


def test_a_port_that_is_taken(explorer):
    with served(explorer) as server, pytest.raises(JobError, match=f"--port {server.server_port}: is taken"):
        ExplorerServer(explorer, server.server_port)


def test_the_command_serves_until_it_is_ended(home):
    """A process of its own, ended as Ctrl-C ends it."""
    command = [sys.executable, "-m", "dpmask", "explore", "job.yaml"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[0] == "400 of 400 records in the sample.\n"
        assert re.search(r"http://127\.0\.0\.1:\d+/#[\w-]{32}\n", lines[1])
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "Ended. Nothing was published.\n")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--set", "mask[1].k=1"], "k must be an integer >= 2"),
        (["--set", "source=nowhere"], "nowhere"),
        (["--risk", "luck.rate"], "--risk luck.rate: the job does not measure it"),
        (["--set", "measure=[]", "--set", "policy=[]", "--loss", "il1s.value"], "does not measure it"),
    ],
)
def test_the_command_says_what_is_wrong(home, capfd, changes, message):
    from dpmask.cli import main

    with pytest.raises(SystemExit) as end:
        main(["explore", "job.yaml", *changes])
    assert end.value.code in {2, 4}
    assert message in capfd.readouterr().err
