"""Masking methods, one to a file. A new one is a file, a kernel, a line here and a test."""

from __future__ import annotations

from typing import Any

from dpmask.registry import loaded

METHODS = {
    "calibrated_weights": "dpmask.masking.calibrated_weights:CalibratedWeights",
    "fuzzy_microaggregation": "dpmask.masking.microaggregation.fuzzy:FuzzyMicroaggregation",
    "ipso": "dpmask.masking.synthesis.ipso:IPSO",
    "membership_transform": "dpmask.masking.membership_transform:MembershipTransform",
    "microaggregation": "dpmask.masking.microaggregation.mdav:Microaggregation",
    "noise": "dpmask.masking.noise:NoiseAddition",
    "pseudonyms": "dpmask.masking.pseudonyms:Pseudonyms",
    "refinement": "dpmask.masking.refinement.method:TopDownRefinement",
    "regression_synthesis": "dpmask.masking.synthesis.regression:RegressionSynthesis",
    "rotation": "dpmask.masking.rotation:RandomRotation",
    "swapping": "dpmask.masking.swapping:RankSwapping",
}
PSEUDONYMS = "pseudonyms"
"""The method that a job takes for the number of households where no step of it masks that."""


def method_class(name: str) -> Any:
    """The parameter class behind a job's ``method:``."""
    return loaded(METHODS[name])
