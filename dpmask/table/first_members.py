"""One record for each household, its first member, as a table; and what became of it given to all members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import exchange
from dpmask.engine.exchange import Piece
from dpmask.engine.tasks import Block, Position
from dpmask.errors import InputError
from dpmask.kernels.households import Homes
from dpmask.kernels.keys import RowKeys
from dpmask.kernels.refinement.dropped import places_among
from dpmask.lake.reading import Rows
from dpmask.lake.writing import reordered
from dpmask.table.columns import floats
from dpmask.table.grouping import targets_for
from dpmask.table.households import household_keys, households_of
from dpmask.table.routing import joined_rows, rows_by_target, sent_back
from dpmask.table.row_keys import row_keys
from dpmask.table.table import Table

_BYTES = 24
_LABEL = "households: first members"


def first_members(table: Table, household: str, columns: Sequence[str], who: str) -> Table:
    """The table with only the first member of each household, who must have in ``columns`` what all members have."""
    members = partial(_members, tuple(columns))
    homes = households_of(table, household, columns, members, _LABEL, who, size=_BYTES)
    heads = homes.transform(partial(_heads, tuple(columns), who))
    places = sent_back(table, heads, joined_rows, _LABEL, size=16 * table.rows)
    rows = places.map(_count, _LABEL)
    contents = places.with_positions().as_contents(
        partial(_FirstMembers, table.without_blocks()), (block.content for block in table.blocks)
    )
    firsts = [0, *accumulate(rows)]
    blocks = [Block(*one) for one in zip(firsts, rows, contents, strict=False)]
    return Table(table.masked_schema, tuple(blocks), table.nullable, (), {}, table.changed)


def _members(columns: tuple[str, ...], rows: Rows, position: Position) -> tuple[NDArray[Any], ...]:
    """Positions, and the keys of what must be the same."""
    return (np.arange(position.first, position.first + rows.num_rows), *row_keys(rows, columns))


def _heads(columns: tuple[str, ...], who: str, homes: Homes) -> Piece:
    positions, *lanes = homes.members
    numbers = homes.numbers()
    apart = sum(one != one[homes.starts][numbers] for one in lanes) > 0
    if apart.any():
        raise InputError(
            f"{who}: {len(np.unique(numbers[apart])):,} or more households have members who differ in one of "
            f"{', '.join(columns)}: it is no column of households. Mask it for each record, without of: households."
        )
    firsts = np.sort(np.minimum.reduceat(positions, homes.starts)) if len(homes.starts) else positions
    return firsts, np.zeros(len(firsts))


def _count(content: Piece) -> int:
    return len(content[0])


@dataclass(frozen=True, repr=False)
class _FirstMembers:
    """A block's records that are the first of their household. Its repr shows none of them."""

    table: Table
    content: Any
    places: Piece
    position: Position

    def read(self, columns: Sequence[str]) -> Rows:
        rows = self.table.reader(columns)(self.content, self.position)
        return reordered(rows, self.places[0] - self.position.first)


def given_to_members(table: Table, heads: Table, household: str, columns: Sequence[str], who: str) -> Table:
    """The table with the values of numeric columns that the first members of households have now."""
    columns, shards = tuple(columns), targets_for(table.rows)
    given = heads.select([household, *columns]).transform(partial(_split_values, household, columns, shards, who))
    asked = table.select([household]).with_positions().transform(partial(_split_members, household, shards, who))
    size = table.rows * _BYTES + heads.rows * (16 + 8 * len(columns))
    met = exchange([given, asked], _met, shards, "households: members", size=size)
    back = sent_back(table, met, joined_rows, "households: back", size=table.rows * 8 * (1 + len(columns)))
    return table.with_columns(columns, back.transform(_values))


def _split_values(household: str, columns: tuple[str, ...], shards: int, who: str, rows: Rows) -> list[Piece]:
    keys = household_keys(rows, household, who)
    values = np.array([floats(rows, name) for name in columns]).reshape(len(columns), rows.num_rows)
    parts = rows_by_target(keys.first % np.uint64(shards), shards)
    return [(*keys.at(part), values[:, part]) for part in parts]


def _split_members(household: str, shards: int, who: str, rows: Rows, position: Position) -> list[Piece]:
    keys = household_keys(rows, household, who)
    parts = rows_by_target(keys.first % np.uint64(shards), shards)
    return [(*keys.at(part), position.first + part) for part in parts]


def _met(given: list[Piece], asked: list[Piece]) -> Piece:
    """The positions of members, rising, and their household's values."""
    *heads, values = (np.concatenate(parts, axis=-1) for parts in zip(*given, strict=True))
    *members, positions = (np.concatenate(parts) for parts in zip(*asked, strict=True))
    order, rising = np.argsort(heads[0], kind="stable"), np.argsort(positions, kind="stable")
    known = RowKeys(*heads).at(order)
    places = order[places_among(RowKeys(*members).at(rising), known)]
    return positions[rising], np.ascontiguousarray(values[:, places])


def _values(content: Piece) -> tuple[NDArray[np.float64]]:
    return (content[1],)
