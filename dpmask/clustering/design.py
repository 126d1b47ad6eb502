"""Regressions in units that add up well: independents standardised, with a 1 in front, and dependents likewise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.scaling import Scale
from dpmask.engine.passes import Span
from dpmask.errors import InputError
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.lake.columns import Rows, floats, require_numeric
from dpmask.lake.predictors import Predictors, find_predictors
from dpmask.lake.table import Table

Floats = NDArray[np.float64]


class Units(NamedTuple):
    """A block in units of the regression: z = (1, x), p x rows, and y, dependents x rows."""

    z: Floats
    y: Floats

    @property
    def whole(self) -> NDArray[np.bool_]:
        """Which records miss no value."""
        rows: NDArray[np.bool_] = np.all(~np.isnan(self.z), axis=0)
        rows &= np.all(~np.isnan(self.y), axis=0)
        return rows


class Design(NamedTuple):
    """What is predicted from what, and the scales of both."""

    predictors: Predictors
    dependents: tuple[str, ...]
    inputs: Scale
    outputs: Scale
    moments: Moments  # of the predictors' numbers, then of the dependents
    who: str

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns it reads."""
        return (*self.predictors.columns, *self.dependents)

    @property
    def width(self) -> int:
        """p: coefficients of a model for each dependent."""
        return 1 + len(self.inputs.mean)

    def units(self, rows: Rows, span: Span) -> Units:
        """A block's records; NaN where a value is missing, infinite ones refused."""
        x = self.predictors.values(rows, self.who)
        y = np.array([floats(rows, name) for name in self.dependents])
        if np.isinf(x).any() or np.isinf(y).any():
            raise InputError(f"{self.who}: the table has infinite values. Make them null, or drop those records.")
        z = np.ones((self.width, x.shape[1]))
        z[1:] = (x - self.inputs.mean[:, None]) / self.inputs.sd[:, None]
        return Units(z, (y - self.outputs.mean[:, None]) / self.outputs.sd[:, None])

    def complete(self, rows: Rows, span: Span) -> Units:
        """A block's records that miss no value."""
        units = self.units(rows, span)
        whole = units.whole
        return units if whole.all() else Units(units.z[:, whole], units.y[:, whole])

    def to_original(self, values: Floats) -> Floats:
        """Dependents x rows, back in the units they came in."""
        return values * self.outputs.sd[:, None] + self.outputs.mean[:, None]

    def numbers(self) -> tuple[list[str], Moments]:
        """The columns that are numbers, and their moments."""
        places = [n for n, name in enumerate(self.predictors.sources) if name not in self.predictors.levels]
        names = [self.predictors.sources[place] for place in places] + list(self.dependents)
        at = places + list(range(len(self.predictors.sources), len(self.moments.values)))
        return names, Moments._make(part[at] for part in self.moments)

    def coefficients(self, models: Floats) -> Floats:
        """Models (... x p x dependents) in original units, the constant first."""
        slopes = models[..., 1:, :] / self.inputs.sd[:, None] * self.outputs.sd
        constant = models[..., 0, :] * self.outputs.sd + self.outputs.mean
        constant = constant - np.einsum("s,...st->...t", self.inputs.mean, slopes)
        return np.concatenate([constant[..., None, :], slopes], axis=-2)


def make_design(
    table: Table, dependents: Sequence[str], independents: Sequence[str], who: str, *, drop: bool = False
) -> Design:
    """Means and deviations in one pass, and one before it for the levels of categories, where there are any.

    Records that miss a value are refused, or with ``drop`` left to whoever reads the units.
    """
    require_numeric(table.masked_schema, dependents, who)
    predictors = find_predictors(table, independents, who)
    columns = (*independents, *dependents)
    seen = table.reduce_rows(
        columns, partial(_moments, predictors, tuple(dependents), who), merge_moments, f"{who}: means"
    )
    _check(seen, [*predictors.sources, *dependents], table.rows, who, drop=drop)
    count = len(predictors.sources)
    for number, name in enumerate(dependents, start=count):
        if not seen.low[number] < seen.high[number]:
            raise InputError(f"{who}: dependent '{name}' is constant: there is nothing to predict. Take it out.")
    # a constant independent says nothing: its deviations are 0, and solving leaves it out
    sd = np.where(seen.low < seen.high, seen.sd, 1.0)
    inputs, outputs = Scale(seen.mean[:count], sd[:count]), Scale(seen.mean[count:], sd[count:])
    return Design(predictors, tuple(dependents), inputs, outputs, seen, who)


def _moments(predictors: Predictors, dependents: tuple[str, ...], who: str, rows: Rows, span: Span) -> Moments:
    return column_moments([*predictors.values(rows, who), *(floats(rows, name) for name in dependents)])


def _check(seen: Moments, columns: Sequence[str], rows: int, who: str, *, drop: bool) -> None:
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
