"""Information loss: how much of the original's statistics a masked table has lost. One measure to a file."""

from __future__ import annotations

from importlib import import_module
from typing import Any

MEASURES = {
    "il1s": "dpmask.utility.il1s:il1s",
    "cluster_distance": "dpmask.utility.cluster_distance:cluster_distance",
    "partition_agreement": "dpmask.utility.partition_agreement:partition_agreement",
    "misclassification": "dpmask.utility.misclassification:misclassification",
}


def measure_function(name: str) -> Any:
    """The function behind a job's ``measure:``, loaded when it is first used."""
    module, function = MEASURES[name].split(":")
    globals()[name] = found = getattr(import_module(module), function)  # over the module of the same name
    return found


def __getattr__(name: str) -> Any:
    if name in MEASURES:
        return measure_function(name)
    raise AttributeError(f"module 'dpmask.utility' has no attribute '{name}'")
