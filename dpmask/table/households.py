"""Households of a table: their members lie anywhere, and meet in shards by the household's number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.exchange import Piece
from dpmask.engine.tasks import Position
from dpmask.errors import InputError
from dpmask.kernels.arrays import Flags
from dpmask.kernels.households import Homes, compositions, gathered
from dpmask.kernels.keys import RowKeys, counted
from dpmask.kernels.refinement.dropped import contains
from dpmask.lake.reading import Rows
from dpmask.table.grouping import GroupSizes, merged_sizes, targets_for
from dpmask.table.routing import rows_by_target
from dpmask.table.row_keys import column_words, row_keys
from dpmask.table.table import Table

_KEY_BYTES = 16

Members: TypeAlias = tuple[RowKeys, tuple[NDArray[Any], ...]]
"""The key of each row's household, and arrays of the rows."""


def household_keys(rows: Rows, household: str, who: str) -> RowKeys:
    """The key of each record's household; one without is refused."""
    absent = column_words(rows, household)[1]
    if absent is not None and absent.any():
        raise _no_household(household, who)
    return row_keys(rows, [household])


def require_households_by_footers(table: Table, household: str, who: str) -> None:
    """The same refusal, as far as a lake's footers show it, before anything is read."""
    facts = table.facts.get(household)
    if facts is not None and facts.nulls and household not in table.changed:
        raise _no_household(household, who)


def _no_household(household: str, who: str) -> InputError:
    return InputError(
        f"{who}: records have no household in '{household}'. Give each a number, people who live alone one of "
        "their own."
    )


def households_of(
    table: Table,
    household: str,
    columns: Sequence[str],
    members: Callable[[Rows, Position], tuple[NDArray[Any], ...]],
    label: str,
    who: str,
    *,
    size: int,
) -> Collection[Homes]:
    """All households, whole, in shards: ``members`` gives arrays of a block's rows, ``size`` bytes of each."""
    names = list(dict.fromkeys([household, *columns]))
    keyed = partial(_keyed, household, members, who)
    return gather_households(table.select(names).with_positions().transform(keyed), table.rows, label, size=size)


def gather_households(members: Collection[Members], rows: int, label: str, *, size: int) -> Collection[Homes]:
    """Whole households in shards, from the key of each row's household and arrays of the rows, block by block."""
    shards = targets_for(rows)
    return members.exchange(partial(_split, shards), _gathered, shards, label, size=rows * (_KEY_BYTES + size))


def _keyed(household: str, members: Any, who: str, rows: Rows, position: Position) -> Members:
    return household_keys(rows, household, who), members(rows, position)


def _split(shards: int, members: Members) -> list[Piece]:
    keys, arrays = members
    parts = rows_by_target(keys.first % np.uint64(shards), shards)
    return [(keys.at(part), tuple(one[..., part] for one in arrays)) for part in parts]


def _gathered(pieces: list[Piece]) -> Homes:
    keys = RowKeys(*(np.concatenate(lanes) for lanes in zip(*(piece[0] for piece in pieces), strict=True)))
    arrays = zip(*(piece[1] for piece in pieces), strict=True)
    return gathered(keys, [np.concatenate(parts, axis=-1) for parts in arrays])


def composition_sizes(
    table: Table, household: str, columns: Sequence[str], label: str, *, fewest: int = 1
) -> GroupSizes:
    """How many households share each composition of these columns, of those with at least so many members."""
    homes = households_of(table, household, columns, partial(_lanes, tuple(columns)), label, label, size=_KEY_BYTES)
    return merged_sizes(homes.transform(partial(_counted, fewest)), table.rows, label)


def _lanes(columns: tuple[str, ...], rows: Rows, position: Position) -> tuple[NDArray[Any], ...]:
    return tuple(row_keys(rows, columns))


def _counted(fewest: int, homes: Homes) -> Piece:
    return counted(compositions(RowKeys(*homes.members), homes.starts).at(homes.sizes >= fewest))


class DroppedHouseholds(NamedTuple):
    """The households that are left out, all members of each, by their keys, sorted."""

    household: str
    keys: RowKeys
    who: str

    def __repr__(self) -> str:
        return f"<DroppedHouseholds: {len(self.keys.first)}>"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The column that decides."""
        return (self.household,)

    def of(self, rows: Rows) -> Flags:
        """Whether each row is dropped."""
        return contains(household_keys(rows, self.household, self.who), self.keys)
