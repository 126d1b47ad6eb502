"""A job in proportion to a sample: numbers of records in its steps, so that groups reach as far as on everything.

k = 1000 of a million records is k = 10 of a sample of ten thousand: what is cut, averaged and lost is then about what
it is on everything. What an intruder achieves is not: he finds a record among 10, not among 1000. So risks are taken
with k as it is, whose groups have as many records, and losses in proportion.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from dpmask.job.job_text import key_path

_FEWEST = 2
_COUNTED = ("k", "minimum_size")
_FUZZY = "fuzzy_microaggregation"


def in_proportion(values: Mapping[str, Any], share: float) -> tuple[dict[str, Any], dict[str, tuple[int, int]]]:
    """The values of a job with numbers of records in proportion, and each that changed: as it was, and is."""
    scaled, changed = deepcopy(dict(values)), dict[str, tuple[int, int]]()
    for number, step in enumerate(scaled["mask"]):
        for name in _COUNTED:
            _scale(step, name, share, ("mask", number), changed)
        for at, one in enumerate(step.get("requirements") or ()):
            place = ("mask", number, "requirements", at)
            _scale(one, "k" if isinstance(one, dict) else 1, share, place, changed)
    return scaled, changed


def with_as_large_clusters(values: Mapping[str, Any], share: float) -> dict[str, Any]:
    """The values of a job for risks: where a step has a number of clusters, so many that each has as many records."""
    scaled = deepcopy(dict(values))
    for step in scaled["mask"]:
        if step.get("method") == _FUZZY and isinstance(step.get("clusters"), int):
            step["clusters"] = max(1, round(step["clusters"] * share))
    return scaled


def _scale(
    place: Any, name: str | int, share: float, path: tuple[str | int, ...], changed: dict[str, tuple[int, int]]
) -> None:
    try:
        given = place[name]
    except (KeyError, IndexError, TypeError):
        return
    if isinstance(given, int) and not isinstance(given, bool) and given >= _FEWEST:
        place[name] = max(_FEWEST, round(given * share))
        if place[name] != given:
            changed[key_path((*path, name))] = given, place[name]
