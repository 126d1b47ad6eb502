"""Noise filter: an intruder who knows the size of additive noise takes it out again, then reads and links.

The intruder sees the noisy values only, knows the noise's scale and whether it is correlated, and so its covariance N;
the released covariance less N is that of the originals, and the Wiener filter the best linear estimate of every value
(dpmask/kernels/linkage/filtering.py). Where many columns follow few factors, most of the noise goes. Then

* ``disclosed``: values within 1 to 10 % of a standard deviation of their estimate, on average, as interval_disclosure
  counts them; ``error``: root mean square error of the estimates in standard deviations;
* ``rate``: persons whose own record has the nearest estimate, in units of the filter's own error (that is the masked
  record whose original most likely was theirs); or the nearest noisy value, if that finds more.

The same without the filter stands beside each. Where the noise is a share of a stratum's deviation (``by``), or zeros
have none (``zeros``), the intruder knows it (noise_values.py): values are filtered in units of their strata, each
pattern of zeros by itself, and a record of other strata is nobody's.

A sample of persons is linked, against all masked records; errors are over all complete records. Passes: two over both
tables, two more for strata. Memory per task: one block; the sample travels with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from dpmask.constraints.strata import StratumColumn
from dpmask.constraints.zeros import AUTO
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.covariance import CovarianceSums, covariance_sums, merge_covariance_sums
from dpmask.kernels.hash_sample import HashSample, hash_sample, merge_hash_samples, position_words
from dpmask.kernels.linkage.filtering import noise_covariance
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.kernels.wilson import wilson
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, require_integers, timed
from dpmask.measures.risk.known_strata import KnownStrata, known_zeros, pair_with_strata
from dpmask.measures.risk.noise_intruder import (
    FilterLinks,
    NoiseFilters,
    NoiseIntruder,
    linked_by_filters,
    merge_filter_links,
)
from dpmask.measures.risk.noise_values import NoisyValues, noise_units, noisy_values
from dpmask.results import LESS_RISK, MORE_RISK, RATE, Headline, Interval, Risk, Term
from dpmask.table.checks import require_spread
from dpmask.table.columns import require_numeric
from dpmask.table.pairs import POSITION, masked_name
from dpmask.table.table import Frame

_WHO = "noise_filter"
_MOST_SAMPLED = 100_000
_FEWEST = 2
_WIDE, _TILE = 100, 4096
"""From so many columns on, a block is read so many records at a time."""
_HUANG = "Huang, Du and Chen 2005, Deriving private information from randomized data"


@dataclass(frozen=True, kw_only=True)
class FilteredNoise(Risk):
    """``rate`` of records linked, ``disclosed`` values and ``error`` after filtering; each without it beside it."""

    rate: float
    disclosed: float
    error: float
    linked_unfiltered: float
    disclosed_unfiltered: float
    error_unfiltered: float
    records: int

    judged: ClassVar[tuple[str, ...]] = (
        "rate", "disclosed", "error", "linked_unfiltered", "disclosed_unfiltered", "error_unfiltered",
    )  # fmt: skip
    shares: ClassVar[tuple[str, ...]] = ("rate",)
    headlines: ClassVar[Sequence[Headline]] = [
        Headline("learned", "disclosed", "of the values are disclosed once the noise is filtered out"),
    ]
    about: ClassVar[Term] = Term(
        "What an intruder who knows the size of additive noise learns once it is filtered out: records linked, values "
        "disclosed, and the error that is left.",
        "Larger shares and smaller errors mean more risk.",
        _HUANG,
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "disclosed": Term(
            "Share of values within 1 to 10 % of a standard deviation of their estimate, on average.", MORE_RISK, _HUANG
        ),
        "error": Term("Root mean square error of the estimates, in standard deviations.", LESS_RISK, _HUANG),
        "linked_unfiltered": Term("The share of records linked by the noisy values.", MORE_RISK, _HUANG),
        "disclosed_unfiltered": Term("The share of values disclosed by the noisy values.", MORE_RISK, _HUANG),
        "error_unfiltered": Term("The root mean square error of the noisy values.", LESS_RISK, _HUANG),
    }

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """Wilson's of the links, but for a sample of all records."""
        names = ("rate", "linked_unfiltered")
        if self.attacked >= self.records:
            return {name: (getattr(self, name), getattr(self, name)) for name in names}
        return {name: wilson(getattr(self, name), self.attacked) for name in names}

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"Filtering takes the error of noisy values from {self.error_unfiltered:.3g} to {self.error:.3g} standard "
            f"deviations and the values disclosed from {self.disclosed_unfiltered:.2%} to {self.disclosed:.2%}; of "
            f"{self.attacked:,} persons {self.rate:.2%} are linked ({self.linked_unfiltered:.2%} without the filter), "
            f"where guessing links {self.guessing:.2g}. Larger shares and smaller errors mean more risk."
        )


@timed
def noise_filter(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    scale: float,
    correlated: bool = False,
    by: Sequence[StratumColumn] = (),
    zeros: str = AUTO,
    by_masked: Sequence[str] = (),
    sample: int = 1000,
    seed: int = 0,
) -> FilteredNoise:
    """What an intruder learns who knows the size of additive noise and filters it out.

    Parameters
    ----------
    original, masked
        The tables: frames are paired by index, lakes by position.
    columns
        The numeric columns that noise was added to.
    scale
        The noise's standard deviation as a share of each column's own: the parameter of ``noise``.
    correlated
        Whether the noise has the correlations of the columns.
    by, zeros
        The strata whose deviations the noise is a share of, and whether zeros have none: the parameters of ``noise``.
        "auto", the default: they have none in columns with many zeros, if all of these are still zero.
    by_masked
        Those of the strata's columns that were masked before: strata are of their masked values. In a job, by default
        those that an earlier step masks.
    sample
        How many persons are linked.
    seed
        Chooses the persons.

    Returns
    -------
    FilteredNoise
        Records linked, values disclosed and the error left, with and without the filter.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({name: [(7 * n) % 100 for n in range(100)] for name in "abcdefgh"})
    >>> masked = dpmask.NoiseAddition(columns=list("abcdefgh"), scale=0.5).fit(original, seed=7).mask(original)
    >>> found = dpmask.risk.noise_filter(original, masked, columns=list("abcdefgh"), scale=0.5)
    >>> found.error < found.error_unfiltered / 2
    True
    """
    _require(scale, correlated, sample, seed)
    pairs, strata = pair_with_strata(original, masked, columns, KnownStrata(by, zeros, by_masked), _WHO)
    names = [*columns, *map(masked_name, columns)]
    require_numeric(pairs.masked_schema, names, _WHO)
    units = noise_units(pairs, columns, strata, known_zeros(pairs, columns, zeros, _WHO), _WHO)
    both = pairs.select([*names, *strata.columns, POSITION])
    read, wide = partial(noisy_values, tuple(columns), units), len(columns) >= _WIDE
    merge, look = partial(_merge_first, sample), partial(_first, sample, seed, correlated and units is not None, wide)
    first = both.reduce(partial(_in_tiles, wide, read, merge, look), merge, f"{_WHO}: covariances")
    if first.after.complete < _FEWEST:
        raise InputError(f"{_WHO}: at least {_FEWEST} records must be complete before and after masking.")
    require_spread(first.before, columns, _WHO)
    intruder = NoiseIntruder(first.after.mean, first.released, _noise(first, scale, correlated), units is not None)
    link = partial(linked_by_filters, intruder, first.persons, first.before.sd)
    linked = both.reduce(partial(_linked_block, wide, read, link), merge_filter_links, f"{_WHO}: link")
    return _result(linked, first, len(columns))


def _in_tiles(
    wide: bool,
    read: Callable[[Rows], NoisyValues],
    merge: Callable[[Any, Any], Any],
    look: Callable[..., Any],
    rows: Rows,
) -> Any:
    """What ``look`` finds in a block; one of many columns is read some records at a time."""
    most = _TILE if wide else max(rows.num_rows, 1)
    return reduce(merge, (look(read(rows.slice(at, most))) for at in range(0, max(rows.num_rows, 1), most)))


def _linked_block(
    wide: bool, read: Callable[[Rows], NoisyValues], link: Callable[..., Any], rows: Rows
) -> list[FilterLinks]:
    filters: NoiseFilters = {}
    return cast("list[FilterLinks]", _in_tiles(wide, read, merge_filter_links, partial(link, filters), rows))


def _noise(first: _First, scale: float, correlated: bool) -> Floats:
    """The covariance of the noise; in units of strata it has the correlations of the originals as they are."""
    if first.originals is None:
        return noise_covariance(first.released, scale, correlated)
    sd = np.sqrt(np.diag(first.originals.covariance) / np.diag(first.released))
    return noise_covariance(first.originals.covariance / np.outer(sd, sd), scale, correlated)


def _require(scale: float, correlated: bool, sample: int, seed: int) -> None:
    require_integers(_WHO, 1, _MOST_SAMPLED, sample=sample)
    require_integers(_WHO, 0, 1 << 31, seed=seed)
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale < np.inf:
        raise JobError(f"{_WHO}: scale must be a number > 0; got {scale!r}.")
    if not isinstance(correlated, bool):
        raise JobError(f"{_WHO}: correlated must be true or false; got {correlated!r}.")


class _First(NamedTuple):
    """Moments of complete originals, covariances of their noisy values, and the persons attacked."""

    before: Moments
    originals: CovarianceSums | None  # where the noise has their correlations in units of strata
    after: CovarianceSums
    noisy: Floats  # columns x columns: how many records have noise in both
    persons: HashSample

    @property
    def released(self) -> Floats:
        """The covariance of noisy values, of each two columns over the records that have noise in both."""
        return self.after.products / np.maximum(self.noisy, 1.0)


def _first(sample: int, seed: int, correlated: bool, wide: bool, found: NoisyValues) -> _First:
    places = np.arange(float(len(found.positions)))[None]
    chosen = hash_sample(*position_words(found.positions, seed), places, sample)
    values = np.concatenate(
        [part[:, chosen.values[0].astype(np.int64)] for part in (found.known, found.masked, found.lines)]
    )
    persons = chosen._replace(values=values)
    noisy = (found.lines >= 0.0).astype(np.float64)
    return _First(
        column_moments(list(found.original)),
        covariance_sums(list(found.original), wide=wide) if correlated else None,
        covariance_sums(list(found.masked), wide=wide),
        np.full((len(noisy), len(noisy)), float(noisy.shape[1])) if noisy.all() else noisy @ noisy.T,
        persons,
    )


def _merge_first(sample: int, left: _First, right: _First) -> _First:
    return _First(
        merge_moments(left.before, right.before),
        left.originals and right.originals and merge_covariance_sums(left.originals, right.originals),
        merge_covariance_sums(left.after, right.after),
        left.noisy + right.noisy,
        merge_hash_samples(left.persons, right.persons, sample),
    )


def _result(found: list[FilterLinks], first: _First, columns: int) -> FilteredNoise:
    records = int(first.before.values[0])
    linked = [float(np.where(one.found > 0, 1.0 / np.maximum(one.found, 1), 0.0).mean()) for one in found]
    disclosed = [float(one.close.mean() / (records * columns)) for one in found]
    errors = [float(np.sqrt(one.squares / (records * columns))) for one in found]
    return FilteredNoise(
        rate=max(linked),
        disclosed=disclosed[0],
        error=errors[0],
        linked_unfiltered=linked[1],
        disclosed_unfiltered=disclosed[1],
        error_unfiltered=errors[1],
        guessing=1.0 / records,
        attacked=len(first.persons.words),
        records=records,
        parts={"linked with the filter": linked[0], "linked without it": linked[1]},
    )


MEASURE = Measure(
    function=noise_filter,
    result=FilteredNoise,
    passes=2,
    varied=True,
    kernels=KernelUse((Task("linkage"),), (Task("large trees"),)),
)
