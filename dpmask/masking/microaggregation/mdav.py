"""Microaggregation: groups of k to 2k - 1 similar records, each released as its group's mean.

MDAV, maximum distance to average vector (Domingo-Ferrer and Torra 2005). Every row is shared by at least k records, by
construction. Tables larger than ``cell_size`` are cut into compact cells first: plain MDAV compares all pairs.

Protects against: linking a record by its values to fewer than k candidates. Does not protect against: learning a value
that all members of a group nearly share; nor against an intruder who knows the method, since the groups are determined
by the data (fuzzy microaggregation draws them). ``constraints`` such as net + tax = gross hold for every released row;
zeros and missing values stay where they are, strata are masked by themselves (dpmask.masking.parts).

Passes over the data: one for the spread, one to send the records to their cells, one more to mask. Memory per task: one
block, or eight cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpmask.constraints.strata import Strata, check_strata, make_strata
from dpmask.constraints.zeros import AUTO
from dpmask.engine.draws import Subkey
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.calibration import Shares
from dpmask.kernels.microaggregation import mdav
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.masking.domains import find_domains
from dpmask.masking.microaggregation.calibrated import group_shares, moved
from dpmask.masking.microaggregation.cell_method import Cell, Integers
from dpmask.masking.microaggregation.cells import CellGroup, fit_in_cells
from dpmask.masking.microaggregation.grouped_release import CELL_SIZES, FittedSharedRows, SharedRowsMethod
from dpmask.masking.microaggregation.variables import Variables
from dpmask.masking.movable import GROUP_SIZE, ParameterRange
from dpmask.masking.parts import Parts
from dpmask.parameters import NameLists, Names, Several, require_integer, require_number
from dpmask.table.columns import require_numeric
from dpmask.table.table import Table

_FAR_OFF = 0.01
P_PERCENT = 10.0
"""What offices take for p as a rule is 5 to 15."""
_PAIR_SECONDS = 4.5e-9
"""What plans count for each pair of records of a cell, divided by k: of 2 to 13 columns, with k from 3 to 1000."""


@dataclass(frozen=True, kw_only=True)
class Microaggregation(SharedRowsMethod["FittedMicroaggregation"]):
    """Groups of k to 2k - 1 similar records, each released as its group's mean (MDAV).

    Parameters
    ----------
    k
        The fewest records in a group.
    cell_size
        The most records that MDAV compares with each other: by default 4000, or 100 k if that is more.
    weight
        The survey weight that members of a group weigh by: weighted totals of every stratum are kept, in place of
        unweighted ones. A record that weighs most of its group shows (``dominated``).
    totals
        Columns that make domains, as in ``by``, whose totals are kept, weighted if there is a weight: the means of the
        groups are calibrated. Totals to which fewer than k records contribute are left alone, and those that
        ``p_percent`` says are one record's.
    p_percent
        The p % rule of statistical offices: a total of which all but the two largest contributions make up less than
        this share of the largest one is not kept, as it would show it. 10 by default; 0 keeps all totals.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"income": [1000.0, 1200.0, 5000.0, 5200.0]})
    >>> dpmask.Microaggregation(columns=["income"], k=2).fit(people, seed=7).mask(people)["income"].tolist()
    [1100.0, 1100.0, 5100.0, 5100.0]

    """

    columns: Names = ()
    k: int
    groups: NameLists = ()
    cell_size: int | None = None
    constraints: Names = ()
    by: Several = ()
    zeros: str = AUTO
    weight: str | None = None
    totals: Several = ()
    p_percent: float = P_PERCENT

    neutral: ClassVar[tuple[str, ...]] = ("constraints", "by", "zeros", "weight", "totals", "p_percent")
    ranges: ClassVar[Mapping[str, ParameterRange]] = {
        "k": ParameterRange(2, whole=True, counts="records", trial=GROUP_SIZE),
        "cell_size": CELL_SIZES,
        "p_percent": ParameterRange(0, 100),
    }

    def __post_init__(self) -> None:
        self.settle_groups()
        require_integer(self, "k", at_least=2)
        if self.weight in self.columns:
            raise JobError(f"{self.who}: weight '{self.weight}' is among the columns. Mask it in another step.")
        require_number(self, "p_percent", at_least=0, at_most=100)
        self.check_cell_size()
        object.__setattr__(self, "totals", (self.totals,) if isinstance(self.totals, str) else tuple(self.totals))
        _ = self.kept

    @cached_property
    def kept(self) -> Strata:
        """The domains whose totals are kept."""
        return make_strata(self.totals, (), self.columns, f"{self.who}: totals")

    @property
    def draws(self) -> bool:
        """Only between equal records, and which records the cuts of a large table come from."""
        return False

    @property
    def passes(self) -> int:
        """Passes over the data to fit: one more finds the domains of totals."""
        return super().passes + bool(self.totals)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns it learns from, the weight among them."""
        more = [*self.kept.columns, *([self.weight] if self.weight else [])]
        return tuple(dict.fromkeys([*super().reads, *more]))

    def check(self, table: Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        super().check(table)
        require_numeric(table.masked_schema, [self.weight] if self.weight else [], self.who)
        check_strata(self.kept, table.masked_schema, f"{self.who}: totals")

    @property
    def kernels(self) -> KernelUse:
        """What it runs."""
        return KernelUse((Task("mdav"), Task("labels")), (Task("cells"),))

    advice: ClassVar[str] = "Take a larger k."

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
        return self.gathering(rows) + _PAIR_SECONDS * rows * min(rows, self.size) / self.k * len(self.groups)

    def fit_table(self, table: Table, key: Subkey) -> FittedMicroaggregation:
        """Find the cells, and what grouping inside them comes to."""
        return FittedMicroaggregation(self, key, *self.fit_groups(table, key))

    def group_size(self, rows: int) -> int:
        """Records in a group."""
        return self.k

    def fit_group(self, table: Table, variables: Sequence[Variables], parts: Parts, key: Subkey) -> CellGroup:
        """One group of variables, grouped in cells."""
        cells, percent = MdavCells(self.k), float(self.p_percent)
        domains = find_domains(table, self.kept, self.who, percent) if self.totals else None
        return fit_in_cells(
            table, variables, parts, cells, self.size, float(self.k), key, self.who, self.weight, domains
        )


@dataclass(frozen=True)
class MdavCells:
    """MDAV in one cell. It has no model: which records are grouped follows from them alone."""

    k: int
    multipliers: Floats | None = None
    """Columns x domains: what calibrates the means, if totals are kept."""

    def clusters(self, records: int) -> int:
        """There are no models."""
        return 0

    def gains(self, cells: Sequence[Cell]) -> Floats:
        """So none gains anything."""
        return np.empty(0)

    def fit_cells(self, cells: Sequence[Cell], clusters: int) -> list[Floats]:
        """Nothing is learnt."""
        return [np.empty((0, len(cell.block))) for cell in cells]

    def calibrated(self, multipliers: Floats) -> MdavCells:
        """The same with calibrated means."""
        return replace(self, multipliers=multipliers)

    def shares(self, cell: Cell, groups: Integers) -> Shares:
        """Of each group the share of its weight that lies in each domain."""
        assert cell.domains is not None
        count = int(cell.domains.max()) + 1 if self.multipliers is None else self.multipliers.shape[1]
        return group_shares(groups, cell.domains, _weights(cell, groups), count)

    def mask_cell(self, cell: Cell, model: Floats) -> tuple[Integers, Floats]:
        """The group of each record, and the groups' means."""
        groups, rows = self.means(cell)
        if self.multipliers is not None:
            scale, limits = cell.variables.scale, cell.variables.limits
            size = np.abs(scale.mean) + scale.sd
            rows = moved(rows, self.shares(cell, groups), self.multipliers, limits.written if limits else None, size)
            rows = cell.variables.to_original(scale.to_units(rows)) if limits else rows
        return groups, cell.variables.finished(rows)

    def means(self, cell: Cell) -> tuple[Integers, Floats]:
        """The group of each record, and the groups' means before calibration and rounding."""
        block = cell.block
        if block.shape[1] < self.k:
            raise InputError(f"Microaggregation: a cell has fewer than {self.k} records here. Fit to this table.")
        groups = mdav(block, self.k)
        weights = _weights(cell, groups)
        sums = np.bincount(groups, weights)
        means = np.array([np.bincount(groups, column * weights) / sums for column in block]).T
        return groups, cell.variables.to_original(means)

    def weight_shares(self, cell: Cell, model: Floats, groups: Integers) -> Floats:
        """The largest weight in each group, as a share: one of k where all members weigh the same."""
        shares = np.zeros(int(groups.max()) + 1)
        weights = _weights(cell, groups)
        np.maximum.at(shares, groups, weights / np.bincount(groups, weights)[groups])
        return shares


def _weights(cell: Cell, groups: Integers) -> Floats:
    """What each record weighs in its group; all the same without weights, and in groups where these are all 0."""
    if cell.weights is None:
        return np.ones(len(groups))
    return np.where(np.bincount(groups, cell.weights)[groups] > 0, cell.weights, 1.0)


@dataclass(frozen=True)
class FittedMicroaggregation(FittedSharedRows):
    """Cells of every group of variables and, on the table they were fitted to, what they came to."""

    method: Microaggregation

    @property
    def of_one_table(self) -> str:
        """Nothing is learnt but where its cells lie."""
        return "its groups are made of the records of that table"

    def statement(self) -> str:
        """What a reader of the release may know."""
        weight = self.method.weight
        weighted, kept = (f", means weighted by {weight}", "Weighted means") if weight else ("", "Means")
        return (
            f"The values of {self.groups_listed} were replaced by the means of groups of {self.method.k} to "
            f"{2 * self.method.k - 1} similar records, variables that stand together as one row (microaggregation, "
            f"MDAV{weighted}). {kept} are kept, but for rounding to the columns' types; variances are smaller, and "
            f"correlations tend to be stronger, than those of the originals.{self._on_totals()}"
            + " ".join(["", *self.particulars(), *self.apart()])
        )

    def for_analysts(self) -> list[str]:
        """Which totals are exact, and what else rows do."""
        if self.method.totals:
            return [f"{self._on_totals().strip()} Other totals are not exact.", *super().for_analysts()]
        weighted = f"weighted by {self.method.weight}" if self.method.weight else "unweighted"
        by = ", ".join(one.column for one in self.method.strata.classings)
        found = [part.figures for part in self.parts]
        joined = any(one.strata_joined or one.records_across for one in found)
        lost = any(one.values_to_zero or one.values_to_missing for one in found)
        where = f" and by {by}" + (", but for strata that were joined" if joined else "") if by else ""
        where += ", but for values that were set to zero or missing" if lost else ""
        exact = f"Totals and means of {', '.join(self.method.columns)} ({weighted}) are exact overall{where}"
        return [f"{exact}, but for rounding.", *super().for_analysts()]

    def _on_totals(self) -> str:
        """Which totals are kept, if any."""
        if not self.method.totals:
            return ""
        names = ", ".join(one.column for one in self.method.kept.classings)
        off = max(part.figures.totals_off for part in self.parts)
        weighted = "Weighted totals" if self.method.weight else "Totals"
        rule = f" and none dominates ({self.method.p_percent:g} % rule)" if self.method.p_percent else ""
        return (
            f" {weighted} by {names} are those of the originals, to {_shown(off)}, where at least {self.method.k} "
            f"records contribute{rule}: the means were moved for it (calibration, chi-square distance)."
        )

    def warnings(self) -> list[str]:
        """What is wrong with these groups, and totals that could not be kept."""
        apart = [name for name in self.method.kept.columns if name not in self.method.strata.columns]
        advice = f"Name {', '.join(apart)} in by, too" if apart else "Take larger domains, or a smaller k"
        off = [
            f"{self.who}: totals of {', '.join(part.figures.columns)} are off by {part.figures.totals_off:.1%}, as "
            f"means would have to move by more than half. {advice}."
            for part in self.parts
            if part.figures.totals_off > _FAR_OFF
        ]
        return [*super().warnings(), *off]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        heavy = sum(part.figures.totals_dominated for part in self.parts)
        shown = [f"Of {heavy} totals that are kept one record makes up more than half: they show it roughly."]
        return [
            *(shown if heavy else ()),
            "Groups follow from the data alone: an intruder who knows most of the data may work out the rest.",
            "Members of a group may share nearly the same value, which its mean then shows.",
            *self.facts_released(),
            *self.apart(),
            *self.warnings(),
        ]


def _shown(share: float) -> str:
    """A gap as a bound: the power of ten above it, of a percent."""
    return f"{100 * 10.0 ** math.ceil(math.log10(max(share, 1e-8))):g} %"
