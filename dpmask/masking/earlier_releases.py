"""The earlier releases of a series that hold people of a table: what a method that is counted in series goes by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dpmask.table.people import KnownPeople


class EarlierRelease(NamedTuple):
    """A release that holds people of this table: which blocks of them, how its columns were cut, what it promised.

    ``cuts`` are as ``series_cuts`` of its fitted method gave them; ``required``: sets of columns, and the k of each.
    """

    number: int
    holds: frozenset[int]
    cuts: Mapping[str, Mapping[str, Any]]
    required: tuple[tuple[tuple[str, ...], int], ...]


class EarlierReleases(NamedTuple):
    """The releases before this one, who was in them, and the columns that all release as they are."""

    releases: tuple[EarlierRelease, ...]
    people: KnownPeople
    beside: tuple[str, ...]
