"""Information loss: how much of the original's statistics a masked table has lost. One measure to a file."""

from __future__ import annotations

from importlib import import_module
from typing import Any

MEASURES = {
    "il1s": "dpmask.utility.il1s:il1s",
    "probabilistic_information_loss": ("dpmask.utility.probabilistic_information_loss:probabilistic_information_loss"),
    "moments": "dpmask.utility.moments:moments",
    "correlations": "dpmask.utility.correlations:correlations",
    "kolmogorov_smirnov": "dpmask.utility.kolmogorov_smirnov:kolmogorov_smirnov",
    "total_variation": "dpmask.utility.total_variation:total_variation",
    "hellinger": "dpmask.utility.hellinger:hellinger",
    "propensity": "dpmask.utility.propensity:propensity",
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
    if name == "summarise":
        globals()[name] = found = import_module("dpmask.utility.together").summarise
        return found
    raise AttributeError(f"module 'dpmask.utility' has no attribute '{name}'")
