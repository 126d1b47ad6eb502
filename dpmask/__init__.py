"""Masks microdata for release, at census scale, on Dask."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

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
    "read_lake": "dpmask.table.lake",
    "RegressionSynthesis": "dpmask.masking.synthesis.regression",
    "TopDownRefinement": "dpmask.masking.refinement.method",
}
_MODULES = ("risk", "utility")

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


def __getattr__(name: str) -> Any:
    """Load public names when they are first used: ``import dpmask`` itself costs nothing."""
    if name in _MODULES:
        return import_module(f"dpmask.{name}")
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'dpmask' has no attribute '{name}'")
