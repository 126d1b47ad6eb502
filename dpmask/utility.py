"""Information loss: how much of the original's statistics a masked table has lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmask.measures import LOSSES
from dpmask.registry import lazy_names

if TYPE_CHECKING:
    from dpmask.measures.utility.cluster_distance import cluster_distance as cluster_distance
    from dpmask.measures.utility.consistency import consistency as consistency
    from dpmask.measures.utility.correlations import correlations as correlations
    from dpmask.measures.utility.hellinger import hellinger as hellinger
    from dpmask.measures.utility.il1s import il1s as il1s
    from dpmask.measures.utility.kolmogorov_smirnov import kolmogorov_smirnov as kolmogorov_smirnov
    from dpmask.measures.utility.misclassification import misclassification as misclassification
    from dpmask.measures.utility.moments import moments as moments
    from dpmask.measures.utility.partition_agreement import partition_agreement as partition_agreement
    from dpmask.measures.utility.probabilistic_information_loss import (
        probabilistic_information_loss as probabilistic_information_loss,
    )
    from dpmask.measures.utility.propensity import propensity as propensity
    from dpmask.measures.utility.shared_passes import summarise as summarise
    from dpmask.measures.utility.tails import tails as tails
    from dpmask.measures.utility.total_variation import total_variation as total_variation
    from dpmask.measures.utility.totals import totals as totals
else:
    __getattr__, __dir__ = lazy_names(__name__, LOSSES | {"summarise": "dpmask.measures.utility.shared_passes"})
    __all__ = [*LOSSES, "summarise"]
