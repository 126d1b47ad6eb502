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

Passes over the data: means, two for the starts, up to 30 iterations for all sets of models together, one or two to look
at the result. Memory per task: one block.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.design import Design, Units, make_design
from dpmask.clustering.fuzzy_c_regression import FuzzyCRegression, ModelSolution, fit_models
from dpmask.engine.draws import Subkey, make_key, record_normals
from dpmask.engine.passes import Span
from dpmask.errors import InputError
from dpmask.kernels.regression.gram import errors_at, values_at
from dpmask.lake.reading import Rows
from dpmask.masking.synthesis.figures import SynthesisFigures, make_figures
from dpmask.masking.synthesis.values import (
    Release,
    Synthetic,
    check_parameters,
    check_table,
    look,
    make_outputs,
    purpose,
)
from dpmask.parameters import require_flag, require_integer
from dpmask.table import table as tables

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_WHO = "RegressionSynthesis"
_LEAST = 10
_PER_COEFFICIENT = 2
_SECONDS, _OVERHEAD = 1e-10, 100
"""What plans count for each record, model, pass and product; see tests/benchmarks/bench_regression.py."""
_PASSES = 30


@dataclass(frozen=True, kw_only=True)
class RegressionSynthesis:
    """Parameters of the synthesis.

    ``dependents`` are replaced by what ``clusters`` linear models predict from ``independents``, numbers or categories.
    ``joint``: one set of models for all dependents, not one for each. ``minimum_size``: no model is used by fewer
    records; without it 10, or twice the coefficients of a model if that is more. ``residual_noise`` adds normal draws
    with the covariance of the model's own residuals. ``weight``: the column that says how many people a record of a
    survey stands for; it weighs in all models, but sizes are counted in records. ``bounds``, as in "income >= 0", hold
    for all released values. ``nulls``: "refuse", or "keep" what is missing missing; where an independent is, the
    dependents are missing, too.
    """

    dependents: tuple[str, ...]
    independents: tuple[str, ...]
    clusters: int
    joint: bool = False
    minimum_size: int | None = None
    residual_noise: bool = False
    weight: str | None = None
    bounds: tuple[str, ...] = ()
    nulls: str = "refuse"

    passes: ClassVar[int] = 6
    judged: ClassVar[tuple[str, ...]] = SynthesisFigures.judged

    def __post_init__(self) -> None:
        check_parameters(self)
        require_integer(self, "clusters", at_least=1)
        require_flag(self, "joint")
        require_flag(self, "residual_noise")
        if self.minimum_size is not None:
            require_integer(self, "minimum_size", at_least=1)

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks."""
        return self.dependents

    @property
    def groups(self) -> list[list[int]]:
        """The places of dependents that share their models."""
        places = list(range(len(self.dependents)))
        return [places] if self.joint else [[place] for place in places]

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table, about."""
        p = 1 + len(self.independents)
        products = sum(_OVERHEAD + p * (p + 2 * len(group)) for group in self.groups)
        return _SECONDS * _PASSES * rows * self.clusters * products

    def check(self, table: tables.Table) -> None:
        """Refuse a table whose schema does not fit, before anything is read."""
        check_table(self, table)

    def fit(
        self, table: Any, *, key: str | bytes | Subkey | None = None, seed: int | None = None
    ) -> FittedRegressionSynthesis:
        """Find the models, dissolve small ones, and look at the result."""
        source = tables.as_table(table, _WHO)
        secret = make_key(_WHO, key=key, seed=seed)
        self.check(source)
        keep = self.nulls == "keep"
        design = make_design(source, self.dependents, self.independents, _WHO, weight=self.weight, drop=keep)
        own = secret.subkey(f"regression synthesis {purpose(self, source, design)}")
        models = FuzzyCRegression(clusters=self.clusters, nulls="drop" if keep else "refuse")
        solutions = fit_models(models, source, design, self.groups, own.subkey("models"))
        least = self.minimum_size or max(_LEAST, _PER_COEFFICIENT * design.width)
        parts = [Part(group, _large(one, least)) for group, one in zip(self.groups, solutions, strict=True)]
        if self.residual_noise:
            parts = _with_noise(source, design, parts)
        release = Release(
            design,
            make_outputs(source.masked_schema, self.dependents, self.bounds),
            Models(tuple(parts), self.dependents, own.subkey("residuals")),
        )
        fitted = FittedRegressionSynthesis(self, own, release, self._figures(source, release, parts), least)
        for warning in fitted.warnings():
            warnings.warn(warning, stacklevel=2)
        return fitted

    def _figures(self, source: tables.Table, release: Release, parts: Sequence[Part]) -> SynthesisFigures:
        left = [len(part.models) for part in parts]
        seen = look(source, release, left)
        names = [[self.dependents[place] for place in group] for group in self.groups]
        gone = [self.clusters - count for count in left]
        return make_figures(seen, names, self.dependents, gone, release.design.width)


def _large(solution: ModelSolution, least: int) -> Floats:
    """The models that enough records are nearest to. The others' records only add to these: one look is enough."""
    if solution.sizes.sum() < least:
        raise InputError(
            f"{_WHO}: models of at least {least} records need as many without missing values; there are "
            f"{solution.sizes.sum()}. Lower minimum_size, or take fewer independents."
        )
    large = solution.sizes >= least
    if not large.any():
        large[solution.sizes.argmax()] = True
    return solution.models[large]


class Part(NamedTuple):
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

    parts: tuple[Part, ...]
    dependents: tuple[str, ...]
    key: Subkey

    def labels(self, units: Units) -> list[Integers]:
        """The model of each record, for each group of dependents."""
        return [part.labels(units) for part in self.parts]

    def predicted(self, units: Units) -> Floats:
        """What the nearest models say, dependents x rows in units of the regression."""
        return self._made(units, None)

    def values(self, units: Units, first: int) -> Floats:
        """The same, with residuals where they are drawn."""
        return self._made(units, first)

    def _made(self, units: Units, first: int | None) -> Floats:
        values: Floats = np.empty(units.y.shape)
        for part in self.parts:
            labels = part.labels(units)
            values[part.group] = values_at(units.z, part.models, labels)
            if part.factors is not None and first is not None:
                values[part.group] += values_at(self._draws(part, first, units.z.shape[1]), part.factors, labels)
        return values

    def _draws(self, part: Part, first: int, count: int) -> Floats:
        names = [self.dependents[place] for place in part.group]
        return np.array([record_normals(self.key.subkey(name), first, count) for name in names])


class _Residuals(NamedTuple):
    """One block's share of the models' residual covariances."""

    products: Floats  # models x dependents x dependents: sum_k w_k r_k r_k'
    weights: Floats  # models
    sizes: Integers  # models

    def plus(self, other: _Residuals) -> _Residuals:
        return _Residuals(self.products + other.products, self.weights + other.weights, self.sizes + other.sizes)

    def roots(self, coefficients: int) -> Floats:
        """R with R'R the covariance, for each model; residuals may be of any rank."""
        degrees = np.maximum(self.sizes - coefficients, 1)
        scale = self.sizes / (degrees * np.where(self.weights > 0.0, self.weights, 1.0))
        values, vectors = np.linalg.eigh(self.products * scale[:, None, None])
        roots: Floats = np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1)
        return roots


def _with_noise(source: tables.Table, design: Design, parts: Sequence[Part]) -> list[Part]:
    """The parts with the roots of their models' residual covariances, from one pass."""
    found = source.reduce_rows(design.all_columns, partial(_residuals, design, parts), _plus, f"{_WHO}: residuals")
    return [part._replace(factors=one.roots(design.width)) for part, one in zip(parts, found, strict=True)]


def _residuals(design: Design, parts: Sequence[Part], rows: Rows, span: Span) -> list[_Residuals]:
    units = design.complete(rows, span)
    return [_part_residuals(part, units) for part in parts]


def _part_residuals(part: Part, units: Units) -> _Residuals:
    labels = part.labels(units)
    rest = units.y[part.group] - values_at(units.z, part.models, labels)
    weights = np.ones(len(labels)) if units.weights is None else units.weights
    own = [(rest[:, labels == number], weights[labels == number]) for number in range(len(part.models))]
    products = np.array([(one[:, None] * one[None] * weight).sum(axis=2) for one, weight in own])
    sizes = np.bincount(labels[units.counted], minlength=len(part.models))
    return _Residuals(products, np.array([weight.sum() for _, weight in own]), sizes)


def _plus(left: list[_Residuals], right: list[_Residuals]) -> list[_Residuals]:
    return [one.plus(two) for one, two in zip(left, right, strict=True)]


@dataclass(frozen=True)
class FittedRegressionSynthesis(Synthetic):
    """Models ready to replace the dependents and, on the table they were fitted to, what they came to."""

    minimum_size: int

    who: ClassVar[str] = _WHO

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

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        planes = (
            f"Up to {self.figures.on_planes:.1%} of a column's values are just what their model says: its coefficients "
            "can be read off such a hyperplane. residual_noise draws around it."
        )
        dissolved = sum(group.dissolved for group in self.figures.groups)
        return [
            "Independents are released as they are, unless another step masks them.",
            "Many models keep each record near its original: who knows its dependents links it. Measure the linkage.",
            planes,
            f"{dissolved} models were nearest to fewer than {self.minimum_size} records and were dissolved; the "
            f"smallest that is left has {self.figures.smallest}.",
            *self.warnings(),
        ]
