"""Kernels give the same bits in a process that compiled them and in one that found them on disk."""

import ast
from pathlib import Path

import pytest

import dpmask
from dpmask.kernels.warm_up import all_tasks

SOURCES = Path(dpmask.__file__).parent / "kernels"
KERNELS = sorted(SOURCES.rglob("*.py"))


def module(path):
    """The dotted name of a kernel's module, below that of all kernels."""
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts)


def functions(path):
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)]


def how_compiled(function):
    """The keywords of a function's `compiled`, None if it is not compiled."""
    for one in function.decorator_list:
        if isinstance(one, ast.Call) and ast.unparse(one.func) == "compiled":
            return {keyword.arg: ast.unparse(keyword.value) for keyword in one.keywords}
    return None


def compiled(path):
    """The compiled functions of a module, and those that build some: name, whether a part, and the names it calls."""
    for node in functions(path):
        found = [how_compiled(one) for one in ast.walk(node) if isinstance(one, ast.FunctionDef)]
        found = [how for how in found if how is not None]
        if found:
            calls = {one.func.id for one in ast.walk(node) if isinstance(one, ast.Call) and hasattr(one.func, "id")}
            yield node.name, all(how.get("part") == "True" for how in found), calls


def imported(path):
    """Names imported from other kernels, and the module each comes from."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("dpmask.kernels."):
            for alias in node.names:
                yield alias.asname or alias.name, node.module.removeprefix("dpmask.kernels.")


PARTS = {module(path): {name: part for name, part, _ in compiled(path)} for path in KERNELS}


@pytest.mark.parametrize("path", KERNELS, ids=module)
def test_compiled_functions_call_parts_only(path):
    """Otherwise a callee exists twice, with other roundings each time, and chance decides which of them runs."""
    homes = dict(imported(path)) | dict.fromkeys(PARTS[module(path)], module(path))
    for name, _, calls in compiled(path):
        for callee in calls & homes.keys():
            assert PARTS[homes[callee]].get(callee, True), (
                f"{name} calls {callee}, which is not compiled with part=True"
            )


BUILDERS = {  # of kernels of nearly that name
    "fuzzy.center_sums._find_memberships",
    "fuzzy.draws._draw",
    "fuzzy.labels._find_labels",
    "fuzzy.tolerance._settle",
}


def test_the_warm_up_names_the_kernels_that_there_are():
    """One that there is not would be compiled again by every warm-up, and counted by every plan; one it lacks by runs."""
    named = {name.partition("-")[0] for task in all_tasks() for name in task.kernels}
    kernels = {f"{home}.{name}" for home, found in PARTS.items() for name, part in found.items() if not part}
    assert len(named) > 30
    assert named == kernels - BUILDERS, named ^ kernels


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


@pytest.mark.parametrize("path", KERNELS, ids=module)
def test_no_loop_stores_and_sums(path):
    """Such a loop is run as vectors or not, by where its arrays lie, and with `reassociate` the sums differ."""
    for function in functions(path):
        how = how_compiled(function)
        if how is not None and how.get("reassociate") != "False":
            found = [ast.unparse(one) for one in sums_while_storing(function)]
            assert not found, (
                f"{function.name} sums {found} in a loop that stores: sum by total_of, or in a loop of its own"
            )
