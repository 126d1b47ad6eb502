"""Which records of a table a refinement drops, and which values are left without them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.passes import Span
from dpmask.kernels.keys import new_keys, with_word
from dpmask.kernels.refinement.dropped import Flags, among
from dpmask.lake.reading import Rows
from dpmask.masking.refinement.drop_blocks import Drops
from dpmask.masking.refinement.rounds import Quasi
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.encoders.interval import IntervalEncoder, numbers
from dpmask.table.table import Table

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class DroppedGroups:
    """Which rows of a block are dropped, by their codes and the nodes these are masked to."""

    codings: tuple[CodeEncoder, ...]
    nodes: tuple[NDArray[np.int32], ...]
    quasis: tuple[Quasi, ...]
    drops: Drops

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that decide."""
        return tuple(one.column for one in self.codings)

    def of(self, rows: Rows) -> Flags:
        """Whether each row is dropped. A value that is not known is masked by its column, or refused there."""
        return self._of([coding.encode(rows) for coding in self.codings])

    def _of(self, codes: list[NDArray[np.int64]]) -> Flags:
        words = [np.append(nodes, 0)[each].astype(np.uint64) for nodes, each in zip(self.nodes, codes, strict=True)]
        found = np.zeros(len(words[0]), np.bool_)
        for quasi, dropped in zip(self.quasis, self.drops.keys, strict=True):
            keys = reduce(with_word, [words[number] for number in quasi.attributes], new_keys(len(found)))
            found |= among(keys, dropped)
        return found

    def lowest_left(self, rows: Rows, span: Span) -> list[Floats]:
        """For each column and code the lowest number of a row that is left, 0 for texts and missing values, or inf."""
        codes = [coding.encode(rows) for coding in self.codings]
        left = ~self._of(codes)
        found = []
        for coding, each in zip(self.codings, codes, strict=True):
            ordered = isinstance(coding, IntervalEncoder)
            values = np.nan_to_num(numbers(rows, coding.column)) if ordered else np.zeros(len(left))
            lowest = np.full(coding.size, np.inf)
            np.minimum.at(lowest, each[left], values[left])
            found.append(lowest)
        return found


def values_left(table: Table, dropped: DroppedGroups) -> list[Floats]:
    """The same for a table; one pass."""
    return table.reduce_rows(dropped.inputs, dropped.lowest_left, _lower, "refinement: values left")


def _lower(left: list[Floats], right: list[Floats]) -> list[Floats]:
    return [np.minimum(one, other) for one, other in zip(left, right, strict=True)]
