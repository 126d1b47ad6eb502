"""Rules hold measured values to limits; what was sampled is held to by its interval."""

from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from dpmask.errors import JobError
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
