"""What methods share that mask columns of numbers by their moments: the check, the first pass, and strata.

``by`` and ``zeros`` are the same mechanism as in microaggregation (dpmask.masking.parts), for one column at a time: a
value is masked with those of its stratum, and one that is missing, or a zero that is kept, is left alone.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from dpmask.constraints.strata import Strata, check_strata, make_strata
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.patterns import MISSING, THERE, ZERO
from dpmask.lake.reading import Rows
from dpmask.masking.method import Fitted, Method
from dpmask.masking.parts import Parts, count_parts, make_parts
from dpmask.parameters import require_choice
from dpmask.table.checks import require_spread, require_spread_by_footers
from dpmask.table.columns import floats
from dpmask.table.routing import rows_by_target
from dpmask.table.table import Table


class ColumnStrata(NamedTuple):
    """In which stratum each value of a column is masked."""

    parts: Mapping[str, Parts]
    who: str

    @property
    def sizes(self) -> list[int]:
        """How many strata each column has."""
        return [len(one.sizes) for one in self.parts.values()]

    @property
    def reads(self) -> list[str]:
        """The columns, and those of the strata."""
        return list(dict.fromkeys(name for one in self.parts.values() for name in one.reads))

    def of(self, rows: Rows, column: str) -> tuple[Floats, Integers]:
        """A block's values of a column, and the stratum of each: -1 where there is nothing to mask."""
        values = floats(rows, column)
        return values, self.parts[column].of(rows, values[None], self.who)

    def split(self, rows: Rows) -> list[tuple[Integers, Floats]]:
        """For each column and each of its strata, the places of its values in a block, and these."""
        found = []
        for column, parts in self.parts.items():
            values, strata = self.of(rows, column)
            some = rows_by_target(strata + 1, len(parts.sizes) + 1)[1:]
            found += [(places, values[places]) for places in some]
        return found

    def moments(self, table: Table, label: str) -> Mapping[str, Moments]:
        """For each column the moments of its strata, in one pass."""
        found = table.select(self.reads).reduce(partial(_moments, self), merge_moments, label)
        ends = np.cumsum(self.sizes)
        slices = [slice(end - size, end) for end, size in zip(ends.tolist(), self.sizes, strict=True)]
        return {name: found.of(some) for name, some in zip(self.parts, slices, strict=True)}

    def joined(self) -> list[str]:
        """What became of small strata, in words."""
        found = {name: one.report for name, one in self.parts.items() if one.report and one.report.strata_joined}
        return [
            f"{self.who}: {one.strata_joined} of {one.strata} strata have too few values of '{name}' "
            f"({one.records_joined:,}) and were joined to the nearest."
            for name, one in found.items()
        ]


class ColumnMethod(Method[Fitted], ABC):
    """A method whose ``columns`` must be finite and vary."""

    def check(self, table: Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        super().check(table)
        require_spread_by_footers(table, self.columns, self.who)

    def moments(self, table: Table, label: str) -> Moments:
        """The moments of the columns, in one pass; constant, empty and infinite ones are refused."""
        moments = table.reduce(self.columns, column_moments, merge_moments, label)
        require_spread(moments, self.columns, self.who)
        return moments


class StratifiedColumnMethod(ColumnMethod[Fitted], ABC):
    """One that masks in strata, and may leave zeros alone."""

    by: tuple[Any, ...]
    zeros: str

    def settle_strata(self) -> None:
        """Check the parameters of strata."""
        require_choice(self, "zeros", ("keep", "mask"))
        object.__setattr__(self, "by", (self.by,) if isinstance(self.by, str) else tuple(self.by))
        _ = self.strata

    @property
    def masks_zeros(self) -> bool:
        """Whether it could keep zeros where they are, and does not."""
        return self.zeros != "keep"

    @cached_property
    def strata(self) -> Strata:
        """The strata that are masked by themselves."""
        return make_strata(self.by, (), self.columns, self.who)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns it learns from."""
        return (*self.masks, *self.strata.columns)

    @property
    def stratified(self) -> bool:
        """Whether not all values are masked alike."""
        return bool(self.by) or self.zeros == "keep"

    def check(self, table: Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        super().check(table)
        check_strata(self.strata, table.masked_schema, self.who)

    def column_strata(self, table: Table, least: int) -> ColumnStrata:
        """The strata of each column, none of fewer than 3 ``least`` values if there are as many, in one pass."""
        keep = self.zeros == "keep"  # a column of zeros alone is constant, and refused before
        counts = count_parts(table, [(name,) for name in self.columns], self.strata, keep, self.who)
        present = {one: count for one, count in counts.items() if one[2] == THERE}
        absent = {(stratum, state): -1 for _, stratum, _ in counts for state in (ZERO, MISSING)}
        found = {}
        for number, name in enumerate(self.columns):
            parts = make_parts(present, number, (name,), self.strata, keep, least)
            found[name] = parts._replace(places={**absent, **parts.places})
        return ColumnStrata(found, self.who)


def _moments(strata: ColumnStrata, rows: Rows) -> Moments:
    return column_moments([values for _, values in strata.split(rows)])
