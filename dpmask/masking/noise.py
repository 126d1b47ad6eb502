"""Additive noise: every value gets a normal draw, N(0, (scale * sd)^2), of its own.

Protects against: reading off a person's exact value. Does not protect against: linkage. A masked record stays near its
original, the nearer the smaller ``scale``; outliers stay outliers; and noise that is drawn for each column by itself is
partly removed again by an intruder who knows how the columns depend on each other. Measure the linkage first.

Means are kept in expectation; each variance grows by the factor 1 + scale^2 and correlations shrink by the same factor.
``correlated`` noise is drawn with the columns' own correlations: these are kept in expectation, and so are sums such as
net + tax = gross in columns of floats; every covariance grows by 1 + scale^2. It is also harder to filter out.

Integer and decimal columns keep their type: the noisy value is rounded to it, so noise well below one unit of such
a column changes few values. Missing values stay missing.

Paper: Torra, Endo and Miyamoto 2009, where scale is p and sd is s. Passes over the data: one for the standard
deviations, one more for correlations, one to mask. Memory per task: one block and three columns of it; twice the block
where noise is correlated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey, record_normals
from dpmask.errors import InputError, JobError
from dpmask.kernels.covariance import covariance_sums, merge_covariance_sums
from dpmask.kernels.moments import Moments
from dpmask.kernels.noise import add_noise, mixed, mixing_matrix
from dpmask.lake.reading import Rows
from dpmask.masking.column_method import ColumnMethod
from dpmask.masking.method import FittedMethod
from dpmask.parameters import require_columns, require_flag, require_number
from dpmask.table.columns import floats, room, rounding_step, type_range, with_floats
from dpmask.table.table import Table

Floats = NDArray[np.float64]

_MOSTLY = 0.5
_FEWEST = 2
_REACH = 4.0  # standard deviations of noise that are allowed for


@dataclass(frozen=True, kw_only=True)
class NoiseAddition(ColumnMethod["FittedNoise"]):
    """Normal noise added to every value, drawn record by record.

    Parameters
    ----------
    columns
        The columns of numbers to mask.
    scale
        The noise's standard deviation, as a share of each column's own (the paper's p).
    correlated
        Draw the noise with the correlations of the columns, not for each column by itself.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"age": [31, 45, 62, 28], "income": [2100.5, 3900.0, 2750.25, 1800.0]})
    >>> fitted = dpmask.NoiseAddition(columns=["income"], scale=0.1).fit(people, seed=7)
    >>> fitted
    <FittedNoise: income>
    >>> list(fitted.mask(people)["age"])
    [31, 45, 62, 28]

    """

    columns: tuple[str, ...]
    scale: float
    correlated: bool = False

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        require_number(self, "scale", above=0)
        require_flag(self, "correlated")

    @property
    def passes(self) -> int:
        """Passes over the data to fit."""
        return 2 if self.correlated else 1

    def fit_table(self, table: Table, key: Subkey) -> FittedNoise:
        """Learn the standard deviations, in one pass, and the correlations in another."""
        moments = self.moments(table, "noise: standard deviations")
        deviations = dict(zip(self.columns, (self.scale * moments.sd).tolist(), strict=True))
        if not all(0.0 < deviation < math.inf for deviation in deviations.values()):
            raise JobError(f"{self.who}: scale {self.scale:g} makes the noise of a column infinite or nothing.")
        kinds = {column: table.masked_schema.field(column).type for column in self.columns}
        # Another scale must draw anew, too: two releases of the same draws give the originals away.
        purpose = f"{'correlated noise' if self.correlated else 'noise'} {self.scale!r}"
        return FittedNoise(
            self,
            deviations,
            {column: float(rounding_step(kind)) for column, kind in kinds.items()},
            _clipped(moments, deviations, kinds),
            self._mixing(table) if self.correlated else None,
            self.bound_key(key, purpose, table, moments),
        )

    def _mixing(self, table: Table) -> Floats:
        """What turns independent draws into draws with the correlations of the complete records."""
        found = table.reduce(self.columns, covariance_sums, merge_covariance_sums, "noise: correlations")
        if found.complete < _FEWEST:
            raise InputError(f"{self.who}: correlated noise needs at least {_FEWEST} complete records.")
        variances = np.diag(found.covariance)
        sd = np.sqrt(np.where(variances > 0.0, variances, 1.0))
        correlations = found.covariance / np.outer(sd, sd)
        np.fill_diagonal(correlations, 1.0)
        return mixing_matrix(correlations)


def _clipped(moments: Moments, deviations: Mapping[str, float], kinds: Mapping[str, Any]) -> tuple[str, ...]:
    """Columns whose noisy values would leave the range of their type."""
    clipped = []
    for number, (column, kind) in enumerate(kinds.items()):
        low, high = type_range(kind)
        reach = _REACH * deviations[column]
        if moments.low[number] - reach < low or moments.high[number] + reach > high:
            clipped.append(column)
    return tuple(clipped)


@dataclass(frozen=True)
class FittedNoise(FittedMethod):
    """Noise ready to be added: its standard deviation and the rounding unit of each column, the key of the draws."""

    method: NoiseAddition
    deviations: Mapping[str, float]
    units: Mapping[str, float]
    clipped: tuple[str, ...]
    """Columns whose noisy values are clipped to the range of their type."""
    mixing: Floats | None
    key: Subkey

    def check(self, table: Table) -> None:
        """Refuse a table that noise cannot be added to."""
        self.method.check(table)

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block with noise."""
        for column, normals in self._normals(rows.num_rows, first):
            rows = with_floats(rows, column, add_noise(floats(rows, column), normals, self.deviations[column]))
        return rows

    def _normals(self, count: int, first: int) -> Iterator[tuple[str, Floats]]:
        """The draws of each column."""
        keys = {column: self.key.subkey(column) for column in self.deviations}
        drawn = ((column, record_normals(key, first, count, room(count))) for column, key in keys.items())
        if self.mixing is None:
            yield from drawn
        else:
            own = [normals for _, normals in drawn]
            yield from ((column, mixed(own, line)) for column, line in zip(keys, self.mixing, strict=True))

    def statement(self) -> str:
        """What a reader of the release may know."""
        clipped = (
            f" Values of {', '.join(self.clipped)} were held to the range of their type, which shifts their moments."
        )
        return (
            f"Normal noise with a standard deviation of {self.method.scale:g} times that of the column was added to "
            f"each value of {', '.join(self.method.columns)}. Means are unbiased; variances are larger by the factor "
            f"{1 + self.method.scale**2:.6g}, {self._on_correlations()}. Integers and decimals were rounded to their "
            "type. Noisy values may lie where real ones cannot, such as below zero." + (clipped if self.clipped else "")
        )

    def _on_correlations(self) -> str:
        if self.mixing is None:
            return "and correlations with other columns weaker accordingly"
        return (
            "and so are covariances: the noise has the correlations of these columns, which are kept; those with other "
            "columns are weaker"
        )

    def warnings(self) -> list[str]:
        """Columns whose noise is mostly rounded away: P(|N(0, d^2)| < unit / 2) of their values stay as they are."""
        kept = {c: math.erf(self.units[c] / (2 * math.sqrt(2) * d)) for c, d in self.deviations.items()}
        clipped = [
            f"{self.who}: noise would take values of '{column}' out of the range of its type; they are clipped to it, "
            "which shifts mean and variance. Write the column as a wider or signed type."
            for column in self.clipped
        ]
        return clipped + [
            f"{self.who}: about {share:.1%} of the values of '{column}' stay as they are: noise is smaller than the "
            "step of its type. Raise scale, or mask it by another method."
            for column, share in kept.items()
            if share > _MOSTLY
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            "Noise keeps each record near its original: an intruder who knows some values may still link it. Measure "
            "the linkage.",
            "Noise drawn for each column by itself can partly be filtered out where columns depend on each other."
            if self.mixing is None
            else "The size of the noise is public, and its correlations are those of the release.",
            *self.warnings(),
        ]
