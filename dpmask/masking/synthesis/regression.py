"""Synthetic dependents by fuzzy c-regression: each record's values are those that its nearest model predicts.

Cano and Torra 2009, section III: c linear models of the dependents in the independents are fitted together with fuzzy
memberships (dpmask.FuzzyCRegression); a record takes the model it belongs to most and B_i' z in place of its y. With
few models little is kept and little shown, with many both. By default each dependent has models of its own, as in the
paper's tables; ``joint`` models all together, which keeps more of how they depend on each other.

Protects against: reading off exact values. Does not protect the independents, which are released as they are, and not
against linkage when there are many models: at c = 15 nearly every record of the paper's data is linked by its
dependents. Released values lie exactly on c hyperplanes, from which the models can be read off; ``residual_noise``
draws around them. A model with hardly more records than coefficients reproduces these: models nearest to fewer than
``minimum_size`` records are dissolved, and their records go to the nearest model that is left.

Passes over the data: means, two for the starts, up to 30 iterations for all sets of models together, one or two to
measure the result. Memory per task: one block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import ClassVar, NamedTuple

import numpy as np

from dpmask.clustering.design import Design, Units
from dpmask.clustering.fuzzy_c_regression import FuzzyCRegression, ModelSolution, fit_models
from dpmask.engine.collection import merge_each
from dpmask.engine.draws import Subkey
from dpmask.errors import InputError
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.regression.gram import errors_at, values_at
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.lake.reading import Rows
from dpmask.masking.movable import ParameterRange, Trial
from dpmask.masking.synthesis.values import Draws, FittedSynthesis, Synthesiser, SynthesisMethod
from dpmask.parameters import Names, require_flag, require_integer
from dpmask.table.table import Table

_FEW_MODELS = (
    "few models: each further one brings released values nearer to the originals, which the score does not show"
)
_LEAST = 10
_PER_COEFFICIENT = 2
_SECONDS, _OVERHEAD = 4e-10, 50
"""What plans count for each record, model, pass and product; see tests/benchmarks/bench_regression.py."""
_PASSES = 30
_COLUMNS = 2
"""Columns of the design for each independent: a number is one, categories are one less than there are."""


@dataclass(frozen=True, kw_only=True)
class RegressionSynthesis(SynthesisMethod["FittedRegressionSynthesis"]):
    """Synthetic dependents: what the nearest of several linear models predicts.

    Parameters
    ----------
    clusters
        How many linear models there are.
    joint
        One set of models for all dependents, not one for each.
    minimum_size
        No model is used by fewer records: by default 10, or twice a model's coefficients if that is more.
    residual_noise
        Add normal draws with the covariance of the model's own residuals.
    weight
        The column with the number of people that a record of a survey stands for; sizes are counted in records.
    bounds
        What holds for all released values, as "income >= 0".

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"age": range(20, 60), "income": [900.0 + 7 * (n % 13) for n in range(40)]})
    >>> method = dpmask.RegressionSynthesis(dependents=["income"], independents=["age"], clusters=2)
    >>> fitted = method.fit(people, seed=7)
    >>> fitted.figures.smallest >= 10
    True

    """

    dependents: Names
    independents: Names
    clusters: int
    joint: bool = False
    minimum_size: int | None = None
    residual_noise: bool = False
    weight: str | None = None
    bounds: tuple[str, ...] = ()
    nulls: str = "refuse"

    passes: ClassVar[int] = 6
    ranges: ClassVar[Mapping[str, ParameterRange]] = {
        "clusters": ParameterRange(2, whole=True, trial=Trial(_FEW_MODELS, (2, 3, 5, 8))),
        "minimum_size": ParameterRange(2, whole=True, counts="records"),
    }

    def __post_init__(self) -> None:
        self.check_parameters()
        require_integer(self, "clusters", at_least=1)
        require_flag(self, "joint")
        require_flag(self, "residual_noise")
        if self.minimum_size is not None:
            require_integer(self, "minimum_size", at_least=1)

    @property
    def kernels(self) -> KernelUse:
        """What it runs; where columns let the centres of the start fall together, sharper ones are taken."""
        start = (Task("fuzzy", 2.0), Task("memberships", 2.0), Task("starts"))
        sharper = (Task(name, m) for name in ("fuzzy", "memberships") for m in (1.5, 1.25, 1.1))
        noise = (Task("normals"),) if self.residual_noise else ()
        return KernelUse((Task("regression"), *start, *noise), (*sharper, Task("labels")))

    @property
    def draws(self) -> bool:
        """Whether residuals are drawn; else only where the search for models begins."""
        return self.residual_noise

    @property
    def groups(self) -> list[list[int]]:
        """The places of dependents that share their models."""
        places = list(range(len(self.dependents)))
        return [places] if self.joint else [[place] for place in places]

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table, about."""
        p = 1 + _COLUMNS * len(self.independents)
        products = sum(_OVERHEAD + p * (p + 2 * len(group)) for group in self.groups)
        return _SECONDS * _PASSES * rows * self.clusters * products

    def fit_table(self, table: Table, key: Subkey) -> FittedRegressionSynthesis:
        """Find the models, dissolve small ones, and measure the result."""
        design = self.design(table)
        least = self.minimum_size or max(_LEAST, _PER_COEFFICIENT * design.width)
        self._require_records(table.rows, least)
        models = FuzzyCRegression(clusters=self.clusters, nulls="drop" if self.nulls == "keep" else "refuse")
        solutions = fit_models(models, table, design, self.groups, key.subkey("models"))
        parts = [
            DependentModels(group, self._large(one, least)) for group, one in zip(self.groups, solutions, strict=True)
        ]
        if self.residual_noise:
            parts = _with_noise(table, design, parts)
        names = [tuple(self.dependents[place] for place in group) for group in self.groups]
        recipe = Models(tuple(parts), tuple(Draws(some, key.subkey("residuals")) for some in names))
        synthesised = self.synthesised(table, design, recipe, names, [len(part.models) for part in parts])
        return FittedRegressionSynthesis(self, key, *synthesised, least)

    def _require_records(self, records: int, least: int) -> None:
        if records < least:
            raise InputError(
                f"{self.who}: models of at least {least} records need as many without missing values; there are "
                f"{records}. Lower minimum_size, or take fewer independents."
            )

    def _large(self, solution: ModelSolution, least: int) -> Floats:
        """The models that enough records are nearest to. The others' records only add to these: one pass is enough."""
        self._require_records(int(solution.sizes.sum()), least)
        large = solution.sizes >= least
        if not large.any():
            large[solution.sizes.argmax()] = True
        return solution.models[large]


class DependentModels(NamedTuple):
    """The models of some dependents (their places), and what makes residuals of normal draws, if there are any."""

    group: list[int]
    models: Floats  # models x p x dependents
    factors: Floats | None = None  # models x draws x dependents

    def labels(self, units: Units) -> Integers:
        """The model of each record, the nearest by the dependents it has, the first of several."""
        y = units.y[self.group]
        labels = errors_at(units.z, y, self.models).argmin(axis=0)
        partly = np.isnan(y).any(axis=0)
        if partly.any():
            labels[partly] = _by_known(units.z[:, partly], y[:, partly], self.models)
        return labels


def _by_known(z: Floats, y: Floats, models: Floats) -> Integers:
    return np.array([np.nansum((y - model.T @ z) ** 2, axis=0) for model in models]).argmin(axis=0)


class Models(NamedTuple):
    """A recipe: the nearest model's prediction, with or without residuals of the record's own."""

    parts: tuple[DependentModels, ...]
    draws: tuple[Draws, ...]

    def labels(self, units: Units) -> list[Integers]:
        """The model of each record, for each group of dependents."""
        return [part.labels(units) for part in self.parts]

    def values(self, units: Units, first: int | None) -> Floats:
        """What the nearest models predict, dependents x rows in units of the regression, with residuals if drawn."""
        values: Floats = np.empty(units.y.shape)
        for part, draws in zip(self.parts, self.draws, strict=True):
            labels = part.labels(units)
            values[part.group] = values_at(units.z, part.models, labels)
            if part.factors is not None and first is not None:
                values[part.group] += values_at(draws.at(first, units.z.shape[1]), part.factors, labels)
        return values


class _Residuals(NamedTuple):
    """One block's share of the models' residual covariances."""

    products: Floats  # models x dependents x dependents: sum_k w_k r_k r_k'
    weights: Floats  # models
    sizes: Integers  # models

    def plus(self, other: _Residuals) -> _Residuals:
        return _Residuals._make(map(add, self, other))

    def roots(self, coefficients: int) -> Floats:
        """R with R'R the covariance, for each model; residuals may be of any rank."""
        degrees = np.maximum(self.sizes - coefficients, 1)
        scale = self.sizes / (degrees * np.where(self.weights > 0.0, self.weights, 1.0))
        values, vectors = np.linalg.eigh(self.products * scale[:, None, None])
        return np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1)


def _with_noise(table: Table, design: Design, parts: Sequence[DependentModels]) -> list[DependentModels]:
    """The parts with the roots of their models' residual covariances, from one pass."""
    rows, label = table.select(design.all_columns), f"{design.who}: residuals"
    found = rows.reduce(partial(_residuals, design, parts), partial(merge_each, _Residuals.plus), label)
    return [part._replace(factors=one.roots(design.width)) for part, one in zip(parts, found, strict=True)]


def _residuals(design: Design, parts: Sequence[DependentModels], rows: Rows) -> list[_Residuals]:
    units = design.complete(rows)
    return [_part_residuals(part, units) for part in parts]


def _part_residuals(part: DependentModels, units: Units) -> _Residuals:
    labels = part.labels(units)
    rest = units.y[part.group] - values_at(units.z, part.models, labels)
    weights = np.ones(len(labels)) if units.weights is None else units.weights
    own = [(rest[:, labels == number], weights[labels == number]) for number in range(len(part.models))]
    products = np.array([(one[:, None] * one[None] * weight).sum(axis=2) for one, weight in own])
    sizes = np.bincount(labels[units.counted], minlength=len(part.models))
    return _Residuals(products, np.array([weight.sum() for _, weight in own]), sizes)


def _used(synthesiser: Synthesiser, rows: Rows) -> list[Integers]:
    """How many of a block's records use each model, for each group of dependents."""
    recipe = synthesiser.recipe
    assert isinstance(recipe, Models)
    units = synthesiser.design.units(rows)
    labels = recipe.labels(units.of(units.counted))
    return [np.bincount(one, minlength=len(part.models)) for one, part in zip(labels, recipe.parts, strict=True)]


@dataclass(frozen=True)
class FittedRegressionSynthesis(FittedSynthesis):
    """Models ready to replace the dependents and, on the table they were fitted to, what they came to."""

    method: RegressionSynthesis
    minimum_size: int

    def require_promises(self, table: Table) -> None:
        """Count the records of each model again, too: one that fewer use shows them."""
        super().require_promises(table)
        counts = table.select(self.inputs).reduce(
            partial(_used, self.synthesiser), partial(merge_each, np.add), f"{self.who}: models"
        )
        few = [one for part in counts for one in part if 0 < one < self.minimum_size]
        if few:
            raise InputError(
                f"{self.who}: {len(few)} models would be used by fewer than {self.minimum_size} of {table.rows:,} "
                "records. Fit to this table."
            )

    def statement(self) -> str:
        """What a reader of the release may know."""
        method = self.method
        sets = "for all of them together" if method.joint else "for each of them"
        noise = ", and a normal draw with the covariance of the model's residuals" if method.residual_noise else ""
        spread = "" if method.residual_noise else " Variances are smaller than those of the originals."
        return (
            f"The values of {', '.join(method.dependents)} are synthetic: each record has the value that one of "
            f"{method.clusters} linear models of {', '.join(method.independents)} predicts{noise} (fuzzy c-regression, "
            f"Cano and Torra 2009; models {sets}; no model has fewer than {self.minimum_size} records). Means and the "
            f"relations that the models hold are nearly kept.{spread}{self._finishing()}"
        )

    def for_analysts(self) -> list[str]:
        """What models keep, and what is made up."""
        method = self.method
        names, given = ", ".join(method.dependents), ", ".join(method.independents)
        spread = (
            "Variances are nearly those of the originals"
            if method.residual_noise
            else "Variances are too small, and R^2 and correlations with the independents too large"
        )
        return [
            f"{names} are synthetic. Totals and means, and relations to {given} that {method.clusters} linear models "
            f"show, are nearly those of the originals, and none is exact. {spread}; relations to other columns, tails "
            "and single values are not those of the data, and tests are too sure: they take drawn values for observed."
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        planes = (
            f"Up to {self.figures.on_planes:.1%} of a column's values equal their model's prediction: its coefficients "
            "can be read off such a hyperplane. residual_noise draws around it; residual_linkage measures who is found."
        )
        dissolved = sum(group.dissolved for group in self.figures.models)
        return [
            "Independents are released as they are, unless another step masks them.",
            "Many models keep each record near its original: an intruder who knows its dependents links it.",
            planes,
            f"{dissolved} models were nearest to fewer than {self.minimum_size} records and were dissolved; the "
            f"smallest that is left has {self.figures.smallest}.",
            *self.warnings(),
        ]
