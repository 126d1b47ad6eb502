"""What several releases of the same people show together: sums of their values, and counts of their groups.

Release 0 is the newest; a person may be missing in others. A pattern says which of them hold a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Flags, Floats, Integers, Words
from dpmask.kernels.covariance import CovarianceSums, covariance_sums, linear_estimate, merge_covariance_sums
from dpmask.kernels.intervals import PERCENTS
from dpmask.kernels.keys import RowKeys, grouped, new_keys, with_word
from dpmask.kernels.series import listed, shared

Pattern = tuple[bool, ...]
_ESTIMATES = 4


class ValueSums(NamedTuple):
    """Covariances of originals and all releases, by pattern; and what the totals of releases differ by.

    ``by_pattern`` has the originals, then the releases that hold these people. ``differences``: the newest release's
    total less each earlier one's (releases x columns); ``new``: the original total of people whom that one lacks,
    ``people`` how many they are.
    """

    by_pattern: Mapping[Pattern, CovarianceSums]
    differences: Floats
    new: Floats
    people: Counts


def value_sums(original: Floats, releases: Floats, present: Flags) -> ValueSums:
    """Those of a block: originals (columns x people), releases x columns x people, and who is in which release."""
    by_pattern = {}
    for pattern, some in _patterns(present):
        parts = [original[:, some], *(one[:, some] for one in releases[np.array(pattern)])]
        by_pattern[pattern] = covariance_sums(list(np.concatenate(parts)))
    held = np.where(present[:, None, :], np.nan_to_num(releases), 0.0)
    lacking = (present[0] & ~present[1:]).astype(np.float64)
    totals = held.sum(axis=2)
    new = (lacking[:, None, :] * np.nan_to_num(original)).sum(axis=2)
    return ValueSums(by_pattern, totals[0] - totals[1:], new, lacking.sum(axis=1).astype(np.int64))


def _patterns(present: Flags) -> Iterator[tuple[Pattern, Integers]]:
    """Each pattern of people, and these."""
    keys = new_keys(present.shape[1])
    for words in np.packbits(present, axis=0):
        keys = with_word(keys, words.astype(np.uint64))
    found = grouped(keys)
    for some in np.split(found.order, found.starts[1:]):
        if len(some):
            yield tuple(present[:, some[0]].tolist()), np.sort(some)


def merge_value_sums(left: ValueSums, right: ValueSums) -> ValueSums:
    """Both together."""
    both = dict(left.by_pattern)
    for pattern, sums in right.by_pattern.items():
        both[pattern] = merge_covariance_sums(both[pattern], sums) if pattern in both else sums
    return ValueSums(both, left.differences + right.differences, left.new + right.new, left.people + right.people)


def near_counts(sums: ValueSums, sd: Floats, original: Floats, releases: Floats, present: Flags) -> Counts:
    """How many originals of people in several releases lie within each percentage of ``sd`` of an estimate.

    Estimates x columns x (percentages, and at last how many there are): the newest release, the best linear estimate by
    it alone, the mean of all releases that hold a person, the best linear estimate by these.
    """
    t = len(original)
    found = np.zeros((_ESTIMATES, t, len(PERCENTS) + 1), np.int64)
    for pattern, some in _patterns(present):
        if not pattern[0] or sum(pattern) < 2:  # noqa: PLR2004
            continue
        covariances = sums.by_pattern[pattern]
        values, held = original[:, some], releases[np.array(pattern)][:, :, some]
        alone = _first(covariances, 2 * t)
        estimates = (held[0], _fitted(alone, held[:1], t), held.mean(axis=0), _fitted(covariances, held, t))
        for number, estimate in enumerate(estimates):
            gap = np.abs(estimate - values) / sd[:, None]
            found[number, :, :-1] += (gap[:, None, :] <= PERCENTS[:, None] / 100).sum(axis=2)
            found[number, :, -1] += np.isfinite(values).sum(axis=1)
    return found


def _first(found: CovarianceSums, columns: int) -> CovarianceSums:
    """The sums of the first columns."""
    some = slice(columns)
    return found._replace(
        mean=found.mean[some],
        weight=found.weight[some],
        squares=found.squares[some],
        center=found.center[some],
        products=found.products[some, some],
    )


def _fitted(found: CovarianceSums, held: Floats, t: int) -> Floats:
    slope, constant = linear_estimate(found, t)
    inputs = np.concatenate(held)
    return (slope[:, :, None] * inputs).sum(axis=1) + constant[:, None]


class JointGroups(NamedTuple):
    """Different rows of groups in all releases and of values beside them, each once, and how many people have it.

    ``groups``: releases x 2 lanes x rows; ``present``: releases x rows.
    """

    groups: Words
    present: Flags
    values: RowKeys
    counts: Counts

    def each_once(self) -> JointGroups:
        """Equal rows as one."""
        keys = self.values
        for lanes, there in zip(self.groups, self.present, strict=True):
            for lane in lanes:
                keys = with_word(keys, lane, ~there)
        found = grouped(keys)
        rows = found.firsts
        return JointGroups(
            self.groups[:, :, rows], self.present[:, rows], self.values.at(rows), found.sums(self.counts)
        )

    def plus(self, other: JointGroups) -> JointGroups:
        """Both together."""
        return JointGroups(
            np.concatenate([self.groups, other.groups], axis=2),
            np.concatenate([self.present, other.present], axis=1),
            RowKeys(*(np.concatenate(pair) for pair in zip(self.values, other.values, strict=True))),
            np.concatenate([self.counts, other.counts]),
        ).each_once()

    def intersected(self, k: int) -> tuple[int, int]:
        """Of people in several releases, how many are left among fewer than k though no release has so few; and all.

        A person is left among the sum, over values, of the least number in any of the person's groups.
        """
        values, size = self._values()
        owners, lists, least = [], [], np.full(len(self.counts), np.iinfo(np.int64).max)
        for lanes, there in zip(self.groups, self.present, strict=True):
            own = np.full(len(self.counts), -1)
            own[there] = grouped(RowKeys(*lanes[:, there])).numbers()
            number = int(own.max(initial=-1)) + 1
            sizes = np.bincount(own[there], self.counts[there], number)
            least[there] = np.minimum(least[there], sizes[own[there]])
            owners.append(own)
            lists.append(listed(own[there], number, values[there], size, self.counts[there]))
        concerned = self.present[0] & (self.present.sum(axis=0) > 1)
        left = shared(lists, [own[concerned] for own in owners], size) if concerned.any() else np.empty(0)
        people = self.counts[concerned]
        return int(people[(left < k) & (least[concerned] >= k)].sum()), int(people.sum())

    def _values(self) -> tuple[Counts, int]:
        numbers = grouped(self.values).numbers()
        return numbers, int(numbers.max(initial=0)) + 1

    def new_among(self, different: Differences, k: int) -> tuple[Counts, Counts]:
        """For each earlier release the people whom it lacks, and how many of these are among few that differ.

        Those are fewer than k rows of a person's group that the earlier release has not, in a group of k or more.
        """
        count = len(different.groups.first)
        lanes = [np.concatenate(pair) for pair in zip(different.groups, self.groups[0], strict=True)]
        numbers = grouped(RowKeys(*lanes)).numbers()
        rows = np.zeros((len(different.rows), int(numbers.max(initial=-1)) + 1), np.int64)
        rows[:, numbers[:count]] = different.rows
        own, counts = numbers[count:], np.where(self.present[0], self.counts, 0)
        sizes = np.bincount(own, counts, rows.shape[1])
        new = np.where(self.present[1:], 0, counts)
        few = (rows > 0) & (rows < k) & (sizes >= k)
        return new.sum(axis=1), np.where(few[:, own], new, 0).sum(axis=1)


class Differences(NamedTuple):
    """Groups of the newest release, and how many of their rows each earlier release has not (releases x groups)."""

    groups: RowKeys
    rows: Counts

    def plus(self, other: Differences) -> Differences:
        """Both together."""
        return summed(
            RowKeys(*(np.concatenate(pair) for pair in zip(self.groups, other.groups, strict=True))),
            np.concatenate([self.rows, other.rows], axis=1),
        )


def summed(keys: RowKeys, counts: Counts) -> Differences:
    """Each key once, with its counts (kinds x rows) added up."""
    found = grouped(keys)
    return Differences(keys.at(found.firsts), np.array([found.sums(one) for one in counts]))


def differences(rows: RowKeys, groups: RowKeys, counts: Counts) -> Differences:
    """The rows of all releases (counts: releases x rows), as multisets: what of the newest each earlier one has not."""
    found = grouped(rows)
    each = np.array([found.sums(one) for one in counts])
    return summed(groups.at(found.firsts), np.maximum(each[0] - each[1:], 0))


def total_shares(sums: ValueSums, sd: Floats, k: int) -> Sequence[float]:
    """For each earlier release the share of widths by which the total of fewer than k new people is found.

    The worst column's; 0 where there are k or more, or nobody.
    """
    few = (sums.people > 0) & (sums.people < k)
    gap = np.abs(sums.differences - sums.new) / np.maximum(sums.people, 1)[:, None] / sd
    near = (gap[:, :, None] <= PERCENTS / 100).mean(axis=2).max(axis=1, initial=0.0)
    return [float(one) for one in np.where(few, near, 0.0)]
