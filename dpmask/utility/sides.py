"""Two tables that passes go over together: each by itself, or their records side by side.

Tables are read each by itself, so that they may have different records; side by side only for distances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from dpmask.engine.passes import Span
from dpmask.lake.columns import Rows, is_numeric, require_known
from dpmask.lake.pairs import masked_name, pair
from dpmask.lake.table import Table, as_table

_Found = TypeVar("_Found")
_Beside = TypeVar("_Beside")
_Function = Callable[[Rows, Span], _Found]


class Sides(NamedTuple):
    """The two tables; or one with their records side by side."""

    tables: tuple[Table, ...]

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
        """The same of tables that are side by side, and in the same pass a function of their records together."""
        task = partial(_both_and_beside, partial(_both, tuple(columns), functions), beside)
        merged = partial(_merge_beside, partial(_merge_both, merge), merge_beside)
        return self.tables[0].reduce_rows(_twice(columns), task, merged, label)


def sides_of(original: Any, masked: Any, columns: Sequence[str], who: str, *, beside: bool) -> Sides:
    """The two tables, side by side if that is asked for."""
    if beside:
        return Sides((pair(original, masked, columns, who),))
    tables = as_table(original, who), as_table(masked, who)
    for table in tables:
        require_known(table.masked_schema, columns, who)
    return Sides(tables)


def _twice(columns: Sequence[str]) -> list[str]:
    return [*columns, *(masked_name(name) for name in columns)]


def _both(columns: tuple[str, ...], functions: Sequence[_Function[_Found]], rows: Rows, span: Span) -> list[_Found]:
    sides = rows.select(columns), rows.select([masked_name(name) for name in columns]).rename_columns(list(columns))
    return [function(side, span) for function, side in zip(functions, sides, strict=True)]


def _merge_both(merge: Callable[..., _Found], left: list[_Found], right: list[_Found]) -> list[_Found]:
    return [merge(one, two) for one, two in zip(left, right, strict=True)]


def _both_and_beside(both: Callable[..., Any], beside: Callable[..., Any], rows: Rows, span: Span) -> tuple[Any, Any]:
    return both(rows, span), beside(rows)


def _merge_beside(both: Callable[..., Any], beside: Callable[..., Any], left: Any, right: Any) -> tuple[Any, Any]:
    return both(left[0], right[0]), beside(left[1], right[1])
