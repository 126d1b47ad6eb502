"""Records that match where a missing cell matches every value: two rows match if they agree wherever both have a value.

Matching is no grouping: a row with a missing cell matches rows that do not match each other. Complete rows are counted
by their keys; rows with missing cells are few, and each kind of them (which cells are missing) is compared with all
rows by the keys of the columns that both have. What a row's matches give away is counted over all of them, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Flags, Words
from dpmask.kernels.keys import RowKeys, grouped, new_keys, with_word


class PartialRows(NamedTuple):
    """Different rows: a word for each column (rows x columns), where a cell is missing, and how often each occurs.

    ``codes``: for each sensitive column the place of the row's value among all counts (rows x sensitive columns); one
    column of zeros where only records are counted.
    """

    words: Words
    missing: Flags
    times: Counts
    codes: Counts

    def at(self, some: Counts | Flags | slice) -> PartialRows:
        """Some of them."""
        return PartialRows(self.words[some], self.missing[some], self.times[some], self.codes[some])

    @property
    def partly(self) -> Flags:
        """Which rows have a missing cell."""
        return np.any(self.missing, axis=1)


def different_rows(rows: PartialRows) -> PartialRows:
    """Each different row once, in the order of their keys; rows with other sensitive values are others."""
    keys = whole_keys(rows)
    for column in rows.codes.T:
        keys = with_word(keys, np.ascontiguousarray(column).view(np.uint64))
    groups = grouped(keys)
    return rows.at(groups.firsts)._replace(times=groups.sums(rows.times))


def joined_rows(left: PartialRows, right: PartialRows) -> PartialRows:
    """The different rows of both."""
    return different_rows(concatenated_rows([left, right]))


def concatenated_rows(parts: Sequence[PartialRows]) -> PartialRows:
    """All of them; equal ones may stand more than once."""
    return PartialRows(*(np.concatenate(one) for one in zip(*parts, strict=True)))


def without_codes(rows: PartialRows) -> PartialRows:
    """Each different row once, whatever its sensitive values are."""
    return different_rows(rows._replace(codes=np.zeros((len(rows.times), 1), np.int64)))


def whole_keys(rows: PartialRows) -> RowKeys:
    """The keys of rows by all their columns."""
    return _keys(rows, np.ones(rows.words.shape[1], np.bool_))


def _keys(rows: PartialRows, columns: Flags) -> RowKeys:
    """The keys of rows by these columns; a missing cell is a value of its own."""
    keys = new_keys(len(rows.words))
    for column in np.flatnonzero(columns):
        words, missing = rows.words[:, column], rows.missing[:, column]
        keys = with_word(keys, np.ascontiguousarray(words), np.ascontiguousarray(missing))
    return keys


def _kinds(rows: PartialRows) -> Iterator[tuple[Flags, Counts]]:
    """Each kind of missing cells, and the rows of it."""
    kinds, which = np.unique(rows.missing, axis=0, return_inverse=True)
    for number, kind in enumerate(kinds):
        yield kind, np.flatnonzero(which.ravel() == number)


def matches(rows: PartialRows, others: PartialRows, width: int = 1) -> Counts:
    """How many records of the others match each row, by their codes, which are below ``width`` (rows x codes)."""
    found = np.zeros((len(rows.times), width), np.int64)
    for kind, members in _kinds(rows):
        for other, theirs in _kinds(others):
            columns = ~(kind | other)
            mine, beside = _keys(rows.at(members), columns), others.at(theirs)
            pairs = zip(mine, _keys(beside, columns), strict=True)
            groups = grouped(RowKeys(*(np.concatenate(pair) for pair in pairs)))
            numbers = groups.numbers()
            met, places = np.unique(numbers[: len(members)], return_inverse=True)
            place = np.full(len(groups.starts), -1)
            place[met] = np.arange(len(met))
            here = place[numbers[len(members) :]]
            found[members] += _summed(here[here >= 0], beside.at(here >= 0), len(met), width)[places]
    return found


def _summed(groups: Counts, rows: PartialRows, many: int, width: int) -> Counts:
    """The records of each group by their codes (groups x codes)."""
    cells = (groups[:, None] * width + rows.codes).ravel()
    times = np.repeat(rows.times, rows.codes.shape[1])
    return np.bincount(cells, times, many * width).astype(np.int64).reshape(many, width)
