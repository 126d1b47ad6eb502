"""128-bit keys of rows: equal rows have equal keys, and different rows different ones.

Two lanes of 64 bits take up one word after another through the finaliser of splitmix64 (Steele, Lea and Flood 2014),
a bijection: rows of one word never collide. With several, 10^9 different rows share a key with a chance of 10^-20.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Words

ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
LANES = ((0x9E3779B97F4A7C15, 0xD1342543DE82EF95), (0xC2B2AE3D27D4EB4F, 0xAF251AF3B0F025B5))
_FRACTION = np.uint64(0x8000_0000_0000_0001)  # distinguishes the bits of 0.5 from the integer with these bits
_WHOLE_LIMIT = 2.0**63
_TILE = 1 << 14  # rows whose words stay in the processor's cache from step to step
_MISSING = (0x2545F4914F6CDD1D, 0x5851F42D4C957F2D)


CountedKeys: TypeAlias = tuple[Words, Words, NDArray[np.int64]]


class RowKeys(NamedTuple):
    """The two lanes of each row's key."""

    first: Words
    second: Words

    def at(self, rows: NDArray[np.generic]) -> RowKeys:
        """The keys of some rows."""
        return RowKeys(self.first[rows], self.second[rows])


def new_keys(rows: int) -> RowKeys:
    """The keys of rows without columns."""
    return RowKeys(np.zeros(rows, np.uint64), np.zeros(rows, np.uint64))


def with_word(keys: RowKeys, words: Words, missing: NDArray[np.bool_] | None = None) -> RowKeys:
    """The keys with one more word taken up; a missing one counts as a value of its own."""
    found, room = new_keys(len(words)), np.empty((2, _TILE), np.uint64)
    for start in range(0, len(words), _TILE):
        part = slice(start, start + _TILE)
        taken, spare = room[:, : len(words[part])]
        for lane, new, (first, factor), none in zip(keys, found, LANES, _MISSING, strict=True):
            np.multiply(words[part], np.uint64(factor), out=taken)
            np.add(taken, np.uint64(first), out=taken)
            _mix(taken, spare)
            if missing is not None:
                taken[missing[part]] = np.uint64(none)
            np.add(lane[part], np.uint64(first), out=new[part])
            np.bitwise_xor(new[part], taken, out=new[part])
            _mix(new[part], spare)
    return found


def mixed(words: Words) -> Words:
    """Words through the finaliser, each by itself."""
    found = words.copy()
    _mix(found, np.empty_like(found))
    return found


def _mix(words: Words, spare: Words) -> None:
    """The finaliser in place, with room for as many words."""
    for shift, factor in ROUNDS:
        np.right_shift(words, np.uint64(shift), out=spare)
        np.bitwise_xor(words, spare, out=words)
        np.multiply(words, np.uint64(factor), out=words)
    np.right_shift(words, np.uint64(31), out=spare)
    np.bitwise_xor(words, spare, out=words)


def float_words(values: NDArray[np.float64]) -> Words:
    """Whole numbers as the integers they are, others by their bits; anything where a value is missing."""
    with np.errstate(invalid="ignore"):
        whole = np.rint(values) == values
        if not whole.any():
            return values.view(np.uint64) ^ _FRACTION
        whole &= np.abs(values) < _WHOLE_LIMIT
        integers = np.where(whole, values, 0.0).astype(np.int64).view(np.uint64)
    return np.where(whole, integers, values.view(np.uint64) ^ _FRACTION)


class Grouping(NamedTuple):
    """Rows in an order in which equal keys stand together, and where in it each group starts."""

    order: NDArray[np.intp]
    starts: NDArray[np.intp]

    @property
    def firsts(self) -> NDArray[np.intp]:
        """One row of each group."""
        return self.order[self.starts]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many rows each group has."""
        return np.diff(self.starts, append=len(self.order))

    def sums(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum of each group's values."""
        return np.add.reduceat(values[self.order], self.starts) if len(self.starts) else np.empty(0, np.int64)

    def numbers(self) -> NDArray[np.int64]:
        """The number of its group for each row, as the rows were."""
        opened = np.zeros(len(self.order), np.int64)
        opened[self.starts] = 1
        numbers = np.empty(len(self.order), np.int64)
        numbers[self.order] = np.cumsum(opened) - 1
        return numbers


def mostly_equal(sizes: NDArray[np.int64], rows: int) -> bool:
    """Whether the sizes of groups among some rows show that no more than half of all rows differ (Chao 1984).

    Few values that many rows share, such as zeros, do not count for more than those rows.
    """
    once, twice = int((sizes == 1).sum()), int((sizes == 2).sum())  # noqa: PLR2004
    return 2 * (len(sizes) + once * (once - 1) / (2 * (twice + 1))) <= rows


def grouped(keys: RowKeys, *, in_order: bool = True) -> Grouping:
    """Rows with equal keys together. Sorted by one lane; by both only where the first one collided.

    Inside a group they stand in their order, or in any, which is faster and differs from processor to processor: for
    sums and keys of groups it does not matter.
    """
    order = np.argsort(keys.first, kind="stable" if in_order else "quicksort")
    first, second = keys.at(order)
    new_first, new_second = first[1:] != first[:-1], second[1:] != second[:-1]
    if (new_second & ~new_first).any():
        order = np.lexsort((keys.second, keys.first))
        first, second = keys.at(order)
        new_first, new_second = first[1:] != first[:-1], second[1:] != second[:-1]
    starts = np.flatnonzero(np.concatenate([[True], new_first | new_second])) if len(order) else np.empty(0, np.intp)
    return Grouping(order, starts)


def counted(keys: RowKeys, counts: NDArray[np.int64] | None = None) -> CountedKeys:
    """Each different key once, as its lanes, and how often it is there; ``counts`` says how often each one counts."""
    groups = grouped(keys, in_order=False)
    return *keys.at(groups.firsts), groups.sizes if counts is None else groups.sums(counts)


def counted_floats(rows: NDArray[np.float64], counts: NDArray[np.int64]) -> CountedKeys:
    """The same for rows of numbers, none missing (rows x columns)."""
    return counted(float_keys(rows.T), counts)


def float_keys(block: NDArray[np.float64]) -> RowKeys:
    """The keys of rows of numbers, none missing (columns x rows); -0 is 0."""
    keys = new_keys(block.shape[1])
    for start in range(0, block.shape[1], _TILE):
        part = new_keys(len(keys.first[start : start + _TILE]))
        for column in block:
            part = with_word(part, float_words(np.ascontiguousarray(column[start : start + _TILE])))
        keys.first[start : start + _TILE], keys.second[start : start + _TILE] = part
    return keys
