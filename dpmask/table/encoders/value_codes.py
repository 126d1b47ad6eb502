"""Codes for the values of columns of any type: numbers in order, everything else by a key of its value.

Keys, not texts as for categories that are masked: a measure takes columns whose values have no text that is the same
for all types, and no list of values has to travel. Numbers with more than 256 values are taken in quantile bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.limits import current_limits
from dpmask.errors import JobError
from dpmask.kernels.arrays import Floats, Words
from dpmask.kernels.value_counts import ValueCounts, value_counts
from dpmask.lake.reading import Rows
from dpmask.table.columns import is_numeric
from dpmask.table.encoders.base import CodeEncoder, Codes, Summarise, learn
from dpmask.table.encoders.interval import DistinctNumbers, IntervalEncoder, quantile_edges
from dpmask.table.row_keys import row_keys
from dpmask.table.table import Table


@dataclass(frozen=True, repr=False)
class KeyEncoder(CodeEncoder):
    """The place of a value's key among all keys, which must be known; missing is a value, too."""

    known: Words

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.known)

    def encode(self, rows: Rows) -> Codes:
        """The code of each row."""
        return np.searchsorted(self.known, row_keys(rows, [self.column]).first)


def _count_keys(rows: Rows, column: str, *, most: int) -> ValueCounts:
    return value_counts(row_keys(rows, [column]).first, most)


def value_encoders(
    tables: Sequence[Table], columns: Sequence[str], who: str, *, in_order: bool = True
) -> dict[str, IntervalEncoder | KeyEncoder]:
    """An encoder for each column that has codes for the values of all tables; the bins are the first one's quantiles.

    Numbers are categories, too, unless they are wanted ``in_order``.
    """
    schemas = [one.masked_schema for one in tables]
    numeric = {name for name in columns if in_order and all(is_numeric(one.field(name).type) for one in schemas)}
    most = current_limits()
    distinct = partial(DistinctNumbers.of, most=most.number_codes)
    count = partial(_count_keys, most=most.category_codes)
    functions: dict[str, Summarise[Any]] = {name: distinct if name in numeric else count for name in columns}
    found = [learn(table, functions, f"{who}: values") for table in tables]
    values = {name: found[0][name] if len(found) == 1 else found[0][name].plus(found[1][name]) for name in columns}
    many = [name for name in columns if values[name].many]
    for name in many:
        if name not in numeric:
            raise JobError(
                f"{who}: column '{name}' has more than {most.category_codes} different values, so it identifies "
                "records by itself. Declare it as an identifier, or take it out of sensitive."
            )
    edges = dict(zip(many, quantile_edges(tables[0], many, who), strict=True)) if many else {}
    return {
        name: IntervalEncoder(name, edges.get(name, one.values[1:]), missing=True)
        if isinstance(one, DistinctNumbers)
        else KeyEncoder(name, one.keys)
        for name, one in values.items()
    }


def code_shares(table: Table, encoders: Mapping[str, CodeEncoder], who: str) -> dict[str, Floats]:
    """For each column the share of each code."""
    if not encoders:
        return {}
    counts = table.select(list(encoders)).reduce(partial(_count, dict(encoders)), _add, f"{who}: shares")
    return {name: one / max(int(one.sum()), 1) for name, one in counts.items()}


def _count(encoders: dict[str, CodeEncoder], rows: Rows) -> dict[str, NDArray[np.int64]]:
    return {name: np.bincount(one.encode(rows), minlength=one.size) for name, one in encoders.items()}


def _add(left: dict[str, NDArray[np.int64]], right: dict[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
    return {name: left[name] + right[name] for name in left}
