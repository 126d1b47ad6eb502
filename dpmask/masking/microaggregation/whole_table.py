"""Algorithm 1 over a whole table: few clusters, fitted by fuzzy c-means over Dask, and drawn block by block."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from dpmask.clustering.fuzzy_c_means import FuzzyCMeans
from dpmask.engine.collection import merge_each
from dpmask.engine.draws import Subkey, record_uniforms
from dpmask.engine.tasks import Position
from dpmask.kernels.arrays import Flags, Floats, Integers
from dpmask.kernels.fuzzy.draws import Closeness, closeness, merge_closeness
from dpmask.kernels.keys import counted_floats
from dpmask.kernels.microaggregation import merge_small
from dpmask.lake.reading import Rows, Schema
from dpmask.masking.microaggregation.figures import (
    GroupFigures,
    Nearby,
    around,
    group_figures,
    reach_of_rows,
    singled_out,
    whole_figures,
)
from dpmask.masking.microaggregation.variables import Variables
from dpmask.table.checks import require_finite_rows
from dpmask.table.columns import floats, require_numeric, with_floats
from dpmask.table.grouping import sizes_in
from dpmask.table.table import Table


class Drawing(Protocol):
    """How records draw centres."""

    def draw(self, block: Floats, uniforms: Floats, centers: Floats) -> Integers:
        """The centre that each record draws: from a block, uniform draws and centres, in clustering units."""


class Sharpness(NamedTuple):
    """How sharply records belong to clusters: fuzziness m or entropy weight lambda, the other one None."""

    fuzziness: float | None
    entropy: float | None

    def describe(self) -> str:
        """In words."""
        return f"fuzziness {self.fuzziness:g}" if self.entropy is None else f"entropy {self.entropy:g}"


class WholeTableGroup(NamedTuple):
    """Variables masked by clusters of the whole table."""

    variables: Variables
    figures: GroupFigures
    step: DrawnRows

    def mask_table(self, table: Table) -> Table:
        """The table with one more step: each record is masked by itself."""
        return table.masked_by(self.step)


@dataclass(frozen=True)
class DrawnRows:
    """A step that gives every record the row of the centre it draws."""

    variables: Variables
    drawing: Drawing
    centers: Floats  # clustering units
    place: Integers  # the group that each centre is in
    rows: Floats  # of the groups, as released
    key: Subkey
    who: str
    dropped: None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it masks."""
        return self.variables.columns

    changes = inputs

    def check(self, table: Table) -> None:
        """Refuse a table whose columns are not numbers."""
        require_numeric(table.masked_schema, self.inputs, self.who)

    def groups(self, columns: Sequence[Floats], first: int) -> tuple[Floats, Integers]:
        """A block in clustering units, and the group of each record."""
        block = self.variables.scale.to_units(np.array(columns).T).T
        require_finite_rows(list(block), self.inputs, self.who, "grouped")
        uniforms = record_uniforms(self.key, first, block.shape[1])
        return block, self.place[self.drawing.draw(block, uniforms, self.centers)]

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block with the rows of its groups."""
        _, groups = self.groups([floats(rows, name) for name in self.inputs], first)
        for number, name in enumerate(self.inputs):
            rows = with_floats(rows, name, self.rows[groups, number])
        return rows

    def masked_schema(self, schema: Schema) -> Schema:
        """Types are kept."""
        return schema


def fit_whole_table(
    table: Table,
    variables: Variables,
    drawing: Drawing,
    model: Sharpness,
    clusters: int,
    minimum: int,
    key: Subkey,
    who: str,
) -> WholeTableGroup:
    """Cluster the table, draw once to learn the groups' sizes, merge small groups, and measure the result."""
    columns = list(variables.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the figures say what came of it
        method = FuzzyCMeans(
            clusters=clusters, fuzziness=model.fuzziness, entropy=model.entropy, constraints=variables.texts
        )
        fitted = method.fit(table, columns=columns, key=key.subkey("clusters"))
    centers = variables.scale.to_units(fitted.centers)
    draws = key.subkey("draw")
    alone = DrawnRows(variables, drawing, centers, np.arange(clusters), fitted.centers, draws, who)
    records = table.floats(columns).with_positions()
    sizes, near = records.reduce(partial(_drawn, alone, model), _merge_drawn, f"{who}: draws")
    merged = merge_small(variables.to_original(centers), sizes, variables.scale.sd, minimum)
    rows = variables.finished(merged.rows)
    step = DrawnRows(variables, drawing, centers, _filled(merged.place, centers), rows, draws, who)
    squares, nearest = records.reduce(partial(_moved, step), _merge_moved, f"{who}: figures")
    own = _own(records, step, np.sqrt(nearest), reach_of_rows(table.rows, squares), table.rows)
    parts = whole_figures(table.rows, squares, rows, np.sqrt(nearest), near.share, own)
    groups = sizes_in(counted_floats(rows, merged.sizes)[2])
    figures = group_figures(columns, variables.signs, table.rows / clusters, groups, parts)
    return WholeTableGroup(variables, figures, step)


def _drawn(
    step: DrawnRows, model: Sharpness, columns: Sequence[Floats], position: Position
) -> tuple[Integers, Closeness]:
    """How many of a block's records drew each centre, and how near they are."""
    block, groups = step.groups(columns, position.first)
    near = closeness(block, step.centers, fuzziness=model.fuzziness, entropy=model.entropy)
    return np.bincount(groups, minlength=len(step.centers)), near


def _merge_drawn(left: tuple[Integers, Closeness], right: tuple[Integers, Closeness]) -> tuple[Integers, Closeness]:
    return left[0] + right[0], merge_closeness(left[1], right[1])


def _moved(step: DrawnRows, columns: Sequence[Floats], position: Position) -> tuple[Floats, Floats]:
    """How far a block's records are from their rows, and the rows from the nearest of them, squared."""
    block, groups = step.groups(columns, position.first)
    units = step.variables.scale.to_units(step.rows)
    return ((block - units[groups].T) ** 2).sum(axis=1), closeness(block, units, fuzziness=1.0).nearest


def _merge_moved(left: tuple[Floats, Floats], right: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return left[0] + right[0], np.minimum(left[1], right[1])


def _own(records: Any, step: DrawnRows, nearest: Floats, reach: float, total: int) -> Flags:
    """Which rows show the record that they lie on. Takes a pass, if any lie on one."""
    own = nearest < reach
    if own.any():
        units = step.variables.scale.to_units(step.rows)[own]
        found = records.reduce(
            partial(_around, step, units, reach), partial(merge_each, Nearby.plus), f"{step.who}: rows on records"
        )
        own[own] = [singled_out(one, len(nearest), total) for one in found]
    return own


def _around(step: DrawnRows, units: Floats, reach: float, columns: Sequence[Floats], _: Position) -> list[Nearby]:
    block = step.variables.scale.to_units(np.array(columns).T).T
    return [around(block, one, reach) for one in units]


def _filled(place: Integers, centers: Floats) -> Integers:
    """Centres that nobody drew go with the nearest that somebody did: records of another table may draw them."""
    used = np.flatnonzero(place >= 0)
    gaps = ((centers[:, None] - centers[None, used]) ** 2).sum(axis=2)
    return np.where(place >= 0, place, place[used[np.argmin(gaps, axis=1)]])
