"""IPSO: synthetic dependents that keep what a multivariate regression finds, exactly or in part (Burridge 2003).

With Z = (1, X), least squares Bhat and residuals r, as in Cano and Torra 2009, section II.A:

* A: y' = Z Bhat. Keeps Bhat and loses the residual covariance: values lie on one hyperplane.
* B: y' = Z Bhat + r~, r~ the residuals on Z of draws y~ ~ N(0, r'r / (n - p)). Keeps Bhat.
* C: y' = Z Bhat + r~ L0^-T L', with L L' = r'r and L0 L0' = r~'r~. Keeps Bhat and the residual covariance exactly.

Protects against: reading off exact values; in B and C a record's own residual has no influence on its value but through
the sums. Does not protect the independents, which are released as they are, nor dependents that these predict well.

Every record draws for itself, and the draws are made again when it is masked: none is ever collected. Designs may be
singular. Passes over the data: means, two of Gram matrices (the second one of residuals, which makes the coefficients
good to the last digits), one to measure the result. Memory per task: one block and its draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpmask.clustering.design import Design, Units
from dpmask.engine.draws import Subkey
from dpmask.engine.tasks import Position
from dpmask.errors import InputError
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.regression.gram import gram_of, values_at
from dpmask.kernels.regression.least_squares import inverted, lower_root
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.lake.reading import Rows
from dpmask.masking.movable import Movable, ParameterRange, Trial
from dpmask.masking.synthesis.values import Draws, FittedSynthesis, SynthesisMethod
from dpmask.parameters import Names, require_choice
from dpmask.table.table import Table

_BEST = "C keeps the regression exactly and loses least; any of them is linked unless the independents are masked"
_DESCRIPTIONS = {
    "A": "the values that a linear regression on {inputs} predicts: a refit gives the same coefficients, and no "
    "residuals",
    "B": "the values that a linear regression on {inputs} predicts and drawn residuals: a refit gives the same "
    "coefficients, and nearly the same covariance of residuals",
    "C": "the values that a linear regression on {inputs} predicts and drawn residuals: a refit gives the same "
    "coefficients and the same covariance of residuals",
}


@dataclass(frozen=True, kw_only=True)
class IPSO(SynthesisMethod["FittedIPSO"]):
    """Synthetic dependents that keep what a multivariate regression finds, exactly or in part (Burridge 2003).

    Parameters
    ----------
    variant
        "A": predictions alone; "B": with drawn residuals; "C": with residuals of exactly the same covariance.
    weight
        The column with the number of people that a record of a survey stands for; a weighted regression is kept.
    bounds
        What holds for all released values, as "income >= 0"; the regression is then kept nearly.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"age": [20.0, 30, 40, 50, 60], "income": [1.0, 3, 2, 5, 4]})
    >>> method = dpmask.IPSO(variant="C", dependents=["income"], independents=["age"])
    >>> masked = method.fit(people, seed=7).mask(people)
    >>> round(float(masked["income"].mean()), 6)
    3.0

    """

    variant: str
    dependents: Names
    independents: Names
    weight: str | None = None
    bounds: tuple[str, ...] = ()
    nulls: str = "refuse"

    passes: ClassVar[int] = 4

    def movable(self, given: Mapping[str, Any]) -> Iterator[Movable]:
        """Its variant."""
        variants = tuple(_DESCRIPTIONS)
        yield Movable(("variant",), "variant", self.variant, ParameterRange(trial=Trial(_BEST, variants)), variants)

    def __post_init__(self) -> None:
        require_choice(self, "variant", tuple(_DESCRIPTIONS))
        self.check_parameters()

    @property
    def kernels(self) -> KernelUse:
        """What it runs."""
        return KernelUse((Task("regression"), Task("normals")))

    def fit_table(self, table: Table, key: Subkey) -> FittedIPSO:
        """Find the regression of the table, and that of the draws."""
        design = self.design(table)
        draws = Draws(self.masks if self.variant != "A" else (), key.subkey("residuals"))
        recipe = self._recipe(regress(table, design, draws), draws)
        return FittedIPSO(self, key, *self.synthesised(table, design, recipe, [self.dependents], [1]))

    def _recipe(self, found: Regression, draws: Draws) -> Obfuscation:
        t = len(self.dependents)
        if found.degrees < t:
            raise InputError(
                f"{self.who}: {found.rank} coefficients and {t} dependents need {found.rank + t} records without "
                f"missing values; there are {found.degrees + found.rank}."
            )
        root = lower_root(found.products[:t, :t])
        if self.variant == "B":
            mixing = root.T / np.sqrt(found.degrees)
        elif self.variant == "C":
            mixing = np.linalg.solve(lower_root(found.products[t:, t:]).T, root.T)
        else:
            mixing = np.empty((0, t))
        return Obfuscation(found.coefficients[:, :t], found.coefficients[:, t:], mixing, draws)


class Regression(NamedTuple):
    """Dependents, then draws, on Z: what least squares gives for all of them together."""

    coefficients: Floats  # p x (dependents + draws)
    products: Floats  # of the residuals, (dependents + draws) squared, by weights whose mean is 1
    rank: int
    degrees: int  # records without missing values that weigh something, less the rank


def regress(table: Table, design: Design, draws: Draws) -> Regression:
    """Least squares by two passes of Gram matrices: the second one corrects what rounding left in the first."""
    p = design.width
    total = len(design.dependents) + len(draws.names)
    coefficients, products, rank, records = np.zeros((p, total)), np.empty((total, total)), 0, 0
    for number in (1, 2):
        task, label = partial(_gram, design, draws, coefficients), f"{design.who}: regression {number}"
        gram, records = table.select(design.all_columns).with_positions().reduce(task, _plus, label)
        inverse, rank = inverted(gram[:p, :p])
        correction = inverse @ gram[:p, p:]
        coefficients = coefficients + correction
        products = (gram[p:, p:] - gram[p:, :p] @ correction) * (records / gram[0, 0] if records else 1.0)
    return Regression(coefficients, products, rank, records - rank)


def _gram(design: Design, draws: Draws, coefficients: Floats, rows: Rows, position: Position) -> tuple[Floats, int]:
    """The weighted Gram matrix of z and of the residuals of (y, draws), and how many records miss no value."""
    units = design.weighted(rows)
    both = units._replace(y=np.concatenate([units.y, draws.at(position.first, units.y.shape[1])]))
    both = both.of(units.counted)
    block = np.concatenate([both.z, both.y - _linear(both.z, coefficients)])
    return gram_of(block, both.weights), both.z.shape[1]


def _plus(left: tuple[Floats, int], right: tuple[Floats, int]) -> tuple[Floats, int]:
    return left[0] + right[0], left[1] + right[1]


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

    def values(self, units: Units, first: int | None) -> Floats:
        """The regression's predictions, dependents x rows in its units, with residuals where they are drawn."""
        predicted = _linear(units.z, self.coefficients)
        if first is None:
            return predicted
        rest = self.draws.at(first, units.z.shape[1]) - _linear(units.z, self.of_draws)
        return predicted + _linear(rest, self.mixing)


@dataclass(frozen=True)
class FittedIPSO(FittedSynthesis):
    """A regression ready to replace the dependents."""

    method: IPSO

    @property
    def coefficients(self) -> Floats:
        """Terms x dependents in original units, the constant first."""
        return self.synthesiser.design.coefficients(self.synthesiser.recipe.coefficients)  # type: ignore[attr-defined]

    @property
    def of_one_table(self) -> str:
        """The draws were fitted, too."""
        return "what it keeps is the regression of that table"

    def statement(self) -> str:
        """What a reader of the release may know."""
        description = _DESCRIPTIONS[self.method.variant].format(inputs=", ".join(self.method.independents))
        return (
            f"The values of {', '.join(self.method.dependents)} are synthetic (IPSO-{self.method.variant}, Burridge "
            f"2003): {description}, but for rounding. What that regression does not say of the data is not in these "
            f"values.{self._finishing()}"
        )

    def for_analysts(self) -> list[str]:
        """Which regressions are those of the originals."""
        names, given = ", ".join(self.method.dependents), ", ".join(self.method.independents)
        weighted = f", weighted by {self.method.weight}" if self.method.weight else ""
        spread = {
            "A": "Residuals are gone: variances are too small, R^2 is 1, and tests of these regressions mean nothing",
            "B": "Residual variances, standard errors and variances are right but for chance",
            "C": "Residual variances, standard errors, R^2, variances and correlations are those of the originals, too",
        }[self.method.variant]
        return [
            f"Linear regressions of {names} on {given} (all of them, together{weighted}) have the coefficients of the "
            f"originals, but for rounding{' and bounds' if self.method.bounds else ''}, and totals and means are kept. "
            f"{spread}. Everything else of {names} is made up: single values, tails, curves, interactions, and what "
            "they have to do with other columns."
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            "Independents are released as they are, unless another step masks them.",
            f"Up to {self.figures.on_planes:.1%} of a column's values lie on one hyperplane over the independents: the "
            "coefficients can be read off them. residual_linkage measures what is linked by it.",
            "Dependents that the independents predict well stay near their originals. Measure the linkage.",
            "Drawn residuals are normal: values may lie where real ones cannot; bounds prevent it.",
            *self.warnings(),
        ]
