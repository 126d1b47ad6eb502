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


def sums_while_storing(function):
    """Innermost loops that store to an array and also sum floats, in one number or in one place of an array."""
    floats = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target, value in pairs(node)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, float)
    } | {arg.arg for arg in function.args.args if ast.unparse(arg.annotation) == "Floats"}
    for loop in ast.walk(function):
        if isinstance(loop, ast.For) and not any(isinstance(node, ast.For) for node in ast.walk(loop) if node != loop):
            stored = [node for node in ast.walk(loop) if isinstance(getattr(node, "ctx", None), ast.Store)]
            sums = [node.target for node in ast.walk(loop) if isinstance(node, ast.AugAssign)]
            if any(isinstance(node, ast.Subscript) for node in stored):
                yield from (one for one in sums if names(one) & floats and not names(one) & names(loop.target))


def pairs(assign):
    """Each target of an assignment with its value."""
    target, value = assign.targets[0], assign.value
    both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    return zip(target.elts, value.elts, strict=True) if both else [(target, value)]


def names(node):
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_no_loop_stores_and_sums(path):
    """Such a loop is run as vectors or not, by where its arrays lie, and with `reassociate` the sums differ."""
    for function in ast.parse(path.read_text(encoding="utf-8")).body:
        how = [ast.unparse(one) for one in getattr(function, "decorator_list", [])]
        if any(one.startswith("compiled(") and "reassociate=False" not in one for one in how):
            found = [ast.unparse(one) for one in sums_while_storing(function)]
            assert not found, (
                f"{function.name} sums {found} in a loop that stores: sum by total_of, or in a loop of its own"
            )
