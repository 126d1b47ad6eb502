"""Masks microdata for release, at census scale, on Dask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmask.registry import lazy_names

if TYPE_CHECKING:
    from dpmask import risk, utility
    from dpmask.clustering.bisecting_k_means import BisectingKMeans
    from dpmask.clustering.fuzzy_c_means import FuzzyCMeans
    from dpmask.clustering.fuzzy_c_regression import FuzzyCRegression
    from dpmask.clustering.k_means import KMeans
    from dpmask.masking.membership_transform import MembershipTransform
    from dpmask.masking.microaggregation.fuzzy import FuzzyMicroaggregation
    from dpmask.masking.microaggregation.mdav import Microaggregation
    from dpmask.masking.noise import NoiseAddition
    from dpmask.masking.refinement.method import TopDownRefinement
    from dpmask.masking.rotation import RandomRotation
    from dpmask.masking.swapping import RankSwapping
    from dpmask.masking.synthesis.ipso import IPSO
    from dpmask.masking.synthesis.regression import RegressionSynthesis
    from dpmask.table.lake import Lake, read_lake
else:
    _PUBLIC = {
        "BisectingKMeans": "dpmask.clustering.bisecting_k_means",
        "FuzzyCMeans": "dpmask.clustering.fuzzy_c_means",
        "FuzzyCRegression": "dpmask.clustering.fuzzy_c_regression",
        "FuzzyMicroaggregation": "dpmask.masking.microaggregation.fuzzy",
        "IPSO": "dpmask.masking.synthesis.ipso",
        "KMeans": "dpmask.clustering.k_means",
        "Lake": "dpmask.table.lake",
        "MembershipTransform": "dpmask.masking.membership_transform",
        "Microaggregation": "dpmask.masking.microaggregation.mdav",
        "NoiseAddition": "dpmask.masking.noise",
        "RandomRotation": "dpmask.masking.rotation",
        "RankSwapping": "dpmask.masking.swapping",
        "RegressionSynthesis": "dpmask.masking.synthesis.regression",
        "TopDownRefinement": "dpmask.masking.refinement.method",
        "read_lake": "dpmask.table.lake",
        "risk": "dpmask.risk",
        "utility": "dpmask.utility",
    }
    __getattr__, _ = lazy_names(__name__, _PUBLIC)

__version__ = "0.1.0"

__all__ = [
    "IPSO",
    "BisectingKMeans",
    "FuzzyCMeans",
    "FuzzyCRegression",
    "FuzzyMicroaggregation",
    "KMeans",
    "Lake",
    "MembershipTransform",
    "Microaggregation",
    "NoiseAddition",
    "RandomRotation",
    "RankSwapping",
    "RegressionSynthesis",
    "TopDownRefinement",
    "__version__",
    "read_lake",
    "risk",
    "utility",
]


def __dir__() -> list[str]:
    return __all__
