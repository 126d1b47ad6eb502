"""The gate: attacked whatever a job asks for, closed to columns that nothing protects, and open by name with a reason."""

import json

import numpy as np
import pyarrow as pa
import pytest
from conftest import people

import dpmask
from dpmask.engine.limits import limits

REASON = "public anyway: three regions of ten million"
COLUMNS = {"identifier": ["id", "name", "member", "born", "seen", "children", "money", "rate"], "quasi": ["age"]}
MASK = [{"method": "noise", "columns": ["age", "income"], "scale": 3.0}]
JOB = {"columns": COLUMNS | {"sensitive": ["income"], "plain": ["region"]}, "mask": MASK, "accept": {}, "policy": []}


def changed(**changes):
    return JOB | changes


def roles(**changes):
    return {"columns": JOB["columns"] | changes}


@pytest.fixture
def lake(place):
    place.lake()
    return place


def test_a_job_without_any_rule_is_attacked_and_judged_by_the_default_ones(lake):
    ended = lake.run("--json", **JOB)
    assert ended.code == 0, ended.err
    assert [rule["rule"] for rule in ended.json["policy"]] == ["gate.linkage <= 0.05", "gate.attacks <= 0.05"]
    gate = ended.json["measures"][-1]
    assert gate["name"] == "gate"
    assert gate["values"]["columns"] == ["age", "income"]


def test_the_gate_reports_what_the_strongest_intruder_links(lake):
    """The same as the measure itself finds of the release and its originals."""
    table = people()
    assert (
        lake.run(**changed(mask=[MASK[0] | {"scale": 0.05}], policy=["gate.linkage <= 1", "gate.attacks <= 1"])).code
        == 0
    )
    gate = json.loads((lake.folder / "private/result.json").read_text())["measures"][-1]["judged"]
    masked = lake.by_original(table).to_pandas()
    found = dpmask.risk.distance_linkage(table.to_pandas(), masked, columns=["age", "income"])
    assert gate["linkage"] == pytest.approx(max(getattr(found, name) for name in found.shares))
    assert gate["linkage"] > 0.3
    assert gate["smallest"] == dpmask.risk.groups(table.to_pandas(), masked, quasi=["age"]).smallest


def test_a_refusal_says_which_rule_what_was_found_and_what_to_change(lake):
    ended = lake.run(**changed(mask=[MASK[0] | {"scale": 0.02}]))
    assert ended.code == 3
    assert "gate.linkage <= 0.05 (a default of the gate): it is 0." in ended.err
    assert "who knows age, income, links" in ended.err
    assert "The columns that contribute most: income, age." in ended.err
    assert "state another limit" in ended.err
    assert not (lake.folder / "release").exists()
    assert next((lake.folder / "private").glob("*/report.html")).stat().st_size
    assert (
        lake.run(
            **changed(mask=[MASK[0] | {"scale": 0.02}], policy=["gate.linkage <= 0.999", "gate.attacks <= 1"])
        ).code
        == 0
    )


@pytest.mark.parametrize("role", ["quasi", "sensitive", "weight"])
def test_a_column_at_risk_that_no_step_masks_closes_the_gate_before_anything_is_masked(lake, role):
    said = changed(**roles(**{"plain": [], role: [*JOB["columns"].get(role, []), "region"]}))
    for command in ("run", "plan"):
        ended = lake.dpmask(command, lake.job(**said))
        assert ended.code == 3
        assert "region: a" in ended.err
        assert "that no step masks" in ended.err
        assert "age:" not in ended.err
    result = json.loads((lake.folder / "private/result.json").read_text())
    assert (result["status"], result["stage"]) == ("refused", "read")
    ended = lake.run(**said | {"accept": {"region": REASON}, "policy": ["gate.linkage <= 1", "gate.attacks <= 1"]})
    assert ended.code == 0, ended.err


def test_a_column_with_a_value_for_each_record_is_not_published_without_a_word(place):
    table = people()
    numbers = [f"756.{number:09d}" for number in np.random.default_rng(1).permutation(600)]
    place.lake(table.append_column("insurance", pa.array(numbers)))
    said = changed(**roles(plain=["region", "insurance"]))
    with limits(planned_rows=500):  # a longer table is not read by a plan
        assert "the gate may refuse insurance: in the first block" in place.dpmask("plan", place.job(**said)).out
    for command in ("run", "plan"):
        ended = place.dpmask(command, place.job(**said))
        assert ended.code == 3
        assert "insurance: 600 different values in 600 records" in ended.err
        assert "756." not in ended.err
    assert place.run(**said | {"accept": {"insurance": REASON}}).code == 0


def test_values_that_few_share_identify_too(place):
    """Numbers of households of two: none is alone with its value."""
    place.lake(people().append_column("household", pa.array(np.arange(600) // 2)))
    assert place.run(**changed(**roles(plain=["region", "household"]))).code == 3


def test_what_was_accepted_is_public(lake):
    said = roles(plain=[], quasi=["age", "region"])
    assert (
        lake.run(**changed(**said, accept={"region": REASON}, policy=["gate.linkage <= 0.9", "gate.attacks <= 1"])).code
        == 0
    )
    manifest, _ = lake.released()
    assert manifest["accepted"] == {"region": REASON}
    assert manifest["policy"][0] == {
        "rule": "gate.linkage <= 0.9",
        "held": True,
        "columns": ["age", "income", "region"],
    }
    for suffix in ("statement.md", "report.html"):
        text = next((lake.folder / "release/report").glob(f"*/{suffix}")).read_text()
        assert REASON in text
        assert "about age, income, region" in text
        assert "dpmask explain promises" in text


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        ({"regoin": REASON}, "accept.regoin: the job releases no such column. Did you mean 'region'?"),
        ({"age": REASON}, "accept.age: there is nothing to accept: a step masks this column"),
        ({"id": REASON}, "accept.id: there is nothing to accept: this column is dropped"),
        ({"order": REASON}, "accept.order: there is nothing to accept: the rows are shuffled"),
        ({"region": "yes"}, "accept.region: must give a reason of 10 or more characters"),
    ],
)
def test_needless_or_unknown_acceptances_are_errors(lake, accept, message):
    ended = lake.run(**changed(accept=accept))
    assert ended.code == 2
    assert message in ended.err


def test_the_order_of_the_source_must_be_accepted(lake):
    ended = lake.run(**changed(order="input"))
    assert ended.code == 3
    assert "order: rows in the order of the source" in ended.err
    assert lake.run(**changed(order="input", accept={"order": "the source is sorted by income"})).code == 0


def test_what_the_job_measures_itself_is_not_measured_again(lake):
    own = [{"measure": "distance_linkage", "columns": ["income", "age"]}, {"measure": "groups"}]
    for measure, taken in ((own, ["distance_linkage", "groups"]), ([], ["gate linkage", "gate groups"])):
        ended = lake.run("--json", "--overwrite", **changed(measure=measure))
        names = [one["name"] for one in ended.json["measures"] if one["measure"] in {"distance_linkage", "groups"}]
        assert names == taken


def test_a_constant_column_tells_nothing_and_stops_nothing(place):
    table = people().append_column("country", pa.array(np.full(600, 7)))
    place.lake(table)
    said = changed(**roles(quasi=["age", "country"]), accept={"country": "the same for everybody"})
    ended = place.run("--json", **said)
    assert ended.code == 0, ended.err
    assert ended.json["measures"][-1]["values"]["columns"] == ["age", "income"]


def test_nothing_else_may_be_called_gate(lake):
    ended = lake.run(**changed(measure=[{"measure": "il1s", "columns": ["age"], "as": "gate"}]))
    assert ended.code == 2
    assert "'gate' is what the gate is called" in ended.err


def test_a_masked_column_is_attacked_whatever_its_role(lake):
    """Means of two: who declares them plain is told what one is told who declares them sensitive."""
    said = {"mask": [{"method": "microaggregation", "columns": ["age", "income"], "k": 2}], "policy": []}
    columns = {"identifier": COLUMNS["identifier"], "plain": ["age", "income", "region"]}
    ended = lake.run("--json", **changed(**said, columns=columns))
    assert ended.code == 3
    gate = ended.json["measures"][-1]["values"]
    assert gate["columns"] == ["age", "income"]
    assert gate["linkage"] > 0.2


def test_pseudonyms_of_plain_numbers_are_not_compared_with_them(lake):
    said = {"mask": [*MASK, {"method": "pseudonyms", "columns": ["id"]}], "policy": ["gate.linkage <= 1"]}
    columns = {"identifier": [*COLUMNS["identifier"][1:], "region"], "plain": ["id"]}
    ended = lake.run("--json", **changed(**said, columns=COLUMNS | columns | {"sensitive": ["income"]}))
    assert ended.code == 0, ended.err
    assert ended.json["measures"][-1]["values"]["columns"] == ["age", "income"]
