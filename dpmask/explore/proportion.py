"""A job in proportion to a sample: numbers of records in its steps, so that groups reach as far as on everything.

k = 1000 of a million records is k = 10 of a sample of ten thousand: what is cut, averaged and lost is then about what
it is on everything. What an intruder achieves is not: he finds a record among 10, not among 1000. So risks are taken
with k as it is, whose groups have as many records, and losses in proportion. Methods say what their numbers count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal

from dpmask.job.job_text import KeyPath, key_path
from dpmask.masking.method import Method

_FEWEST = 2


def in_proportion(
    values: Mapping[str, Any], methods: Sequence[Method[Any]], share: float
) -> tuple[dict[str, Any], dict[str, tuple[int, int]]]:
    """The values of a job with numbers of records in proportion, and each that changed: as it was, and is."""
    scaled, changed = deepcopy(dict(values)), dict[str, tuple[int, int]]()
    for path, place in _counting("records", scaled, methods):
        given = place[path[-1]]
        if given >= _FEWEST:
            place[path[-1]] = max(_FEWEST, round(given * share))
            if place[path[-1]] != given:
                changed[key_path(path)] = given, place[path[-1]]
    return scaled, changed


def with_as_large_clusters(values: Mapping[str, Any], methods: Sequence[Method[Any]], share: float) -> dict[str, Any]:
    """The values of a job for risks: where a step has a number of groups, so many that each has as many records."""
    scaled = deepcopy(dict(values))
    for path, place in _counting("groups", scaled, methods):
        place[path[-1]] = max(1, round(place[path[-1]] * share))
    return scaled


def _counting(
    what: Literal["records", "groups"], values: dict[str, Any], methods: Sequence[Method[Any]]
) -> Iterator[tuple[KeyPath, Any]]:
    """Where the steps of a job have a number of records, or of groups: its path, and the list or mapping it is in."""
    for number, (step, method) in enumerate(zip(values["mask"], methods, strict=False)):  # pseudonyms may come last
        for one in list(method.movable(step)):
            if one.range.counts == what:
                place = step
                for part in one.path[:-1]:
                    place = place[part]
                yield ("mask", number, *one.path), place
