"""Records of small groups that are dropped, and the lowest values of those that remain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Flags, Floats
from dpmask.kernels.refinement.dropped import Drops, contains
from dpmask.kernels.refinement.grouping import keys_of
from dpmask.lake.reading import Rows
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.encoders.interval import IntervalEncoder, numbers
from dpmask.table.table import Table


@dataclass(frozen=True, repr=False)
class DroppedGroups:
    """Which rows of a block are dropped, by their codes and the nodes these are masked to.

    ``quasis``: the numbers of the columns of each quasi-identifier.
    """

    encoders: tuple[CodeEncoder, ...]
    nodes: tuple[NDArray[np.int32], ...]
    quasis: tuple[tuple[int, ...], ...]
    drops: Drops

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that decide."""
        return tuple(one.column for one in self.encoders)

    def of(self, rows: Rows) -> Flags:
        """Whether each row is dropped. An unknown value is masked by its column, or refused there."""
        return self._of([encoder.encode(rows) for encoder in self.encoders])

    def _of(self, codes: list[Counts]) -> Flags:
        masked = [np.append(nodes, np.int32(0))[each] for nodes, each in zip(self.nodes, codes, strict=True)]
        found = np.zeros(len(masked[0]), np.bool_)
        for quasi, dropped in zip(self.quasis, self.drops.keys, strict=True):
            found |= contains(keys_of([masked[number] for number in quasi], len(found)), dropped)
        return found

    def lowest_remaining(self, table: Table) -> list[Floats]:
        """For each column and code the lowest number of a row that remains, 0 for texts, or inf; one pass."""
        return table.select(self.inputs).reduce(self._lowest, lower, "refinement: values left")

    def _lowest(self, rows: Rows) -> list[Floats]:
        codes = [encoder.encode(rows) for encoder in self.encoders]
        return lowest_values(self.encoders, codes, rows, [~self._of(codes)] * len(codes))


def lowest_values(
    encoders: Sequence[CodeEncoder], codes: Sequence[Counts], rows: Rows, remaining: Sequence[Flags]
) -> list[Floats]:
    """For each column and code the lowest number among the remaining rows, 0 for texts, or inf."""
    found = []
    for encoder, each, kept in zip(encoders, codes, remaining, strict=True):
        ordered = isinstance(encoder, IntervalEncoder)
        values = np.nan_to_num(numbers(rows, encoder.column)) if ordered else np.zeros(len(kept))
        lowest = np.full(encoder.size, np.inf)
        np.minimum.at(lowest, each[kept], values[kept])
        found.append(lowest)
    return found


def lowest_of(table: Table, encoders: tuple[CodeEncoder, ...]) -> list[Floats]:
    """For each column and code the lowest number of any row, 0 for texts, or inf; one pass."""
    names = [one.column for one in encoders]
    return table.select(names).reduce(partial(_lowest_of, encoders), lower, "refinement: values left")


def _lowest_of(encoders: tuple[CodeEncoder, ...], rows: Rows) -> list[Floats]:
    codes = [encoder.encode(rows) for encoder in encoders]
    return lowest_values(encoders, codes, rows, [np.ones(rows.num_rows, np.bool_)] * len(codes))


def lower(left: list[Floats], right: list[Floats]) -> list[Floats]:
    """The lower one of each."""
    return [np.minimum(one, other) for one, other in zip(left, right, strict=True)]
