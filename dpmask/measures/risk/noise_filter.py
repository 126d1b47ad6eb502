"""Noise filter: an intruder who knows the size of additive noise takes it out again, then reads and links.

The intruder sees the noisy values only, knows the noise's scale and whether it is correlated, and so its covariance N;
the released covariance less N is that of the originals, and the Wiener filter the best linear estimate of every value
(dpmask/kernels/linkage/filtering.py). Where many columns follow few factors, most of the noise goes. Then

* ``disclosed``: values within 1 to 10 % of a standard deviation of their estimate, on average, as interval_disclosure
  counts them; ``error``: root mean square error of the estimates in standard deviations;
* ``rate``: persons whose own record has the nearest estimate, in units of the filter's own error (that is the masked
  record whose original most likely was theirs); or the nearest noisy value, if that finds more.

The same without the filter stands beside each. A sample of persons is linked, against all masked records; errors are
over all complete records. Passes: two over both tables. Memory per task: one block; the sample travels with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.covariance import CovarianceSums, covariance_sums, merge_covariance_sums
from dpmask.kernels.hash_sample import HashSample, hash_sample, merge_hash_samples, position_words
from dpmask.kernels.intervals import PERCENTS
from dpmask.kernels.linkage.filtering import NoiseFilter, noise_covariance, unfiltered, wiener
from dpmask.kernels.linkage.neighbours import Nearest, Queries, merge_nearest, nearest
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.kernels.wilson import wilson
from dpmask.measures.measure import Measure, require_integers, timed
from dpmask.results import LESS_RISK, MORE_RISK, RATE, Interval, Risk, Term
from dpmask.table.checks import require_spread
from dpmask.table.pairs import POSITION, pair_numbers
from dpmask.table.table import Frame

_WHO = "noise_filter"
_MOST_SAMPLED = 100_000
_FEWEST = 2
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
    pairs, names = pair_numbers(original, masked, columns, _WHO, marks=True)
    both = pairs.floats([*names, POSITION])
    first = both.reduce(partial(_first, sample, seed), partial(_merge_first, sample), f"{_WHO}: covariances")
    if first.after.complete < _FEWEST:
        raise InputError(f"{_WHO}: at least {_FEWEST} records must be complete before and after masking.")
    require_spread(first.before, columns, _WHO)
    noise = noise_covariance(first.after.covariance, scale, correlated)
    filters = (wiener(first.after.mean, first.after.covariance, noise), unfiltered(first.after.mean, noise))
    link = partial(_link, filters, first.persons, first.before.sd)
    return _result(both.reduce(link, _merge_links, f"{_WHO}: link"), first, len(columns))


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
    after: CovarianceSums
    persons: HashSample


def _complete(columns: list[Floats]) -> tuple[Floats, Floats, Floats]:
    """Records without a missing or infinite value: original, masked, and their positions."""
    values = np.array(columns)
    values = values[:, np.isfinite(values).all(axis=0)]
    return *np.split(values[:-1], 2), values[-1]


def _first(sample: int, seed: int, columns: list[Floats]) -> _First:
    x, y, positions = _complete(columns)
    persons = hash_sample(*position_words(positions, seed), x, sample)
    return _First(column_moments(list(x)), covariance_sums(list(y)), persons)


def _merge_first(sample: int, left: _First, right: _First) -> _First:
    return _First(
        merge_moments(left.before, right.before),
        merge_covariance_sums(left.after, right.after),
        merge_hash_samples(left.persons, right.persons, sample),
    )


class _Links(NamedTuple):
    """With a filter: squared errors in units of sd, values disclosed at each width, and who is nearest to persons."""

    squares: float
    close: NDArray[np.int64]
    found: Nearest


def _link(filters: Sequence[NoiseFilter], persons: HashSample, sd: Floats, columns: list[Floats]) -> list[_Links]:
    return [_linked(one, persons, sd, *_complete(columns)) for one in filters]


def _linked(one: NoiseFilter, persons: HashSample, sd: Floats, x: Floats, y: Floats, positions: Floats) -> _Links:
    estimates = one.estimates(y)
    gaps = np.abs(estimates - x) / sd[:, None]
    own = persons.positions.astype(np.float64)
    queries = Queries(one.turned(persons.values), persons.positions, own)
    found = nearest(queries, one.turned(estimates), positions, 0, 0.0)
    close = np.array([(gaps <= percent / 100).sum() for percent in PERCENTS], np.int64)
    return _Links(float((gaps**2).sum()), close, found)


def _merge_links(left: list[_Links], right: list[_Links]) -> list[_Links]:
    return [
        _Links(a.squares + b.squares, a.close + b.close, merge_nearest(a.found, b.found))
        for a, b in zip(left, right, strict=True)
    ]


def _result(found: list[_Links], first: _First, columns: int) -> FilteredNoise:
    records = int(first.before.values[0])
    linked = [float((one.found.right[0] / np.maximum(one.found.ties[0], 1)).mean()) for one in found]
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
    function=noise_filter, result=FilteredNoise, passes=2, varied=True, kernels=KernelUse((Task("neighbours"),))
)
