"""The worked measure of CONTRIBUTING is a measure: it is taken from there, run and checked."""

import doctest
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import dpmask
from dpmask.measures.measure import Measure
from dpmask.results import Risk, Term
from dpmask.testing.measures import check_measure

TEXT = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture
def module(monkeypatch):
    section = TEXT.read_text(encoding="utf-8").split("## A new measure")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    module = ModuleType("quantile_distance")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # its results are pickled by that name
    exec(compile(code, str(TEXT), "exec"), module.__dict__)
    return module


def test_the_measure_of_contributing_keeps_the_contract(module):
    rng = np.random.default_rng(1)
    original = pd.DataFrame({"income": rng.lognormal(9, 1, 300), "hours": rng.normal(30, 8, 300)})
    masked = original + rng.normal(size=original.shape) * original.std().to_numpy() / 10
    check_measure(module.MEASURE, original, masked)
    shifted = module.quantile_distance(original, original + original["income"].std(ddof=0), columns=["income"])
    assert shifted.value == pytest.approx(1.0)


def test_what_is_no_measure_is_named(module):
    frame = pd.DataFrame({"income": [1.0, 2.0]})
    with pytest.raises(AssertionError, match="is no Measure: give the MEASURE of its file"):
        check_measure(module, frame, frame)


def test_a_share_lies_between_0_and_1():
    frame = pd.DataFrame({"income": [1.0, 2.0, 4.0]})
    measure = Measure(function=overdone, result=Overdone)
    with pytest.raises(AssertionError, match="overdone: 'rate' is a share, and not between 0 and 1"):
        check_measure(measure, frame, frame)


def test_every_parameter_is_described_and_has_a_type():
    frame = pd.DataFrame({"income": [1.0, 2.0, 4.0]})

    def unclear(original, masked, *, columns, depth=1):
        """A rate of columns, by their depth."""
        return Overdone(rate=0.5, guessing=0.0, attacked=1)

    with pytest.raises(AssertionError, match="unclear: the docstring does not describe depth"):
        check_measure(Measure(function=unclear, result=Overdone), frame, frame)
    unclear.__annotations__["depth"] = "Depth"
    with pytest.raises(AssertionError, match="unclear: jobs check parameters by their types, and name 'Depth' is not"):
        check_measure(Measure(function=unclear, result=Overdone), frame, frame)


@dataclass(frozen=True, kw_only=True)
class Overdone(Risk):
    """A risk."""

    rate: float

    about: ClassVar[Term] = Term("A number.", "Larger means more risk.", "nobody")

    def explain(self):
        return "It is too large."


def overdone(original, masked, *, columns):
    """A rate of columns."""
    return Overdone(rate=2.0, guessing=0.0, attacked=1)


def test_its_example_runs(module, monkeypatch):
    monkeypatch.setattr(dpmask.utility, "quantile_distance", module.quantile_distance, raising=False)
    (example,) = doctest.DocTestFinder().find(module.quantile_distance, "quantile_distance", globs={})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
