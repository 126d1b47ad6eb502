"""Two tables that passes go over together: each by itself, or their records side by side.

Tables are read each by itself, so that they may have different records. Distances need records side by side: lakes of
as many records are then read so and nothing else; other tables are paired besides, as a record that masking dropped
must not be taken for one whose values are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from dpmask.engine.passes import Span
from dpmask.lake.reading import Rows
from dpmask.table.columns import is_numeric, require_known
from dpmask.table.pairs import masked_name, pair
from dpmask.table.table import Table, as_table

_Found = TypeVar("_Found")
_Beside = TypeVar("_Beside")
_Function = Callable[[Rows, Span], _Found]


class Sides(NamedTuple):
    """The two tables, or one with their records side by side; and these, where somebody asked for them."""

    tables: tuple[Table, ...]
    pairs: Table | None = None

    @property
    def rows(self) -> tuple[int, int]:
        """How many records each has."""
        return self.tables[0].rows, self.tables[-1].rows

    def is_numeric(self, column: str) -> bool:
        """Whether a column is numeric in both."""
        return all(is_numeric(schema.field(name).type) for schema, name in self.named(column))

    def check(self, columns: Sequence[str], require: Callable[[Any, Sequence[str], str], None], who: str) -> None:
        """Refuse columns that ``require`` refuses in either table."""
        for column in columns:
            for schema, name in self.named(column):
                require(schema, [name], who)

    def named(self, column: str) -> list[tuple[Any, str]]:
        """A column in both: the schema it stands in, and its name there."""
        schemas = [table.masked_schema for table in self.tables]
        names = [column, column if len(schemas) > 1 else masked_name(column)]
        return list(zip((schemas[0], schemas[-1]), names, strict=True))

    def reduce(
        self,
        columns: Sequence[str],
        functions: Sequence[_Function[_Found]],
        merge: Callable[[_Found, _Found], _Found],
        label: str,
    ) -> list[_Found]:
        """A function for each table, in one pass over both."""
        if len(self.tables) > 1:
            return [
                table.reduce_rows(columns, function, merge, label)
                for table, function in zip(self.tables, functions, strict=True)
            ]
        both = partial(_both, tuple(columns), functions)
        return self.tables[0].reduce_rows(_twice(columns), both, partial(_merge_both, merge), label)

    def reduce_beside(
        self,
        columns: Sequence[str],
        functions: Sequence[_Function[_Found]],
        merge: Callable[[_Found, _Found], _Found],
        beside: Callable[[Rows], _Beside],
        merge_beside: Callable[[_Beside, _Beside], _Beside],
        label: str,
    ) -> tuple[list[_Found], _Beside]:
        """The same, and a function of the records side by side: in the same pass where that is how they are read."""
        assert self.pairs is not None
        if len(self.tables) > 1:
            gaps = self.pairs.reduce_rows(_twice(columns), partial(_beside, beside), merge_beside, f"{label} at pairs")
            return self.reduce(columns, functions, merge, label), gaps
        task = partial(_both_and_beside, partial(_both, tuple(columns), functions), beside)
        merged = partial(_merge_beside, partial(_merge_both, merge), merge_beside)
        return self.pairs.reduce_rows(_twice(columns), task, merged, label)


def sides_of(original: Any, masked: Any, columns: Sequence[str], who: str, *, beside: bool) -> Sides:
    """The two tables, with their records side by side if that is asked for."""
    pairs = pair(original, masked, columns, who) if beside else None
    if pairs and isinstance(original, Table) and isinstance(masked, Table) and original.rows == masked.rows:
        return Sides((pairs,), pairs)
    tables = as_table(original, who), as_table(masked, who)
    for table in tables:
        require_known(table.masked_schema, columns, who)
    return Sides(tables, pairs)


def _twice(columns: Sequence[str]) -> list[str]:
    return [*columns, *(masked_name(name) for name in columns)]


def _both(columns: tuple[str, ...], functions: Sequence[_Function[_Found]], rows: Rows, span: Span) -> list[_Found]:
    sides = rows.select(columns), rows.select([masked_name(name) for name in columns]).rename_columns(list(columns))
    return [function(side, span) for function, side in zip(functions, sides, strict=True)]


def _merge_both(merge: Callable[..., _Found], left: list[_Found], right: list[_Found]) -> list[_Found]:
    return [merge(one, two) for one, two in zip(left, right, strict=True)]


def _beside(beside: Callable[[Rows], _Beside], rows: Rows, span: Span) -> _Beside:
    return beside(rows)


def _both_and_beside(both: Callable[..., Any], beside: Callable[..., Any], rows: Rows, span: Span) -> tuple[Any, Any]:
    return both(rows, span), beside(rows)


def _merge_beside(both: Callable[..., Any], beside: Callable[..., Any], left: Any, right: Any) -> tuple[Any, Any]:
    return both(left[0], right[0]), beside(left[1], right[1])
