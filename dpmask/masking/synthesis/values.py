"""What synthetic values of any kind share: how they become values of their columns, and how they are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.design import Design, Units, check_weight
from dpmask.constraints.sets import parse_constraints
from dpmask.engine.draws import Subkey
from dpmask.engine.passes import Span
from dpmask.errors import InputError, JobError
from dpmask.lake.reading import Rows
from dpmask.masking.draw_purpose import told_apart
from dpmask.masking.synthesis.figures import Made, Seen, SynthesisFigures
from dpmask.parameters import require_choice, require_columns
from dpmask.table import table as tables
from dpmask.table.columns import floats, require_numeric, rounding_step, type_range, with_missing
from dpmask.table.encoders.one_hot import require_predictors

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MUCH = 0.01


class Outputs(NamedTuple):
    """How a number becomes a value of its column: held to its bounds and put on the step of its type."""

    columns: tuple[str, ...]
    lower: Floats
    upper: Floats
    steps: Floats  # 1 for integers, 0 for floats

    def held(self, values: Floats) -> Floats:
        """Columns x rows inside their bounds."""
        held: Floats = np.clip(values, self.lower[:, None], self.upper[:, None])
        return held

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
    return Outputs(tuple(columns), np.maximum(lower, lowest), np.minimum(upper, highest), steps)


class Recipe(Protocol):
    """How records get synthetic values."""

    def predicted(self, units: Units) -> Floats:
        """What the records' models say: dependents x rows in units of the regression; NaN where z is missing."""

    def values(self, units: Units, first: int) -> Floats:
        """Dependents x rows in units of the regression, from position ``first`` on; NaN where z is missing."""

    def labels(self, units: Units) -> list[Integers]:
        """The model of each record, for each group of dependents."""


class Release(NamedTuple):
    """A recipe, what it is made of and what becomes of it."""

    design: Design
    outputs: Outputs
    recipe: Recipe

    def made(self, units: Units, first: int) -> Made:
        """Synthetic values of records from position ``first`` on.

        What is missing stays missing, and so does what cannot be predicted: no original value ever takes its place.
        """
        raw = self.design.to_original(self.recipe.values(units, first))
        raw[np.isnan(units.y)] = np.nan
        held = self.outputs.held(raw)
        return Made(raw, held, self.outputs.rounded(held))

    def seen(self, sizes: Sequence[int], rows: Rows, span: Span) -> Seen:
        """What a block's synthetic values are like."""
        units = self.design.weighted(rows, span)
        made = self.made(units, span.first)
        predicted = self.outputs.rounded(self.design.to_original(self.recipe.predicted(units)))
        original = np.array([floats(rows, name) for name in self.design.dependents])
        counted = units.counted
        labels = [one[counted] for one in self.recipe.labels(units)]
        counts = [np.bincount(one, minlength=size) for one, size in zip(labels, sizes, strict=True)]
        return Seen.of(original, predicted, made, self.design.outputs.sd, counts)


def look(table: tables.Table, release: Release, sizes: Sequence[int]) -> Seen:
    """The synthetic values of a whole table, looked at in one pass."""
    design = release.design
    return table.reduce_rows(design.all_columns, partial(release.seen, sizes), Seen.plus, f"{design.who}: figures")


def check_parameters(method: Any) -> None:
    """What every synthetic method asks of its parameters."""
    require_columns(method, "dependents")
    require_columns(method, "independents")
    both = sorted(set(method.dependents) & set(method.independents))
    if both:
        name = type(method).__name__
        raise JobError(f"{name}: {', '.join(both)} must be either in dependents or in independents; got both.")
    check_weight(method.weight, [*method.dependents, *method.independents], type(method).__name__)
    require_choice(method, "nulls", ("refuse", "keep"))
    texts = (method.bounds,) if isinstance(method.bounds, str) else tuple(method.bounds)
    object.__setattr__(method, "bounds", texts)
    if len(parse_constraints(texts, method.dependents).constants):
        raise JobError(f"{type(method).__name__}: bounds must be of the form 'income >= 0'; got an equality.")


def check_table(method: Any, table: tables.Table) -> None:
    """Refuse a table whose schema does not fit the method."""
    _check_masked(method, table)
    if method.weight is not None:
        require_numeric(table.masked_schema, [method.weight], type(method).__name__)


def _check_masked(method: Any, table: tables.Table) -> None:
    """Refuse a table that cannot be masked, which needs no weight."""
    who = type(method).__name__
    require_numeric(table.masked_schema, method.dependents, who)
    require_predictors(table.masked_schema, method.independents, who)


def purpose(method: Any, table: tables.Table, design: Design) -> str:
    """What the draws are for: another method or table must draw anew, also one of other weights."""
    weights = f" {design.counted.weights}" if design.weight and design.weight not in table.changed else ""
    return f"{method!r} {told_apart(table, *design.numbers())}{weights}"


@dataclass(frozen=True)
class Synthetic:
    """A fitted method that replaces dependents by synthetic values, record by record."""

    method: Any
    key: Subkey
    release: Release = field(repr=False)  # it knows the columns' extremes
    figures: SynthesisFigures

    who: ClassVar[str]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it reads."""
        return self.release.design.columns

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it replaces."""
        return self.release.design.dependents

    def check(self, table: tables.Table) -> None:
        """Refuse a table that does not fit."""
        _check_masked(self.method, table)

    def mask(self, table: Any) -> Any:
        """The table with synthetic values: pandas as pandas, a Dask frame or a lake as a lazy Dask frame."""
        return tables.mask(self, table, self.who)

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block with synthetic values."""
        units = self.release.design.units(rows, Span(0, first))
        if self.method.nulls == "refuse" and not units.whole.all():
            raise InputError(f"{self.who}: the table has missing values. nulls='keep' lets them stay missing.")
        for name, values in zip(self.changes, self.release.made(units, first).finished, strict=True):
            rows = with_missing(rows, name, values)
        return rows

    def masked_schema(self, schema: Any) -> Any:
        """Types are kept."""
        return schema

    def claims(self) -> list[dict[str, Any]]:
        """What the released files can be checked for: the bounds."""
        if not self.method.bounds:
            return []
        return [{"columns": list(self.changes), "constraints": list(self.method.bounds)}]

    def _finishing(self) -> str:
        """What a statement says of weights, types, bounds and missing values."""
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
            if column.clipped > _MUCH:
                found.append(
                    f"{self.who}: {column.clipped:.1%} of the values of '{column.column}' were held to their bounds, "
                    "which shifts mean and variance."
                )
        if self.figures.small > 0.0:
            found.append(
                f"{self.who}: {self.figures.small:.1%} of the records have a model with at most two records for each "
                "of its coefficients, which nearly shows them. Raise minimum_size, or take fewer clusters."
            )
        return found
