"""Disclosure risk: what an intruder learns from a masked table about the original's people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmask.measures import RISKS
from dpmask.registry import lazy_names

if TYPE_CHECKING:
    from dpmask.measures.risk.attribute_inference import attribute_inference as attribute_inference
    from dpmask.measures.risk.differencing import differencing as differencing
    from dpmask.measures.risk.distance_linkage import distance_linkage as distance_linkage
    from dpmask.measures.risk.groups import groups as groups
    from dpmask.measures.risk.households import households as households
    from dpmask.measures.risk.interval_disclosure import interval_disclosure as interval_disclosure
    from dpmask.measures.risk.known_records import known_records as known_records
    from dpmask.measures.risk.noise_filter import noise_filter as noise_filter
    from dpmask.measures.risk.probabilistic_linkage import probabilistic_linkage as probabilistic_linkage
    from dpmask.measures.risk.rank_linkage import rank_linkage as rank_linkage
    from dpmask.measures.risk.repeated_linkage import repeated_linkage as repeated_linkage
    from dpmask.measures.risk.residual_linkage import residual_linkage as residual_linkage
else:
    __getattr__, __dir__ = lazy_names(__name__, RISKS)
    __all__ = [*RISKS]
