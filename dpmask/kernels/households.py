"""Households by their members: who is the same where the members' rows are, in any order.

A household's composition is the multiset of its members' rows. Its key adds up the members' keys, lane by lane modulo
2^64: a sum does not depend on the order, and two different multisets share both lanes with a chance of 2^-128.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Flags, Words
from dpmask.kernels.keys import CountedKeys, RowKeys, counted, grouped, mixed, new_keys, with_word

Codes = NDArray[np.uint16]
_FEW = 1 << 18


class Homes(NamedTuple):
    """Whole households: the key of each, where its members begin, and arrays of these, members along the last axis."""

    keys: RowKeys
    starts: Counts
    members: tuple[NDArray[Any], ...]

    @property
    def sizes(self) -> Counts:
        """How many members each has."""
        return np.diff(self.starts, append=self.members[0].shape[-1])

    def numbers(self) -> Counts:
        """The number of its household for each member."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)


def gathered(keys: RowKeys, members: Sequence[NDArray[Any]]) -> Homes:
    """Members with equal keys together; inside a household they are in any order."""
    groups = grouped(keys)
    return Homes(
        keys.at(groups.firsts),
        groups.starts.astype(np.int64),
        tuple(np.ascontiguousarray(one[..., groups.order]) for one in members),
    )


def compositions(rows: RowKeys, starts: Counts) -> RowKeys:
    """The key of each household's composition, from those of its members' rows."""
    if not len(starts):
        return new_keys(0)
    return RowKeys(*(np.add.reduceat(lane, starts) for lane in rows))


def masked_rows(codes: Sequence[Codes], nodes: Sequence[NDArray[np.int32]]) -> RowKeys:
    """The keys of rows of codes that are masked to nodes, column by column."""
    keys, numbers = _numbered_rows(codes, nodes)
    return keys if numbers is None else keys.at(numbers)


def counted_rows(codes: Sequence[Codes], nodes: Sequence[NDArray[np.int32]], kept: Flags) -> CountedKeys:
    """The lanes of these keys, each different one once, and how many of the rows that are kept have it."""
    keys, numbers = _numbered_rows(codes, nodes)
    if numbers is None:
        return counted(keys.at(kept))
    times = np.bincount(numbers[kept], minlength=len(keys.first))
    there = np.flatnonzero(times)
    return counted(keys.at(there), times[there])


def _numbered_rows(
    codes: Sequence[Codes], nodes: Sequence[NDArray[np.int32]]
) -> tuple[RowKeys, NDArray[np.intp] | None]:
    """Keys, and for each row the number of its own; without numbers they are those of the rows themselves.

    Rows of codes that may be, or at least rows of nodes, are mostly few: each then has its key computed once.
    """
    few = min(_FEW, len(codes[0]))
    sizes, bases = [len(each) for each in nodes], [int(each.max(initial=0)) + 1 for each in nodes]
    if math.prod(sizes) <= few:
        return _hashed(list(np.indices(sizes).reshape(len(sizes), -1)), nodes), _numbers(codes, sizes)
    if math.prod(bases) > few:
        return _hashed(codes, nodes), None
    numbers = _numbers([each[column] for column, each in zip(codes, nodes, strict=True)], bases)
    example = np.full(math.prod(bases), -1, np.int64)
    example[numbers] = np.arange(len(numbers))
    there = np.flatnonzero(example >= 0)
    place = np.zeros(len(example), np.intp)
    place[there] = np.arange(len(there))
    return _hashed([column[example[there]] for column in codes], nodes), place[numbers]


def _numbers(columns: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[np.intp]:
    """One number for each row."""
    numbers = np.zeros(len(columns[0]), np.intp)
    for size, column in zip(sizes, columns, strict=True):
        numbers *= size
        numbers += column
    return numbers


def _hashed(codes: Sequence[NDArray[Any]], nodes: Sequence[NDArray[np.int32]]) -> RowKeys:
    """Words of nodes are looked up, and added."""
    rows = [np.zeros(len(codes[0]), np.uint64) for _ in range(2)]
    for place, (column, each) in enumerate(zip(codes, nodes, strict=True)):
        words = with_word(with_word(new_keys(len(each)), np.full(len(each), place, np.uint64)), _as_words(each))
        rows = [total + lane[column] for total, lane in zip(rows, words, strict=True)]
    return RowKeys(*map(mixed, rows))


def _as_words(nodes: NDArray[np.int32]) -> Words:
    return nodes.astype(np.int64).view(np.uint64)


def household_risks(risks: NDArray[np.float64], starts: Counts) -> NDArray[np.float64]:
    """1 - product of (1 - r) over the members: the chance that any of them is found."""
    return 1.0 - np.multiply.reduceat(1.0 - risks, starts) if len(starts) else np.empty(0)
