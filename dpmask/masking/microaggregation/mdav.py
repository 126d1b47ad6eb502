"""Microaggregation: groups of k to 2k - 1 similar records, each released as its group's mean.

MDAV, maximum distance to average vector (Domingo-Ferrer and Torra 2005). Every row is shared by at least k records, by
construction. Tables larger than ``cell_size`` are cut into compact cells first: plain MDAV compares all pairs.

Protects against: linking a record by its values to fewer than k candidates. Does not protect against: learning a value
that all members of a group nearly share; nor against an intruder who knows the method, since the groups are determined
by the data (fuzzy microaggregation draws them). Sums such as net + tax = gross survive means, but where columns are
integers rounding may break them by a unit; fuzzy microaggregation keeps them.

Passes over the data: one for the spread, one to send the records to their cells, one more to mask. Memory per task: one
block, or eight cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmask.engine.draws import Subkey
from dpmask.errors import InputError
from dpmask.kernels.microaggregation import mdav
from dpmask.masking.microaggregation.cells import CellGroup, Integers, fit_in_cells
from dpmask.masking.microaggregation.grouped_release import FittedSharedRows, SharedRowsMethod
from dpmask.masking.microaggregation.variables import Variables
from dpmask.parameters import require_integer
from dpmask.table.columns import Floats
from dpmask.table.table import Table

_PAIR_SECONDS = 2e-9
"""What plans count for each pair of records that are compared, and column, divided by k."""


@dataclass(frozen=True, kw_only=True)
class Microaggregation(SharedRowsMethod["FittedMicroaggregation"]):
    """Groups of k to 2k - 1 similar records, each released as its group's mean (MDAV).

    Parameters
    ----------
    columns
        The columns of numbers to mask; those of ``groups`` by default.
    k
        The fewest records in a group.
    groups
        Lists of columns that are masked together, each list by itself; all columns are one by default.
    cell_size
        The most records that MDAV compares with each other: by default 4000, or 100 k if that is more.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"income": [1000.0, 1200.0, 5000.0, 5200.0]})
    >>> dpmask.Microaggregation(columns=["income"], k=2).fit(people, seed=7).mask(people)["income"].tolist()
    [1100.0, 1100.0, 5100.0, 5100.0]

    """

    columns: tuple[str, ...] = ()
    k: int
    groups: tuple[tuple[str, ...], ...] = ()
    cell_size: int | None = None

    purpose: ClassVar[str] = "microaggregation"

    def __post_init__(self) -> None:
        self.settle_groups()
        require_integer(self, "k", at_least=2)
        self.check_cell_size()

    @property
    def least(self) -> int:
        """Every released row is shared by so many records."""
        return self.k

    @property
    def size(self) -> int:
        """The most records that are compared with each other."""
        return self.cell_size or self.default_cell_size(self.k)

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table, about; see tests/benchmarks/bench_microaggregation.py."""
        return sum(_PAIR_SECONDS * rows * min(rows, self.size) / self.k * len(group) for group in self.groups)

    def fit_table(self, table: Table, key: Subkey) -> FittedMicroaggregation:
        """Find the cells, and what grouping inside them comes to."""
        return FittedMicroaggregation(self, *self.fit_groups(table, key))

    def fit_group(self, table: Table, variables: Variables, key: Subkey) -> CellGroup:
        """One group of variables, grouped in cells."""
        method = MdavCells(variables, self.k)
        return fit_in_cells(table, variables, method, self.size, float(self.k), key, self.who)


@dataclass(frozen=True)
class MdavCells:
    """MDAV in one cell. It has no model: which records are grouped follows from them alone."""

    variables: Variables
    k: int

    def clusters(self, records: int) -> int:
        """There are no models."""
        return 0

    def gains(self, blocks: Sequence[Floats], keys: Sequence[Subkey]) -> Floats:
        """So none gains anything."""
        return np.empty(0)

    def fit_cells(self, blocks: Sequence[Floats], keys: Sequence[Subkey], clusters: int) -> list[Floats]:
        """Nothing is learnt."""
        return [np.empty((0, len(block))) for block in blocks]

    def mask_cell(self, block: Floats, positions: Integers, model: Floats) -> tuple[Integers, Floats]:
        """The group of each record, and the groups' means."""
        if block.shape[1] < self.k:
            raise InputError(f"Microaggregation: a cell has fewer than {self.k} records here. Fit to this table.")
        groups = mdav(block, self.k)
        sizes = np.bincount(groups)
        means = np.array([np.bincount(groups, column) / sizes for column in block]).T
        return groups, self.variables.finished(self.variables.to_original(means))

    def weight_shares(self, block: Floats, model: Floats) -> Floats:
        """All members of a group weigh the same."""
        return np.empty(0)


@dataclass(frozen=True)
class FittedMicroaggregation(FittedSharedRows):
    """Cells of every group of variables and, on the table they were fitted to, what they came to."""

    method: Microaggregation

    def statement(self) -> str:
        """What a reader of the release may know."""
        return (
            f"The values of {self.together} were replaced by the means of groups of {self.method.k} to "
            f"{2 * self.method.k - 1} similar records, variables that stand together as one row (microaggregation, "
            "MDAV). Means are kept, but for rounding to the columns' types; variances are smaller, and correlations "
            "tend to be stronger, than those of the originals."
        )

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            "Groups follow from the data alone: an intruder who knows most of the data may work out the rest.",
            "Members of a group may share nearly the same value, which its mean then shows.",
            *self.warnings(),
        ]
