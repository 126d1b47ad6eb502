"""Disclosure risk: what an intruder learns from a masked table about the original's people. One measure to a file."""

from __future__ import annotations

from importlib import import_module
from typing import Any

MEASURES = {
    "attribute_inference": "dpmask.risk.attribute_inference:attribute_inference",
    "distance_linkage": "dpmask.risk.distance_linkage:distance_linkage",
    "groups": "dpmask.risk.groups:groups",
    "interval_disclosure": "dpmask.risk.interval_disclosure:interval_disclosure",
    "known_records": "dpmask.risk.known_records:known_records",
    "probabilistic_linkage": "dpmask.risk.probabilistic_linkage:probabilistic_linkage",
}


def measure_function(name: str) -> Any:
    """The function behind a job's ``measure:``, loaded when it is first used."""
    module, function = MEASURES[name].split(":")
    globals()[name] = found = getattr(import_module(module), function)  # over the module of the same name
    return found


def __getattr__(name: str) -> Any:
    if name in MEASURES:
        return measure_function(name)
    raise AttributeError(f"module 'dpmask.risk' has no attribute '{name}'")
