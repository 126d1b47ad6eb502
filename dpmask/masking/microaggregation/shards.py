"""How records find their shard and cell: trees of cuts that are grown on a sample, one for each part of the table.

A shard is a few cells, as many records as a task takes; small parts share one. Only the masked columns, the part and
the position travel to it. All follows from the records, their positions and the key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey, record_uniforms, record_words, words_at
from dpmask.engine.exchange import Piece
from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import Position
from dpmask.kernels.arrays import Flags, Floats
from dpmask.kernels.cells import CellTree, grow_tree, route
from dpmask.kernels.patterns import MISSING, THERE, ZERO, shard_firsts
from dpmask.lake.reading import Rows
from dpmask.masking.domains import Domains
from dpmask.masking.microaggregation.cell_method import Integers
from dpmask.masking.microaggregation.variables import Variables
from dpmask.masking.parts import Parts
from dpmask.table.checks import require_no_infinities, require_weights
from dpmask.table.columns import floats
from dpmask.table.encoders.numeric import Scale
from dpmask.table.routing import joined_rows, rows_by_target
from dpmask.table.table import Table

_MOST_SHARDS = 1024
_SAMPLED_PER_SHARD = 256


class Shards(NamedTuple):
    """How the records of some columns find their part, shard and cell."""

    parts: Parts
    variables: tuple[Variables, ...]  # of each part
    trees: tuple[CellTree, ...]  # of each part: its shards
    firsts: Integers  # of each part: its first shard
    total: int
    cell_size: int
    key: Subkey
    who: str
    weight: str | None = None
    """What records weigh by in the means of their groups."""
    domains: Domains | None = None
    """Those whose totals are kept."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are masked."""
        return self.parts.columns

    @property
    def scale(self) -> Scale:
        """Their units, the same in all parts."""
        return self.variables[0].scale

    def exchange(
        self, table: Table, join: Callable[..., Piece], models: Collection[ShardModel] | None = None
    ) -> Collection[Piece]:
        """Every shard's records from all blocks, joined; the last row of their values is the part."""
        records, split = table.select(self.reads).with_positions(), partial(_split, self)
        return records.exchange(split, join, self.total, "cells: gather", size=self.size(table), beside=models)

    @property
    def reads(self) -> list[str]:
        """The columns that are read: those of the parts and of domains, and the weight."""
        domains = self.domains.strata.columns if self.domains else ()
        return list(dict.fromkeys([*self.parts.reads, *domains, *([self.weight] if self.weight else [])]))

    def size(self, table: Table) -> int:
        """Bytes of a table's records on their way."""
        return 8 * table.rows * (len(self.columns) + 2 + (self.weight is not None) + (self.domains is not None))

    def records(self, rows: Rows) -> Floats:
        """A block's values (columns x rows), below them weights and domains, if there are any, and the part of each."""
        values = np.array([floats(rows, name) for name in self.columns])
        require_no_infinities(values, self.who)
        parts = self.parts.of(rows, values, self.who)[None].astype(np.float64)
        more = []
        if self.weight is not None:
            more.append(floats(rows, self.weight))
            require_weights(more[0], self.weight, self.who)
        if self.domains is not None:
            more.append(self.domains.of(rows, self.who).astype(np.float64))
        return np.concatenate([values, *(one[None] for one in more), parts])

    def weights(self, values: Floats) -> Floats | None:
        """The weights among what ``records`` gives."""
        return None if self.weight is None else values[len(self.columns)]

    def domain_numbers(self, values: Floats) -> Integers | None:
        """The domains among them."""
        return None if self.domains is None else values[-2].astype(np.int64)

    def units(self, values: Floats) -> Floats:
        """Records in clustering units; what a part does not have is the same for all of its records."""
        patterns = self.parts.patterns[values[-1].astype(np.int64)].T
        own = values[: len(self.columns)]
        kept = np.where(patterns == ZERO, 0.0, np.where(patterns == MISSING, self.scale.mean[:, None], own))
        return self.scale.upright.to_units(kept)

    def lost(self, values: Floats) -> Floats:
        """Columns: the squares of values that become zero, as too few records of their part have one there."""
        patterns = self.parts.patterns[values[-1].astype(np.int64)].T
        own = values[: len(self.columns)]
        away = np.where((patterns == ZERO) & ~np.isnan(own), own, 0.0) / self.scale.sd[:, None]
        return (away**2).sum(axis=1)

    def is_free(self, part: int) -> bool:
        """Whether a part has anything to mask."""
        return bool((self.parts.patterns[part] == THERE).any())

    def grown(self, records: Piece, cells: int) -> CellTree:
        """Cuts through records of one part."""
        positions, values = records
        return grow_tree(self.units(values), self.words(positions), min(cells, max(1, len(positions))))

    def words(self, positions: Integers) -> NDArray[np.uint64]:
        """What decides between records with equal projections."""
        return words_at(self.key.subkey("ties"), positions)


class ShardModel(NamedTuple):
    """The trees of cells of a shard's parts, and what the method fitted to each cell."""

    trees: list[tuple[int, CellTree]]
    cells: list[Floats]


def make_shards(
    table: Table,
    variables: Sequence[Variables],
    parts: Parts,
    cell_size: int,
    key: Subkey,
    who: str,
    weight: str | None,
) -> Shards:
    """One shard for every few cells, by cuts through a sample of the records of large parts."""
    columns = len(parts.columns)
    no_cuts = CellTree(np.empty((0, columns)), np.empty(0), np.empty(0, np.uint64), np.empty((0, 2), np.int64))
    capacity = max(current_limits().cells_per_shard * cell_size, -(-table.rows // _MOST_SHARDS))
    wanted = -(-parts.sizes // capacity)
    none = np.zeros(0, np.int64)
    shards = Shards(parts, tuple(variables), (no_cuts,) * len(wanted), none, 1, cell_size, key, who, weight)
    if wanted.max() > 1:
        share = min(1.0, _SAMPLED_PER_SHARD * int(wanted[wanted > 1].sum()) / int(parts.sizes[wanted > 1].sum()))
        sampled = partial(_sample, shards, key.subkey("sample"), share)
        sample = table.select(shards.reads).with_positions().persist_joined(sampled, joined_rows, "sample")
        (trees,) = sample.map(partial(_cuts, shards, wanted), "cells: cuts")
        shards = shards._replace(trees=tuple(trees))
    firsts, total = shard_firsts(np.array([tree.cells for tree in shards.trees]), parts.sizes, capacity)
    return shards._replace(firsts=firsts, total=total)


def _sample(shards: Shards, key: Subkey, share: float, rows: Rows, position: Position) -> Piece:
    sampled = np.flatnonzero(record_uniforms(key, position.first, rows.num_rows) < share)
    return sampled + position.first, shards.records(rows)[:, sampled]


def _cuts(shards: Shards, wanted: Integers, records: Piece) -> list[CellTree]:
    """The tree of each part."""
    return [
        shards.grown(of_part(records, records[1][-1] == part), int(cells)) if cells > 1 else shards.trees[part]
        for part, cells in enumerate(wanted)
    ]


def of_part(records: Piece, chosen: Flags) -> Piece:
    """Some of the records, as they are at the place of their part."""
    return records[0][chosen], np.ascontiguousarray(records[1][:, chosen])


def _split(shards: Shards, rows: Rows, position: Position) -> list[Piece]:
    """A block's records by shard, with their positions."""
    values = shards.records(rows)
    part = values[-1].astype(np.int64)
    owner = shards.firsts[part]
    cut = [number for number, tree in enumerate(shards.trees) if tree.cells > 1]
    if cut:
        words, units = record_words(shards.key.subkey("ties"), position.first, len(part)), shards.units(values)
        for number in cut:
            chosen = np.flatnonzero(part == number)
            owner[chosen] += route(np.ascontiguousarray(units[:, chosen]), words[chosen], shards.trees[number])
    return [(some + position.first, values[:, some]) for some in rows_by_target(owner, shards.total)]
