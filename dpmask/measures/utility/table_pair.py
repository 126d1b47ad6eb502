"""Two tables that a pass reads together: each by itself, or their records side by side.

Tables are read each by itself, so that they may have different records. Distances need records side by side: lakes of
as many records are then read so and nothing else; other tables are paired besides, as a record that masking dropped
must not be taken for one whose values are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from dpmask.engine.collection import merge_each
from dpmask.engine.tasks import Position
from dpmask.kernels.arrays import Floats
from dpmask.lake.reading import Rows
from dpmask.table.columns import is_numeric, require_known
from dpmask.table.pairs import masked_name, pair
from dpmask.table.table import Frame, Table, as_table

_Found = TypeVar("_Found")
_Paired = TypeVar("_Paired")


class TablePair(NamedTuple):
    """The two tables, or one with their records side by side; and the paired records, where they are needed."""

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
        functions: Sequence[Callable[[Rows, Position], _Found]],
        merge: Callable[[_Found, _Found], _Found],
        label: str,
    ) -> list[_Found]:
        """A function for each table, of its rows and their position, in one pass over both."""
        if len(self.tables) > 1:
            each = zip(self.tables, functions, strict=True)
            return [one.select(columns).with_positions().reduce(function, merge, label) for one, function in each]
        both = partial(_both, tuple(columns), functions)
        rows = self.tables[0].select(_twice(columns)).with_positions()
        return rows.reduce(both, partial(merge_each, merge), label)

    def reduce_floats(
        self,
        columns: Sequence[str],
        functions: Sequence[Callable[[list[Floats]], _Found]],
        merge: Callable[[_Found, _Found], _Found],
        label: str,
    ) -> list[_Found]:
        """The same of numeric columns as floats, wherever they lie."""
        if len(self.tables) > 1:
            each = zip(self.tables, functions, strict=True)
            return [one.reduce(columns, function, merge, label) for one, function in each]
        both = partial(_both_floats, functions)
        return self.tables[0].reduce(_twice(columns), both, partial(merge_each, merge), label)

    def reduce_with_pairs(
        self,
        columns: Sequence[str],
        functions: Sequence[Callable[[Rows, Position], _Found]],
        merge: Callable[[_Found, _Found], _Found],
        of_pairs: Callable[[Rows], _Paired],
        merge_pairs: Callable[[_Paired, _Paired], _Paired],
        label: str,
    ) -> tuple[list[_Found], _Paired]:
        """The same, and a function of the records side by side: in the same pass where that is how they are read."""
        assert self.pairs is not None
        if len(self.tables) > 1:
            found = self.pairs.select(_twice(columns)).reduce(of_pairs, merge_pairs, f"{label} at pairs")
            return self.reduce(columns, functions, merge, label), found
        task = partial(_both_and_pairs, partial(_both, tuple(columns), functions), of_pairs)
        merged = partial(_merge_with_pairs, partial(merge_each, merge), merge_pairs)
        return self.pairs.select(_twice(columns)).with_positions().reduce(task, merged, label)


def table_pair(original: Frame, masked: Frame, columns: Sequence[str], who: str, *, paired: bool) -> TablePair:
    """The two tables, with their records side by side if ``paired``."""
    pairs = pair(original, masked, columns, who) if paired else None
    if pairs and isinstance(original, Table) and isinstance(masked, Table) and original.rows == masked.rows:
        return TablePair((pairs,), pairs)
    tables = as_table(original, who), as_table(masked, who)
    for table in tables:
        require_known(table.masked_schema, columns, who)
    return TablePair(tables, pairs)


def _twice(columns: Sequence[str]) -> list[str]:
    return [*columns, *(masked_name(name) for name in columns)]


def _both(
    columns: tuple[str, ...], functions: Sequence[Callable[[Rows, Position], _Found]], rows: Rows, position: Position
) -> list[_Found]:
    tables = rows.select(columns), rows.select([masked_name(name) for name in columns]).rename_columns(list(columns))
    return [function(table, position) for function, table in zip(functions, tables, strict=True)]


def _both_floats(functions: Sequence[Callable[[list[Floats]], _Found]], columns: list[Floats]) -> list[_Found]:
    half = len(columns) // 2
    return [function(some) for function, some in zip(functions, (columns[:half], columns[half:]), strict=True)]


def _both_and_pairs(
    both: Callable[..., Any], pairs: Callable[..., Any], rows: Rows, position: Position
) -> tuple[Any, Any]:
    return both(rows, position), pairs(rows)


def _merge_with_pairs(both: Callable[..., Any], pairs: Callable[..., Any], left: Any, right: Any) -> tuple[Any, Any]:
    return both(left[0], right[0]), pairs(left[1], right[1])
