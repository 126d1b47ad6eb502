"""Charts are drawn by a process of their own: one that crashes, or does not end, costs a picture and nothing else."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpmask.errors import printable

_LIVES = 3
_LONGEST_TEXT = 120


class Drawer:
    """The process that draws, started with the first chart; after some crashes it is not started again."""

    def __init__(self, seconds: float = 20.0) -> None:
        self.seconds = seconds
        """How long a chart may take."""
        self.process: subprocess.Popen[str] | None = None
        self.lives = _LIVES
        self.lock = threading.Lock()

    def drawn(self, spec: Any) -> str | None:
        """The SVG of a Vega-Lite specification; None if it could not be drawn."""
        with self.lock:
            if self.lives == 0:
                return None
            if self.process is None:
                self.process = _started()
            timer = threading.Timer(self.seconds, self.process.kill)
            timer.start()
            try:
                return self._asked(self.process, json.dumps(shortened(spec)))
            finally:
                timer.cancel()

    def _asked(self, process: subprocess.Popen[str], request: str) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())
        except (OSError, ValueError):
            self.lives -= 1
            self.close()
            return None

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def _started() -> subprocess.Popen[str]:
    found = find_spec("vl_convert")
    folder = str(Path(str(found.origin)).parents[1]) if found and found.origin else os.curdir
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", str(Path(__file__).with_name("drawer.py")), folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )


def shortened(spec: Any) -> Any:
    """A specification whose texts are short and printable, whatever names and values they come from."""
    if isinstance(spec, str):
        return printable(spec, _LONGEST_TEXT)
    if isinstance(spec, dict):
        return {name: shortened(one) for name, one in spec.items()}
    return [shortened(one) for one in spec] if isinstance(spec, list | tuple) else spec


drawer = Drawer()
"""The one of this process."""
atexit.register(drawer.close)
