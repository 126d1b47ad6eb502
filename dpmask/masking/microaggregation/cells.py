"""Masking records in compact cells of bounded size, wherever the records came from.

Every part of the table (dpmask.masking.parts) is cut by itself. A tree of cuts, grown on a sample, sends its records to
shards; inside its shard it is cut exactly into cells of equal size, and a method sees one cell at a time; small parts
share a shard. Only the masked columns, the part and the position travel, to the cell and back. All of it follows from
the records, their positions and the key, never from blocks or workers, so the same records are masked alike however the
table is cut. Cost grows linearly with the records; a task works on one shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey
from dpmask.engine.exchange import Piece
from dpmask.engine.tasks import Position
from dpmask.kernels.arrays import Floats
from dpmask.kernels.cells import CellTree, count_gains, route, share_by_counts
from dpmask.kernels.keys import counted_floats
from dpmask.kernels.patterns import THERE
from dpmask.masking.domains import Domains
from dpmask.masking.microaggregation.calibrated import GroupTotals, calibrate, contributions, joined_totals
from dpmask.masking.microaggregation.cell_method import CalibratedMethod, Cell, CellMethod, Integers
from dpmask.masking.microaggregation.figures import CellFigures, GroupFigures, cell_figures, group_figures
from dpmask.masking.microaggregation.shards import ShardModel, Shards, make_shards, of_part
from dpmask.masking.microaggregation.variables import Variables
from dpmask.masking.parts import Parts
from dpmask.table.grouping import merged_sizes
from dpmask.table.routing import joined_rows, sent_back
from dpmask.table.table import Table


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
    shards = make_shards(table, variables, parts, size, key.subkey("cells"), who, weight)._replace(domains=domains)
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
        own = of_part(records, records[1][-1] == part)
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
