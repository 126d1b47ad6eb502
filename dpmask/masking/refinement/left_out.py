"""What is left out of a release once a solution is found, and what the attributes then hide: what only that had."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpmask.kernels.refinement.dropped import Drops
from dpmask.masking.refinement.attributes import Attribute
from dpmask.masking.refinement.blocks import CodedTable
from dpmask.masking.refinement.dropped_groups import DroppedGroups, lowest_of
from dpmask.masking.refinement.solution import Quasi, RefinementSolution
from dpmask.masking.refinement.suppressed_cells import SuppressedCells, Suppression
from dpmask.table.dropping import without
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.encoders.category import CategoryEncoder
from dpmask.table.encoders.interval import IntervalEncoder
from dpmask.table.households import DroppedHouseholds
from dpmask.table.table import Table


def without_groups(
    table: Table,
    encoders: tuple[CodeEncoder, ...],
    attributes: Sequence[Attribute],
    quasis: Sequence[Quasi],
    drops: Drops,
) -> DroppedGroups:
    """What is dropped; the attributes then hide what only dropped records have."""
    nodes = tuple(one.nodes.copy() for one in attributes)
    dropped = DroppedGroups(encoders, nodes, tuple(one.attributes for one in quasis), drops)
    for attribute, lowest in zip(attributes, dropped.lowest_remaining(table), strict=True):
        attribute.hide_dropped(lowest)
    return dropped


def without_households(
    table: Table,
    encoders: tuple[CodeEncoder, ...],
    coded: CodedTable,
    quasis: Sequence[Quasi],
    solution: RefinementSolution,
) -> DroppedHouseholds:
    """The households that are dropped; the attributes then hide what only these have."""
    assert coded.households is not None
    assert solution.gone is not None
    columns = next(one.attributes for one in quasis if one.of_households)
    gone = columns, solution.attributes, solution.gone.broken
    dropped = coded.households.dropped(*gone)
    present = coded.households.codes_left(*gone, [one.size for one in encoders])
    lowest = {one.column: np.where(codes, 0.0, np.inf) for one, codes in zip(encoders, present, strict=True)}
    ordered = tuple(one for one in encoders if isinstance(one, IntervalEncoder))
    if ordered:  # their codes do not say how low the values are that are left
        names = [one.column for one in ordered]
        lowest |= zip(names, lowest_of(without(table, dropped), ordered), strict=True)
    for attribute in solution.attributes:
        attribute.hide_dropped(lowest[attribute.name])
    return dropped


def without_cells(
    table: Table,
    encoders: tuple[CategoryEncoder | IntervalEncoder, ...],
    attributes: Sequence[Attribute],
    quasis: Sequence[Quasi],
    found: Suppression,
) -> tuple[SuppressedCells, dict[str, int]]:
    """Which cells are suppressed, and how many of each column; the attributes then hide what only these had."""
    nodes = tuple(one.nodes.copy() for one in attributes)
    cells = SuppressedCells(encoders, nodes, tuple(one.attributes for one in quasis), found)
    lowest, lost = cells.left(table)
    for attribute, one in zip(attributes, lowest, strict=True):
        if attribute.name in cells.columns:
            attribute.hide_dropped(one)
    return cells, {one.column: count for one, count in zip(encoders, lost.tolist(), strict=True) if count}
