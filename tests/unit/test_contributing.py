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


MASKED = {
    "masks nothing": lambda rows: None,
    "loses rows": lambda rows: rows.slice(1),
    "divides by zero": lambda rows: 1 / 0,
    "another column": lambda rows: with_floats(rows, "nowhere", floats(rows, "income")),
}


@dataclass(frozen=True, kw_only=True)
class Shifted(Method["FittedShifted"]):
    columns: tuple[str, ...]
    fault: str

    def fit_table(self, table, key):
        if self.fault == "not ours" and table.rows < 3:
            raise ValueError("too few")
        if self.fault == "fits nothing":
            return None
        shift = {"by blocks": len(table.blocks), "by chance": np.random.default_rng().random()}.get(self.fault, 1.0)
        return FittedShifted(self, key, shift)

    def attacks(self):
        return {"linkage": {}} if self.fault == "unknown attack" else {}


@dataclass(frozen=True)
class FittedShifted(FittedMethod):
    method: Shifted
    key: object
    shift: float

    def mask_rows(self, rows, first):
        if self.method.fault in MASKED:
            return MASKED[self.method.fault](rows)
        at = 0 if self.method.fault == "draws by block" else first
        size = 1e-3 if self.method.fault == "draws nothing" else 1e5
        return with_floats(
            rows, "income", floats(rows, "income") + self.shift + size * record_uniforms(self.key, at, len(rows))
        )

    def statement(self):
        return "" if self.method.fault == "silent" else "Values were shifted."

    def weaknesses(self):
        return ["It is a test."]

    def claims(self):
        return [{"smallest_group": 2}] if self.method.fault == "unknown claim" else []

    def solution(self):
        return {"shifts": np.ones(2)} if self.method.fault == "odd solution" else None

    def warnings(self):
        return [f"The first income is {FRAME['income'][0]}."] if self.method.fault == "shows a value" else []


FAULTS = {
    "draws nothing": "Shifted: draws: another key gives nearly the same values: draw from the key, or say .* draws = False",
    "silent": "Shifted: contract: the statement is empty",
    "by chance": "Shifted: same bytes: values of 'income' differ",
    "by blocks": "Shifted: partitions: values of 'income' differ",
    "draws by block": "Shifted: partitions: values of 'income' differ",
    "not ours": "Shifted: few records: with 0 records: ValueError: too few. Mask it, or refuse it with an InputError",
    "fits nothing": "Shifted: contract: TypeError: Shifted: fit_table must return a FittedMethod; it returned a NoneType",
    "unknown attack": "Shifted: contract: attacks\\(\\) names 'linkage', which is no risk measure",
    "unknown claim": "Shifted: contract: a claim names its columns",
    "odd solution": "Shifted: contract: TypeError: Object of type ndarray is not JSON",
    "masks nothing": "FittedShifted: mask_rows must return an Arrow table of as many rows as it got, 60; it returned a None",
    "loses rows": "as it got, 60; it returned one of 59",
    "divides by zero": r"at test_contributing.py:\d+ \(<lambda>\): this is not dpmask's own .* It is ZeroDivisionError",
    "another column": r"KeyError at test_contributing.py:\d+ \(<lambda>\): this is not dpmask's own code",
    "shows a value": "Shifted: values of records: a repr, log, error or warning shows one",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_method_is_named_by_the_check_it_fails(fault):
    with pytest.raises(AssertionError, match=FAULTS[fault]):
        check_method(Shifted(columns=("income",), fault=fault), FRAME)


def test_what_is_no_method_is_named():
    with pytest.raises(AssertionError, match=r"dict: a method is derived from dpmask\.masking\.method\.Method"):
        check_method({}, FRAME)


def test_a_sound_method_passes():
    check_method(Shifted(columns=("income",), fault="none"), FRAME)


@pytest.mark.parametrize("contract", [Method, FittedMethod])
def test_every_hook_is_named(contract):
    text = TEXT.split("## A new method")[1].split("## A new measure")[0]
    base = [
        "who",
        "judged",
        "parameters",
        "drawn_parameters",
        "own_key",
        "fit",
        "mask",
        "for_table",
        "with_key",
        "save",
        "fitted_on",
        "reused",
    ]
    hooks = {name for name in vars(contract) if not name.startswith("_") and name not in base}
    assert [name for name in sorted(hooks) if f"`{name}" not in text] == []


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
