"""What fitted methods have in common that mask all columns their parameters name."""

from __future__ import annotations

from typing import Any, ClassVar

from dpmask.table import table as tables
from dpmask.table.columns import require_numeric


class FittedColumns:
    """A fitted method: it reads and changes ``method.columns``; types stay, and nothing is promised, unless said."""

    method: Any
    who: ClassVar[str]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it masks."""
        columns: tuple[str, ...] = self.method.columns
        return columns

    changes = inputs

    def check(self, table: tables.Table) -> None:
        """Refuse a table whose columns are not numbers."""
        require_numeric(table.masked_schema, self.inputs, self.who)

    def mask(self, table: Any) -> Any:
        """The table masked: pandas as pandas, a Dask frame or a lake as a Dask frame.

        Where records must meet, they are sent to each other at once; what comes back is put into the frame when it is
        computed. Other methods are lazy all the way.
        """
        return tables.mask(self, table, self.who)  # type: ignore[arg-type]

    def masked_schema(self, schema: Any) -> Any:
        """The schema of what it makes of a table with this one."""
        return schema

    def claims(self) -> list[dict[str, Any]]:
        """What the released files can be checked for."""
        return []
