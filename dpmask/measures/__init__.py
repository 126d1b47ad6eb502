"""What a release is judged by: disclosure risk and information loss, one measure to a file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmask.measures.measure import Measure

_LOSS, _RISK = "dpmask.measures.utility", "dpmask.measures.risk"

MEASURES = {
    "il1s": f"{_LOSS}.il1s",
    "probabilistic_information_loss": f"{_LOSS}.probabilistic_information_loss",
    "moments": f"{_LOSS}.moments",
    "correlations": f"{_LOSS}.correlations",
    "kolmogorov_smirnov": f"{_LOSS}.kolmogorov_smirnov",
    "total_variation": f"{_LOSS}.total_variation",
    "hellinger": f"{_LOSS}.hellinger",
    "consistency": f"{_LOSS}.consistency",
    "totals": f"{_LOSS}.totals",
    "tails": f"{_LOSS}.tails",
    "propensity": f"{_LOSS}.propensity",
    "cluster_distance": f"{_LOSS}.cluster_distance",
    "partition_agreement": f"{_LOSS}.partition_agreement",
    "misclassification": f"{_LOSS}.misclassification",
    "attribute_inference": f"{_RISK}.attribute_inference",
    "differencing": f"{_RISK}.differencing",
    "distance_linkage": f"{_RISK}.distance_linkage",
    "groups": f"{_RISK}.groups",
    "households": f"{_RISK}.households",
    "interval_disclosure": f"{_RISK}.interval_disclosure",
    "known_records": f"{_RISK}.known_records",
    "noise_filter": f"{_RISK}.noise_filter",
    "probabilistic_linkage": f"{_RISK}.probabilistic_linkage",
    "rank_linkage": f"{_RISK}.rank_linkage",
    "repeated_linkage": f"{_RISK}.repeated_linkage",
    "residual_linkage": f"{_RISK}.residual_linkage",
}
"""Every measure that a job may name, and the module whose ``MEASURE`` describes it."""
LOSSES = {name: place for name, place in MEASURES.items() if place.startswith(_LOSS)}
CONSISTENCY = "consistency"
"""The measure that every job takes of the numbers that it masks."""
RISKS = {name: place for name, place in MEASURES.items() if place.startswith(_RISK)}


def find_measure(name: str) -> Measure[Any]:
    """The measure behind a job's ``measure:``, loaded when it is first used."""
    return import_module(MEASURES[name]).MEASURE
