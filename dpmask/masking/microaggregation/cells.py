"""Masking records where they meet: in compact cells of bounded size, wherever the records came from.

A tree of cuts, grown on a sample, sends every record to a shard; inside its shard it is cut exactly into cells of equal
size, and a method sees one cell at a time. Only the masked columns and the position travel, to the cell and back. All
of it follows from the records, their positions and the key, never from blocks or workers, so the same records are
masked alike however the table is cut. Cost grows linearly with the records; a task holds one shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey, record_uniforms, record_words, words_at
from dpmask.engine.exchange import Piece, hold_exchanged
from dpmask.engine.passes import Run, Span, hold_blocks, hold_dear, hold_joined, map_blocks, reduce_blocks
from dpmask.kernels.cells import CellTree, count_gains, grow_tree, route, share_by_counts
from dpmask.kernels.keys import counted_floats
from dpmask.masking.microaggregation.figures import CellFigures, cell_figures
from dpmask.table.checks import require_finite_rows
from dpmask.table.encoders.numeric import Scale
from dpmask.table.grouping import GroupSizes, sizes_of
from dpmask.table.table import Table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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

    @property
    def spans(self) -> list[Span]:
        """A span for each shard."""
        return [Span(number, 0) for number in range(self.tree.cells)]

    def units(self, values: Floats) -> Floats:
        """A block (columns x rows) in clustering units."""
        return (values - self.scale.mean[:, None]) / self.scale.sd[:, None]

    def words(self, positions: Integers) -> NDArray[np.uint64]:
        """What decides between records with equal projections."""
        return words_at(self.key.subkey("ties"), positions)


class ShardModel(NamedTuple):
    """A shard's own tree of cells, and what the method fitted to each of them."""

    tree: CellTree
    cells: list[Floats]


class FittedShard(NamedTuple):
    """A shard's model, and what came of it: for the figures of the whole."""

    model: ShardModel
    figures: CellFigures
    rows: Floats  # groups x columns
    sizes: Integers  # groups


class _Cell(NamedTuple):
    """The records of one cell: which of the shard they are, where in the table, and in clustering units."""

    records: NDArray[np.intp]
    positions: Integers
    block: Floats


def shards_of(table: Table, columns: Sequence[str], scale: Scale, cell_size: int, key: Subkey, who: str) -> Shards:
    """The shards of a table: one for every few cells, by cuts through a sample of the records."""
    count = min(_MOST_SHARDS, -(-table.rows // (_CELLS_PER_SHARD * cell_size)))
    shards = Shards(tuple(columns), scale, _no_cuts(len(columns)), cell_size, key, who)
    if count == 1:
        return shards
    share = min(1.0, _SAMPLED_PER_SHARD * count / table.rows)
    sample = hold_joined(table.on_floats(columns, partial(_sample, shards, share)), _joined, table.blocks, "sample")
    (tree,) = map_blocks(partial(_grow, shards, count), sample, "cells: cuts")
    return shards._replace(tree=tree)


def _no_cuts(columns: int) -> CellTree:
    return CellTree(np.empty((0, columns)), np.empty(0), np.empty(0, np.uint64), np.empty((0, 2), np.int64))


def _sample(shards: Shards, share: float, columns: Sequence[Floats], span: Span) -> Piece:
    chosen = np.flatnonzero(record_uniforms(shards.key.subkey("sample"), span.first, len(columns[0])) < share)
    return chosen + span.first, np.array([column[chosen] for column in columns])


def _joined(pieces: Sequence[Piece]) -> Piece:
    """Records of several pieces as one, in the order of their positions."""
    positions = np.concatenate([piece[0] for piece in pieces])
    values = np.concatenate([piece[1] for piece in pieces], axis=1)
    order = np.argsort(positions, kind="stable")
    return positions[order], np.ascontiguousarray(values[:, order])


def _grow(shards: Shards, count: int, records: Piece, span: Span) -> CellTree:
    positions, values = records
    return grow_tree(shards.units(values), shards.words(positions), min(count, len(positions)))


def _exchanged(table: Table, shards: Shards, join: Callable[..., Piece], beside: Sequence[Run] | None) -> list[Run]:
    split = table.on_floats(shards.columns, partial(_split, shards))
    size = 8 * table.rows * (len(shards.columns) + 1)
    return hold_exchanged(split, join, table.blocks, shards.spans, "cells: gather", size=size, beside=beside)


def _split(shards: Shards, columns: Sequence[Floats], span: Span) -> list[Piece]:
    """A block's records by shard, with their positions."""
    values = np.array(columns)
    require_finite_rows(list(values), shards.columns, shards.who, "grouped")
    words = record_words(shards.key.subkey("ties"), span.first, values.shape[1])
    owner = route(shards.units(values), words, shards.tree)
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(shards.tree.cells + 1))
    parts = [order[low:high] for low, high in pairwise(ends)]
    return [(part + span.first, values[:, part]) for part in parts]


def fit_shards(table: Table, shards: Shards, method: CellMethod) -> list[Run]:
    """Every shard fitted to its records, persisted as FittedShard."""
    gathered = _exchanged(table, shards, _gathered, None)
    clusters = _clusters(table.rows, shards, method, gathered)
    return hold_dear(partial(_fit_shard, shards, method, clusters), gathered, "cells: fit")


def _clusters(records: int, shards: Shards, method: CellMethod, gathered: list[Run]) -> Integers:
    """How many clusters each shard gets: those that gain most in all of the cells, beside one for each cell."""
    clusters = method.clusters(records)
    if len(gathered) == 1 or not clusters:
        return np.full(len(gathered), clusters)
    counted = map_blocks(partial(_count_gains, shards, method), gathered, "cells: gains")
    cells, counts = (np.array(part) for part in zip(*counted, strict=True))
    return cells + share_by_counts(counts, max(clusters - int(cells.sum()), 0))


def _count_gains(shards: Shards, method: CellMethod, records: Piece, span: Span) -> tuple[int, Integers]:
    """A shard's cells, and how many clusters would gain how much in them."""
    _, cells, keys = _cut(shards, records, span)
    return len(cells), count_gains(method.gains([cell.block for cell in cells], keys))


def _cut(shards: Shards, records: Piece, span: Span) -> tuple[CellTree, list[_Cell], list[Subkey]]:
    """A shard's tree, its cells, and the keys of their draws."""
    positions, values = records
    parts = max(1, -(-len(positions) // shards.cell_size))
    tree = grow_tree(shards.units(values), shards.words(positions), parts)
    keys = [shards.key.subkey(f"cell {span.number} {number}") for number in range(tree.cells)]
    return tree, list(_cells(shards, tree, records)), keys


def _gathered(pieces: list[Piece], span: Span) -> Piece:
    return _joined(pieces)


def _fit_shard(shards: Shards, method: CellMethod, clusters: Integers, records: Piece, span: Span) -> FittedShard:
    tree, cells, keys = _cut(shards, records, span)
    models = method.fit_cells([cell.block for cell in cells], keys, int(clusters[span.number]))
    figures, rows, sizes = [], [], []
    for cell, model in zip(cells, models, strict=True):
        groups, released = method.mask_cell(cell.block, cell.positions, model)
        shares = method.weight_shares(cell.block, model)
        figures.append(cell_figures(cell.block, groups, shards.scale.to_units(released), released, shares))
        rows.append(released)
        sizes.append(np.bincount(groups, minlength=len(released)))
    whole = figures[0]
    for one in figures[1:]:
        whole = whole.plus(one)
    return FittedShard(ShardModel(tree, models), whole, np.concatenate(rows), np.concatenate(sizes))


def _cells(shards: Shards, tree: CellTree, records: Piece) -> Iterator[_Cell]:
    positions, values = records
    block = shards.units(values)
    cell_of = route(block, shards.words(positions), tree)
    for number in range(tree.cells):
        rows = np.flatnonzero(cell_of == number)
        yield _Cell(rows, positions[rows], np.ascontiguousarray(block[:, rows]))


def figures_of(fitted: list[Run], records: int) -> tuple[CellFigures, GroupSizes]:
    """The figures of all cells together, and the sizes of all groups: equal rows of different cells are one group."""
    figures = reduce_blocks(_figures, CellFigures.plus, fitted, "cells: figures")
    return figures, sizes_of(_counted, fitted, records, "cells: sizes")


def _figures(content: FittedShard, span: Span) -> CellFigures:
    return content.figures


def _counted(content: FittedShard, span: Span) -> Piece:
    return counted_floats(content.rows, content.sizes)


def models_of(fitted: list[Run]) -> list[Run]:
    """The models of fitted shards alone, persisted."""
    return hold_blocks(_model_of, fitted, "cells: keep")


def _model_of(content: FittedShard, span: Span) -> ShardModel:
    return content.model


def masked_table(table: Table, shards: Shards, method: CellMethod, models: list[Run]) -> Table:
    """The table with its records masked in their cells and back at their positions."""
    masked = _exchanged(table, shards, partial(_mask_shard, shards, method), models)
    firsts = np.array([block.first for block in table.blocks] + [table.rows])
    spans = [Span(number, block.first) for number, block in enumerate(table.blocks)]
    size = 8 * table.rows * (len(shards.columns) + 1)
    back = hold_exchanged(partial(_split_back, firsts), _at_positions, masked, spans, "cells: back", size=size)
    return table.with_columns(shards.columns, back)


def _mask_shard(
    shards: Shards, method: CellMethod, pieces: list[Piece], span: Span, model: ShardModel
) -> tuple[Integers, Floats]:
    records = _joined(pieces)
    masked = np.empty(records[1].shape)
    for cell, fitted in zip(_cells(shards, model.tree, records), model.cells, strict=True):
        if len(cell.records):
            groups, rows = method.mask_cell(cell.block, cell.positions, fitted)
            masked[:, cell.records] = rows[groups].T
    return records[0], masked


def _split_back(firsts: Integers, content: Piece, span: Span) -> list[Piece]:
    positions, values = content
    ends = np.searchsorted(positions, firsts)
    return [(positions[low:high], values[:, low:high]) for low, high in pairwise(ends)]


def _at_positions(pieces: list[Piece], span: Span) -> tuple[Floats]:
    return (_joined(pieces)[1],)
