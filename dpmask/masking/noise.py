"""Additive noise: every value gets a normal draw, N(0, (scale * sd)^2), of its own.

Protects against: reading off a person's exact value. Does not protect against: linkage. A masked record stays near its
original, the nearer the smaller ``scale``; outliers stay outliers; and noise that is drawn for each column by itself is
partly removed again by who knows how the columns depend on each other. Measure the linkage before a release.

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
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey, make_key, record_normals
from dpmask.errors import InputError, JobError
from dpmask.kernels.covariance import covariance_sums, merge_covariance_sums
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.noise import add_noise, mixed, mixing_matrix
from dpmask.lake.reading import Rows
from dpmask.masking.draw_purpose import told_apart
from dpmask.masking.fitted import FittedColumns
from dpmask.parameters import require_columns, require_flag, require_number
from dpmask.table import table as tables
from dpmask.table.checks import require_spread, require_spread_by_footers
from dpmask.table.columns import floats, require_numeric, room, rounding_step, type_range, with_floats

Floats = NDArray[np.float64]

_WHO = "NoiseAddition"
_MOSTLY = 0.5
_FEWEST = 2
_REACH = 4.0  # standard deviations of noise that are counted on


@dataclass(frozen=True, kw_only=True)
class NoiseAddition:
    """Noise of ``scale`` times each column's standard deviation (the paper's p times s), drawn record by record.

    Each column's by itself, or ``correlated`` as the columns are.
    """

    columns: tuple[str, ...]
    scale: float
    correlated: bool = False

    judged: ClassVar[tuple[str, ...]] = ()

    @property
    def passes(self) -> int:
        """Passes over the data to fit."""
        return 2 if self.correlated else 1

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks."""
        return self.columns

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        require_number(self, "scale", above=0)
        require_flag(self, "correlated")

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table: none to speak of."""
        return 0.0

    def check(self, table: tables.Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        require_numeric(table.masked_schema, self.columns, _WHO)
        require_spread_by_footers(table, self.columns, _WHO)

    def fit(self, table: Any, *, key: str | bytes | Subkey | None = None, seed: int | None = None) -> FittedNoise:
        """Learn the standard deviations, in one pass."""
        source = tables.as_table(table, _WHO)
        secret = make_key(_WHO, key=key, seed=seed)
        self.check(source)
        moments = source.reduce(self.columns, column_moments, merge_moments, "noise: standard deviations")
        require_spread(moments, self.columns, _WHO)
        deviations = dict(zip(self.columns, (self.scale * moments.sd).tolist(), strict=True))
        if not all(0.0 < deviation < math.inf for deviation in deviations.values()):
            raise JobError(f"{_WHO}: scale {self.scale:g} makes the noise of a column infinite or nothing.")
        kinds = {column: source.masked_schema.field(column).type for column in self.columns}
        fitted = FittedNoise(
            self,
            deviations,
            {column: float(rounding_step(kind)) for column, kind in kinds.items()},
            self._held(moments, deviations, kinds),
            self._mixing(source) if self.correlated else None,
            secret.subkey(self._purpose(source, moments)),
        )
        for warning in fitted.warnings():
            warnings.warn(warning, stacklevel=2)
        return fitted

    def _purpose(self, source: tables.Table, moments: Moments) -> str:
        """What the draws are for: another scale or table must draw anew, or two releases give the originals away."""
        kind = "correlated noise" if self.correlated else "noise"
        return f"{kind} {self.scale!r} {told_apart(source, self.columns, moments.values, moments.low, moments.high)}"

    def _mixing(self, source: tables.Table) -> Floats:
        """What turns independent draws into draws with the correlations of the complete records."""
        seen = source.reduce(self.columns, covariance_sums, merge_covariance_sums, "noise: correlations")
        if seen.complete < _FEWEST:
            raise InputError(f"{_WHO}: correlated noise needs at least {_FEWEST} complete records.")
        variances = np.diag(seen.covariance)
        sd = np.sqrt(np.where(variances > 0.0, variances, 1.0))
        correlations = seen.covariance / np.outer(sd, sd)
        np.fill_diagonal(correlations, 1.0)
        return mixing_matrix(correlations)

    def _held(self, moments: Moments, deviations: Mapping[str, float], kinds: Mapping[str, Any]) -> tuple[str, ...]:
        """Columns whose noisy values would leave the range of their type."""
        held = []
        for number, (column, kind) in enumerate(kinds.items()):
            low, high = type_range(kind)
            reach = _REACH * deviations[column]
            if moments.low[number] - reach < low or moments.high[number] + reach > high:
                held.append(column)
        return tuple(held)


@dataclass(frozen=True)
class FittedNoise(FittedColumns):
    """Noise ready to be added: its standard deviation and the rounding unit of each column, the key of the draws."""

    method: NoiseAddition
    deviations: Mapping[str, float]
    units: Mapping[str, float]
    held: tuple[str, ...]
    mixing: Floats | None
    key: Subkey

    who: ClassVar[str] = _WHO

    def check(self, table: tables.Table) -> None:
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
        held = f" Values of {', '.join(self.held)} were held to the range of their type, which shifts their moments."
        return (
            f"Normal noise with a standard deviation of {self.method.scale:g} times that of the column was added to "
            f"each value of {', '.join(self.method.columns)}. Means are unbiased; variances are larger by the factor "
            f"{1 + self.method.scale**2:.6g}, {self._on_correlations()}. Integers and decimals were rounded to their "
            "type. Noisy values may lie where real ones cannot, such as below zero." + (held if self.held else "")
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
        held = [
            f"{_WHO}: noise would take values of '{column}' out of the range of its type; they are held at its ends, "
            "which shifts mean and variance. Write the column as a wider or signed type."
            for column in self.held
        ]
        return held + [
            f"{_WHO}: about {share:.1%} of the values of '{column}' stay as they are: noise is smaller than the step "
            "of its type. Raise scale, or mask it by another method."
            for column, share in kept.items()
            if share > _MOSTLY
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            "Noise keeps each record near its original: who knows some values may still link it. Measure the linkage.",
            "Noise drawn for each column by itself can partly be filtered out where columns depend on each other."
            if self.mixing is None
            else "The size of the noise is public, and its correlations are those of the release.",
            *self.warnings(),
        ]
