"""Disclosure risk: what an intruder learns from a masked table about the original's people."""

from __future__ import annotations

from dpmask.measures import MEASURES, RISKS
from dpmask.registry import lazy_names

__getattr__, __dir__ = lazy_names("dpmask.risk", {name: MEASURES[name] for name in RISKS})
