"""What synthetic values of any kind share: parameters, types and bounds of the columns, figures."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from dpmask.clustering.design import Design, Units, check_weight, make_design
from dpmask.constraints.sets import parse_constraints
from dpmask.engine.draws import Subkey, record_normals
from dpmask.engine.tasks import Position
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats, Integers
from dpmask.lake.reading import Rows
from dpmask.masking.method import Fitted, FittedMethod, Method
from dpmask.masking.synthesis.figures import SynthesisFigures, SynthesisSums, SyntheticValues, synthesis_figures
from dpmask.parameters import Names, require_choice, require_columns, require_texts
from dpmask.results import Plain, Result
from dpmask.table.checks import require_complete_by_footers
from dpmask.table.columns import floats, require_numeric, rounding_step, type_range, with_missing
from dpmask.table.encoders.one_hot import require_predictors
from dpmask.table.table import Table

_MUCH = 0.01


class Outputs(NamedTuple):
    """How a number becomes a value of its column: clipped to its bounds and put on the step of its type."""

    lower: Floats
    upper: Floats
    steps: Floats  # 1 for integers, 0 for floats

    def clipped(self, values: Floats) -> Floats:
        """Columns x rows inside their bounds."""
        return np.clip(values, self.lower[:, None], self.upper[:, None])

    def rounded(self, values: Floats) -> Floats:
        """Columns x rows on their steps."""
        steps = np.where(self.steps > 0.0, self.steps, 1.0)[:, None]
        return np.where(self.steps[:, None] > 0.0, np.rint(values / steps) * steps, values)


def make_outputs(schema: Any, columns: Sequence[str], bounds: Sequence[str]) -> Outputs:
    """The bounds of the columns: those that are written, on the step inside them, and those of their types."""
    written = parse_constraints(bounds, columns)
    kinds = [schema.field(name).type for name in columns]
    steps = np.array([float(rounding_step(kind)) for kind in kinds])
    whole = np.where(steps > 0.0, steps, 1.0)
    lower = np.where(steps > 0.0, np.ceil(written.lower / whole) * whole, written.lower)
    upper = np.where(steps > 0.0, np.floor(written.upper / whole) * whole, written.upper)
    lowest, highest = np.array([type_range(kind) for kind in kinds]).T
    return Outputs(np.maximum(lower, lowest), np.minimum(upper, highest), steps)


class Draws(NamedTuple):
    """Standard normal draws of each record, one for each name; no names, no draws."""

    names: tuple[str, ...]
    key: Subkey

    def at(self, first: int, count: int) -> Floats:
        """Names x rows for the records from position ``first`` on."""
        draws = [record_normals(self.key.subkey(name), first, count) for name in self.names]
        return np.array(draws).reshape(len(self.names), count)


class Recipe(Protocol):
    """How records get synthetic values."""

    def values(self, units: Units, first: int | None) -> Floats:
        """Dependents x rows in units of the regression, from position ``first`` on; NaN where z is missing.

        Without a position they are the models' predictions alone.
        """

    def labels(self, units: Units) -> list[Integers]:
        """The model of each record, for each group of dependents."""


class Synthesiser(NamedTuple):
    """A recipe, the regression's units and the columns' types: all that turns records into synthetic values."""

    design: Design
    outputs: Outputs
    recipe: Recipe

    def values(self, units: Units, first: int) -> SyntheticValues:
        """Synthetic values of records from position ``first`` on.

        What is missing stays missing, and so does what cannot be predicted: no original value ever takes its place.
        """
        raw = self.design.to_original(self.recipe.values(units, first))
        raw[np.isnan(units.y)] = np.nan
        clipped = self.outputs.clipped(raw)
        return SyntheticValues(raw, clipped, self.outputs.rounded(clipped))

    def sums(self, sizes: Sequence[int], rows: Rows, position: Position) -> SynthesisSums:
        """One block's share of the figures."""
        units = self.design.weighted(rows)
        values = self.values(units, position.first)
        predicted = self.outputs.rounded(self.design.to_original(self.recipe.values(units, None)))
        original = np.array([floats(rows, name) for name in self.design.dependents])
        labels = [one[units.counted] for one in self.recipe.labels(units)]
        counts = [np.bincount(one, minlength=size) for one, size in zip(labels, sizes, strict=True)]
        return SynthesisSums.of(original, predicted, values, self.design.outputs.sd, counts)


class SynthesisMethod(Method[Fitted], ABC):
    """What methods share that replace ``dependents`` by what ``independents`` say of them.

    Parameters
    ----------
    dependents
        The columns of numbers that are replaced.
    independents
        The columns that predict them, numbers or categories.
    nulls
        "refuse", or "keep" what is missing missing; where an independent is, the dependents are missing, too.
    """

    dependents: Names
    independents: Names
    weight: str | None
    bounds: tuple[str, ...]
    nulls: str
    clusters: int = 1
    joint: bool = False
    residual_noise: bool = False
    figures: ClassVar[type[Result] | None] = SynthesisFigures

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks."""
        return tuple(self.dependents)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns it learns from, the weights too."""
        return (*self.dependents, *self.independents, *([self.weight] if self.weight else []))

    def check_parameters(self) -> None:
        """Refuse parameters that every synthetic method refuses."""
        require_columns(self, "dependents")
        require_columns(self, "independents")
        both = sorted(set(self.dependents) & set(self.independents))
        if both:
            raise JobError(f"{self.who}: {', '.join(both)} must be either in dependents or in independents; got both.")
        check_weight(self.weight, [*self.dependents, *self.independents], self.who)
        require_choice(self, "nulls", ("refuse", "keep"))
        require_texts(self, "bounds")
        if len(parse_constraints(self.bounds, self.dependents).constants):
            raise JobError(f"{self.who}: bounds must be of the form 'income >= 0'; got an equality.")

    def check(self, table: Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        self.check_masked(table)
        if self.nulls == "refuse":
            advice = ". nulls='keep' lets what is missing stay missing."
            require_complete_by_footers(table, [*self.dependents, *self.independents], self.who, advice)
        if self.weight is not None:
            require_numeric(table.masked_schema, [self.weight], self.who)

    def check_masked(self, table: Table) -> None:
        """Refuse a table that cannot be masked, which needs no weight."""
        require_numeric(table.masked_schema, self.dependents, self.who)
        require_predictors(table.masked_schema, self.independents, self.who)

    def attacks(self) -> Mapping[str, Mapping[str, Any]]:
        """An intruder who refits the models and subtracts what they predict."""
        known = {"clusters": self.clusters, "joint": self.joint, "residual_noise": self.residual_noise}
        columns = {"columns": list(self.dependents), "independents": list(self.independents)}
        return {"residual_linkage": {**columns, **known}}

    def design(self, table: Table) -> Design:
        """The regression's units, in one pass."""
        drop = self.nulls == "keep"
        return make_design(table, self.dependents, self.independents, self.who, weight=self.weight, drop=drop)

    def synthesised(
        self, table: Table, design: Design, recipe: Recipe, groups: Sequence[Sequence[str]], models: Sequence[int]
    ) -> tuple[Synthesiser, SynthesisFigures]:
        """What turns records of this table into synthetic values, and what these come to, in one pass.

        ``models`` says how many there are for each of the groups of dependents.
        """
        unknown = np.full_like(design.seen.low, np.nan)  # ranges are values of records
        kept = design._replace(seen=design.seen._replace(low=unknown, high=unknown))
        found = Synthesiser(kept, make_outputs(table.masked_schema, self.dependents, self.bounds), recipe)
        rows = table.select(design.all_columns).with_positions()
        sums = rows.reduce(partial(found.sums, models), SynthesisSums.plus, f"{self.who}: figures")
        dissolved = [self.clusters - count for count in models]
        return found, synthesis_figures(sums, groups, self.dependents, dissolved, design.width)


@dataclass(frozen=True)
class FittedSynthesis(FittedMethod, ABC):
    """A fitted method that replaces dependents by synthetic values, record by record."""

    method: SynthesisMethod[Any]
    key: Subkey
    synthesiser: Synthesiser
    figures: SynthesisFigures = field()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it reads."""
        return self.synthesiser.design.columns

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it replaces."""
        return self.synthesiser.design.dependents

    def check(self, table: Table) -> None:
        """Refuse a table that does not fit."""
        self.method.check_masked(table)

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block with synthetic values."""
        units = self.synthesiser.design.units(rows)
        if self.method.nulls == "refuse" and not units.whole.all():
            raise InputError(f"{self.who}: the table has missing values. nulls='keep' lets them stay missing.")
        for name, values in zip(self.changes, self.synthesiser.values(units, first).finished, strict=True):
            rows = with_missing(rows, name, values)
        return rows

    def claims(self) -> list[dict[str, Plain]]:
        """What the released files can be checked for: the bounds."""
        if not self.method.bounds:
            return []
        return [{"columns": list(self.changes), "constraints": list(self.method.bounds)}]

    def _finishing(self) -> str:
        """The statement's part on weights, types, bounds and missing values."""
        weights = f" Records counted by their {self.method.weight}." if self.method.weight else ""
        bounds = f" They were held to {', '.join(self.method.bounds)}." if self.method.bounds else ""
        missing = " Missing values stay missing." if self.method.nulls == "keep" else ""
        return f"{weights} Integers and decimals were rounded to their type.{bounds}{missing}"

    def warnings(self) -> list[str]:
        """What is wrong with these values, if anything."""
        found = []
        for column in self.figures.columns:
            if column.reproduced > _MUCH:
                found.append(
                    f"{self.who}: {column.reproduced:.1%} of the values of '{column.column}' are released as they "
                    "were. Take fewer clusters or add residual_noise, or mask it by another method."
                )
            if column.clipped > _MUCH * column.values:
                share = column.clipped / column.values
                found.append(
                    f"{self.who}: {share:.1%} of the values of '{column.column}' were clipped to their bounds, which "
                    "shifts mean and variance."
                )
        if self.figures.small > 0.0:
            found.append(
                f"{self.who}: {self.figures.small:.1%} of the records have a model with at most two records for each "
                "of its coefficients, which nearly shows them. Raise minimum_size, or take fewer clusters."
            )
        return found
