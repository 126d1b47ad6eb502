"""Domains whose totals a method keeps: classes of records by columns that it does not mask, numbered."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.constraints.strata import Strata, Stratum
from dpmask.errors import InputError
from dpmask.kernels.arrays import Integers
from dpmask.lake.reading import Rows
from dpmask.table.table import Table

MOST_DOMAINS = 1000


class Domains(NamedTuple):
    """Which domain a record is in."""

    strata: Strata
    places: Mapping[Stratum, int]
    percent: float = 0.0
    """Of the p % rule: a total that shows its largest contribution so nearly is not kept."""

    def __len__(self) -> int:
        return len(self.places)

    def of(self, rows: Rows, who: str) -> Integers:
        """The domain of each record of a block."""
        numbers, found = self.strata.of(rows)
        known = [self.places.get(one, -1) for one in found]
        if -1 in known:
            raise InputError(f"{who}: this table has a domain that the fitted one does not have. Fit to this table.")
        return np.array(known, np.int64)[numbers]


def find_domains(table: Table, strata: Strata, who: str, percent: float = 0.0) -> Domains:
    """The domains of a table, in one pass; ``percent`` is that of the p % rule."""
    names = list(strata.columns)
    found = table.select(names).reduce(partial(_strata, strata), _together, f"{who}: domains")
    if len(found) > MOST_DOMAINS:
        raise InputError(f"{who}: totals: more than {MOST_DOMAINS} domains. Take larger ones.")
    return Domains(strata, {one: number for number, one in enumerate(sorted(found, key=repr))}, percent)


def _strata(strata: Strata, rows: Rows) -> tuple[Stratum, ...]:
    return tuple(strata.of(rows)[1])


def _together(left: tuple[Stratum, ...], right: tuple[Stratum, ...]) -> tuple[Stratum, ...]:
    return tuple(dict.fromkeys([*left, *right]))
