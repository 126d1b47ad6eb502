"""Information loss: how much of the original's statistics a masked table has lost. One measure to a file."""

from __future__ import annotations

from dpmask.registry import lazy_names

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

measure_function, __getattr__ = lazy_names(
    "dpmask.utility", {**MEASURES, "summarise": "dpmask.utility.together:summarise"}, globals()
)
"""The function behind a job's ``measure:``, loaded when it is first used."""
