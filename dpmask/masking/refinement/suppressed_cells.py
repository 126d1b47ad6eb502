"""Which cells of a table's rows are suppressed, once it is known which groups lose which columns (local.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Flags, Floats
from dpmask.kernels.keys import RowKeys
from dpmask.kernels.refinement.dropped import places_among
from dpmask.kernels.refinement.grouping import Integers, keys_of
from dpmask.kernels.refinement.local import Columns
from dpmask.lake.reading import Rows
from dpmask.masking.refinement.dropped_groups import lower, lowest_values
from dpmask.table.encoders.category import CategoryEncoder
from dpmask.table.encoders.interval import IntervalEncoder
from dpmask.table.table import Table


class Suppression(NamedTuple):
    """For each quasi-identifier the keys of its broken groups, sorted, and which of its columns they lose.

    ``smallest`` and ``worst``: the fewest records that match a row of each, and the worst figures over these.
    """

    keys: tuple[RowKeys, ...] = ()
    columns: tuple[Flags, ...] = ()
    smallest: tuple[int, ...] = ()
    worst: tuple[Floats, ...] = ()

    def flags(self, quasis: Sequence[Columns], nodes: Sequence[Integers]) -> Flags:
        """Whether each cell is suppressed (columns x rows), by the nodes that rows are masked to in each column."""
        flags = np.zeros((len(nodes), len(nodes[0])), np.bool_)
        for quasi, keys, lost in zip(quasis, self.keys, self.columns, strict=True):
            places = places_among(keys_of([nodes[number] for number in quasi], flags.shape[1]), keys)
            here = np.flatnonzero(places >= 0)
            for place, number in enumerate(quasi):
                flags[number, here] |= lost[places[here], place]
        return flags

    def wild(self, quasis: Sequence[Columns]) -> list[int]:
        """The columns, by number, that have suppressed cells."""
        pairs = zip(quasis, self.columns, strict=True)
        return sorted({quasi[place] for quasi, lost in pairs for place in np.flatnonzero(lost.any(axis=0)).tolist()})


@dataclass(frozen=True, repr=False)
class SuppressedCells:
    """Which cells of a block's rows are suppressed, by their codes and the nodes these are masked to."""

    encoders: tuple[CategoryEncoder | IntervalEncoder, ...]
    nodes: tuple[Integers, ...]
    quasis: tuple[Columns, ...]
    found: Suppression

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in which a missing cell matches every value."""
        return tuple(self.encoders[number].column for number in self.found.wild(self.quasis))

    def of(self, rows: Rows) -> Flags:
        """Whether each cell is suppressed (columns x rows)."""
        return self._of([encoder.encode(rows) for encoder in self.encoders])

    def _of(self, codes: Sequence[Counts]) -> Flags:
        masked = [np.append(nodes, np.int32(0))[each] for nodes, each in zip(self.nodes, codes, strict=True)]
        return self.found.flags(self.quasis, masked)

    def left(self, table: Table) -> tuple[list[Floats], Counts]:
        """Of what is not suppressed the lowest value of each code, as ``hide_dropped`` needs it; and all cells lost.

        A cell that was missing already is not lost. One pass.
        """
        names = [one.column for one in self.encoders]
        return table.select(names).reduce(self._left, _both, "refinement: values left")

    def _left(self, rows: Rows) -> tuple[list[Floats], Counts]:
        codes = [encoder.encode(rows) for encoder in self.encoders]
        flags = self._of(codes)
        there = [each < encoder.size - encoder.missing for encoder, each in zip(self.encoders, codes, strict=True)]
        return lowest_values(self.encoders, codes, rows, list(~flags)), (flags & np.array(there)).sum(axis=1)


def _both(left: tuple[list[Floats], Counts], right: tuple[list[Floats], Counts]) -> tuple[list[Floats], Counts]:
    return lower(left[0], right[0]), left[1] + right[1]
