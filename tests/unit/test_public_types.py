"""Public names have types that mypy sees from outside, and no parameter but a frame may be anything."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

from method_examples import EXAMPLES, example

import dpmask

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


def test_only_frames_may_be_anything():
    for module in (dpmask.risk, dpmask.utility):
        for name in module.__all__:
            for parameter in inspect.signature(getattr(module, name)).parameters.values():
                assert "Any" not in str(parameter.annotation), f"{name}: {parameter}"
                assert (parameter.annotation == "Frame") == (parameter.name in FRAMES), f"{name}: {parameter}"
