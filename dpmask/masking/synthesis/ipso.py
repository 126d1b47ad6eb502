"""IPSO: synthetic dependents that keep what a multivariate regression sees, exactly or in part (Burridge 2003).

With Z = (1, X), least squares Bhat and residuals r, as in Cano and Torra 2009, section II.A:

* A: y' = Z Bhat. Keeps Bhat and loses the residual covariance: values lie on one hyperplane.
* B: y' = Z Bhat + r~, r~ the residuals on Z of draws y~ ~ N(0, r'r / (n - p)). Keeps Bhat.
* C: y' = Z Bhat + r~ L0^-T L', with L L' = r'r and L0 L0' = r~'r~. Keeps Bhat and the residual covariance exactly.

Protects against: reading off exact values; in B and C a record's own residual has no influence on its value but through
the sums. Does not protect the independents, which are released as they are, nor dependents that these predict well.

Every record draws for itself, and the draws are made again when it is masked: none is ever collected. Designs may be
singular. Passes over the data: means, two of Gram matrices (the second one of residuals, which makes the coefficients
good to the last digits), one to look at the result. Memory per task: one block and its draws.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.design import Design, Units, make_design
from dpmask.engine.draws import Subkey, make_key, record_normals
from dpmask.engine.passes import Span
from dpmask.errors import InputError
from dpmask.kernels.regression.gram import gram_of, values_at
from dpmask.kernels.regression.least_squares import inverted, lower_root
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
from dpmask.parameters import require_choice
from dpmask.table import table as tables

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_WHO = "IPSO"
_SAID = {
    "A": "the values that a linear regression on {inputs} predicts: a refit gives the same coefficients, and no "
    "residuals",
    "B": "the values that a linear regression on {inputs} predicts and drawn residuals: a refit gives the same "
    "coefficients, and nearly the same covariance of residuals",
    "C": "the values that a linear regression on {inputs} predicts and drawn residuals: a refit gives the same "
    "coefficients and the same covariance of residuals",
}


@dataclass(frozen=True, kw_only=True)
class IPSO:
    """Parameters: the ``variant``, the ``dependents`` that are replaced, the ``independents``, numbers or categories.

    ``weight``: the column that says how many people a record of a survey stands for; what is kept is then what a
    weighted regression sees. ``bounds``, as in "income >= 0", hold for all released values, and what is kept then holds
    nearly. ``nulls``: "refuse", or "keep" what is missing missing; where an independent is, the dependents are missing,
    too.
    """

    variant: str
    dependents: tuple[str, ...]
    independents: tuple[str, ...]
    weight: str | None = None
    bounds: tuple[str, ...] = ()
    nulls: str = "refuse"

    passes: ClassVar[int] = 4
    judged: ClassVar[tuple[str, ...]] = SynthesisFigures.judged

    def __post_init__(self) -> None:
        require_choice(self, "variant", tuple(_SAID))
        check_parameters(self)

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks."""
        return self.dependents

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table: none to speak of."""
        return 0.0

    def check(self, table: tables.Table) -> None:
        """Refuse a table whose schema does not fit, before anything is read."""
        check_table(self, table)

    def fit(self, table: Any, *, key: str | bytes | Subkey | None = None, seed: int | None = None) -> FittedIPSO:
        """Find the regression of the table, and that of the draws."""
        source = tables.as_table(table, _WHO)
        secret = make_key(_WHO, key=key, seed=seed)
        self.check(source)
        keep = self.nulls == "keep"
        design = make_design(source, self.dependents, self.independents, _WHO, weight=self.weight, drop=keep)
        own = secret.subkey(f"ipso {purpose(self, source, design)}")
        draws = Draws(self.dependents if self.variant != "A" else (), own.subkey("residuals"))
        recipe = self._recipe(regress(source, design, draws), draws)
        release = Release(design, make_outputs(source.masked_schema, self.dependents, self.bounds), recipe)
        seen = look(source, release, [1])
        figures = make_figures(seen, [self.dependents], self.dependents, [0], design.width)
        fitted = FittedIPSO(self, own, release, figures)
        for warning in fitted.warnings():
            warnings.warn(warning, stacklevel=2)
        return fitted

    def _recipe(self, found: Regression, draws: Draws) -> Obfuscation:
        t = len(self.dependents)
        if found.degrees < t:
            raise InputError(
                f"{_WHO}: {found.rank} coefficients and {t} dependents need {found.rank + t} records without missing "
                f"values; there are {found.degrees + found.rank}."
            )
        root = lower_root(found.products[:t, :t])
        if self.variant == "B":
            mixing = root.T / np.sqrt(found.degrees)
        elif self.variant == "C":
            mixing = np.linalg.solve(lower_root(found.products[t:, t:]).T, root.T)
        else:
            mixing = np.empty((0, t))
        return Obfuscation(found.coefficients[:, :t], found.coefficients[:, t:], mixing, draws)


class Draws(NamedTuple):
    """Standard normal draws of each record, one for each name; no names, no draws."""

    names: tuple[str, ...]
    key: Subkey

    def at(self, first: int, count: int) -> Floats:
        """Names x rows for the records from position ``first`` on."""
        draws = [record_normals(self.key.subkey(name), first, count) for name in self.names]
        return np.array(draws).reshape(len(self.names), count)


class Regression(NamedTuple):
    """Dependents, then draws, on Z: what least squares gives for all of them together."""

    coefficients: Floats  # p x (dependents + draws)
    products: Floats  # of the residuals, (dependents + draws) squared, by weights whose mean is 1
    rank: int
    degrees: int  # records without missing values that weigh something, less the rank


class Gram(NamedTuple):
    """One block's share of a regression."""

    products: Floats  # of (z, residuals), weighted
    records: int

    def plus(self, other: Gram) -> Gram:
        """Both parts together."""
        return Gram(self.products + other.products, self.records + other.records)


def regress(table: tables.Table, design: Design, draws: Draws) -> Regression:
    """Least squares by two passes of Gram matrices: the second one corrects what rounding left in the first."""
    p = design.width
    total = len(design.dependents) + len(draws.names)
    coefficients, products, rank, records = np.zeros((p, total)), np.empty((total, total)), 0, 0
    for number in (1, 2):
        task = partial(_gram, design, draws, coefficients)
        gram, records = table.reduce_rows(design.all_columns, task, Gram.plus, f"{_WHO}: regression {number}")
        inverse, rank = inverted(gram[:p, :p])
        correction = inverse @ gram[:p, p:]
        coefficients = coefficients + correction
        products = (gram[p:, p:] - gram[p:, :p] @ correction) * (records / gram[0, 0] if records else 1.0)
    return Regression(coefficients, products, rank, records - rank)


def _gram(design: Design, draws: Draws, coefficients: Floats, rows: Rows, span: Span) -> Gram:
    """The Gram matrix of z and of the residuals of (y, draws), of the records that miss no value."""
    units = design.weighted(rows, span)
    both = units._replace(y=np.concatenate([units.y, draws.at(span.first, units.y.shape[1])]))
    both = both.of(units.counted)
    block = np.concatenate([both.z, both.y - _linear(both.z, coefficients)])
    return Gram(gram_of(block, both.weights), both.z.shape[1])


def _linear(z: Floats, coefficients: Floats) -> Floats:
    """B' z for every record."""
    return values_at(z, coefficients[None], np.zeros(z.shape[1], np.int64))


class Obfuscation(NamedTuple):
    """A recipe: the prediction, and the draws' own residuals, mixed to the wanted covariance."""

    coefficients: Floats  # p x dependents
    of_draws: Floats  # p x draws
    mixing: Floats  # draws x dependents
    draws: Draws

    def labels(self, units: Units) -> list[Integers]:
        """One model for all."""
        return [np.zeros(units.z.shape[1], np.int64)]

    def predicted(self, units: Units) -> Floats:
        """What the regression says, dependents x rows in its units."""
        return _linear(units.z, self.coefficients)

    def values(self, units: Units, first: int) -> Floats:
        """The same, with residuals where they are drawn."""
        rest = self.draws.at(first, units.z.shape[1]) - _linear(units.z, self.of_draws)
        return self.predicted(units) + _linear(rest, self.mixing)


@dataclass(frozen=True)
class FittedIPSO(Synthetic):
    """A regression ready to replace the dependents."""

    who: ClassVar[str] = _WHO

    @property
    def coefficients(self) -> Floats:
        """Terms x dependents in original units, the constant first."""
        return self.release.design.coefficients(self.release.recipe.coefficients)  # type: ignore[attr-defined]

    def statement(self) -> str:
        """What a reader of the release may know."""
        said = _SAID[self.method.variant].format(inputs=", ".join(self.method.independents))
        return (
            f"The values of {', '.join(self.method.dependents)} are synthetic (IPSO-{self.method.variant}, Burridge "
            f"2003): {said}, but for rounding. What that regression does not say of the data is not in these values."
            f"{self._finishing()}"
        )

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            "Independents are released as they are, unless another step masks them.",
            f"Up to {self.figures.on_planes:.1%} of a column's values lie on one hyperplane over the independents: the "
            "coefficients can be read off them.",
            "Dependents that the independents predict well stay near their originals. Measure the linkage.",
            "Drawn residuals are normal: values may lie where real ones cannot; bounds hold them.",
            *self.warnings(),
        ]
