"""What is done in one cell: the records of a cell, and what a method of cells must be able to do with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats
from dpmask.kernels.calibration import Shares
from dpmask.masking.microaggregation.variables import Variables

Integers = NDArray[np.int64]


class Cell(NamedTuple):
    """Records that are masked together."""

    members: NDArray[np.intp]  # which of the shard's records they are
    positions: Integers
    block: Floats  # columns x rows, in clustering units
    part: int
    variables: Variables
    weights: Floats | None = None
    domains: Integers | None = None


class CellMethod(Protocol):
    """What is done in one cell."""

    def clusters(self, records: int) -> int:
        """How many rows the models of so many records have together; 0 where there are no models."""

    def gains(self, cells: Sequence[Cell]) -> Floats:
        """What each row beyond the first would gain in one of these cells."""

    def fit_cells(self, cells: Sequence[Cell], clusters: int) -> list[Floats]:
        """The models of a shard's cells: so many rows of numbers together."""

    def mask_cell(self, cell: Cell, model: Floats) -> tuple[Integers, Floats]:
        """The group of each record, and the row that each group is released with, in original units."""

    def weight_shares(self, cell: Cell, model: Floats, groups: Integers) -> Floats:
        """How much of each centre, or of each group's row, its most important record makes up."""


@runtime_checkable
class CalibratedMethod(CellMethod, Protocol):
    """A method whose rows are means of groups, which can be calibrated to totals."""

    def means(self, cell: Cell) -> tuple[Integers, Floats]:
        """The group of each record, and the groups' means in original units, before calibration and rounding."""

    def shares(self, cell: Cell, groups: Integers) -> Shares:
        """Of each group the share of its weight that lies in each domain."""

    def calibrated(self, multipliers: Floats) -> CalibratedMethod:
        """The method with calibrated means."""
