"""Masking records in compact cells of bounded size, wherever the records came from.

A tree of cuts, grown on a sample, sends every record to a shard; inside its shard it is cut exactly into cells of equal
size, and a method sees one cell at a time. Only the masked columns and the position travel, to the cell and back. All
of it follows from the records, their positions and the key, never from blocks or workers, so the same records are
masked alike however the table is cut. Cost grows linearly with the records; a task works on one shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from operator import attrgetter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey, record_uniforms, record_words, words_at
from dpmask.engine.exchange import Piece
from dpmask.engine.tasks import Position
from dpmask.kernels.cells import CellTree, count_gains, grow_tree, route, share_by_counts
from dpmask.kernels.keys import counted_floats
from dpmask.masking.microaggregation.figures import CellFigures, GroupFigures, cell_figures, group_figures
from dpmask.masking.microaggregation.variables import Variables
from dpmask.table.checks import require_finite_rows
from dpmask.table.columns import Floats
from dpmask.table.encoders.numeric import Scale
from dpmask.table.grouping import merged_sizes
from dpmask.table.routing import joined_rows, rows_by_target, sent_back
from dpmask.table.table import Table

Integers = NDArray[np.int64]
_Cell = tuple[NDArray[np.intp], Integers, Floats]
"""Which of a shard's records are in a cell, their positions, and the records in clustering units."""

_CELLS_PER_SHARD = 8
_MOST_SHARDS = 1024
_SAMPLED_PER_SHARD = 256


class CellMethod(Protocol):
    """What is done in one cell; blocks are columns x rows in clustering units."""

    def clusters(self, records: int) -> int:
        """How many rows the models of so many records have together; 0 where there are no models."""

    def gains(self, blocks: Sequence[Floats], keys: Sequence[Subkey]) -> Floats:
        """What each row beyond the first would gain in one of these cells."""

    def fit_cells(self, blocks: Sequence[Floats], keys: Sequence[Subkey], clusters: int) -> list[Floats]:
        """The models of a shard's cells: so many rows of numbers together."""

    def mask_cell(self, block: Floats, positions: Integers, model: Floats) -> tuple[Integers, Floats]:
        """The group of each record, and the row that each group is released with, in original units."""

    def weight_shares(self, block: Floats, model: Floats) -> Floats:
        """How much of each centre its most important record makes up; nothing where there are no centres."""


class Shards(NamedTuple):
    """How the records of some columns find their shard and cell."""

    columns: tuple[str, ...]
    scale: Scale
    tree: CellTree
    cell_size: int
    key: Subkey
    who: str

    def exchange(
        self, table: Table, join: Callable[..., Piece], models: Collection[ShardModel] | None = None
    ) -> Collection[Piece]:
        """Every shard's records from all blocks, joined."""
        records, split = table.floats(self.columns).with_positions(), partial(_split, self)
        return records.exchange(split, join, self.tree.cells, "cells: gather", size=self.size(table), beside=models)

    def size(self, table: Table) -> int:
        """Bytes of a table's records on their way."""
        return 8 * table.rows * (len(self.columns) + 1)

    def grown(self, records: Piece, cells: int) -> CellTree:
        """Cuts through records."""
        return grow_tree(self.units(records[1]), self.words(records[0]), min(cells, max(1, len(records[0]))))

    def units(self, values: Floats) -> Floats:
        """A block (columns x rows) in clustering units."""
        return self.scale.upright.to_units(values)

    def words(self, positions: Integers) -> NDArray[np.uint64]:
        """What decides between records with equal projections."""
        return words_at(self.key.subkey("ties"), positions)


class ShardModel(NamedTuple):
    """A shard's own tree of cells, and what the method fitted to each of them."""

    tree: CellTree
    cells: list[Floats]


class FittedShard(NamedTuple):
    """A shard's model and, for the figures of the whole, what came of it: released rows by key, how often each."""

    model: ShardModel
    figures: CellFigures
    rows: Piece


class CellGroup(NamedTuple):
    """Variables masked in cells; the models stay where the cells are."""

    variables: Variables
    figures: GroupFigures
    shards: Shards
    method: CellMethod
    models: Collection[ShardModel]

    def mask_table(self, table: Table) -> Table:
        """The table with these variables masked: its records go to their cells and back."""
        shards = self.shards
        masked = shards.exchange(table, partial(_mask_shard, shards, self.method), self.models)
        back = sent_back(table, masked, _values, "cells: back", size=shards.size(table))
        return table.with_columns(shards.columns, back)


def fit_in_cells(
    table: Table, variables: Variables, method: CellMethod, size: int, expected: float, key: Subkey, who: str
) -> CellGroup:
    """Fit a method to the cells of a table; equal rows of different cells count as one group."""
    shards = _shards_of(table, variables, size, key.subkey("cells"), who)
    gathered = shards.exchange(table, joined_rows)
    fit = partial(_fit_shard, shards, method, _clusters(table.rows, shards, method, gathered))
    fitted = gathered.with_positions().persist_checkpointed(fit, "cells: fit")
    parts = fitted.reduce(attrgetter("figures"), CellFigures.plus, "cells: figures")
    sizes = merged_sizes(fitted.transform(attrgetter("rows")), table.rows, "cells: sizes")
    figures = group_figures(variables.columns, variables.signs, expected, sizes, parts)
    return CellGroup(variables, figures, shards, method, fitted.persist(attrgetter("model"), "cells: keep"))


def _shards_of(table: Table, variables: Variables, cell_size: int, key: Subkey, who: str) -> Shards:
    """One shard for every few cells, by cuts through a sample of the records."""
    columns = variables.columns
    no_cuts = CellTree(np.empty((0, len(columns))), np.empty(0), np.empty(0, np.uint64), np.empty((0, 2), np.int64))
    shards = Shards(columns, variables.scale, no_cuts, cell_size, key, who)
    count = min(_MOST_SHARDS, -(-table.rows // (_CELLS_PER_SHARD * cell_size)))
    if count == 1:
        return shards
    sampled = partial(_sample, key.subkey("sample"), min(1.0, _SAMPLED_PER_SHARD * count / table.rows))
    sample = table.floats(columns).with_positions().persist_joined(sampled, joined_rows, "sample")
    (tree,) = sample.map(partial(Shards.grown, shards, cells=count), "cells: cuts")
    return shards._replace(tree=tree)


def _sample(key: Subkey, share: float, columns: Sequence[Floats], position: Position) -> Piece:
    sampled = np.flatnonzero(record_uniforms(key, position.first, len(columns[0])) < share)
    return sampled + position.first, np.array([column[sampled] for column in columns])


def _split(shards: Shards, columns: Sequence[Floats], position: Position) -> list[Piece]:
    """A block's records by shard, with their positions."""
    values = np.array(columns)
    require_finite_rows(list(values), shards.columns, shards.who, "grouped")
    words = record_words(shards.key.subkey("ties"), position.first, values.shape[1])
    parts = rows_by_target(route(shards.units(values), words, shards.tree), shards.tree.cells)
    return [(part + position.first, values[:, part]) for part in parts]


def _clusters(records: int, shards: Shards, method: CellMethod, gathered: Collection[Piece]) -> Integers:
    """How many clusters each shard gets: those that gain most in all of the cells, beside one for each cell."""
    clusters = method.clusters(records)
    if shards.tree.cells == 1 or not clusters:
        return np.full(shards.tree.cells, clusters)
    counted = gathered.with_positions().map(partial(_count_gains, shards, method), "cells: gains")
    cells, counts = (np.array(part) for part in zip(*counted, strict=True))
    return cells + share_by_counts(counts, max(clusters - int(cells.sum()), 0))


def _count_gains(shards: Shards, method: CellMethod, records: Piece, position: Position) -> tuple[int, Integers]:
    """A shard's cells, and how many clusters would gain how much in them."""
    _, cells, keys = _cut(shards, records, position)
    return len(cells), count_gains(method.gains([block for _, _, block in cells], keys))


def _cut(shards: Shards, records: Piece, position: Position) -> tuple[CellTree, list[_Cell], list[Subkey]]:
    """A shard's tree, its cells, and the keys of their draws."""
    tree = shards.grown(records, max(1, -(-len(records[0]) // shards.cell_size)))
    keys = [shards.key.subkey(f"cell {position.number} {number}") for number in range(tree.cells)]
    return tree, list(_cells(shards, tree, records)), keys


def _fit_shard(
    shards: Shards, method: CellMethod, clusters: Integers, records: Piece, position: Position
) -> FittedShard:
    tree, cells, keys = _cut(shards, records, position)
    models = method.fit_cells([block for _, _, block in cells], keys, int(clusters[position.number]))
    figures, rows, sizes = [], [], []
    for (_, positions, block), model in zip(cells, models, strict=True):
        groups, released = method.mask_cell(block, positions, model)
        shares = method.weight_shares(block, model)
        figures.append(cell_figures(block, groups, shards.scale.to_units(released), released, shares))
        rows.append(released)
        sizes.append(np.bincount(groups, minlength=len(released)))
    counts = counted_floats(np.concatenate(rows), np.concatenate(sizes))
    return FittedShard(ShardModel(tree, models), reduce(CellFigures.plus, figures), counts)


def _cells(shards: Shards, tree: CellTree, records: Piece) -> Iterator[_Cell]:
    """The cells of a shard."""
    positions, values = records
    block = shards.units(values)
    cell_of = route(block, shards.words(positions), tree)
    for number in range(tree.cells):
        rows = np.flatnonzero(cell_of == number)
        yield rows, positions[rows], np.ascontiguousarray(block[:, rows])


def _mask_shard(shards: Shards, method: CellMethod, pieces: list[Piece], model: ShardModel) -> Piece:
    records = joined_rows(pieces)
    masked = np.empty(records[1].shape)
    for (members, positions, block), fitted in zip(_cells(shards, model.tree, records), model.cells, strict=True):
        if len(members):
            groups, rows = method.mask_cell(block, positions, fitted)
            masked[:, members] = rows[groups].T
    return records[0], masked


def _values(pieces: list[Piece]) -> Piece:
    return joined_rows(pieces)[1:]
