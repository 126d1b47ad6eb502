"""Among how many records a person is left to an intruder who has several releases of the same people.

The groups of a release are rows of nodes, and what is released as it is (a value here) stands beside them. Who knows a
person's columns knows the person's group in every release that holds the person. Fung, Wang, Fu and Pei 2008 count the
records of such a group that cannot be the person's, as no other release has a record to match them (BCF-anonymity):

* forward and cross attack, of a person in both: sum over values of min(n1(q1, v), n2(q2, v)) records are left,
* backward attack, of a person who is new in the second: sum over values of min(n2(q2, v), new(K, v)), K being all
  groups of both releases that are comparable to q2, directly or through others,
* of a person in more than two: the sum over values of the least n(q, v), a bound that is not proven to be tight.

These forms are exact where all releases are cuts of the same trees: then one of two nodes of a column contains the
other or they are disjoint, and K is a row of the larger ones. Here a node is the range of codes from its lowest one on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Flags
from dpmask.kernels.keys import RowKeys, grouped, new_keys, with_word

_EXPANDED = 1 << 22  # values of groups that are compared at a time
_NOBODY = np.iinfo(np.int64).max

Lows = Sequence[Counts]
"""For each column the lowest code of the node of each code."""


class SeriesPeople(NamedTuple):
    """People by their codes (columns x rows), the number of the values beside them, below ``size``, and their block.

    Those of a block were released together for the first time. ``counts``: how many people a row stands for.
    """

    codes: NDArray[np.uint16]
    values: Counts
    size: int
    blocks: Counts
    counts: Counts


class PastRelease(NamedTuple):
    """A release of some of these people: whether it holds each block, and its cut of each column."""

    holds: Flags
    lows: tuple[Counts, ...]


class Touched(NamedTuple):
    """A refinement: the number of the column, and the codes of the node, from ``low`` to below ``high``."""

    column: int
    low: int
    high: int


class TrueSizes(NamedTuple):
    """The records that people are left among, by groups, and how many people are in each.

    ``release``: the number of the earlier release, None for all jointly; ``new``: of those who are not in that one.
    """

    release: int | None
    new: bool
    sizes: Counts
    people: Counts

    @property
    def least(self) -> int:
        """The least; of nobody, more than there can be."""
        return int(self.sizes.min(initial=_NOBODY))

    def below(self, k: int) -> int:
        """How many people are left among fewer than k."""
        return int(self.people[self.sizes < k].sum())


class Lists(NamedTuple):
    """The values of each group with their counts: keys group * size + value in order, and where each group starts."""

    keys: Counts
    counts: Counts
    starts: Counts

    def found(self, keys: Counts) -> Counts:
        """The counts of these keys, 0 where there are none."""
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.counts[places], 0)


def listed(groups: Counts, number: int, values: Counts, size: int, counts: Counts) -> Lists:
    """The values, below ``size``, of each of so many groups."""
    keys = groups * size + values
    order = np.argsort(keys)
    firsts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    found = keys[order[firsts]]
    totals = np.add.reduceat(counts[order], firsts) if len(firsts) else np.empty(0, np.int64)
    return Lists(found, totals, np.searchsorted(found, np.arange(number + 1) * size))


def shared(lists: Sequence[Lists], owners: Sequence[Counts], size: int) -> Counts:
    """For each row of owners, one group of each list or -1, the sum over all values of the least count."""
    pairs = list(zip(lists, owners, strict=True))
    lengths = np.array([np.where(own < 0, _NOBODY, one.starts[own + 1] - one.starts[own]) for one, own in pairs])
    shortest = lengths.argmin(axis=0)
    sums = np.zeros(len(owners[0]), np.int64)
    for number, base in enumerate(lists):
        some = np.flatnonzero(shortest == number)
        ends = np.cumsum(lengths[number, some])
        for part in np.split(
            some, np.searchsorted(ends, np.arange(_EXPANDED, ends[-1] if len(ends) else 0, _EXPANDED))
        ):
            if not len(part):
                continue
            length = lengths[number, part]
            begins = np.cumsum(length) - length
            row = np.repeat(np.arange(len(part)), length)
            at = np.arange(len(row)) + (base.starts[owners[number][part]] - begins)[row]
            least, values = base.counts[at], base.keys[at] % size
            for other, own in pairs:
                group = own[part][row]
                if other is not base:
                    least = np.where(group < 0, least, np.minimum(least, other.found(group * size + values)))
            sums[part] = np.add.reduceat(least, begins)
    return sums


class PastGroups:
    """What earlier releases made of the people, by some columns: fixed, while a cut of a new release is looked for."""

    def __init__(self, people: SeriesPeople, columns: Sequence[int], releases: Sequence[PastRelease]) -> None:
        self.people, self.columns, self.releases = people, list(columns), list(releases)
        self.lists: list[Lists] = []
        self.fresh = [np.flatnonzero(~one.holds[people.blocks]) for one in releases]
        groups = np.full((len(releases), len(people.counts)), -1, np.int64)
        for place, one in enumerate(releases):
            held = np.flatnonzero(one.holds[people.blocks])
            numbers = self._numbers(one.lows, held)
            groups[place, held] = numbers
            number = int(numbers.max(initial=-1)) + 1
            self.lists.append(listed(numbers, number, people.values[held], people.size, people.counts[held]))
        pasts = grouped(_words(groups))
        self.past = pasts.numbers()
        self.pasts = groups[:, pasts.firsts]

    def _numbers(self, lows: Lows, rows: NDArray[np.intp]) -> Counts:
        return grouped(self._keys(lows, rows)).numbers()

    def _keys(self, lows: Lows, rows: NDArray[np.intp]) -> RowKeys:
        return _words([lows[column][self.people.codes[column, rows]] for column in self.columns], len(rows))

    def sizes(self, lows: Lows, touched: Touched | None = None, *, pairs: bool = False) -> Iterator[TrueSizes]:
        """What is left of all groups, or of those that a refinement touched: by all releases jointly, then by each.

        ``pairs``: also what each of them leaves alone, which is at least what all leave jointly.
        """
        people, rows = self.people, np.arange(len(self.people.counts))
        if touched is not None:
            codes = people.codes[touched.column]
            rows = np.flatnonzero((codes >= touched.low) & (codes < touched.high))
        groups = self._numbers(lows, rows)
        number = int(groups.max(initial=-1)) + 1
        now = listed(groups, number, people.values[rows], people.size, people.counts[rows])
        both = grouped(_words([self.past[rows], groups]))
        owners = self.pasts[:, self.past[rows[both.firsts]]]
        inside, counts = groups[both.firsts], both.sums(people.counts[rows])
        known = (owners >= 0).any(axis=0)
        owners, inside, counts = owners[:, known], inside[known], counts[known]
        if len(inside):
            yield TrueSizes(None, False, shared([now, *self.lists], [inside, *owners], people.size), counts)
        for place, one in enumerate(self.lists):
            held = owners[place] >= 0
            if pairs and held.any():
                left = shared([now, one], [inside[held], owners[place, held]], people.size)
                yield TrueSizes(place, False, left, counts[held])
        place_of = np.full(len(people.counts), -1)
        place_of[rows] = groups
        for place in range(len(self.releases)):
            found = self._of_new(place, lows, touched, now, place_of)
            if found is not None:
                yield found

    def _of_new(self, place: int, lows: Lows, touched: Touched | None, now: Lists, groups: Counts) -> TrueSizes | None:
        """What is left of the people whom a release does not hold; None if they are none."""
        people, past, fresh = self.people, self.releases[place].lows, self.fresh[place]
        if touched is not None:  # the groups that are comparable to those of the node may reach beyond it
            near = past[touched.column] == past[touched.column][touched.low]
            near[touched.low : touched.high] = True
            fresh = fresh[near[people.codes[touched.column, fresh]]]
        concerned = groups[fresh] >= 0
        if not concerned.any():
            return None
        joined = [np.minimum(one, other) for one, other in zip(lows, past, strict=True)]
        comparable = self._numbers(joined, fresh)
        number = int(comparable.max()) + 1
        new = listed(comparable, number, people.values[fresh], people.size, people.counts[fresh])
        inside, numbers = np.unique(groups[fresh[concerned]], return_inverse=True)
        around = np.empty(len(inside), np.int64)
        around[numbers] = comparable[concerned]
        counts = np.bincount(numbers, people.counts[fresh[concerned]], len(inside)).astype(np.int64)
        return TrueSizes(place, True, shared([now, new], [inside, around], people.size), counts)


def _words(columns: Sequence[Counts] | NDArray[np.int64], rows: int | None = None) -> RowKeys:
    keys = new_keys(len(columns[0]) if rows is None else rows)
    for one in columns:
        keys = with_word(keys, np.asarray(one, np.int64).view(np.uint64))
    return keys


def nested(one: Counts, other: Counts) -> bool:
    """Whether of two cuts of one column each node contains one of the other, or lies in it."""
    ends, others = _highs(one), _highs(other)
    return bool((((one <= other) & (ends >= others)) | ((other <= one) & (others >= ends))).all())


def _highs(lows: Counts) -> Counts:
    starts = np.unique(lows)
    return np.append(starts[1:], len(lows))[np.searchsorted(starts, lows)]
