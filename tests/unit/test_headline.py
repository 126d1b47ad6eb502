"""The three numbers that stand first: the strongest attack, inference as measured or from rows, the first loss."""

from types import SimpleNamespace

import pytest

from dpmask.job.outcome import About, MeasureOutcome, RuleOutcome
from dpmask.measures import MEASURES, find_measure
from dpmask.measures.risk.exposed import GivenAway
from dpmask.release.gate import GateRisk
from dpmask.report.headline import public_numbers, three_numbers, verdict

ABOUT = About(definition="What it is, in words.", direction="Larger is worse.", source="nobody")


def measure(name, *, lost=False, better=False, values=None, **judged):
    shares = [] if lost else list(judged)
    known = find_measure(name).result if name in MEASURES else GateRisk
    found = {"guessing": 0.001, "attacked": 100, **judged, **(values or {})}
    return MeasureOutcome(
        name=name, measure=name, public=lost, judged=judged, values=found, explanation=f"{name} was found.", about=ABOUT,
        lost=lost, larger_is_better=better, shares=shares, automatic=known.automatic, headlines=list(known.leading()),
    )  # fmt: skip


def rule(text, judged, held=True):
    return RuleOutcome(rule=text, judged=judged, held=held, columns=["age"])


GATE = measure("gate", linkage=0.01, smallest=5, values={"columns": ["age", "net"], "quasi": ["age"]})


def test_who_could_be_found_is_judged_by_the_policy():
    found, *_ = three_numbers([GATE], [rule("gate.linkage <= 0.05", 0.0123)])
    assert (found.value, found.held, found.source) == ("1.23 %", True, "gate.linkage")
    assert "at most 5 %" in found.text
    assert "At least 5 records are alike in age" in found.text
    alone = measure("gate", linkage=0.2, smallest=1, values={"quasi": ["age"]})
    found, *_ = three_numbers([alone], [rule("gate.linkage <= 0.05", 0.21, held=False)])
    assert found.held is False
    assert "singled out" in found.text


def test_without_a_gate_the_strongest_linkage_counts():
    found, *_ = three_numbers([measure("distance_linkage", rate=0.1), measure("rank_linkage", rate=0.3)], ())
    assert (found.value, found.held, found.source) == ("30 %", None, "rank_linkage.rate")
    assert three_numbers([], ())[0].value == "not measured"


def test_what_could_be_learned_is_the_worst_that_was_measured():
    measures = [measure("interval_disclosure", rate=0.2), measure("attribute_inference", rate=0.4, excess=0.1)]
    assert three_numbers(measures, (), learned=GivenAway(0.9, 0.1, 50))[1].source == "attribute_inference.rate"
    from_rows = three_numbers([GATE], (), learned=GivenAway(0.5, 0.1, 2000))[1]
    assert from_rows.value == "50 %"
    assert "10 %" in from_rows.text
    assert three_numbers([GATE], ())[1].value == "not measured"


def test_what_was_lost_is_the_first_loss_that_the_job_asks_for():
    automatic, asked = measure("consistency", lost=True, value=0.5), measure("il1s", lost=True, value=0.123456)
    agreement = measure("partition_agreement", lost=True, better=True, value=0.9)
    assert three_numbers([automatic, agreement, asked], ())[2].value == "0.123"
    assert three_numbers([automatic, agreement], ())[2].question == "What was kept"
    assert three_numbers([automatic], ())[2].source == "consistency.value"
    step = SimpleNamespace(figures={"loss": 0.25}, about=ABOUT, name="refinement", method="refinement")
    assert three_numbers([automatic], (), [step])[2].source == "refinement.loss"


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ([True, True], "Allowed: this release keeps all 2 rules"),
        ([False, True], "breaks 1 of 2 rules"),
        ([], "no rule"),
    ],
)
def test_the_verdict_is_a_sentence(held, words):
    said = verdict([rule(f"a.b <= {number}", 1.0, one) for number, one in enumerate(held)])
    assert words in said
    assert said.count(". ") == 0


def test_public_numbers_have_no_risk():
    column = {"name": "age", "type": "int32", "role": "quasi", "masked": True}
    public = {
        "schema": [column], "dropped": ["id"], "claims": [{"columns": ["age"], "smallest_group": 20}],
        "policy": [{"rule": "gate.linkage <= 0.05", "held": True, "columns": []}],
    }  # fmt: skip
    protected, lost, limits = public_numbers(public, [measure("il1s", lost=True, value=0.1)])
    assert (protected.value, lost.value, limits.value) == ("1 of 1", "0.1", "1 of 1")
    assert "At least 20 records share each row of age" in protected.text
    public["claims"][0]["columns"] = [f"c{number}" for number in range(1000)]
    assert "share each row of c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 and 988 more columns." in (
        public_numbers(public, [])[0].text
    )
    public["claims"] = [{"columns": ["age"], "smallest_group": 20, "households": "home"}]
    assert "At least 20 households are alike in age of all their members." in public_numbers(public, [])[0].text
    assert not any("0.05" in one.text for one in (protected, lost, limits))
