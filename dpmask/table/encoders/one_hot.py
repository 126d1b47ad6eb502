"""Categories as numbers, one for each value: 1 where a row has it, otherwise 0.

Clustering takes every value, with missing as one of them (``OneHotEncoder``). A regression leaves out the most frequent
level, its base, or columns would add up to the constant; what is missing is NaN there, so that the record can be left
out, and a level that was not learned is refused (``DummyEncoder``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.lake.reading import Rows
from dpmask.table.columns import is_category, is_numeric, require_known
from dpmask.table.encoders.base import Codes, EncodedColumns, NumberEncoder, learn
from dpmask.table.encoders.category import CategoryEncoder
from dpmask.table.encoders.numeric import NumericEncoder
from dpmask.table.encoders.texts import TextCounts
from dpmask.table.table import Table

_MOST_LEVELS = 200


@dataclass(frozen=True, repr=False)
class OneHotEncoder(NumberEncoder):
    """A number for each code; a value that was not learned has none."""

    category: CategoryEncoder

    @property
    def size(self) -> int:
        """How many codes there are."""
        return self.category.size

    def encode(self, rows: Rows) -> NDArray[np.bool_]:
        """Codes x rows."""
        return self.category.encode(rows) == np.arange(self.size)[:, None]


@dataclass(frozen=True, repr=False)
class DummyEncoder(NumberEncoder):
    """A number for each level but the base; NaN where a value is missing."""

    levels: tuple[str, ...]  # the base first
    who: str

    @property
    def size(self) -> int:
        """How many levels there are besides the base."""
        return max(len(self.levels) - 1, 0)

    @property
    def names(self) -> tuple[str, ...]:
        """Column and level."""
        return tuple(f"{self.column}={level}" for level in self.levels[1:])

    def encode(self, rows: Rows) -> Floats:
        """Levels x rows."""
        codes = self._codes(rows)
        if (codes > len(self.levels)).any():
            raise InputError(
                f"{self.who}: column '{self.column}' has a level here that was not there when the method was fitted. "
                "Fit it to a table that has all levels."
            )
        return self._numbers(codes)

    def encode_known(self, rows: Rows) -> Floats:
        """The same with NaN for a level that was not learned."""
        return self._numbers(self._codes(rows))

    def _codes(self, rows: Rows) -> Codes:
        known = {level: code for code, level in enumerate(self.levels)}
        return CategoryEncoder(self.column, known, missing=True).encode(rows)

    def _numbers(self, codes: Codes) -> Floats:
        block = (codes == np.arange(1, self.size + 1)[:, None]).astype(np.float64)
        block[:, codes >= len(self.levels)] = np.nan
        return block


def require_predictors(schema: Any, columns: Sequence[str], who: str) -> None:
    """Refuse a column that is not there, or neither a number nor a category."""
    require_known(schema, columns, who)
    for column in columns:
        kind = schema.field(column).type
        if not is_numeric(kind) and (not is_category(kind) or pa.types.is_null(kind)):
            raise JobError(f"{who}: column '{column}' must be numeric, text or true/false; it is {kind}. Take it out.")


def find_predictors(table: Table, columns: Sequence[str], who: str) -> EncodedColumns:
    """Columns that others are predicted from; one pass finds the levels of categories, where there are any."""
    require_predictors(table.masked_schema, columns, who)
    categories = [name for name in columns if not is_numeric(table.masked_schema.field(name).type)]
    found = learn(table, dict.fromkeys(categories, partial(TextCounts.of, most=_MOST_LEVELS)), f"{who}: levels")
    for name, one in found.items():
        if one.many:
            raise JobError(
                f"{who}: column '{name}' has more than {_MOST_LEVELS} levels. Join the rare ones, or take it out of "
                "independents."
            )
    return EncodedColumns(
        tuple(
            DummyEncoder(name, _by_frequency(found[name]), who) if name in found else NumericEncoder(name)
            for name in columns
        )
    )


def _by_frequency(found: TextCounts) -> tuple[str, ...]:
    return tuple(sorted(found.texts, key=lambda level: (-found.texts[level], level)))
