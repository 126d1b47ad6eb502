"""Small codes for a column's values: by value where there are few, numbers by quantile bins where there are many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.passes import Span
from dpmask.errors import JobError
from dpmask.kernels.keys import Words
from dpmask.kernels.order.bins import Codes, bin_count, binned
from dpmask.kernels.order.float_order import from_keys, sorted_keys
from dpmask.lake.reading import Rows
from dpmask.table.columns import Floats, floats, is_numeric
from dpmask.table.quantiles import quantiles
from dpmask.table.row_keys import row_keys
from dpmask.table.table import Table

BINS = 20
_FEW_NUMBERS = 256
_MANY_CATEGORIES = 1 << 16


class Domain(NamedTuple):
    """How a column's values become codes: numbers in order by edges, others by the key of their value."""

    edges: Floats | None
    known: Words | None

    @property
    def ordered(self) -> bool:
        """Whether codes are in the order of the values."""
        return self.edges is not None

    @property
    def size(self) -> int:
        """How many codes there are."""
        return bin_count(self.edges) if self.edges is not None else len(self.known)  # type: ignore[arg-type]

    def codes(self, rows: Rows, column: str) -> Codes:
        """The code of each row's value; missing is a value too."""
        if self.edges is not None:
            return binned(floats(rows, column), self.edges)
        assert self.known is not None
        return np.searchsorted(self.known, row_keys(rows, [column]).first)


def quantile_edges(table: Table, columns: Sequence[str], label: str) -> list[Floats]:
    """For each column the inner edges of its quantile bins, each once."""
    shares = [number / BINS for number in range(1, BINS)]
    return [np.unique(values) for values in quantiles(table, columns, shares, label)]


def find_domains(
    tables: Sequence[Table], columns: Sequence[str], who: str, *, numbers: bool = True
) -> dict[str, Domain]:
    """A domain for each column that holds the values of all tables; the bins are the first one's quantiles.

    Without ``numbers`` these count as categories, too.
    """
    if not columns:
        return {}
    schemas = [one.masked_schema for one in tables]
    numeric = {name for name in columns if numbers and all(is_numeric(one.field(name).type) for one in schemas)}
    found = [
        one.reduce_rows(columns, partial(_distinct, tuple(columns), numeric), _either, f"{who}: values")
        for one in tables
    ]
    values = found[0] if len(found) == 1 else _either(*found)
    many = [name for name in columns if values[name].many]
    for name in many:
        if name not in numeric:
            raise JobError(
                f"{who}: column '{name}' has more than {_MANY_CATEGORIES} different values, so it tells records apart "
                "by itself. Declare it as an identifier, or take it out of sensitive."
            )
    edges = dict(zip(many, quantile_edges(tables[0], many, who), strict=True)) if many else {}
    return {
        name: Domain(edges[name] if name in edges else from_keys(values[name].keys.view(np.int64))[1:], None)
        if name in numeric
        else Domain(None, values[name].keys)
        for name in columns
    }


def code_shares(table: Table, domains: dict[str, Domain], who: str) -> dict[str, Floats]:
    """For each column the share of each code."""
    if not domains:
        return {}
    counts = table.reduce_rows(list(domains), partial(_counted, domains), _added, f"{who}: shares")
    return {name: one / max(int(one.sum()), 1) for name, one in counts.items()}


@dataclass(frozen=True)
class _Distinct:
    """Different values, as sorted keys; none of them where there are too many to hold."""

    keys: Words
    most: int

    @property
    def many(self) -> bool:
        return len(self.keys) > self.most


def _distinct(columns: tuple[str, ...], numeric: set[str], rows: Rows, span: Span) -> dict[str, _Distinct]:
    found: dict[str, _Distinct] = {}
    for name in columns:
        if name in numeric:
            found[name] = _held(np.unique(sorted_keys(floats(rows, name))), _FEW_NUMBERS)
        else:
            found[name] = _held(np.unique(row_keys(rows, [name]).first), _MANY_CATEGORIES)
    return found


def _held(keys: NDArray[Any], most: int) -> _Distinct:
    return _Distinct(keys[: most + 1], most)


def _either(left: dict[str, _Distinct], right: dict[str, _Distinct]) -> dict[str, _Distinct]:
    return {name: _held(np.union1d(left[name].keys, right[name].keys), left[name].most) for name in left}


def _counted(domains: dict[str, Domain], rows: Rows, span: Span) -> dict[str, NDArray[np.int64]]:
    return {name: np.bincount(one.codes(rows, name), minlength=one.size) for name, one in domains.items()}


def _added(left: dict[str, NDArray[np.int64]], right: dict[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
    return {name: left[name] + right[name] for name in left}
