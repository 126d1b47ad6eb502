"""Wheels for one platform, which carry the compiled kernels: nothing is compiled where they are installed.

In an environment with dpmask's dependencies and hatchling, which the kernels are then for:
HATCH_BUILD_HOOK_ENABLE_CUSTOM=true pip wheel --no-deps --no-build-isolation --wheel-dir dist .
"""

import os
import subprocess
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernels(BuildHookInterface[Any]):
    """Compiles all kernels of the tree that is built and adds them to its wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and have the wheel say which Python and platform it is for."""
        if version == "editable":
            return
        self.compiled = tempfile.TemporaryDirectory()
        own = {"NUMBA_CACHE_DIR": self.compiled.name, "PYTHONPATH": self.root, "PYTHONDONTWRITEBYTECODE": "1"}
        warm_up = [sys.executable, "-m", "dpmask", "warmup"]
        subprocess.run(warm_up, env=os.environ | own, cwd=self.root, check=True)  # noqa: S603 - our own command
        build_data["force_include"][self.compiled.name] = "dpmask/kernels/compiled"
        build_data |= {"pure_python": False, "infer_tag": True}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what the wheel has now."""
        if version != "editable":
            self.compiled.cleanup()
