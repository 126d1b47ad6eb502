"""The method of CONTRIBUTING.md runs as it stands there and passes the checks; broken ones do not."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from dpmask.engine.draws import record_uniforms
from dpmask.masking.method import FittedMethod, Method
from dpmask.table.columns import floats, with_floats
from dpmask.testing import check_method

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
FRAME = pd.DataFrame({"income": [1000.5 + 8111 * (n % 37) + n for n in range(60)], "age": range(20, 80)})


def described(section):
    """The module that a section of CONTRIBUTING.md has as its first block of Python."""
    code = re.search(rf"## {section}\n.*?```python\n(.*?)```", TEXT, re.DOTALL).group(1)
    module = ModuleType(f"described_{section.replace(' ', '_')}")
    sys.modules[module.__name__] = module
    exec(compile(code, "CONTRIBUTING.md", "exec"), vars(module))
    return module


def test_the_worked_method_passes_the_checks():
    method = described("A new method").Rounding(columns=["income", "age"])
    check_method(method, FRAME)
    masked = method.fit(FRAME, seed=1).mask(FRAME)
    assert (masked["income"] == (FRAME["income"] / 100).round() * 100).all()


@dataclass(frozen=True, kw_only=True)
class Shifted(Method["FittedShifted"]):
    columns: tuple[str, ...]
    fault: str

    def fit_table(self, table, key):
        if self.fault == "not ours" and table.rows < 3:
            raise ValueError("too few")
        shift = {"by blocks": len(table.blocks), "by chance": np.random.default_rng().random()}.get(self.fault, 1.0)
        return FittedShifted(self, key, shift)


@dataclass(frozen=True)
class FittedShifted(FittedMethod):
    method: Shifted
    key: object
    shift: float

    def mask_rows(self, rows, first):
        at = 0 if self.method.fault == "draws by block" else first
        return with_floats(
            rows, "income", floats(rows, "income") + self.shift + record_uniforms(self.key, at, len(rows))
        )

    def statement(self):
        return "" if self.method.fault == "silent" else "Values were shifted."

    def weaknesses(self):
        return ["It is a test."]

    def warnings(self):
        return [f"The first income is {FRAME['income'][0]}."] if self.method.fault == "shows a value" else []


FAULTS = {
    "silent": "Shifted: contract: the statement is empty",
    "by chance": "Shifted: same bytes: values of 'income' differ",
    "by blocks": "Shifted: partitions: values of 'income' differ",
    "draws by block": "Shifted: partitions: values of 'income' differ",
    "not ours": "Shifted: few records: ValueError: too few",
    "shows a value": "Shifted: values of records: a repr, log, error or warning shows one",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_method_is_named_by_the_check_it_fails(fault):
    with pytest.raises(AssertionError, match=FAULTS[fault]):
        check_method(Shifted(columns=("income",), fault=fault), FRAME)


def test_a_sound_method_passes():
    check_method(Shifted(columns=("income",), fault="none"), FRAME)


@pytest.mark.parametrize(
    ("base", "hooks", "missing"),
    [
        (Method, {}, "a Method must define fit_table"),
        (FittedMethod, {"mask_rows": len, "statement": len}, "a FittedMethod must define weaknesses"),
        (FittedMethod, {"statement": len, "weaknesses": len}, "must define mask_rows or mask_table"),
    ],
)
def test_a_missing_hook_is_named_at_import(base, hooks, missing):
    with pytest.raises(TypeError, match=missing):
        type("Incomplete", (base,), hooks)
