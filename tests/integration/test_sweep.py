"""A job at several parameters: points kept and resumed, the frontier, the recommendation, and nothing published."""

import json

import pytest
from conftest import people

from dpmask.job.sweep import sweep

JOB = {
    "columns": {"identifier": ["id"], "quasi": ["age"], "sensitive": ["income"]},
    "mask": [{"method": "noise", "columns": ["age", "income"], "scale": 0.1}],
    "measure": [
        {"measure": "il1s", "columns": ["age", "income"]},
        {"measure": "interval_disclosure", "columns": ["age", "income"]},
    ],
    "policy": ["interval_disclosure.rate <= 0.8"],
}


@pytest.fixture
def swept(place):
    place.lake(people(600).select(["id", "age", "income"]))
    place.job(**JOB)
    return place


def run(place, *over, options=()):
    arguments = [part for one in over for part in ("--over", one)]
    return place.dpmask("sweep", "job.yaml", *arguments, *options)


def points(place, *over, options=()):
    ended = run(place, *over, options=("--json", *options))
    assert ended.code == 0, ended.err
    return ended.json, ended


def test_several_axes_the_frontier_and_the_recommendation(swept):
    found, _ = points(swept, "mask[0].scale=0.01,0.3,2", "mask[0].columns=[income],[age, income]")
    assert [point["parameters"] for point in found["points"]] == [
        {"mask[0].scale": scale, "mask[0].columns": columns}
        for scale in (0.01, 0.3, 2)
        for columns in (["income"], ["age", "income"])
    ]
    assert (found["risk"], found["loss"]) == ("interval_disclosure.rate", "il1s.value")
    for point in found["points"]:
        beaten = [one for one in found["points"] if one["risk"] <= point["risk"] and one["loss"] <= point["loss"]]
        assert point["frontier"] == all((one["risk"], one["loss"]) == (point["risk"], point["loss"]) for one in beaten)
        assert point["holds"] == (point["risk"] <= 0.8) == (not point["broken"])
    allowed = [point for point in found["points"] if point["holds"]]
    best = found["points"][found["recommended"]]
    assert 0 < len(allowed) < 6
    assert best["loss"] == min(point["loss"] for point in allowed)
    assert f"of the {len(allowed)} of 6 points" in found["recommendation"]
    assert f"Take mask[0].scale = {best['parameters']['mask[0].scale']}" in found["recommendation"]


def test_the_number_of_clusters_is_swept_with_f_measure_and_match_point(place):
    """Label, refine, recluster, compare at each number, of the guide and of the comparison alike."""
    place.lake(people(400).select(["id", "age", "income", "region"]))
    quasi = ["age", "region"]
    guide = {"clusters": 2, "algorithm": "kmeans", "columns": ["age", "income"]}
    place.job(
        columns={"identifier": ["id"], "quasi": quasi, "sensitive": ["income"]},
        mask=[
            {
                "method": "refinement",
                "requirements": [{"columns": quasi, "k": 5}],
                "domains": {"age": [0, 100]},
                "guide": guide,
            }
        ],
        measure=[
            {"measure": "partition_agreement", "columns": quasi, "clusters": 2, "repeats": 0},
            {"measure": "hellinger", "columns": ["region"]},
        ],
        policy=[],
    )
    axis = "mask[0].guide.clusters+measure[0].clusters"
    found, _ = points(place, f"{axis}=2,4")
    assert [point["parameters"] for point in found["points"]] == [{axis: 2}, {axis: 4}]
    assert all(0 < point["values"]["partition_agreement.match_point"] <= 1 for point in found["points"])
    page = (place.folder / "private/sweep/map.html").read_text(encoding="utf-8")
    for name in ("value", "match_point"):
        assert f">partition_agreement.{name}</text>" in page


def test_a_notebook_draws_the_map(swept, monkeypatch):
    monkeypatch.chdir(swept.folder)
    found = sweep("job.yaml", ["mask[0].scale=0.01,2"])
    html = found._repr_html_()
    assert html.startswith("<svg ")
    assert "Risk against loss" in html
    assert html.count("<tr>") == 3
    assert found.explain() in html
    frame = found.to_frame()
    assert list(frame) == ["mask[0].scale", "interval_disclosure.rate", "il1s.value", "holds", "frontier"]
    assert frame["holds"].tolist() == [point.holds for point in found.points] == [False, True]
    assert json.loads(json.dumps(found.to_dict()))["recommended"] == found.recommended == 1


def test_the_table_says_what_the_numbers_say(swept):
    ended = run(swept, "mask[0].scale=0.01,2")
    lines = ended.out.splitlines()
    assert lines[0].split() == ["mask[0].scale", "interval_disclosure.rate", "il1s.value", "policy", "frontier"]
    assert [line.split()[0] for line in lines[1:3]] == ["0.01", "2"]
    assert [line.split()[3] for line in lines[1:3]] == ["broken", "holds"]
    assert lines[3].startswith("Take mask[0].scale = 2:")
    assert lines[4] == f"Map: {swept.folder / 'private' / 'sweep' / 'map.html'}"
    page = (swept.folder / "private" / "sweep" / "map.html").read_text(encoding="utf-8")
    assert "recommended" in page
    assert "Risk and loss against mask[0].scale" in page


def test_a_whole_step_as_a_value(swept):
    noise = "{method: noise, columns: [income], scale: 0.5}"
    groups = "{method: microaggregation, columns: [income], k: 5}"
    found, _ = points(swept, f"mask[0]={noise},{groups}")
    assert [point["parameters"]["mask[0]"]["method"] for point in found["points"]] == ["noise", "microaggregation"]
    assert "microaggregation.loss" in found["points"][1]["values"]
    assert 'id="curves"' not in (swept.folder / "private" / "sweep" / "map.html").read_text(encoding="utf-8")
    assert [point["typed"]["mask[0]"] for point in found["points"]] == [noise, groups]
    assert f"mask[0] = {noise if found['recommended'] == 0 else groups}" in found["recommendation"]


def test_a_release_of_the_same_job_keeps_its_pairing(swept):
    assert swept.dpmask("run", "job.yaml").code == 0
    before = swept.bytes("private")
    assert run(swept, "mask[0].scale=0.1,0.2").code == 0  # the job's own scale, and another
    assert before.items() <= swept.bytes("private").items()
    assert any("/pairing/" in name for name in before)


def test_nothing_is_published_and_nothing_staged_is_left(swept):
    run(swept, "mask[0].scale=0.1,0.2")
    assert not (swept.folder / "release").exists()
    kept = [
        str(path.relative_to(swept.folder / "private"))
        for path in (swept.folder / "private").rglob("*")
        if path.is_file()
    ]
    assert len(kept) == 3
    assert all(name.startswith("sweep/") for name in kept)


def test_points_are_kept_one_by_one(swept):
    """A sweep that was stopped after its second point goes on with the third."""
    first, ended = points(swept, "mask[0].scale=0.1,0.2")
    assert "measured before" not in ended.err
    again, ended = points(swept, "mask[0].scale=0.1,0.2,0.3")
    assert ended.err.count("measured before") == 2
    assert ended.err.count("interval_disclosure: by rank") == 1
    assert again["points"][:2] == [
        {**point, "frontier": again["points"][n]["frontier"]} for n, point in enumerate(first["points"])
    ]


def test_stopped_on_the_way(swept, monkeypatch):
    """Interrupted while the second point is measured: the first one is kept."""
    from dpmask.job import sweep as module

    measured, calls = module._measured, []

    def stopped(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return measured(*arguments)

    monkeypatch.setattr(module, "_measured", stopped)
    assert run(swept, "mask[0].scale=0.1,0.2").code != 0
    monkeypatch.undo()
    monkeypatch.chdir(swept.folder)
    _, ended = points(swept, "mask[0].scale=0.1,0.2")
    assert ended.err.count("measured before") == 1


@pytest.mark.parametrize("damage", ["", "{}", "not json", '{"versions": 1}'])
def test_a_damaged_point_is_measured_again(swept, damage):
    expected, _ = points(swept, "mask[0].scale=0.1")
    (kept,) = (swept.folder / "private" / "sweep").glob("*.json")
    kept.write_text(damage)
    found, ended = points(swept, "mask[0].scale=0.1")
    assert "measured before" not in ended.err
    assert found == expected


def test_another_input_is_measured_again(swept):
    points(swept, "mask[0].scale=0.1")
    swept.lake(people(600, seed=1).select(["id", "age", "income"]))
    _, ended = points(swept, "mask[0].scale=0.1")
    assert "measured before" not in ended.err


def test_no_point_satisfies(swept):
    found, _ = points(swept, "mask[0].scale=0.01,0.02")
    assert found["recommended"] is None
    assert found["recommendation"].startswith("No point satisfies the policy. The least interval_disclosure.rate is")
    assert "interval_disclosure.rate <= 0.8" in found["recommendation"]
    page = (swept.folder / "private" / "sweep" / "map.html").read_text(encoding="utf-8")
    assert "No point satisfies" in page
    assert "breaks interval_disclosure.rate &lt;= 0.8" in page


def test_other_goals(swept):
    found, _ = points(swept, "mask[0].scale=0.1,1", options=("--risk", "interval_disclosure.joint"))
    assert found["risk"] == "interval_disclosure.joint"
    assert [point["risk"] for point in found["points"]] == [
        point["values"]["interval_disclosure.joint"] for point in found["points"]
    ]


@pytest.mark.parametrize(
    ("over", "options", "told"),
    [
        ("mask[0].k", (), "must be PATH=VALUE,VALUE"),
        ("mask[0].scale=[", (), "must be PATH=VALUE,VALUE"),
        ("mask[3].scale=1", (), "has nothing at mask[3].scale"),
        ("musk=1", (), "has nothing at musk"),
        ("mask[0].skale=1", (), "skale"),
        ("mask[0].scale=-1", (), "scale"),
        ("mask[0].scale=1", ("--risk", "il1s.rate"), "--risk il1s.rate: the job does not measure it"),
        ("mask[0].scale=1", ("--loss", "nothing"), "--loss nothing: the job does not measure it"),
    ],
)
def test_wrong_paths_and_goals(swept, over, options, told):
    ended = run(swept, over, options=options)
    assert ended.code == 2
    assert told in ended.err
    assert not (swept.folder / "private" / "sweep").exists()


def test_a_job_without_a_risk_is_compared_by_the_gate(swept):
    swept.job(**JOB | {"measure": JOB["measure"][:1], "policy": []})
    found, _ = points(swept, "mask[0].scale=1,0.1")
    assert found["risk"] == "gate.linkage"
    assert found["points"][0]["risk"] < found["points"][1]["risk"]


def test_a_job_without_a_policy_takes_the_least_loss(swept):
    swept.job(**JOB | {"policy": []})
    found, _ = points(swept, "mask[0].scale=1,0.1")
    assert found["recommended"] == 1


def test_the_report_goes_where_it_is_told_to(swept):
    found, _ = points(swept, "mask[0].scale=1", options=("--report", "map.html"))
    assert found["report"] == str(swept.folder / "map.html")
    assert (swept.folder / "map.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_cluster_and_embedded_agree(swept, cluster):
    expected, _ = points(swept, "mask[0].scale=0.1,1")
    page = (swept.folder / "private" / "sweep" / "map.html").read_bytes()
    for kept in (swept.folder / "private" / "sweep").iterdir():
        kept.unlink()
    found, ended = points(swept, "mask[0].scale=0.1,1", options=("--scheduler", cluster.scheduler_address))
    assert "measured before" not in ended.err
    assert json.dumps(found["points"]) == json.dumps(expected["points"])
    assert (swept.folder / "private" / "sweep" / "map.html").read_bytes() == page


def test_names_in_a_map_are_text(swept):
    table = people(300).select(["id", "age", "income"]).rename_columns(["id", "age", "<b>&é"])
    swept.lake(table)
    swept.job(
        **JOB
        | {
            "columns": {"identifier": ["id"], "quasi": ["age"], "sensitive": ["<b>&é"]},
            "mask": [{"method": "noise", "columns": ["<b>&é"], "scale": 0.1}],
            "measure": [{**one, "columns": ["<b>&é"]} for one in JOB["measure"]],
        }
    )
    points(swept, "mask[0].columns=['<b>&é']")
    page = (swept.folder / "private" / "sweep" / "map.html").read_text(encoding="utf-8")
    assert "<b>" not in page
    assert "&lt;b&gt;&amp;é" in page


def test_without_over_it_tries_what_sets_the_risk_and_says_why(swept):
    ended = run(swept)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0].startswith("Tried without --over: mask[0].scale; the scale sets risk and loss")
    assert [line.split()[0] for line in lines[2:6]] == ["0.05", "0.1", "0.2", "0.4"]
    assert "no --over: trying mask[0].scale=0.05, 0.1, 0.2, 0.4" in ended.err
    found, _ = points(swept)
    assert list(found["why"]) == ["mask[0].scale"]
    assert points(swept, "mask[0].scale=0.1,0.2")[0]["why"] == {}


def test_a_job_without_a_parameter_that_sets_the_risk_is_asked_for_one(swept):
    swept.job(**{**JOB, "mask": [{"method": "rotation", "columns": ["age", "income"]}]})
    ended = run(swept)
    assert ended.code == 2
    assert "no step of this job has one. Name what to try, such as --over mask[0].k=3,5,10." in ended.err
