"""Regressions in units that add up well: independents standardised, with a 1 in front, and dependents likewise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.tasks import Position
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.covariance import CovarianceSums, covariance_sums, merge_covariance_sums
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.lake.reading import Rows
from dpmask.table.checks import (
    ColumnSummary,
    constant_column,
    require_complete,
    require_no_infinities,
    require_values,
    require_weights,
)
from dpmask.table.columns import floats, require_numeric
from dpmask.table.encoders.base import EncodedColumns
from dpmask.table.encoders.numeric import NumericEncoder, Scale
from dpmask.table.encoders.one_hot import find_predictors
from dpmask.table.table import Table


class Units(NamedTuple):
    """A block in units of the regression: z = (1, x), p x rows, y, dependents x rows, and what the records weigh."""

    z: Floats
    y: Floats
    weights: Floats | None = None  # 1 each

    @property
    def whole(self) -> NDArray[np.bool_]:
        """Which records miss no value."""
        rows: NDArray[np.bool_] = np.all(~np.isnan(self.z), axis=0)
        rows &= np.all(~np.isnan(self.y), axis=0)
        return rows

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which records shape a model: those that miss no value and weigh something."""
        return self.whole if self.weights is None else self.whole & (self.weights > 0.0)

    def of(self, rows: NDArray[np.bool_]) -> Units:
        """Some of the records."""
        if rows.all():
            return self
        return Units(self.z[:, rows], self.y[:, rows], None if self.weights is None else self.weights[rows])


class Counted(NamedTuple):
    """What is counted beside the means: exact, and the same for any partitioning."""

    records: int  # those that shape a model: they miss no value and weigh something
    weights: int  # the bits of all weights, summed by position: other weights have another sum

    @classmethod
    def of(cls, values: Sequence[Floats], weights: Floats | None, first: int) -> Counted:
        """A block's, from its record ``first`` on."""
        rows = ~np.logical_or.reduce([np.isnan(one) for one in values])
        if weights is None:
            return cls(int(rows.sum()), 0)
        odd = 2 * np.arange(first, first + len(weights), dtype=np.uint64) + np.uint64(1)
        return cls(int((rows & (weights > 0.0)).sum()), int((weights.view(np.uint64) * odd).sum()))

    def plus(self, other: Counted) -> Counted:
        """Both parts together."""
        return Counted(self.records + other.records, (self.weights + other.weights) % 2**64)


class Design(NamedTuple):
    """What is predicted from what, the scales of both, and the column of the records' weights, if there is one."""

    predictors: EncodedColumns
    dependents: tuple[str, ...]
    weight: str | None
    inputs: Scale
    outputs: Scale
    seen: Moments | CovarianceSums  # of the predictors' numbers, then of the dependents
    counted: Counted
    who: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that prediction reads."""
        return (*self.predictors.columns, *self.dependents)

    @property
    def all_columns(self) -> tuple[str, ...]:
        """The columns that fitting reads: the weight, too."""
        return self.columns if self.weight is None else (*self.columns, self.weight)

    @property
    def width(self) -> int:
        """p: coefficients of a model for each dependent."""
        return 1 + len(self.inputs.mean)

    @property
    def numeric(self) -> list[int]:
        """The places of the predictors' numbers that are no levels of a category."""
        names = {part.column for part in self.predictors.parts if isinstance(part, NumericEncoder)}
        return [place for place, name in enumerate(self.predictors.sources) if name in names]

    def units(self, rows: Rows) -> Units:
        """A block's records without their weights; NaN where a value is missing, infinite ones refused."""
        x, y = self.predictors.values(rows), _floats(rows, self.dependents)
        require_no_infinities(x, self.who)
        require_no_infinities(y, self.who)
        z = np.ones((self.width, x.shape[1]))
        z[1:] = self.inputs.upright.to_units(x)
        return Units(z, self.outputs.upright.to_units(y))

    def weighted(self, rows: Rows) -> Units:
        """A block's records with their weights."""
        return self.units(rows)._replace(weights=_weights(rows, self.weight, self.who))

    def complete(self, rows: Rows) -> Units:
        """A block's records that shape a model, with their weights."""
        units = self.weighted(rows)
        return units.of(units.counted)

    def to_original(self, values: Floats) -> Floats:
        """Dependents x rows, back in the units they came in."""
        return self.outputs.upright.to_original(values)

    def coefficients(self, models: Floats) -> Floats:
        """Models (... x p x dependents) in original units, the constant first."""
        slopes = models[..., 1:, :] / self.inputs.sd[:, None] * self.outputs.sd
        constant = models[..., 0, :] * self.outputs.sd + self.outputs.mean
        constant = constant - np.einsum("s,...st->...t", self.inputs.mean, slopes)
        return np.concatenate([constant[..., None, :], slopes], axis=-2)


_FirstPass = tuple[Moments | CovarianceSums, Counted]


def make_design(
    table: Table,
    dependents: Sequence[str],
    independents: Sequence[str],
    who: str,
    *,
    weight: str | None = None,
    drop: bool = False,
) -> Design:
    """Means and deviations in one pass, and one before it for the levels of categories, where there are any.

    Records that miss a value are refused, or with ``drop`` left to whoever reads the units. With a ``weight`` column
    means and deviations are weighted.
    """
    require_numeric(table.masked_schema, [*dependents, *([weight] if weight else [])], who)
    predictors = find_predictors(table, independents, who)
    columns = [*predictors.columns, *dependents, *([weight] if weight else [])]
    task, merge = partial(_first_pass, predictors, tuple(dependents), weight, who), partial(_merge, weight is not None)
    seen, counted = table.select(columns).with_positions().reduce(task, merge, f"{who}: means")
    _check(seen, [*predictors.sources, *dependents], table.rows, who, drop=drop)
    if isinstance(seen, CovarianceSums) and not seen.complete > 0.0:
        raise InputError(f"{who}: column '{weight}' must be above 0 in a record without missing values.")
    varied = (seen.low < seen.high) & (seen.sd > 0.0)
    count = predictors.size
    for name, varies in zip(dependents, varied[count:], strict=True):
        if not varies:
            raise constant_column(who, name)
    # a constant independent explains nothing: its deviations are 0, and solving leaves it out
    sd = np.where(varied, seen.sd, 1.0)
    inputs, outputs = Scale(seen.mean[:count], sd[:count]), Scale(seen.mean[count:], sd[count:])
    return Design(predictors, tuple(dependents), weight, inputs, outputs, seen, counted, who)


def check_weight(weight: str | None, others: Sequence[str], who: str) -> None:
    """Refuse a weight that names no column, or one that is modelled itself."""
    if weight is not None and (not isinstance(weight, str) or weight in others):
        raise JobError(f"{who}: weight must name a column other than dependents and independents; got {weight!r}.")


def _first_pass(
    predictors: EncodedColumns,
    dependents: tuple[str, ...],
    weight: str | None,
    who: str,
    rows: Rows,
    position: Position,
) -> _FirstPass:
    """A block's means, deviations and ranges."""
    values, weights = [*predictors.values(rows), *_floats(rows, dependents)], _weights(rows, weight, who)
    seen = column_moments(values) if weights is None else covariance_sums(values, weights)
    return seen, Counted.of(values, weights, position.first)


def _merge(weighted: bool, left: Any, right: Any) -> _FirstPass:
    merge = merge_covariance_sums if weighted else merge_moments
    return merge(left[0], right[0]), left[1].plus(right[1])


def _floats(rows: Rows, columns: Sequence[str]) -> Floats:
    return np.array([floats(rows, name) for name in columns])


def _weights(rows: Rows, weight: str | None, who: str) -> Floats | None:
    if weight is None:
        return None
    weights = floats(rows, weight)
    require_weights(weights, weight, who)
    return weights


def _check(seen: ColumnSummary, columns: Sequence[str], rows: int, who: str, *, drop: bool) -> None:
    require_values(seen, columns, who)
    if not drop:
        require_complete(seen, columns, rows, who, ". Fill them in or drop them, or see nulls.")
    for column, sd in zip(columns, seen.sd, strict=True):
        if not np.isfinite(sd):
            raise InputError(f"{who}: column '{column}' is too large for its standard deviation. Rescale it.")
