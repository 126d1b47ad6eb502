"""Disclosure risk: what an intruder learns from a masked table about the original's people. One measure to a file."""

from __future__ import annotations

from dpmask.registry import lazy_names

MEASURES = {
    "attribute_inference": "dpmask.risk.attribute_inference:attribute_inference",
    "distance_linkage": "dpmask.risk.distance_linkage:distance_linkage",
    "groups": "dpmask.risk.groups:groups",
    "interval_disclosure": "dpmask.risk.interval_disclosure:interval_disclosure",
    "known_records": "dpmask.risk.known_records:known_records",
    "probabilistic_linkage": "dpmask.risk.probabilistic_linkage:probabilistic_linkage",
}

measure_function, __getattr__ = lazy_names("dpmask.risk", MEASURES, globals())
"""The function behind a job's ``measure:``, loaded when it is first used."""
