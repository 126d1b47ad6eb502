"""Information loss: how much of the original's statistics a masked table has lost."""

from __future__ import annotations

from dpmask.measures import LOSSES, MEASURES
from dpmask.registry import lazy_names

_SUMMARISE = {"summarise": "dpmask.measures.utility.shared_passes:summarise"}

__getattr__, __dir__ = lazy_names("dpmask.utility", {name: MEASURES[name] for name in LOSSES} | _SUMMARISE)
