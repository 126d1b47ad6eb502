"""Limits are passed in: no test changes a constant of the package."""

import ast
import re
from pathlib import Path

import pytest

from dpmask.engine.limits import Limits, current_limits, limits

TESTS = Path(__file__).parents[1]
LEFT = {
    "integration/test_s3.py: _SMALL": "what a worker fetches together",
    "unit/test_census.py: GROUP_ROWS": "row groups of the generated census",
    "unit/test_compile.py: TARGET": "the processor that kernels are compiled for",
}
"""What is no limit of a run that a data holder could change, and why it is changed in a test."""


def patched(path):
    """The names in capitals that a file's tests set in modules."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            for given in node.args[:2]:
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    name = given.value.rpartition(".")[2]
                    if re.fullmatch(r"_?[A-Z][A-Z_]+", name):
                        yield f"{path.relative_to(TESTS)}: {name}"


def test_no_test_changes_a_constant():
    files = [path for path in TESTS.rglob("*.py") if path.parent.name != "benchmarks"]  # these change their own
    assert {name for path in files for name in patched(path)} == set(LEFT)


def test_limits_hold_inside_their_block():
    with limits(tries=1) as inside:
        assert current_limits() == inside == Limits(tries=1)
    assert current_limits() == Limits()
    with pytest.raises(TypeError), limits(trys=1):
        pass
