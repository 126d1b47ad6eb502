"""Public names have types that mypy sees from outside, and nothing but a frame may be anything."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

from method_examples import EXAMPLES, example

import dpmask
from dpmask.clustering.base import FittedClustering
from dpmask.masking.method import FittedMethod
from dpmask.masking.state import classes_below
from dpmask.measures import MEASURES, find_measure
from dpmask.table.table import Table

MODULES = {"dpmask": dpmask, "dpmask.risk": dpmask.risk, "dpmask.utility": dpmask.utility}
ROOT = Path(dpmask.__file__).parents[1]
FRAMES = {"original", "masked", "table"}


def checked(folder, *lines):
    """What mypy says of a script of these lines, by our own settings."""
    (folder / "script.py").write_text("\n".join(lines))
    settings = f"--config-file={ROOT / 'pyproject.toml'}"
    command = [sys.executable, "-m", "mypy", settings, "--no-incremental", "script.py"]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


def written(name):
    """An example of a method as a line of Python: lists where a job has lists."""
    parameters = ", ".join(f"{parameter}={value!r}" for parameter, value in EXAMPLES[name].items())
    return f"dpmask.{type(example(name)).__name__}({parameters})"


def test_every_method_is_a_public_name():
    assert not {type(example(name)).__name__ for name in EXAMPLES} - set(dpmask.__all__), "dpmask/__init__.py"


def test_mypy_sees_every_public_name(tmp_path):
    names = [f"{module}.{name}" for module, found in MODULES.items() for name in found.__all__]
    shown = (f"reveal_type({name})" for name in names)
    said = checked(tmp_path, "import dpmask", *shown, *map(written, EXAMPLES), "dpmask.risk.luck", "dpmask.Luck")
    revealed = [line for line in said.splitlines() if "Revealed type" in line]
    assert len(revealed) == len(names), said
    assert not [line for line in revealed if line.endswith('is "Any"')]
    assert said.count("[attr-defined]") == 2, "a name that does not exist is not refused"
    assert said.count(" error: ") == 2, f"lists are refused where parameters are lists: {said}"
    assert (ROOT / "dpmask" / "py.typed").exists()


BY_NAME = r"(Mapping|dict)\[str, (Any|(Mapping|dict)\[str, Any\]( \| None)?)\]|\w*Method\[Any\]"
"""What may hold anything: parameters and manifests by name, and methods whatever they fit to."""


def public_things():
    """Every public name, what measures return, and what methods and clusterings fit to."""
    for module in MODULES.values():
        yield from ((name, getattr(module, name)) for name in module.__all__)
    for name in MEASURES:
        yield from ((found.__name__, found) for found in find_measure(name).result.__mro__)
    for name in EXAMPLES:
        example(name)
    for fitted in classes_below(FittedMethod, FittedClustering):
        yield fitted.__name__, fitted


def signatures(thing):
    """The annotations of a function, or of the fields and public methods of a class: where they stand, and each."""
    if inspect.isfunction(thing):
        yield from inspect.get_annotations(thing).items()
    for cls in thing.__mro__ if inspect.isclass(thing) else ():
        if not cls.__module__.startswith("dpmask") or cls is Table:  # whose blocks are for methods, not for users
            continue
        yield from inspect.get_annotations(cls).items()
        for name, member in vars(cls).items():
            found = (
                getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
            )
            if not name.startswith("_") and inspect.isfunction(found):
                yield from ((f"{name}: {one}", of) for one, of in inspect.get_annotations(found).items())


def test_only_frames_may_be_anything():
    wrong = {
        f"{name}.{where}: {annotation}"
        for name, thing in public_things()
        for where, annotation in signatures(thing)
        if re.search(r"\b(Any|object)\b", re.sub(BY_NAME, "", str(annotation)))
        if not where.rpartition(": ")[2].startswith("_")
    }
    assert wrong == set()


def test_frames_are_what_measures_take():
    for module in (dpmask.risk, dpmask.utility):
        for name in module.__all__:
            for parameter in inspect.signature(getattr(module, name)).parameters.values():
                assert (parameter.annotation == "Frame") == (parameter.name in FRAMES), f"{name}: {parameter}"
