"""The worked measure of CONTRIBUTING is a measure: it is taken from there, run and checked."""

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

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
