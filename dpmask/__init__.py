"""Masks microdata for release, at census scale, on Dask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmask.kernels.target import pin_process
from dpmask.registry import lazy_names

pin_process()  # first of all: numpy, BLAS and numba read it when they are imported

if TYPE_CHECKING:
    from dpmask import risk as risk
    from dpmask import utility as utility
    from dpmask.clustering.bisecting_k_means import BisectingKMeans as BisectingKMeans
    from dpmask.clustering.fuzzy_c_means import FuzzyCMeans as FuzzyCMeans
    from dpmask.clustering.fuzzy_c_regression import FuzzyCRegression as FuzzyCRegression
    from dpmask.clustering.k_means import KMeans as KMeans
    from dpmask.masking.calibrated_weights import CalibratedWeights as CalibratedWeights
    from dpmask.masking.membership_transform import MembershipTransform as MembershipTransform
    from dpmask.masking.microaggregation.fuzzy import FuzzyMicroaggregation as FuzzyMicroaggregation
    from dpmask.masking.microaggregation.mdav import Microaggregation as Microaggregation
    from dpmask.masking.noise import NoiseAddition as NoiseAddition
    from dpmask.masking.of_households import OfHouseholds as OfHouseholds
    from dpmask.masking.pseudonyms import Pseudonyms as Pseudonyms
    from dpmask.masking.refinement.method import TopDownRefinement as TopDownRefinement
    from dpmask.masking.rotation import RandomRotation as RandomRotation
    from dpmask.masking.saved import load as load
    from dpmask.masking.swapping import RankSwapping as RankSwapping
    from dpmask.masking.synthesis.ipso import IPSO as IPSO
    from dpmask.masking.synthesis.regression import RegressionSynthesis as RegressionSynthesis
    from dpmask.table.lake import Lake as Lake
    from dpmask.table.lake import read_lake as read_lake
else:
    _PUBLIC = {
        "BisectingKMeans": "dpmask.clustering.bisecting_k_means",
        "CalibratedWeights": "dpmask.masking.calibrated_weights",
        "FuzzyCMeans": "dpmask.clustering.fuzzy_c_means",
        "FuzzyCRegression": "dpmask.clustering.fuzzy_c_regression",
        "FuzzyMicroaggregation": "dpmask.masking.microaggregation.fuzzy",
        "IPSO": "dpmask.masking.synthesis.ipso",
        "KMeans": "dpmask.clustering.k_means",
        "Lake": "dpmask.table.lake",
        "MembershipTransform": "dpmask.masking.membership_transform",
        "Microaggregation": "dpmask.masking.microaggregation.mdav",
        "NoiseAddition": "dpmask.masking.noise",
        "OfHouseholds": "dpmask.masking.of_households",
        "Pseudonyms": "dpmask.masking.pseudonyms",
        "RandomRotation": "dpmask.masking.rotation",
        "RankSwapping": "dpmask.masking.swapping",
        "RegressionSynthesis": "dpmask.masking.synthesis.regression",
        "TopDownRefinement": "dpmask.masking.refinement.method",
        "load": "dpmask.masking.saved",
        "read_lake": "dpmask.table.lake",
        "risk": "dpmask.risk",
        "utility": "dpmask.utility",
    }
    __getattr__, __dir__ = lazy_names(__name__, _PUBLIC)
    __all__ = [*_PUBLIC, "__version__"]

__version__ = "0.1.0"
