"""An intruder who filters noise out of values, of which he knows the law, and links what is left to a register."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Flags, Floats, Integers
from dpmask.kernels.hash_sample import HashSample
from dpmask.kernels.intervals import PERCENTS
from dpmask.kernels.linkage.filtering import NoiseFilter, unfiltered, wiener
from dpmask.kernels.linkage.nearest import Masked, Metric, Radii, as_close, merge_found, own_radii
from dpmask.measures.risk.noise_values import NoisyValues, apart, patterns

NoiseFilters = dict[bytes, tuple[NoiseFilter, NoiseFilter]]
"""By the columns that have noise: with many, each takes seconds."""


class NoiseIntruder(NamedTuple):
    """What is known of noisy values: their mean and covariance, that of the noise, and whether there are strata."""

    mean: Floats
    released: Floats
    noise: Floats
    stratified: bool

    def filters(self, known: NoiseFilters, there: Flags) -> tuple[NoiseFilter, NoiseFilter]:
        """With and without filtering, of records with noise in these columns; ``known`` are those computed before."""
        code = there.tobytes()
        if code not in known:
            mean, released, noise = self.mean[there], self.released[there][:, there], self.noise[there][:, there]
            known[code] = wiener(mean, released, noise), unfiltered(mean, noise)
        return known[code]

    def estimates(self, filters: NoiseFilters, masked: Floats, lines: Floats) -> tuple[Floats, Floats]:
        """Originals by noisy values, with and without filtering; what has no noise is as it is."""
        found = masked.copy(), masked
        for there, records in patterns(lines):
            if there.any():
                some = np.ix_(there, records)
                found[0][some] = self.filters(filters, there)[0].estimates(masked[some])
        return found

    def turned(self, filters: NoiseFilters, values: Sequence[Floats], lines: Floats) -> tuple[Floats, Floats]:
        """Values in spaces in which each filter errs alike in all directions, and strata are far apart."""
        found = np.zeros(values[0].shape), np.zeros(values[0].shape)
        for there, records in patterns(lines):
            some = np.ix_(there, records)
            for turned, one, given in zip(
                found, self.filters(filters, there) if there.any() else (), values, strict=False
            ):
                turned[some] = one.turned(given[some])
        if not self.stratified:
            return found
        first, second = (np.concatenate([apart(lines), one]) for one in found)
        return first, second


class FilterLinks(NamedTuple):
    """With a filter: squared errors in units of sd, values disclosed at each width, and who is nearest to persons."""

    squares: float
    close: NDArray[np.int64]
    found: Integers  # for each person how many records are as near as the own one, or BEATEN


class _AttackedPersons(NamedTuple):
    """The persons attacked in the space of a filter, and how far their own masked records are."""

    known: Floats
    radii: Radii


def _attacked_persons(intruder: NoiseIntruder, filters: NoiseFilters, persons: HashSample) -> list[_AttackedPersons]:
    known, masked, lines = np.split(persons.values, 3)
    own = intruder.turned(filters, intruder.estimates(filters, masked, lines), lines)
    queries = intruder.turned(filters, (known, known), lines)
    points = slice(-len(known), None)  # what separates strata is so large that its rounding would count as near
    return [
        _AttackedPersons(one, own_radii(_metric(one[points]), one[points], other[points], np.empty((0, one.shape[1]))))
        for one, other in zip(queries, own, strict=True)
    ]


def _metric(points: Floats) -> Metric:
    return Metric(len(points), None, *np.empty((3, 0)))


def linked_by_filters(
    intruder: NoiseIntruder, persons: HashSample, sd: Floats, filters: NoiseFilters, found: NoisyValues
) -> list[FilterLinks]:
    """What filtering, and leaving it, finds in a block of records."""
    estimates = intruder.estimates(filters, found.masked, found.lines)
    records = intruder.turned(filters, estimates, found.lines)
    each = zip(estimates, records, _attacked_persons(intruder, filters, persons), strict=True)
    return [_linked(*one, found, sd) for one in each]


def _linked(estimates: Floats, records: Floats, asked: _AttackedPersons, found: NoisyValues, sd: Floats) -> FilterLinks:
    none = np.empty((0, records.shape[1]))
    near = as_close(_metric(records), asked.known, asked.radii, Masked(records, none, none), collapse=False)
    return FilterLinks(*_misses(estimates, found, sd), near)


def _misses(estimates: Floats, found: NoisyValues, sd: Floats) -> tuple[float, NDArray[np.int64]]:
    """The squared errors of estimates in units of sd, and how many are disclosed at each width."""
    gaps = np.abs(estimates - found.known)
    gaps *= found.unit / sd[:, None]
    close = np.array([np.count_nonzero(gaps <= percent / 100) for percent in PERCENTS], np.int64)
    return float(np.vdot(gaps, gaps)), close


def merge_filter_links(left: list[FilterLinks], right: list[FilterLinks]) -> list[FilterLinks]:
    """Those of two blocks."""
    return [
        FilterLinks(a.squares + b.squares, a.close + b.close, merge_found(a.found, b.found))
        for a, b in zip(left, right, strict=True)
    ]
