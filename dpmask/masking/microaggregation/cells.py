"""Masking records in compact cells of bounded size, wherever the records came from.

Every part of the table (dpmask.masking.parts) is cut by itself. A tree of cuts, grown on a sample, sends its records to
shards; inside its shard it is cut exactly into cells of equal size, and a method sees one cell at a time; small parts
share a shard. Only the masked columns, the part and the position travel, to the cell and back. All of it follows from
the records, their positions and the key, never from blocks or workers, so the same records are masked alike however the
table is cut. Cost grows linearly with the records; a task works on one shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import attrgetter
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey, record_uniforms, record_words, words_at
from dpmask.engine.exchange import Piece
from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import Position
from dpmask.kernels.arrays import Flags, Floats
from dpmask.kernels.calibration import Shares
from dpmask.kernels.cells import CellTree, count_gains, grow_tree, route, share_by_counts
from dpmask.kernels.keys import counted_floats
from dpmask.kernels.patterns import MISSING, THERE, ZERO, shard_firsts
from dpmask.lake.reading import Rows
from dpmask.masking.domains import Domains
from dpmask.masking.microaggregation.calibrated import GroupTotals, calibrate, contributions, joined_totals
from dpmask.masking.microaggregation.figures import CellFigures, GroupFigures, cell_figures, group_figures
from dpmask.masking.microaggregation.variables import Variables
from dpmask.masking.parts import Parts
from dpmask.table.checks import require_no_infinities, require_weights
from dpmask.table.columns import floats
from dpmask.table.encoders.numeric import Scale
from dpmask.table.grouping import merged_sizes
from dpmask.table.routing import joined_rows, rows_by_target, sent_back
from dpmask.table.table import Table

Integers = NDArray[np.int64]

_MOST_SHARDS = 1024
_SAMPLED_PER_SHARD = 256


class Cell(NamedTuple):
    """Records that are masked together."""

    members: NDArray[np.intp]  # which of the shard's records they are
    positions: Integers
    block: Floats  # columns x rows, in clustering units
    part: int
    variables: Variables
    weights: Floats | None = None
    domains: Integers | None = None


class CellMethod(Protocol):
    """What is done in one cell."""

    def clusters(self, records: int) -> int:
        """How many rows the models of so many records have together; 0 where there are no models."""

    def gains(self, cells: Sequence[Cell]) -> Floats:
        """What each row beyond the first would gain in one of these cells."""

    def fit_cells(self, cells: Sequence[Cell], clusters: int) -> list[Floats]:
        """The models of a shard's cells: so many rows of numbers together."""

    def mask_cell(self, cell: Cell, model: Floats) -> tuple[Integers, Floats]:
        """The group of each record, and the row that each group is released with, in original units."""

    def weight_shares(self, cell: Cell, model: Floats, groups: Integers) -> Floats:
        """How much of each centre, or of each group's row, its most important record makes up."""


@runtime_checkable
class CalibratedMethod(CellMethod, Protocol):
    """A method whose rows are means of groups, which can be calibrated to totals."""

    def means(self, cell: Cell) -> tuple[Integers, Floats]:
        """The group of each record, and the groups' means in original units, before calibration and rounding."""

    def shares(self, cell: Cell, groups: Integers) -> Shares:
        """Of each group the share of its weight that lies in each domain."""

    def calibrated(self, multipliers: Floats) -> CalibratedMethod:
        """The method with calibrated means."""


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


class FittedShard(NamedTuple):
    """A shard's model and, for the figures of the whole, what came of it: released rows by key, how often each."""

    model: ShardModel
    figures: CellFigures
    rows: Piece
    totals: Floats
    """Columns x domains: what is released, if totals are kept."""


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
    table: Table,
    variables: Sequence[Variables],
    parts: Parts,
    method: CellMethod,
    size: int,
    expected: float,
    key: Subkey,
    who: str,
    weight: str | None = None,
    domains: Domains | None = None,
) -> CellGroup:
    """Fit a method to the cells of a table; equal rows of different cells count as one group.

    ``variables`` are those of each part. With ``domains``, whose totals are kept, the method must be MDAV.
    """
    shards = _shards_of(table, variables, parts, size, key.subkey("cells"), who, weight)._replace(domains=domains)
    gathered = shards.exchange(table, joined_rows)
    calibration = None
    if domains is not None and isinstance(method, CalibratedMethod):
        groups = gathered.persist_checkpointed(partial(_group_totals, shards, method), "cells: groups")
        calibration = calibrate(groups, int(expected), domains.percent, "cells")
        method = method.calibrated(calibration.multipliers)
    fit = partial(_fit_shard, shards, method, _clusters(shards, method, gathered))
    fitted = gathered.with_positions().persist_checkpointed(fit, "cells: fit")
    found = fitted.reduce(attrgetter("figures"), CellFigures.plus, "cells: figures")
    sizes = merged_sizes(fitted.transform(attrgetter("rows")), table.rows, "cells: sizes")
    base = variables[0]
    figures = group_figures(base.columns, base.signs, expected, sizes, found, parts.report)
    if calibration is not None:
        released = fitted.reduce(attrgetter("totals"), np.add, "cells: totals")
        figures = replace(figures, **calibration.report(released)._asdict())
    return CellGroup(base, figures, shards, method, fitted.persist(attrgetter("model"), "cells: keep"))


def _shards_of(
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
        shards.grown(_of_part(records, records[1][-1] == part), int(cells)) if cells > 1 else shards.trees[part]
        for part, cells in enumerate(wanted)
    ]


def _of_part(records: Piece, chosen: Flags) -> Piece:
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


def _clusters(shards: Shards, method: CellMethod, gathered: Collection[Piece]) -> Integers:
    """How many clusters each shard gets: those that gain most in all of the cells, beside one for each cell."""
    clusters = method.clusters(int(shards.parts.sizes[shards.parts.free].sum()))
    if shards.total == 1 or not clusters:
        return np.full(shards.total, clusters)
    counted = gathered.map(partial(_count_gains, shards, method), "cells: gains")
    cells, counts = (np.array(part) for part in zip(*counted, strict=True))
    return cells + share_by_counts(counts, max(clusters - int(cells.sum()), 0))


def _count_gains(shards: Shards, method: CellMethod, records: Piece) -> tuple[int, Integers]:
    """A shard's cells, and how many clusters would gain how much in them."""
    free = [cell for cell in _cut(shards, records)[1] if shards.is_free(cell.part)]
    return len(free), count_gains(method.gains(free) if free else np.empty(0))


def _cut(shards: Shards, records: Piece) -> tuple[list[tuple[int, CellTree]], list[Cell]]:
    """The trees of a shard's parts, and its cells."""
    trees = []
    for part in np.unique(records[1][-1]).astype(np.int64).tolist():
        own = _of_part(records, records[1][-1] == part)
        trees.append((part, shards.grown(own, -(-len(own[0]) // shards.cell_size))))
    return trees, list(_cells(shards, trees, records))


def _fit_shard(
    shards: Shards, method: CellMethod, clusters: Integers, records: Piece, position: Position
) -> FittedShard:
    trees, cells = _cut(shards, records)
    free = [number for number, cell in enumerate(cells) if shards.is_free(cell.part)]
    models = [np.empty((0, len(shards.columns)))] * len(cells)
    if free:
        fitted = method.fit_cells([cells[at] for at in free], int(clusters[position.number]))
        for at, model in zip(free, fitted, strict=True):
            models[at] = model
    figures, rows, sizes = [], [], []
    totals = np.zeros((len(shards.columns), len(shards.domains) if shards.domains else 0))
    for cell, model in zip(cells, models, strict=True):
        groups, released = _masked(shards, method, cell, model)
        shares = method.weight_shares(cell, model, groups) if shards.is_free(cell.part) else np.empty(0)
        shown = np.where(np.isnan(released), shards.scale.mean, released)
        figures.append(cell_figures(cell.block, groups, shards.scale.to_units(shown), shown, shares))
        rows.append(released)
        sizes.append(np.bincount(groups, minlength=len(released)))
        totals += _released_totals(shards, cell, groups, released)
    counts = counted_floats(np.concatenate(rows), np.concatenate(sizes))
    found = reduce(CellFigures.plus, figures)
    found = found._replace(squares=found.squares + shards.lost(records[1]))
    return FittedShard(ShardModel(trees, models), found, counts, totals)


def _released_totals(shards: Shards, cell: Cell, groups: Integers, rows: Floats) -> Floats:
    """Columns x domains: what a cell adds to the totals that are released."""
    if cell.domains is None or shards.domains is None:
        return np.zeros((len(shards.columns), 0))
    weights = np.ones(len(groups)) if cell.weights is None else cell.weights
    amounts = np.nan_to_num(rows[groups].T) * weights
    return np.array([np.bincount(cell.domains, some, len(shards.domains)) for some in amounts])


def _group_totals(shards: Shards, method: CalibratedMethod, records: Piece) -> GroupTotals:
    """What the means of a shard's groups weigh in the domains, and the original totals."""
    values, columns = records[1], len(shards.columns)
    found, weights, domains = [], shards.weights(values), shards.domain_numbers(values)
    assert domains is not None
    assert shards.domains is not None
    for cell in _cut(shards, records)[1]:
        if shards.is_free(cell.part):
            groups, rows = method.means(cell)
            own = np.ones(len(groups)) if cell.weights is None else cell.weights
            there = shards.parts.patterns[cell.part] == THERE
            sums: Floats = np.where(there, rows, 0.0) * np.bincount(groups, own)[:, None]
            found.append((sums, method.shares(cell, groups)))
    own = np.ones(len(domains)) if weights is None else weights
    return joined_totals(found, contributions(values[:columns], own, domains, len(shards.domains)), columns)


def _cells(shards: Shards, trees: Sequence[tuple[int, CellTree]], records: Piece) -> Iterator[Cell]:
    """The cells of a shard, part by part."""
    positions, values = records
    for part, tree in trees:
        of_part = np.flatnonzero(values[-1] == part)
        block = shards.units(np.ascontiguousarray(values[:, of_part]))
        cell_of = route(block, shards.words(positions[of_part]), tree)
        for number in range(tree.cells):
            rows = np.flatnonzero(cell_of == number)
            members = of_part[rows]
            own = np.ascontiguousarray(block[:, rows])
            weights, domains = shards.weights(values), shards.domain_numbers(values)
            yield Cell(
                members,
                positions[members],
                own,
                part,
                shards.variables[part],
                None if weights is None else weights[members],
                None if domains is None else domains[members],
            )


def _masked(shards: Shards, method: CellMethod, cell: Cell, model: Floats) -> tuple[Integers, Floats]:
    """The group of each record, and the groups' rows as they are released; one group where there is nothing to mask."""
    if shards.is_free(cell.part):
        groups, rows = method.mask_cell(cell, model)
        rows = cell.variables.off_zero(rows, shards.parts.kept(cell.part))
    else:
        groups, rows = np.zeros(len(cell.members), np.int64), np.zeros((1, len(shards.columns)))
    return groups, shards.parts.fixed(cell.part, rows)


def _mask_shard(shards: Shards, method: CellMethod, pieces: list[Piece], model: ShardModel) -> Piece:
    records = joined_rows(pieces)
    masked = np.empty((len(shards.columns), len(records[0])))
    for cell, fitted in zip(_cells(shards, model.trees, records), model.cells, strict=True):
        if len(cell.members):
            groups, rows = _masked(shards, method, cell, fitted)
            masked[:, cell.members] = rows[groups].T
    return records[0], masked


def _values(pieces: list[Piece]) -> Piece:
    return joined_rows(pieces)[1:]
