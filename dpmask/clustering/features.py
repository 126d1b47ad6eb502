"""Columns of any type as features that can be clustered together: numbers from 0 to 1, categories one-hot.

A number is scaled by its range; an interval label such as [20, 40) counts as the number in its middle; a category has a
feature for each value. A missing value is a value of its own: a number that is missing somewhere has a feature more,
which marks where, and lies in the middle of the range itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpmask.clustering.iteration import Records
from dpmask.engine.draws import Subkey, record_uniforms
from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import Position
from dpmask.errors import JobError
from dpmask.lake.arrow import array_of
from dpmask.lake.reading import Rows
from dpmask.table.checks import infinite_column
from dpmask.table.columns import require_known
from dpmask.table.encoders.base import EncodedColumns, NumberEncoder, Summarise, learn
from dpmask.table.encoders.category import category_encoder
from dpmask.table.encoders.interval import is_ordered
from dpmask.table.encoders.numeric import NumberRange, RangeEncoder
from dpmask.table.encoders.one_hot import OneHotEncoder
from dpmask.table.encoders.texts import TextCounts
from dpmask.table.table import Table

_MOST_FEATURES = 2000


@dataclass(frozen=True)
class Features(EncodedColumns):
    """Encoded columns as records to cluster."""

    def records(self, rows: Rows) -> Records:
        """All records of a block."""
        return Records(self.values(rows), None, None)

    def sample(self, key: Subkey, share: float, rows: Rows, position: Position) -> Records:
        """Each record of a block with this probability, by its own draw: the same records for any partitioning."""
        if share < 1.0:
            rows = rows.filter(array_of(record_uniforms(key, position.first, rows.num_rows) < share))
        return self.records(rows)


def find_features(table: Table, columns: Sequence[str], who: str, *, intervals: Sequence[str] = ()) -> Features:
    """The features of columns; ``intervals`` are texts that name intervals. One pass."""
    schema = table.masked_schema
    require_known(schema, columns, who)
    numbers = {name for name in columns if name in intervals or is_ordered(schema.field(name).type)}
    count = partial(TextCounts.of, most=current_limits().code_values)
    looks: dict[str, Summarise[Any]] = {name: NumberRange.of if name in numbers else count for name in columns}
    found = learn(table, looks, f"{who}: values")
    features = Features(tuple(_encoder(name, found[name], who) for name in columns))
    if features.size > _MOST_FEATURES:
        raise JobError(f"{who}: the columns have more than {_MOST_FEATURES} different values. Take out the largest.")
    return features


def _encoder(column: str, found: NumberRange | TextCounts, who: str) -> NumberEncoder:
    if isinstance(found, TextCounts):
        return OneHotEncoder(column, category_encoder(column, found, who))
    if found.infinite:
        raise infinite_column(who, column)
    return RangeEncoder(column, found)
