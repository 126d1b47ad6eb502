"""Algorithm 1 over a whole table: few clusters, fitted by fuzzy c-means over Dask, and drawn block by block."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.fuzzy_c_means import FuzzyCMeans
from dpmask.engine.draws import Subkey, record_uniforms
from dpmask.engine.passes import Span, reduce_blocks
from dpmask.kernels.fuzzy.draws import Closeness, closeness, merge_closeness
from dpmask.kernels.keys import counted_floats
from dpmask.kernels.microaggregation import merge_small
from dpmask.lake.reading import Rows
from dpmask.masking.microaggregation.figures import GroupFigures, group_figures, whole_figures
from dpmask.masking.microaggregation.variables import Variables
from dpmask.table.checks import require_finite_rows
from dpmask.table.columns import floats, require_numeric, with_floats
from dpmask.table.grouping import sizes_in
from dpmask.table.table import Table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Sharpness(NamedTuple):
    """How sharply records belong to clusters: fuzziness m or entropy weight lambda, the other one None."""

    fuzziness: float | None
    entropy: float | None

    def describe(self) -> str:
        """In words."""
        return f"fuzziness {self.fuzziness:g}" if self.entropy is None else f"entropy {self.entropy:g}"


class Drawing(Protocol):
    """How records draw a centre."""

    def draw(self, block: Floats, uniforms: Floats, centers: Floats) -> Integers:
        """The centre that each record draws; the block and the centres in clustering units."""


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

    def masked_schema(self, schema: Any) -> Any:
        """Types are kept."""
        return schema


class _Drawn(NamedTuple):
    """One block's share of the draws: how many records drew each, and how near they are."""

    sizes: Integers
    near: Closeness

    def plus(self, other: _Drawn) -> _Drawn:
        return _Drawn(self.sizes + other.sizes, merge_closeness(self.near, other.near))


class _Moved(NamedTuple):
    """How far a block's records are from their rows, and the rows from the nearest of them."""

    squares: Floats
    nearest: Floats

    def plus(self, other: _Moved) -> _Moved:
        return _Moved(self.squares + other.squares, np.minimum(self.nearest, other.nearest))


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
    drawn = reduce_blocks(
        table.on_floats(columns, partial(_drawn, alone, model)), _Drawn.plus, table.blocks, f"{who}: draws"
    )
    merged = merge_small(variables.to_original(centers), drawn.sizes, variables.scale.sd, minimum)
    rows = variables.finished(merged.rows)
    step = DrawnRows(variables, drawing, centers, _filled(merged.place, centers), rows, draws, who)
    moved = reduce_blocks(table.on_floats(columns, partial(_moved, step)), _Moved.plus, table.blocks, f"{who}: figures")
    parts = whole_figures(table.rows, moved.squares, rows, np.sqrt(moved.nearest), drawn.near.share)
    sizes = sizes_in(counted_floats(rows, merged.sizes)[2])
    figures = group_figures(columns, variables.signs, table.rows / clusters, sizes, parts)
    return WholeTableGroup(variables, figures, step)


def _drawn(step: DrawnRows, model: Sharpness, columns: Sequence[Floats], span: Span) -> _Drawn:
    block, groups = step.groups(columns, span.first)
    near = closeness(block, step.centers, fuzziness=model.fuzziness, entropy=model.entropy)
    return _Drawn(np.bincount(groups, minlength=len(step.centers)), near)


def _moved(step: DrawnRows, columns: Sequence[Floats], span: Span) -> _Moved:
    block, groups = step.groups(columns, span.first)
    units = step.variables.scale.to_units(step.rows)
    return _Moved(((block - units[groups].T) ** 2).sum(axis=1), closeness(block, units, fuzziness=1.0).nearest)


def _filled(place: Integers, centers: Floats) -> Integers:
    """Centres that nobody drew go with the nearest that somebody did: records of another table may draw them."""
    used = np.flatnonzero(place >= 0)
    gaps = ((centers[:, None] - centers[None, used]) ** 2).sum(axis=2)
    return np.where(place >= 0, place, place[used[np.argmin(gaps, axis=1)]])
