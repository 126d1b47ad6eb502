"""Regressions in units that add up well: independents standardised, with a 1 in front, and dependents likewise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.scaling import Scale, require_weights
from dpmask.engine.passes import Span
from dpmask.errors import InputError, JobError
from dpmask.kernels.covariance import Spread, merge_spread, spread
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats, require_numeric
from dpmask.table.encoders.one_hot import Predictors, find_predictors
from dpmask.table.table import Table

Floats = NDArray[np.float64]


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

    predictors: Predictors
    dependents: tuple[str, ...]
    weight: str | None
    inputs: Scale
    outputs: Scale
    seen: Moments | Spread  # of the predictors' numbers, then of the dependents
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

    def units(self, rows: Rows, span: Span) -> Units:
        """A block's records without their weights; NaN where a value is missing, infinite ones refused."""
        x = self.predictors.values(rows, self.who)
        y = np.array([floats(rows, name) for name in self.dependents])
        if np.isinf(x).any() or np.isinf(y).any():
            raise InputError(f"{self.who}: the table has infinite values. Make them null, or drop those records.")
        z = np.ones((self.width, x.shape[1]))
        z[1:] = (x - self.inputs.mean[:, None]) / self.inputs.sd[:, None]
        return Units(z, (y - self.outputs.mean[:, None]) / self.outputs.sd[:, None])

    def weighted(self, rows: Rows, span: Span) -> Units:
        """A block's records with their weights."""
        return self.units(rows, span)._replace(weights=_weights(rows, self.weight, self.who))

    def complete(self, rows: Rows, span: Span) -> Units:
        """A block's records that shape a model, with their weights."""
        units = self.weighted(rows, span)
        return units.of(units.counted)

    def to_original(self, values: Floats) -> Floats:
        """Dependents x rows, back in the units they came in."""
        return values * self.outputs.sd[:, None] + self.outputs.mean[:, None]

    def numbers(self) -> tuple[list[str], NDArray[np.int64], Floats, Floats]:
        """The columns that are numbers, how many values each has, and their ranges."""
        places = [n for n, name in enumerate(self.predictors.sources) if name not in self.predictors.levels]
        names = [self.predictors.sources[place] for place in places] + list(self.dependents)
        at = places + list(range(len(self.predictors.sources), len(self.seen.values)))
        return names, self.seen.values[at], self.seen.low[at], self.seen.high[at]

    def coefficients(self, models: Floats) -> Floats:
        """Models (... x p x dependents) in original units, the constant first."""
        slopes = models[..., 1:, :] / self.inputs.sd[:, None] * self.outputs.sd
        constant = models[..., 0, :] * self.outputs.sd + self.outputs.mean
        constant = constant - np.einsum("s,...st->...t", self.inputs.mean, slopes)
        return np.concatenate([constant[..., None, :], slopes], axis=-2)


_Look = tuple[Moments | Spread, Counted]


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
    seen, counted = _look(table, predictors, tuple(dependents), weight, who)
    _check(seen, [*predictors.sources, *dependents], table.rows, who, drop=drop)
    if isinstance(seen, Spread) and not seen.complete > 0.0:
        raise InputError(f"{who}: column '{weight}' must be above 0 in a record without missing values.")
    varied = (seen.low < seen.high) & (seen.sd > 0.0)
    count = len(predictors.sources)
    for number, name in enumerate(dependents, start=count):
        if not varied[number]:
            raise InputError(f"{who}: dependent '{name}' is constant: there is nothing to predict. Take it out.")
    # a constant independent says nothing: its deviations are 0, and solving leaves it out
    sd = np.where(varied, seen.sd, 1.0)
    inputs, outputs = Scale(seen.mean[:count], sd[:count]), Scale(seen.mean[count:], sd[count:])
    return Design(predictors, tuple(dependents), weight, inputs, outputs, seen, counted, who)


def check_weight(weight: str | None, others: Sequence[str], who: str) -> None:
    """Refuse a weight that names no column, or one that is modelled itself."""
    if weight is not None and (not isinstance(weight, str) or weight in others):
        raise JobError(f"{who}: weight must name a column other than dependents and independents; got {weight!r}.")


def _look(table: Table, predictors: Predictors, dependents: tuple[str, ...], weight: str | None, who: str) -> _Look:
    """Means, deviations and ranges, in one pass."""
    columns = [*predictors.columns, *dependents, *([weight] if weight else [])]
    task = partial(_means, predictors, dependents, weight, who)
    merge = partial(_merge_looks, merge_spread if weight else merge_moments)
    return table.reduce_rows(columns, task, merge, f"{who}: means")


def _means(
    predictors: Predictors, dependents: tuple[str, ...], weight: str | None, who: str, rows: Rows, span: Span
) -> _Look:
    values, weights = _values(predictors, dependents, who, rows), _weights(rows, weight, who)
    seen = column_moments(values) if weights is None else spread(values, weights)
    return seen, Counted.of(values, weights, span.first)


def _merge_looks(merge: Callable[[Any, Any], Moments | Spread], left: _Look, right: _Look) -> _Look:
    return merge(left[0], right[0]), left[1].plus(right[1])


def _values(predictors: Predictors, dependents: tuple[str, ...], who: str, rows: Rows) -> list[Floats]:
    return [*predictors.values(rows, who), *(floats(rows, name) for name in dependents)]


def _weights(rows: Rows, weight: str | None, who: str) -> Floats | None:
    if weight is None:
        return None
    weights = floats(rows, weight)
    require_weights(weights, weight, who)
    return weights


def _check(seen: Moments | Spread, columns: Sequence[str], rows: int, who: str, *, drop: bool) -> None:
    for number, column in enumerate(columns):
        missing = rows - int(seen.values[number]) - int(seen.infinite[number])
        if seen.infinite[number]:
            raise InputError(f"{who}: column '{column}' holds infinite values in {seen.infinite[number]} records.")
        if not seen.values[number]:
            raise InputError(f"{who}: column '{column}' has no value in any record. Take it out.")
        if missing and not drop:
            raise InputError(
                f"{who}: column '{column}' is missing in {missing} records. Fill them in or drop them, or see nulls."
            )
        if not np.isfinite(seen.sd[number]):
            raise InputError(f"{who}: column '{column}' is too large for its standard deviation. Rescale it.")
