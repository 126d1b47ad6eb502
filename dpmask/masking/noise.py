"""Additive noise: every value gets a normal draw, N(0, (scale * sd)^2), of its own.

Protects against: reading off a person's exact value. Does not protect against: linkage. A masked record stays near its
original, the nearer the smaller ``scale``; outliers stay outliers; noise that is drawn for each column by itself is
filtered out again where columns depend on each other, and correlated noise leaves what they say about each other as it
is, so that records are linked by it (``noise_filter`` measures both, in every job).

Means are kept in expectation; each variance grows by the factor 1 + scale^2 and correlations shrink by the same factor.
``correlated`` noise is drawn with the columns' own correlations: these are kept in expectation, and so are sums such as
net + tax = gross in columns of floats; every covariance grows by 1 + scale^2.

``bounds`` reflect noisy values: none is beyond, no mass piles up at the bound, but means move away from it, by as much
as the statement says. Zeros may be left alone (``zeros``), ``by`` takes the standard deviations of strata.

Integer and decimal columns keep their type: the noisy value is rounded to it, so noise well below one unit of such
a column changes few values. Where zeros are left alone, no other value is rounded to zero: it is released as one unit,
up or down. Missing values stay missing.

Paper: Torra, Endo and Miyamoto 2009, where scale is p and sd is s. Passes over the data: one for the standard
deviations, one more for correlations, one to mask. Memory per task: one block and three columns of it; twice the block
where noise is correlated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dpmask.constraints.column_strata import ColumnStrata
from dpmask.constraints.zeros import AUTO, MASK, describe_kept
from dpmask.engine.draws import Subkey, record_normals
from dpmask.errors import InputError, JobError, nearest
from dpmask.kernels.arrays import Floats
from dpmask.kernels.covariance import covariance_sums, merge_covariance_sums
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.noise import (
    FEWEST_VALUES,
    add_noise,
    apart_from_zero,
    mixed,
    mixing_matrix,
    reflected,
    reflection_bias,
)
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.lake.reading import Rows
from dpmask.masking.column_method import StratifiedColumnMethod, column_key
from dpmask.masking.method import FittedMethod
from dpmask.masking.movable import ParameterRange, Trial
from dpmask.parameters import Bounds, Names, Several, require_columns, require_flag, require_number
from dpmask.table.columns import floats, room, rounding_step, type_range, with_floats
from dpmask.table.table import Table

_MOSTLY = 0.5
_FEWEST = 2
_REACH = 4.0  # standard deviations of noise that are allowed for
_WIDTH = 6.0  # between two bounds, at least


@dataclass(frozen=True, kw_only=True)
class NoiseAddition(StratifiedColumnMethod["FittedNoise"]):
    """Normal noise added to every value, drawn record by record.

    Parameters
    ----------
    columns
        The columns of numbers to mask.
    scale
        The noise's standard deviation, as a share of each column's own (the paper's p).
    correlated
        Draw the noise with the correlations of the columns, not for each column by itself.
    bounds
        For some columns the smallest and the largest value, None for no bound: noisy values beyond are reflected.
    by
        Columns that make strata, whose standard deviations the noise is a share of: "sex", or {"age": [15, 25, 65]}
        for bands, or {"region": a taxonomy}.
    zeros
        "keep": zeros stay as they are, and the noise is a share of the deviation of the others; "mask": they are values
        as any other; "auto", the default: those of columns of which at least 5 % are zero stay, unless the noise is
        correlated.

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

    columns: Names
    scale: float
    correlated: bool = False
    bounds: Bounds = field(default_factory=dict)
    by: Several = ()
    zeros: str = AUTO

    neutral: ClassVar[tuple[str, ...]] = ("bounds", "by", "zeros")
    once_default: ClassVar[Mapping[str, Any]] = {"zeros": MASK}
    ranges: ClassVar[Mapping[str, ParameterRange]] = {
        "scale": ParameterRange(
            0.01, 4, trial=Trial("the scale sets risk and loss; correlated columns need more than the score suggests")
        )
    }

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        require_number(self, "scale", above=0)
        require_flag(self, "correlated")
        self.settle_strata()
        self._settle_bounds()

    def _settle_bounds(self) -> None:
        if not isinstance(self.bounds, Mapping):
            raise JobError(f"{self.who}: bounds must name columns, such as {{wage: [0, null]}}; got {self.bounds!r}.")
        for column, given in self.bounds.items():
            if column not in self.columns:
                raise JobError(f"{self.who}: bounds name '{column}'. {nearest(str(column), self.columns)}")
            if not _is_pair(given):
                raise JobError(
                    f"{self.who}: bounds of '{column}' must be [smallest, largest], null for none; got {given!r}."
                )
        object.__setattr__(self, "bounds", {name: tuple(given) for name, given in self.bounds.items()})

    @property
    def on_zeros(self) -> str:
        """Zeros without noise would break the sums that correlated noise keeps: they stay only if the job says so."""
        return MASK if self.correlated and self.zeros == AUTO else self.zeros

    @property
    def kernels(self) -> KernelUse:
        """What it runs."""
        return KernelUse((Task("normals"),))

    @property
    def passes(self) -> int:
        """Passes over the data to fit."""
        return 1 + self.correlated + 2 * self.stratified + bool(self.bounds)

    def attacks(self) -> Mapping[str, Mapping[str, Any]]:
        """An intruder who filters the noise out."""
        known = {"scale": float(self.scale), "correlated": self.correlated, "by": list(self.by), "zeros": self.zeros}
        return {"noise_filter": {"columns": list(self.masks), **known}}

    def require_inside(self, moments: Moments) -> None:
        """Refuse values beyond the bounds of their column."""
        for number, column in enumerate(self.columns):
            low, high = self.limits(column)
            if moments.low[number] < low or moments.high[number] > high:
                raise InputError(f"{self.who}: column '{column}' has values outside its bounds. Widen them.")

    def limits(self, column: str) -> tuple[float, float]:
        """A column's bounds, infinite where there are none."""
        low, high = self.bounds.get(column, (None, None))
        return -math.inf if low is None else low, math.inf if high is None else high

    def fit_table(self, table: Table, key: Subkey) -> FittedNoise:
        """Learn the standard deviations, in one pass, and the correlations in another."""
        moments = self.moments(table, "noise: standard deviations")
        deviations = dict(zip(self.columns, (self.scale * moments.sd).tolist(), strict=True))
        if not all(0.0 < deviation < math.inf for deviation in deviations.values()):
            raise JobError(f"{self.who}: scale {self.scale:g} makes the noise of a column infinite or nothing.")
        kinds = {column: table.masked_schema.field(column).type for column in self.columns}
        strata = self.column_strata(table, moments, FEWEST_VALUES)
        fitted = FittedNoise(
            self,
            deviations,
            {column: float(rounding_step(kind)) for column, kind in kinds.items()},
            _clipped(moments, deviations, kinds, self.bounds),
            self._mixing(table) if self.correlated else None,
            key,
            strata,
            {} if strata is None else self._within(strata.moments(table, "noise: strata"), moments),
        )
        return replace(fitted, bias=self._bias(table, fitted, moments)) if self.bounds else fitted

    def _within(self, strata: Mapping[str, Moments], whole: Moments) -> dict[str, Floats]:
        """The deviations of each stratum; where its values are all the same, those of the column."""
        pairs = zip(strata.items(), whole.sd.tolist(), strict=True)
        return {name: self.scale * np.where(some.sd > 0.0, some.sd, sd) for (name, some), sd in pairs}

    def _bias(self, table: Table, fitted: FittedNoise, moments: Moments) -> dict[str, float]:
        """What reflection adds to each bounded column's mean, in its standard deviations; one pass."""
        self.require_inside(moments)
        for column in self.columns:
            low, high = self.limits(column)
            if high - low < _WIDTH * fitted.deviations[column]:
                raise JobError(f"{self.who}: bounds of '{column}' lie within six deviations of its noise.")
        names = [*self.columns, *self.strata.columns]
        sums = table.select(names).reduce(fitted.bias_sums, np.add, "noise: bias")
        pairs = zip(self.columns, sums / moments.values / moments.sd, strict=True)
        return {name: float(bias) for name, bias in pairs if name in self.bounds}

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


def _is_pair(given: Any) -> bool:
    """Whether these are two bounds, one of them a number, the smaller first."""
    if not isinstance(given, list | tuple) or len(given) != 2:  # noqa: PLR2004
        return False
    numbers = [one for one in given if one is not None]
    plain = all(isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) for one in numbers)
    return bool(numbers) and plain and numbers == sorted(set(numbers))


def _clipped(
    moments: Moments,
    deviations: Mapping[str, float],
    kinds: Mapping[str, Any],
    bounds: Bounds,
) -> tuple[str, ...]:
    """Columns whose noisy values would leave the range of their type; a bound keeps them in."""
    clipped = []
    for number, (column, kind) in enumerate(kinds.items()):
        low, high = type_range(kind)
        reach = _REACH * deviations[column]
        below, above = bounds.get(column, (None, None))
        lowest = moments.low[number] - reach if below is None else below
        highest = moments.high[number] + reach if above is None else above
        if lowest < low or highest > high:
            clipped.append(column)
    return tuple(clipped)


def _range(limits: tuple[float, float]) -> str:
    low, high = limits
    if math.isinf(high):
        return f"{low:g}"
    return f"{high:g}" if math.isinf(low) else f"{low:g} and {high:g}"


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
    strata: ColumnStrata | None = None
    within: Mapping[str, Floats] = field(default_factory=dict)
    """The deviations of each stratum."""
    bias: Mapping[str, float] = field(default_factory=dict)
    """What reflection adds to the means of bounded columns, in standard deviations."""

    def check(self, table: Table) -> None:
        """Refuse a table that noise cannot be added to."""
        self.method.check(table)

    def require_promises(self, table: Table) -> None:
        """Refuse values beyond the bounds: they would stay there."""
        super().require_promises(table)
        if self.method.bounds:
            self.method.require_inside(table.reduce(self.changes, column_moments, merge_moments, "noise: bounds"))

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block with noise."""
        original = rows
        for column, normals in self._normals(rows.num_rows, first):
            values, deviations = self._deviations(original, column)
            noisy = reflected(add_noise(values, normals, deviations), *self.method.limits(column))
            if self.strata is not None and column in self.strata.zeros:
                noisy = apart_from_zero(noisy, values, self.units[column], *self._ends(rows, column))
            rows = with_floats(rows, column, noisy)
        return rows

    def _ends(self, rows: Rows, column: str) -> tuple[float, float]:
        """What released values of a column lie between, by its bounds and its type."""
        (below, above), (low, high) = self.method.limits(column), type_range(rows.schema.field(column).type)
        return max(below, low), min(above, high)

    def _deviations(self, rows: Rows, column: str) -> tuple[Floats, float | Floats]:
        """A block's values and the deviation of their noise: none for zeros that are kept."""
        if self.strata is None:
            return floats(rows, column), self.deviations[column]
        values, strata = self.strata.of(rows, column)
        return values, np.append(self.within[column], 0.0)[strata]

    def bias_sums(self, rows: Rows) -> Floats:
        """What reflection adds to the sum of each column of a block, in expectation."""
        sums = []
        for column in self.changes:
            values, deviations = self._deviations(rows, column)
            spread = np.broadcast_to(deviations, values.shape)
            noisy = np.flatnonzero(~np.isnan(values) & (spread > 0.0))
            sums.append(reflection_bias(values[noisy], spread[noisy], *self.method.limits(column)).sum())
        return np.array(sums)

    def _normals(self, count: int, first: int) -> Iterator[tuple[str, Floats]]:
        """The draws of each column."""
        zeros = self.method.zeros
        keys = {column: column_key(self.key, column, self.strata, zeros) for column in self.deviations}
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
            "type. Noisy values may lie where real ones cannot, such as below zero."
            + (clipped if self.clipped else "")
            + "".join(self._particulars())
        )

    def for_analysts(self) -> list[str]:
        """How much variances are inflated and correlations attenuated."""
        names, factor = ", ".join(self.method.columns), 1 + self.method.scale**2
        correlated = (
            f"correlations among them are kept, those with other columns must be multiplied by {factor**0.5:.4g}"
            if self.mixing is not None
            else f"correlations between two of them must be multiplied by {factor:.4g}, those with other columns by "
            f"{factor**0.5:.4g}"
        )
        strata = " within strata" if self.method.by else ""
        biased = f" Means of {', '.join(self.bias)} are biased, as stated." if self.bias else ""
        kept = ", ".join(self.strata.zeros) if self.strata else ""
        biased += f" Of {kept} all of this holds among values that are not zero; zeros are exact." if kept else ""
        return [
            f"Variances of {names} are inflated: divide them by {factor:.4g}{strata}; {correlated}; slopes of "
            f"regressions on one of them by {factor:.4g}. Totals and means are unbiased, and none is exact.{biased}"
        ]

    def _particulars(self) -> list[str]:
        """What differs by strata, zeros and bounds."""
        found = []
        if self.method.by:
            names = ", ".join(one.column for one in self.method.strata.classings)
            found.append(f" The standard deviations are those of strata by {names}, small ones joined.")
        kept = describe_kept(self.strata.zeros if self.strata else (), self.method.zeros)
        if kept:
            found.append(f" {kept} The noise is a share of the deviation of all other values.")
        return found + [
            f" Values of {name} beyond {_range(self.method.limits(name))} were reflected there, which moves the mean "
            f"of the column by about {bias:+.2g} standard deviations."
            for name, bias in self.bias.items()
        ]

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
        rounded = [
            f"{self.who}: about {share:.1%} of the values of '{column}' stay as they are: noise is smaller than the "
            "step of its type. Raise scale, or mask it by another method."
            for column, share in kept.items()
            if share > _MOSTLY
        ]
        return [*clipped, *(self.strata.joined() if self.strata else ()), *rounded]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            "Noise keeps each record near its original: an intruder who knows some values may still link it. Measure "
            "the linkage.",
            "Noise drawn for each column by itself can be filtered out where columns depend on each other: "
            "noise_filter measures how much of it."
            if self.mixing is None
            else "The size of the noise is public, and its correlations are those of the release: records are linked "
            "by what columns say about each other. noise_filter measures it.",
            *self.warnings(),
        ]
