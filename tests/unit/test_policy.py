"""Rules hold measured values to limits; what was sampled is held to by its interval."""

import dataclasses
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from dpmask.errors import JobError
from dpmask.release.gate import gate_risk
from dpmask.release.policy import judge, parse_rule
from dpmask.results import MORE_RISK, Result, Term


@dataclass(frozen=True)
class Sampled(Result):
    rate: float = 0.04
    worst: float | None = 0.2
    plain: float = 0.5
    ends: dict = field(default_factory=lambda: {"rate": (0.03, 0.055)})

    about: ClassVar[Term] = Term("A risk.", MORE_RISK, "nobody")

    @property
    def intervals(self):
        return self.ends

    def explain(self):
        return "A risk."


def held(text, result):
    verdict = judge(parse_rule(text), result)
    return verdict.judged, verdict.held


def test_a_rate_is_judged_by_the_worse_end_of_its_interval():
    assert held("risk.rate <= 0.05", Sampled()) == (0.055, False)
    assert held("risk.rate >= 0.04", Sampled()) == (0.03, False)
    assert held("risk.rate <= 0.05", Sampled(ends={})) == (0.04, True)


def test_other_fields_have_their_own_intervals():
    result = Sampled(ends={"worst": (0.15, 0.26), "rate": (0.03, 0.055)})
    assert held("risk.worst < 0.25", result) == (0.26, False)
    assert held("risk.worst > 0.1", result) == (0.15, True)
    assert held("risk.plain <= 0.5", result) == (0.5, True)
    assert held("risk.rate < 0.06", result) == (0.055, True)


def test_what_was_not_found_cannot_be_judged():
    with pytest.raises(JobError, match=r"'risk.worst < 1' cannot be judged: risk found no worst"):
        held("risk.worst < 1", Sampled(worst=None))


@pytest.mark.parametrize(
    ("count", "end"), [(2, "c0, c1, links"), (30, "c29, links"), (1000, "c29 and 970 more columns, links")]
)
def test_the_gate_names_some_of_very_many_columns(count, end):
    found = gate_risk(50, ([f"c{number}" for number in range(count)], None), None, {})
    assert f"{end} " in found.explain()
    assert found.leading_columns() == []
    telling = dataclasses.replace(found, contributions={"a": 0.0, "b": 0.1, "c": -0.2, "d": 0.3})
    assert telling.leading_columns() == ["The columns that contribute most: d, b."]
    (line,) = dataclasses.replace(found, contributions={"a": 0.0, "b": -0.1}).leading_columns()
    assert line.startswith("No single column decides")
