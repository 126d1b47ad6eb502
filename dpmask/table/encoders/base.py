"""What all encoders share: how they are learned from a table, and how they encode the rows of a block.

Learning is one pass: each column has a summary of its own (texts and their counts, different numbers, a range), and
summaries merge by ``plus``. An encoder is made of a finished summary and never changes. A ``CodeEncoder`` gives each
row one small integer, a ``NumberEncoder`` one or more floats; ``EncodedColumns`` stacks several of the latter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats
from dpmask.lake.reading import Rows
from dpmask.table.table import Table

Codes = NDArray[np.int64]


class Mergeable(Protocol):
    """What is known of one column after some of its blocks."""

    def plus(self, other: Self) -> Self:
        """Both parts together."""


S = TypeVar("S", bound=Mergeable)
Summarise = Callable[[Rows, str], S]
"""From a block and the name of a column to its summary."""


def learn(table: Table, functions: Mapping[str, Summarise[S]], label: str) -> dict[str, S]:
    """The summary of each column, all in one pass; none without columns."""
    if not functions:
        return {}
    return table.select(list(functions)).reduce(partial(_summarise, dict(functions)), _merge, label)


def _summarise(functions: dict[str, Summarise[S]], rows: Rows) -> dict[str, S]:
    return {column: function(rows, column) for column, function in functions.items()}


def _merge(left: dict[str, S], right: dict[str, S]) -> dict[str, S]:
    return {column: left[column].plus(right[column]) for column in left}


@dataclass(frozen=True, repr=False)
class Encoder(ABC):
    """How one column of a block becomes an array. It knows values of records, so its repr shows none of its own."""

    column: str

    @property
    @abstractmethod
    def size(self) -> int:
        """How many codes there are, or how many numbers each row has."""

    @abstractmethod
    def encode(self, rows: Rows) -> NDArray[Any]:
        """The column of a block: codes, one for each row, or numbers, size x rows."""

    def on(self, column: str) -> Self:
        """The same encoder for another column."""
        return replace(self, column=column)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.column!r}, size={self.size})"


class CodeEncoder(Encoder):
    """A code from 0 to size - 1 for each row; ``size`` itself stands for a value that was not there when learning."""


class NumberEncoder(Encoder):
    """One or more numbers for each row."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers are called."""
        return (self.column,) * self.size


@dataclass(frozen=True)
class EncodedColumns:
    """Several columns as one array."""

    parts: tuple[NumberEncoder, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(part.column for part in self.parts)

    @property
    def size(self) -> int:
        """How many numbers a row has."""
        return sum(part.size for part in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers are called, in order."""
        return tuple(name for part in self.parts for name in part.names)

    @property
    def sources(self) -> tuple[str, ...]:
        """The column that each number comes from."""
        return tuple(part.column for part in self.parts for _ in range(part.size))

    def values(self, rows: Rows) -> Floats:
        """Numbers x rows."""
        block = np.empty((self.size, rows.num_rows))
        at = 0
        for part in self.parts:
            block[at : at + part.size] = part.encode(rows)
            at += part.size
        return block
