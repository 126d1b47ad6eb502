"""What a release is judged by: disclosure risk and information loss, one measure to a file."""

from __future__ import annotations

from typing import Any

from dpmask.registry import loaded

RISKS = (
    "attribute_inference",
    "distance_linkage",
    "groups",
    "interval_disclosure",
    "known_records",
    "probabilistic_linkage",
)
LOSSES = (
    "il1s",
    "probabilistic_information_loss",
    "moments",
    "correlations",
    "kolmogorov_smirnov",
    "total_variation",
    "hellinger",
    "propensity",
    "cluster_distance",
    "partition_agreement",
    "misclassification",
)
MEASURES = {
    **{name: f"dpmask.measures.utility.{name}:{name}" for name in LOSSES},
    **{name: f"dpmask.measures.risk.{name}:{name}" for name in RISKS},
}


def measure_function(name: str) -> Any:
    """The function behind a job's ``measure:``, loaded when it is first used."""
    return loaded(MEASURES[name])
