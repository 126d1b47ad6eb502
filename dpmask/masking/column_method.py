"""What methods share that mask columns of numbers by their moments: the check, the first pass, the key of the draws."""

from __future__ import annotations

from abc import ABC

from dpmask.engine.draws import Subkey
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.masking.draw_purpose import bound_key
from dpmask.masking.method import Fitted, Method
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

    def bound_key(self, key: Subkey, purpose: str, table: Table, moments: Moments) -> Subkey:
        """The key of draws for this purpose and this table alone."""
        return bound_key(key, purpose, table, self.columns, moments)
