"""Survey weights masked, and calibrated so that weighted totals stay what they were.

A weight that few records have identifies them. Weights are multiplied by noise, exp(scale z - scale^2 / 2), or
rounded to multiples of a step, or both; then they are calibrated: moved as little as possible (chi-square distance,
dpmask.kernels.calibration) until the weighted number of records in every cell of the margins, and the weighted totals
of stated columns there, are those of the original weights. The totals are of what the step reads: columns that an
earlier step masked count as masked.

Protects against: recognising a record by its exact weight. Does not protect against: linkage by a weight that is still
near the original; nor, where ``totals`` of columns are kept that a later step masks, against what weights show of them:
a weight moves with the values that the step reads. Totals that rest on fewer than ten records, or that one of them
dominates (10 % rule, dpmask.kernels.dominance), are left alone, as exact ones would show weights.

Paper: Deville and Sarndal 1992, Calibration estimators in survey sampling. Passes over the data: one for each margin,
two and one for each step of the calibration, seldom more than four. Memory per task: one block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

import numpy as np

from dpmask.constraints.strata import Strata, check_strata, make_strata
from dpmask.engine.draws import Subkey, record_normals
from dpmask.engine.tasks import Position
from dpmask.errors import JobError
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.calibration import (
    LARGEST_STEP,
    CalibrationSums,
    Shares,
    calibrated,
    calibration_sums,
    relative_gap,
    steps_of,
)
from dpmask.kernels.dominance import Contributors, contributors
from dpmask.kernels.elementary import exp
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.lake.reading import Rows
from dpmask.masking.domains import Domains, find_domains
from dpmask.masking.method import FittedMethod, Method
from dpmask.masking.movable import ParameterRange
from dpmask.parameters import Names, SeveralLists, require_columns, require_number
from dpmask.results import MORE_LOSS, NEUTRAL, Exhibit, Result, Term
from dpmask.table.checks import require_no_infinities, require_weights
from dpmask.table.columns import floats, require_numeric, with_floats
from dpmask.table.table import Table

_FEWEST = 10
"""Records that a total rests on, at least, if it is kept."""
_PERCENT = 10.0
"""A total that shows its largest contribution to within so many per cent is not kept."""
_MOST_NOISE = 1.0
_SECONDS = 5e-7
"""CPU for each record and each margin or total that is kept, about; see tests/benchmarks/bench_plan.py."""
_DEVILLE = "Deville and Sarndal 1992, Calibration estimators in survey sampling"


@dataclass(frozen=True)
class WeightFigures(Result):
    """How near the totals are, and how far weights moved for it."""

    totals_off: float
    largest_move: float
    totals_kept: int
    totals_left: int

    judged: ClassVar[tuple[str, ...]] = ("totals_off", "largest_move")
    about: ClassVar[Term] = Term("How near weighted totals are to the original ones.", NEUTRAL, _DEVILLE)
    terms: ClassVar[Mapping[str, Term]] = {
        "totals_off": Term("Largest relative difference of a total that is kept.", MORE_LOSS, _DEVILLE),
        "largest_move": Term("The most that calibration moved a weight, as a share of it.", MORE_LOSS, _DEVILLE),
        "totals_kept": Term("Weighted totals that are kept.", NEUTRAL, _DEVILLE),
        "totals_left": Term(
            f"Totals left alone: of fewer than {_FEWEST} records or mostly of one.", MORE_LOSS, _DEVILLE
        ),
    }
    exhibits: ClassVar[Mapping[str, Exhibit]] = {
        "totals_kept": Exhibit("number", "weighted totals that are kept"),
        "totals_left": Exhibit("number", "totals left alone, as they rest on too few records, or on one"),
    }

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"Of {self.totals_kept} weighted totals none is off by more than {self.totals_off:.2g} of itself; "
            f"calibration moved no weight by more than {self.largest_move:.1%}."
        )


@dataclass(frozen=True, kw_only=True)
class CalibratedWeights(Method["FittedWeights"]):
    """Weights with noise or rounded, calibrated so that weighted totals are kept.

    Parameters
    ----------
    columns
        The column of weights.
    scale
        The noise's standard deviation, as a share of each weight; 0, the default, for none.
    step
        What weights are rounded to multiples of, at least one; none by default.
    margins
        Lists of columns, each as in ``by`` of other methods: weighted numbers of records in every cell are kept.
    totals
        Columns of numbers whose weighted totals are kept, in every cell of every margin.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"sex": ["f", "m"] * 20, "weight": [1.0 + n / 10 for n in range(40)]})
    >>> method = dpmask.CalibratedWeights(columns=["weight"], step=1, margins=[["sex"]])
    >>> masked = method.fit(people, seed=7).mask(people)
    >>> masked["weight"].nunique(), [round(total, 6) for total in masked.groupby("sex")["weight"].sum()]
    (5, [58.0, 60.0])

    """

    columns: Names
    scale: float = 0.0
    step: float | None = None
    margins: SeveralLists = ()
    totals: Names = ()

    figures: ClassVar[type[Result] | None] = WeightFigures
    ranges: ClassVar[Mapping[str, ParameterRange]] = {"scale": ParameterRange(0, _MOST_NOISE)}

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        require_number(self, "scale", at_least=0, at_most=_MOST_NOISE)
        if self.step is not None:
            require_number(self, "step", above=0)
        if len(self.columns) > 1:
            raise JobError(f"{self.who}: columns must name one weight; got {len(self.columns)}. Take a step for each.")
        if not self.scale and self.step is None:
            raise JobError(f"{self.who}: give scale, for noise, or step, for rounding; or both.")
        if self.totals:
            require_columns(self, "totals")
        if isinstance(self.margins, str) or any(isinstance(one, str | Mapping) for one in self.margins):
            raise JobError(f"{self.who}: margins must be lists of columns, such as [[sex, region], [age_group]].")
        object.__setattr__(self, "margins", tuple(tuple(one) for one in self.margins))
        _ = self.strata

    @property
    def weight(self) -> str:
        """The column of weights."""
        return self.columns[0]

    @cached_property
    def strata(self) -> tuple[Strata, ...]:
        """The cells of each margin."""
        return tuple(make_strata(one, (), self.columns, f"{self.who}: margins") for one in self.margins)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns it learns from."""
        margins = (name for one in self.strata for name in one.columns)
        return tuple(dict.fromkeys([*self.columns, *margins, *self.totals]))

    @property
    def passes(self) -> int:
        """Passes over the data to fit."""
        return len(self.margins) + 5

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table, about."""
        return _SECONDS * rows * (len(self.margins) + len(self.totals))

    @property
    def kernels(self) -> KernelUse:
        """What it runs."""
        return KernelUse((Task("normals"),))

    def check(self, table: Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        require_numeric(table.masked_schema, [*self.columns, *self.totals], self.who)
        for one in self.strata:
            check_strata(one, table.masked_schema, f"{self.who}: margins")

    def fit_table(self, table: Table, key: Subkey) -> FittedWeights:
        """Learn the totals, then the multipliers that reach them."""
        margins = tuple(find_domains(table, one, self.who) for one in self.strata)
        units = WeightUnits(self, margins, key)
        blocks = table.select(list(self.reads)).with_positions()
        totals, records, largest = blocks.reduce(units.originals, _add, f"{self.who}: totals")
        asked = (records >= _FEWEST) & ~largest.sensitive(_PERCENT)
        targets = np.where(asked, totals, np.nan)[None]

        def sums_at(multipliers: Floats) -> CalibrationSums:
            add = partial(units.sums, multipliers)
            return blocks.reduce(add, CalibrationSums.plus, f"{self.who}: calibrate")

        fitted = FittedWeights(self, key, units, calibrated(sums_at, targets))
        released, moved = blocks.reduce(fitted.released, _add_released, f"{self.who}: figures")
        kept, left = int((~np.isnan(targets)).sum()), int(((records > 0) & np.isnan(targets[0])).sum())
        return replace(fitted, figures=WeightFigures(relative_gap(released, targets), moved, kept, left))


_Originals = tuple[Floats, Integers, Contributors]


def _add(left: _Originals, right: _Originals) -> _Originals:
    return left[0] + right[0], left[1] + right[1], left[2].plus(right[2])


def _add_released(left: tuple[Floats, float], right: tuple[Floats, float]) -> tuple[Floats, float]:
    return left[0] + right[0], max(left[1], right[1])


class WeightUnits(NamedTuple):
    """Records with their masked weights, and the totals that each counts in."""

    method: CalibratedWeights
    margins: tuple[Domains, ...]
    key: Subkey

    def masked(self, rows: Rows, first: int) -> Floats:
        """A block's weights with noise, rounded, and not calibrated."""
        method, weights = self.method, self.weights(rows)
        if method.scale:
            normals = record_normals(self.key.subkey("noise"), first, len(weights))
            weights = weights * exp(method.scale * normals - method.scale**2 / 2)
        if method.step is not None:
            weights = np.where(weights > 0.0, np.maximum(np.rint(weights / method.step), 1.0) * method.step, 0.0)
        return weights

    def weights(self, rows: Rows) -> Floats:
        """A block's own weights."""
        weights = floats(rows, self.method.weight)
        require_weights(weights, self.method.weight, self.method.who)
        return weights

    def shares(self, rows: Rows) -> Shares:
        """What a block's records count in: cells of margins, then columns."""
        who, everyone = self.method.who, np.arange(rows.num_rows)
        units, places, amounts, first = [everyone[:0]], [everyone[:0]], [np.empty(0)], 0
        for margin in self.margins:
            units.append(everyone)
            places.append(first + margin.of(rows, who))
            amounts.append(np.ones(rows.num_rows))
            first += len(margin)
        cells = places[1:] or [np.zeros(rows.num_rows, np.int64)]
        size = first or 1
        for name in self.method.totals:
            values = floats(rows, name)
            require_no_infinities([values], who)
            there = np.flatnonzero(~np.isnan(values) & (values != 0.0))
            for cell in cells:
                units.append(there)
                places.append(first + cell[there])
                amounts.append(values[there])
            first += size
        parts = (np.concatenate(some) for some in (units, places, amounts))
        return Shares(rows.num_rows, first, *parts)

    def originals(self, rows: Rows, position: Position) -> _Originals:
        """A block's part of each total, how many of its records count in it, and how much the largest do."""
        shares = self.shares(rows)
        amounts = self.weights(rows)[shares.unit] * shares.share
        totals = np.bincount(shares.total, amounts, shares.totals).astype(np.float64)
        records: Integers = np.bincount(shares.total, minlength=shares.totals)
        return totals, records, contributors(amounts, shares.total, shares.totals)

    def sums(self, multipliers: Floats, rows: Rows, position: Position) -> CalibrationSums:
        """A block's part of a step of the calibration."""
        return calibration_sums(self.masked(rows, position.first)[:, None], self.shares(rows), multipliers)


@dataclass(frozen=True)
class FittedWeights(FittedMethod):
    """Noise, and the multipliers that calibrate."""

    method: CalibratedWeights
    key: Subkey
    units: WeightUnits
    multipliers: Floats
    figures: WeightFigures | None = None

    @property
    def of_one_table(self) -> str:
        """The totals are those of one table."""
        return "its weights are calibrated to the totals of that table"

    def check(self, table: Table) -> None:
        """Refuse a table that cannot be masked."""
        self.method.check(table)

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block with calibrated weights."""
        weights = self.units.masked(rows, first)
        steps = steps_of(self.units.shares(rows), self.multipliers)[:, 0]
        return with_floats(rows, self.method.weight, weights * (1.0 + steps))

    def released(self, rows: Rows, position: Position) -> tuple[Floats, float]:
        """A block's part of the totals that are released, and the most that calibration moves a weight."""
        shares = self.units.shares(rows)
        weights = floats(self.mask_rows(rows, position.first), self.method.weight)
        totals = np.bincount(shares.total, weights[shares.unit] * shares.share, shares.totals).astype(np.float64)
        return totals[None], float(np.abs(steps_of(shares, self.multipliers)).max(initial=0.0))

    def statement(self) -> str:
        """What a reader of the release may know."""
        method = self.method
        noise = [f"multiplied by noise with a standard deviation of {method.scale:g}"] if method.scale else []
        rounding = [f"rounded to multiples of {method.step:g}"] if method.step is not None else []
        margins = ["weighted numbers of records by " + " x ".join(one.columns) for one in self.method.strata]
        where = f" by {' and by '.join(' x '.join(one.columns) for one in method.strata)}" if margins else ""
        kept = [*margins, *(f"weighted totals of {name}{where}" for name in method.totals)]
        calibrated = (
            f" They were then calibrated (chi-square distance): {', '.join(kept)} are those of the original weights, "
            f"but for rounding to the column's type and for totals of fewer than {_FEWEST} records or mostly of one."
        )
        return f"The weights {method.weight} were {' and '.join([*noise, *rounding])}." + (calibrated if kept else "")

    def for_analysts(self) -> list[str]:
        """Which weighted totals are exact."""
        by = "".join(f" by {' x '.join(one.columns)}" for one in self.method.strata)
        totals = f"totals of {', '.join(self.method.totals)}{by}" if self.method.totals else ""
        kept = [one for one in (f"counts{by}" if by else "", totals) if one]
        few = f", but for those of fewer than {_FEWEST} records or mostly of one"
        left = few if self.figures is not None and self.figures.totals_left else ""
        exact = f"Weighted {' and '.join(kept)} are exact{left}; others are not." if kept else ""
        noise = f"Weights carry noise of {self.method.scale:g}: weighted estimates have a larger variance."
        return [one for one in (exact, noise if self.method.scale else "") if one]

    def warnings(self) -> list[str]:
        """Totals that could not be reached."""
        if self.figures is None or self.figures.largest_move < LARGEST_STEP:
            return []
        return [
            f"{self.who}: some weights would have to move by more than half to keep the totals, the largest of which "
            f"is off by {self.figures.totals_off:.2g} of itself. Take a smaller scale or step, or larger margins."
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        names = ", ".join(self.method.totals)
        shown = [f"Weights move with the values of {names}: a later step that masks these would be undone by them."]
        return [
            "A masked weight stays near the original: an intruder who knows it may still link it. Measure the linkage.",
            *(shown if self.method.totals else ()),
            *self.warnings(),
        ]
