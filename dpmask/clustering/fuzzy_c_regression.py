"""Fuzzy c-regression over Dask: c linear models of the same variables, and how much each record belongs to each.

Every record has an error E_ik under every model B_i and belongs to it by u_ik, the larger the smaller its error; every
model is the least-squares fit with weights u_ik^m. Both steps lower the same objective, E_m = sum u_ik^m E_ik, so it
never rises. Independents are standardised and dependents divided by their standard deviation; designs may be singular.

Paper: Hathaway and Bezdek 1993, as used by Cano and Torra 2009 (section II.C), whose start (fuzzy c-means with m = 2 on
independents and dependents together) and stop (30 iterations, or no membership changes by 1e-4) are the defaults.
Passes over the data: one for the means, two for the start, then one for each iteration. Memory per task: one block;
blocks stay in memory between passes where they fit. Memberships are never stored: a pass computes them from the models.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmask.clustering.base import Clustering, FittedClustering
from dpmask.clustering.design import Design, Units, check_weight, make_design
from dpmask.clustering.regression_start import Start, find_starts
from dpmask.engine import progress
from dpmask.engine.collection import Collection, merge_each
from dpmask.engine.draws import Subkey
from dpmask.errors import JobError
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.regression.gram import ModelSums, errors_at, model_sums, shares_at
from dpmask.kernels.regression.least_squares import solve_models
from dpmask.lake.reading import Rows
from dpmask.parameters import require_choice, require_integer, require_number
from dpmask.table import table as tables
from dpmask.table.encoders.one_hot import require_predictors

_WHO = "FuzzyCRegression"


@dataclass(frozen=True, kw_only=True)
class FuzzyCRegression(Clustering):
    """Fuzzy c-regression: several linear models of the same variables, and memberships of records in each.

    Parameters
    ----------
    clusters
        How many models.
    fuzziness
        The paper's m, above 1.
    max_passes
        The most iterations, each a pass over the data.
    change
        It ends when no membership changes by this much any more.
    nulls
        "refuse", or "drop" records with a missing value.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"hours": [1.0, 2.0, 3.0, 4.0], "net": [3.0, 5.0, 7.0, 9.0]})
    >>> fitted = dpmask.FuzzyCRegression(clusters=1).fit(people, dependents=["net"], independents=["hours"])
    >>> fitted.coefficients[0, :, 0].round(6).tolist()
    [1.0, 2.0]
    """

    clusters: int
    fuzziness: float = 1.5
    max_passes: int = 30
    change: float = 1e-4
    nulls: str = "refuse"

    def __post_init__(self) -> None:
        require_integer(self, "clusters", at_least=1)
        require_integer(self, "max_passes", at_least=1)
        require_number(self, "fuzziness", above=1, at_most=10)
        require_number(self, "change", above=0)
        require_choice(self, "nulls", ("refuse", "drop"))

    def fit(
        self,
        table: tables.Frame,
        *,
        dependents: Sequence[str],
        independents: Sequence[str],
        weight: str | None = None,
        key: str | bytes | Subkey | None = None,
        seed: int | None = None,
    ) -> FittedFuzzyCRegression:
        """Find the models of all dependents together.

        Parameters
        ----------
        table
            A pandas or Dask DataFrame, or a lake.
        dependents
            The numeric columns that the models predict.
        independents
            The columns they predict them from: numbers and categories.
        weight
            A column of weights: a record with weight 3 counts as three.
        key, seed
            What the start is drawn by; seed 0 by default.
        """
        subkey = self.subkey("fuzzy c-regression", key, seed)
        _check_columns(dependents, independents)
        check_weight(weight, [*dependents, *independents], _WHO)
        source = tables.as_table(table, _WHO)
        design = make_design(source, dependents, independents, _WHO, weight=weight, drop=self.nulls == "drop")
        (solution,) = fit_models(self, source, design, [range(len(design.dependents))], subkey)
        if not solution.converged:
            warnings.warn(
                f"{_WHO}: after {solution.passes} iterations memberships still change by {self.change:g} or more. "
                "Raise max_passes to go on.",
                stacklevel=2,
            )
        return FittedFuzzyCRegression(self, design, solution)


def _check_columns(dependents: Sequence[str], independents: Sequence[str]) -> None:
    for name, columns in (("dependents", dependents), ("independents", independents)):
        if isinstance(columns, str) or not columns:
            raise JobError(f"{_WHO}: {name} must be a list of one or more columns; got {columns!r}.")
    both = [*dependents, *independents]
    twice = sorted({name for name in both if both.count(name) > 1})
    if twice:
        raise JobError(f"{_WHO}: {', '.join(twice)} must stand once, in dependents or in independents.")


class Pass(NamedTuple):
    """One line of a history: the objective at the models of an iteration, and whether memberships still changed."""

    number: int
    objective: float
    moved: bool


class ModelSolution(NamedTuple):
    """The models of some dependents in units of the regression, and how they came about."""

    models: Floats  # clusters x p x dependents
    sizes: Integers  # records nearest to each
    history: tuple[Pass, ...]

    @property
    def objective(self) -> float:
        """E_m, in units of the regression."""
        return self.history[-1].objective

    @property
    def converged(self) -> bool:
        """Whether memberships came to rest."""
        return not self.history[-1].moved

    @property
    def passes(self) -> int:
        """Iterations."""
        return len(self.history)


class _Models(NamedTuple):
    """The models that a pass evaluates, and those before them."""

    models: Floats
    before: Floats | None
    change: float

    def sums(self, units: Units, fuzziness: float) -> ModelSums:
        return model_sums(units.z, units.y, self.models, fuzziness, self.before, self.change, units.weights)


ModelTask = tuple[list[int], Start | _Models]
"""The dependents of a group, and what their memberships come from."""


def fit_models(
    method: FuzzyCRegression, source: tables.Table, design: Design, groups: Sequence[Sequence[int]], key: Subkey
) -> list[ModelSolution]:
    """Models of each group of dependents (their places), all groups in the same passes over the data."""
    places = [list(group) for group in groups]
    starts = find_starts(method.clusters, source, design, places, key)
    size = 8 * source.rows * (1 + design.width + len(design.dependents))
    units = source.select(design.all_columns).persist(design.complete, f"{design.who}: persist", size=size)
    sums = _pass(method.fuzziness, units, list(zip(places, starts, strict=True)))
    loops = [_Loop(group, solve_models(one.gram, one.cross)) for group, one in zip(places, sums, strict=True)]
    while waiting := [loop for loop in loops if not loop.done]:
        sums = _pass(method.fuzziness, units, [loop.task(method.change) for loop in waiting])
        for loop, one in zip(waiting, sums, strict=True):
            loop.take(one, method.max_passes)
        _report(waiting)
    return [ModelSolution(loop.models, loop.sizes, tuple(loop.history)) for loop in loops]


class _Loop:
    """One group's way to its models."""

    def __init__(self, group: list[int], models: Floats) -> None:
        self.group, self.models = group, models
        self.before: Floats | None = None
        self.history: list[Pass] = []
        self.done = False

    def task(self, change: float) -> ModelTask:
        return self.group, _Models(self.models, self.before, change)

    def take(self, sums: ModelSums, most: int) -> None:
        """Note what a pass found at the models; go on to the next ones unless they are the last."""
        self.sizes = sums.sizes
        self.history.append(Pass(len(self.history) + 1, sums.objective, sums.moved))
        self.done = not sums.moved or len(self.history) == most
        if not self.done:
            self.before, self.models = self.models, solve_models(sums.gram, sums.cross, self.models)


def _report(loops: Sequence[_Loop]) -> None:
    number, objective = loops[0].history[-1].number, sum(loop.history[-1].objective for loop in loops)
    progress.step(f"fuzzy c-regression: pass {number}, {len(loops)} under way, objective {objective:.8g}")


def _pass(fuzziness: float, units: Collection[Units], tasks: list[ModelTask]) -> list[ModelSums]:
    return units.reduce(
        partial(_block_sums, fuzziness, tasks), partial(merge_each, ModelSums.plus), "fuzzy c-regression"
    )


def _block_sums(fuzziness: float, tasks: list[ModelTask], units: Units) -> list[ModelSums]:
    return [memberships_from.sums(units._replace(y=units.y[group]), fuzziness) for group, memberships_from in tasks]


@dataclass(frozen=True, repr=False)
class FittedFuzzyCRegression(FittedClustering):
    """The models, and how they were found."""

    method: FuzzyCRegression
    design: Design
    solution: ModelSolution

    @property
    def clusters(self) -> int:
        """How many models there are."""
        return len(self.solution.models)

    @property
    def columns(self) -> tuple[str, ...]:
        """Independents and dependents."""
        return self.design.columns

    @property
    def terms(self) -> tuple[str, ...]:
        """What the coefficients belong to: the constant, then the independents, categories by level."""
        return ("1", *self.design.predictors.names)

    @property
    def coefficients(self) -> Floats:
        """Clusters x terms x dependents, in original units."""
        return self.design.coefficients(self.solution.models)

    @property
    def history(self) -> tuple[Pass, ...]:
        """The objective of every iteration."""
        return self.solution.history

    @property
    def sizes(self) -> Integers:
        """How many records are nearest to each model: people, not weights; one that weighs nothing shapes none."""
        return self.solution.sizes

    def memberships(self, table: tables.Frame) -> tables.Frame:
        """How much each record belongs to each model: a frame of the same kind and index, computed when asked for.

        A record with a missing value has none.
        """
        return self._derived(table, self._memberships)

    def _memberships(self, rows: Rows) -> dict[str, Any]:
        units = self.design.units(rows)
        shares = shares_at(units.z, units.y, self.solution.models, self.method.fuzziness)
        shares[:, ~units.whole] = np.nan
        return {f"cluster_{number}": line for number, line in enumerate(shares)}

    def of(self, rows: Rows) -> Integers:
        """The model that each record of a block belongs to most; -1 for a record with a missing value."""
        units = self.design.units(rows)
        nearest = errors_at(units.z, units.y, self.solution.models).argmin(axis=0)
        return np.where(~units.whole, -1, nearest)

    def _require(self, schema: Any, columns: Sequence[str], who: str) -> None:
        require_predictors(schema, columns, who)
