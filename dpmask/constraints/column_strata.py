"""In which stratum each value of a column is masked: what noise and swapping mask by, and what their intruders know.

A value is masked with those of its stratum; one that is missing, or a zero that is kept, is left alone. Strata of too
few values are joined to the nearest, in each column by itself: that follows from the counts alone, so it is the same
for any partitioning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from operator import add
from typing import NamedTuple

import numpy as np

from dpmask.constraints.strata import MOST_STRATA, Strata, Stratum, too_many
from dpmask.errors import InputError
from dpmask.kernels.arrays import Flags, Floats, Integers
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.patterns import join_strata
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats
from dpmask.table.routing import rows_by_target
from dpmask.table.table import Table

_LEFT_ALONE, _UNKNOWN = -1, -2
_GROUPS_IN_A_STRATUM = 3


class JoinedStrata(NamedTuple):
    """The strata of one column: where each is masked, the values of these, and what became of small ones."""

    places: Mapping[Stratum, int]
    sizes: Integers
    strata_joined: int
    values_joined: int


class ColumnStrata(NamedTuple):
    """In which stratum each value of some columns is masked."""

    strata: Strata
    zeros: tuple[str, ...]  # the columns whose zeros are left alone
    columns: Mapping[str, JoinedStrata]
    who: str

    @property
    def sizes(self) -> list[int]:
        """How many strata each column has."""
        return [len(one.sizes) for one in self.columns.values()]

    @property
    def reads(self) -> list[str]:
        """The columns, and those of the strata."""
        return list(dict.fromkeys([*self.columns, *self.strata.columns]))

    def of(self, rows: Rows, column: str) -> tuple[Floats, Integers]:
        """A block's values of a column, and the stratum of each: -1 where there is nothing to mask."""
        values, places = floats(rows, column), self.columns[column].places
        numbers, strata = self.strata.of(rows)
        known = np.array([places.get(one, _UNKNOWN) for one in strata], np.int64)
        found = np.where(_masked(values, column in self.zeros), known[numbers], _LEFT_ALONE)
        if (found == _UNKNOWN).any():
            raise InputError(
                f"{self.who}: this table has a stratum, or a pattern of zeros or missing values, that the fitted one "
                "does not have. Fit to this table."
            )
        return values, found

    def split(self, rows: Rows) -> list[tuple[Integers, Floats]]:
        """For each column and each of its strata, the places of its values in a block, and these."""
        found = []
        for column, count in zip(self.columns, self.sizes, strict=True):
            values, strata = self.of(rows, column)
            found += [(places, values[places]) for places in rows_by_target(strata + 1, count + 1)[1:]]
        return found

    def moments(self, table: Table, label: str) -> Mapping[str, Moments]:
        """For each column the moments of its strata, in one pass."""
        found = table.select(self.reads).reduce(partial(_moments, self), merge_moments, label)
        ends = np.cumsum(self.sizes)
        slices = [slice(end - size, end) for end, size in zip(ends.tolist(), self.sizes, strict=True)]
        return {name: found.of(some) for name, some in zip(self.columns, slices, strict=True)}

    def joined(self) -> list[str]:
        """What became of small strata, in words."""
        return [
            f"{self.who}: {one.strata_joined} of {len(one.places)} strata have too few values of '{name}' "
            f"({one.values_joined:,}) and were joined to the nearest."
            for name, one in self.columns.items()
            if one.strata_joined
        ]


def column_strata(
    table: Table, columns: Sequence[str], strata: Strata, zeros: Sequence[str], least: int, who: str
) -> ColumnStrata:
    """The strata of each column, none of fewer than 3 ``least`` values if there are as many, in one pass.

    ``zeros`` are the columns whose zeros are left alone.
    """
    names = list(dict.fromkeys([*columns, *strata.columns]))
    counts = table.select(names).reduce(partial(_count, tuple(columns), strata, tuple(zeros)), add, "strata: count")
    return ColumnStrata(strata, tuple(zeros), {name: _joined(counts, name, strata, least) for name in columns}, who)


def _masked(values: Floats, zeros: bool) -> Flags:
    """Which values there is something to mask of."""
    there: Flags = ~np.isnan(values)
    return there & (values != 0.0) if zeros else there


def _count(columns: Sequence[str], strata: Strata, zeros: Sequence[str], rows: Rows) -> Counter[tuple[str, Stratum]]:
    numbers, found = strata.of(rows)
    counts: Counter[tuple[str, Stratum]] = Counter()
    for column in columns:
        times = np.bincount(numbers[_masked(floats(rows, column), column in zeros)], minlength=len(found))
        counts.update({(column, one): count for one, count in zip(found, times.tolist(), strict=True) if count})
    return counts


def _joined(counts: Counter[tuple[str, Stratum]], column: str, strata: Strata, least: int) -> JoinedStrata:
    known = {stratum: count for (name, stratum), count in counts.items() if name == column}
    names = sorted(known, key=repr)
    if len(names) > MOST_STRATA:
        raise too_many(", ".join(strata.columns))
    if not names:
        return JoinedStrata({}, np.zeros(0, np.int64), 0, 0)
    sizes = np.array([known[one] for one in names], np.int64)
    home = join_strata(strata.distances(names), sizes, _GROUPS_IN_A_STRATUM * least)
    homes, places = np.unique(home, return_inverse=True)
    apart = home != np.arange(len(home))
    totals = np.zeros(len(homes), np.int64)
    np.add.at(totals, places, sizes)
    return JoinedStrata(
        dict(zip(names, places.tolist(), strict=True)), totals, int(apart.sum()), int(sizes[apart].sum())
    )


def _moments(strata: ColumnStrata, rows: Rows) -> Moments:
    return column_moments([values for _, values in strata.split(rows)])
