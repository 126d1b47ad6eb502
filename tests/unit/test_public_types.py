"""Public names have types that mypy sees from outside, and no parameter but a frame may be anything."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import dpmask

MODULES = {"dpmask": dpmask, "dpmask.risk": dpmask.risk, "dpmask.utility": dpmask.utility}
ROOT = Path(dpmask.__file__).parents[1]
FRAMES = {"original", "masked", "table"}


def test_mypy_sees_every_public_name(tmp_path):
    names = [f"{module}.{name}" for module, found in MODULES.items() for name in found.__all__]
    lines = ["import dpmask", *(f"reveal_type({name})" for name in names), "dpmask.risk.luck", "dpmask.Luck"]
    (tmp_path / "script.py").write_text("\n".join(lines))
    command = [
        sys.executable,
        "-m",
        "mypy",
        f"--config-file={ROOT / 'pyproject.toml'}",
        "--no-incremental",
        "script.py",
    ]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    revealed = [line for line in ended.stdout.splitlines() if "Revealed type" in line]
    assert len(revealed) == len(names), ended.stdout + ended.stderr
    assert not [line for line in revealed if line.endswith('is "Any"')]
    assert ended.stdout.count("[attr-defined]") == 2, "a name that does not exist is not refused"
    assert (ROOT / "dpmask" / "py.typed").exists()


def test_only_frames_may_be_anything():
    for module in (dpmask.risk, dpmask.utility):
        for name in module.__all__:
            for parameter in inspect.signature(getattr(module, name)).parameters.values():
                assert "Any" not in str(parameter.annotation), f"{name}: {parameter}"
                assert (parameter.annotation == "Frame") == (parameter.name in FRAMES), f"{name}: {parameter}"
