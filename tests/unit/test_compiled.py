"""Kernels give the same bits in a process that compiled them and in one that found them on disk."""

import ast
from pathlib import Path

import pytest

import dpmask

KERNELS = sorted((Path(dpmask.__file__).parent / "kernels").glob("*.py"))


def compiled(path):
    """The compiled functions of a module: name, whether it is a part, and the names it calls."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "compiled":
                part = any(one.arg == "part" and ast.unparse(one.value) == "True" for one in decorator.keywords)
                calls = {
                    call.func.id for call in ast.walk(node) if isinstance(call, ast.Call) and hasattr(call.func, "id")
                }
                yield node.name, part, calls


def imported(path):
    """Names imported from other kernels, and the module each comes from."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("dpmask.kernels."):
            for alias in node.names:
                yield alias.name, node.module.rsplit(".", 1)[1]


PARTS = {path.stem: {name: part for name, part, _ in compiled(path)} for path in KERNELS}


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_compiled_functions_call_parts_only(path):
    """Otherwise a callee exists twice, with other roundings each time, and chance decides which of them runs."""
    homes = dict(imported(path)) | dict.fromkeys(PARTS[path.stem], path.stem)
    for name, _, calls in compiled(path):
        for callee in calls & homes.keys():
            assert PARTS[homes[callee]].get(callee, True), (
                f"{name} calls {callee}, which is not compiled with part=True"
            )
