"""What methods share that mask columns of numbers by their moments: the check, the first pass, and strata.

``by`` and ``zeros`` mean what they do in microaggregation, for one column at a time (dpmask.constraints.column_strata).
"""

from __future__ import annotations

from abc import ABC
from functools import cached_property

from dpmask.constraints.column_strata import ColumnStrata, column_strata
from dpmask.constraints.strata import Strata, check_strata, make_strata
from dpmask.constraints.zeros import AUTO, KEEP, ZEROS, zeros_kept
from dpmask.engine.draws import Subkey
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.masking.method import Fitted, Method
from dpmask.parameters import Several, require_choice
from dpmask.table.checks import require_spread, require_spread_by_footers
from dpmask.table.table import Table


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

    by: Several
    zeros: str

    def settle_strata(self) -> None:
        """Check the parameters of strata."""
        require_choice(self, "zeros", ZEROS)
        object.__setattr__(self, "by", (self.by,) if isinstance(self.by, str) else tuple(self.by))
        _ = self.strata

    @cached_property
    def strata(self) -> Strata:
        """The strata that are masked by themselves."""
        return make_strata(self.by, (), self.columns, self.who)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns it learns from."""
        return (*self.masks, *self.strata.columns)

    @property
    def on_zeros(self) -> str:
        """What it does with zeros: ``zeros``, unless a method cannot choose by itself."""
        return self.zeros

    @property
    def stratified(self) -> bool:
        """Whether it is known before the fit that not all values are masked alike."""
        return bool(self.by) or self.zeros == KEEP

    def check(self, table: Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        super().check(table)
        check_strata(self.strata, table.masked_schema, self.who)

    def column_strata(self, table: Table, moments: Moments, least: int) -> ColumnStrata | None:
        """The strata of each column, none of fewer than 3 ``least`` values if there are as many; one pass or two.

        None where all values of a column are masked alike.
        """
        kept = zeros_kept(table, self.columns, self.on_zeros, (moments.low, moments.high), least, self.who)
        if not kept and not self.by:
            return None
        return column_strata(table, self.columns, self.strata, kept, least, self.who)


def column_key(key: Subkey, column: str, strata: ColumnStrata | None, zeros: str) -> Subkey:
    """The key of a column's draws: another one where zeros stay by default than where they are masked."""
    if zeros == AUTO and strata is not None and column in strata.zeros:
        return key.subkey("zeros kept").subkey(column)
    return key.subkey(column)
