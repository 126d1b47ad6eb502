"""Information loss: how much of the original's statistics a masked table has lost. One measure to a file."""

from __future__ import annotations

from dpmask.utility.il1s import il1s

MEASURES = {"il1s": il1s}

__all__ = ["MEASURES", "il1s"]
