"""Requirements of households inside the search: how many have members with the same masked rows.

Which refinement is best follows from scores alone; before it is taken, households are counted as they would be then:
one pass over the members' codes, and one exchange of 32 bytes for each composition. A refinement only splits what is
equal, so one that leaves fewer than k households alike does so for ever and is given up. Where records may be dropped,
they are whole households, those that fewer than k are like: compositions are apart, so that nothing follows from it for
other households. Requirements of records that the households' one does not cover are counted again without them.

Members meet once, by the key of their household, and stay together in shards as codes of two bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.exchange import Piece
from dpmask.kernels.arrays import Flags
from dpmask.kernels.households import Homes, compositions, counted_rows, masked_rows
from dpmask.kernels.keys import RowKeys, grouped, new_keys
from dpmask.kernels.refinement.cells import NOBODY
from dpmask.kernels.refinement.dropped import contains, sorted_keys
from dpmask.masking.refinement.attributes import Attribute
from dpmask.masking.refinement.columns import WHO
from dpmask.table.grouping import merged_sizes, split_counts, targets_for
from dpmask.table.households import DroppedHouseholds, Members, gather_households

_LABEL = "refinement: households"
_BYTES = 32


class HouseholdCount(NamedTuple):
    """Households by composition: the fewest that are alike, of all and of those that remain, and who is dropped.

    ``broken``: the compositions that fewer than k share, unless their records are too many to be dropped.
    """

    fewest: int
    smallest: int
    lost: int
    broken: RowKeys


@dataclass(frozen=True)
class CodedHouseholds:
    """Whole households as codes of all attributes; up to ``allowed`` records may be dropped."""

    household: str
    homes: Collection[Homes]
    rows: int
    allowed: int

    def count(self, columns: Sequence[int], attributes: Sequence[Attribute], k: int) -> HouseholdCount:
        """The compositions of some attributes, by number, as these are masked now."""
        targets = targets_for(self.rows)
        split = partial(_split, _masked(columns, attributes), targets)
        join = partial(_join, k, self.allowed)
        found = self.homes.exchange(split, join, targets, _LABEL, size=_BYTES * self.rows)
        return found.reduce(_first, partial(_merged, self.allowed), _LABEL)

    def smallest_left(
        self, columns: Sequence[int], attributes: Sequence[Attribute], other: Sequence[int], broken: RowKeys
    ) -> int:
        """The smallest group of records, by ``columns``, without households of some compositions of ``other``."""
        masked, whole = _masked(columns, attributes), _masked(other, attributes)
        left = self.homes.transform(partial(_left, masked, whole, sorted_keys(broken)))
        return merged_sizes(left, self.rows, _LABEL).smallest

    def dropped(self, columns: Sequence[int], attributes: Sequence[Attribute], broken: RowKeys) -> DroppedHouseholds:
        """The households of some compositions."""
        keys = partial(_keys, _masked(columns, attributes), sorted_keys(broken))
        return DroppedHouseholds(self.household, self.homes.reduce(keys, sorted_keys, _LABEL), WHO)

    def codes_left(
        self, columns: Sequence[int], attributes: Sequence[Attribute], broken: RowKeys, sizes: Sequence[int]
    ) -> list[Flags]:
        """For each attribute, which of its codes members of other households have."""
        left = partial(_codes_left, _masked(columns, attributes), sorted_keys(broken), tuple(sizes))
        return self.homes.reduce(left, _either, _LABEL)


def coded_households(
    members: Collection[Members], rows: int, household: str, attributes: int, allowed: int
) -> CodedHouseholds:
    """Whole households, from the codes of their members."""
    homes = gather_households(members, rows, _LABEL, size=2 * attributes)
    return CodedHouseholds(household, homes, rows, allowed)


class _MaskedAttributes(NamedTuple):
    """Some attributes, by number, and what their codes are masked to."""

    columns: tuple[int, ...]
    nodes: tuple[NDArray[np.int32], ...]

    def compositions(self, homes: Homes) -> RowKeys:
        return compositions(masked_rows(self._codes(homes), self.nodes), homes.starts)

    def counted(self, homes: Homes, kept: Flags) -> Piece:
        return counted_rows(self._codes(homes), self.nodes, kept)

    def _codes(self, homes: Homes) -> list[NDArray[Any]]:
        return [homes.members[0][number] for number in self.columns]


def _masked(columns: Sequence[int], attributes: Sequence[Attribute]) -> _MaskedAttributes:
    return _MaskedAttributes(tuple(columns), tuple(attributes[number].nodes for number in columns))


def _split(masked: _MaskedAttributes, targets: int, homes: Homes) -> list[Piece]:
    """Different compositions, how many households have each, and how many members these."""
    keys = masked.compositions(homes)
    groups = grouped(keys, in_order=False)
    return split_counts(targets, (*keys.at(groups.firsts), groups.sizes, groups.sums(homes.sizes)))


def _join(k: int, allowed: int, pieces: list[Piece]) -> tuple[HouseholdCount]:
    first, second, times, members = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    keys = RowKeys(first, second)
    groups = grouped(keys, in_order=False)
    sizes, people = groups.sums(times), groups.sums(members)
    broken = sizes < k
    lost = int(people[broken].sum())
    fewest, smallest = int(sizes.min(initial=NOBODY)), int(sizes[~broken].min(initial=NOBODY))
    return (HouseholdCount(fewest, smallest, lost, _at_most(allowed, lost, keys.at(groups.firsts[broken]))),)


def _first(content: tuple[HouseholdCount]) -> HouseholdCount:
    return content[0]


def _at_most(allowed: int, lost: int, keys: RowKeys) -> RowKeys:
    return keys if lost <= allowed else new_keys(0)


def _merged(allowed: int, left: HouseholdCount, right: HouseholdCount) -> HouseholdCount:
    lost = left.lost + right.lost
    keys = _at_most(allowed, lost, sorted_keys(left.broken, right.broken))
    return HouseholdCount(min(left.fewest, right.fewest), min(left.smallest, right.smallest), lost, keys)


def _left(masked: _MaskedAttributes, whole: _MaskedAttributes, broken: RowKeys, homes: Homes) -> Piece:
    kept = ~contains(whole.compositions(homes), broken)
    return masked.counted(homes, kept[homes.numbers()])


def _keys(masked: _MaskedAttributes, broken: RowKeys, homes: Homes) -> RowKeys:
    return homes.keys.at(contains(masked.compositions(homes), broken))


def _codes_left(masked: _MaskedAttributes, broken: RowKeys, sizes: tuple[int, ...], homes: Homes) -> list[Flags]:
    kept = ~contains(masked.compositions(homes), broken)[homes.numbers()]
    left = [np.zeros(size, np.bool_) for size in sizes]
    for codes, there in zip(homes.members[0], left, strict=True):
        there[codes[kept]] = True
    return left


def _either(left: list[Flags], right: list[Flags]) -> list[Flags]:
    return [one | other for one, other in zip(left, right, strict=True)]
