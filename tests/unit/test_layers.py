"""The layers, as a test: imports go leftwards only, siblings never import each other."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dpmask

ROOT = Path(dpmask.__file__).parent
LAYERS = [
    {"docstrings", "errors", "registry"},
    {"parameters", "results", "kernels"},
    {"engine"},
    {"lake"},
    {"table"},
    {"constraints"},
    {"clustering"},
    {"masking", "measures"},
    {"risk", "utility"},
    {"release", "report", "testing"},
    {"job"},
    {"explore"},
    {"terminal"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PURE = {"__future__", "collections", "fractions", "functools", "itertools", "math", "statistics", "typing"}
FREE = {"guide", "__init__"}
"""The package itself (a version and lazy names) and the guide's texts may be imported from anywhere."""


def layer(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(path):
    """Every module that is imported, at the top or inside a function. Relative imports are not used."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            if node.module == "dpmask":
                yield from (f"dpmask.{alias.name}" if alias.name in MEMBERS else "dpmask" for alias in node.names)
            else:
                yield node.module


MEMBERS = {path.stem for path in ROOT.iterdir()}
MODULES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_leftwards(path):
    own = layer(".".join(["dpmask", *path.relative_to(ROOT).with_suffix("").parts]))
    if own in FREE:
        return
    for module in imports(path):
        root = module.split(".")[0]
        if root == "dpmask" and layer(module) not in FREE | {own}:
            assert RANK[layer(module)] < RANK[own], f"{path.name} imports {module}"
        if root in {"pyarrow", "fsspec"}:
            assert own in {"lake", "table"}, f"{path.name} imports {module}"
        if root in {"dask", "distributed"}:
            assert own in {"engine", "table", "testing"}, f"{path.name} imports {module}"
        if own == "kernels" and path.stem not in {"compile", "kernel_cache", "quick_numba", "scipy_parts", "target"}:
            assert root in PURE | {"numpy", "scipy", "dpmask"}, module


def test_a_class_has_a_name_of_its_own():
    places = {}
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_help_imports_neither_dask_nor_pandas():
    code = (
        "import sys\nfrom dpmask.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "assert not {'dask', 'pandas', 'numpy', 'pyarrow', 'pydantic'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_help_answers_at_once():
    """In less than 0.3 s of CPU: the least of three runs, as the machine may be busy."""
    import resource

    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "dpmask", "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 0.3
