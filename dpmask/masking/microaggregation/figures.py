"""What a grouping of records came to: how large its groups are, how near its rows lie to real records, what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.fuzzy.center_sums import labels
from dpmask.results import Exhibit
from dpmask.table.grouping import GroupSizes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ON_RECORD = 0.05
"""A row as good as shows a record that it is this much nearer to than records of its cell are to their rows (rms)."""
_DOMINATED = 0.5
_LARGEST_SHOWN = 20


class CellFigures(NamedTuple):
    """What one part of a grouping adds to the figures of the whole."""

    records: int
    smallest_cell: int
    largest_cell: int
    cells: int
    squares: Floats  # columns: squared distances between records and their rows, in clustering units
    low: Floats  # columns: the range of the rows, in original units
    high: Floats
    rows: int
    on_records: int
    nearest: float  # the smallest distance of a row to a record, in clustering units
    centers: int
    dominated: int
    largest_share: float

    def plus(self, other: CellFigures) -> CellFigures:
        """Both parts together."""
        return CellFigures(
            self.records + other.records,
            min(self.smallest_cell, other.smallest_cell),
            max(self.largest_cell, other.largest_cell),
            self.cells + other.cells,
            self.squares + other.squares,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.rows + other.rows,
            self.on_records + other.on_records,
            min(self.nearest, other.nearest),
            self.centers + other.centers,
            self.dominated + other.dominated,
            max(self.largest_share, other.largest_share),
        )


def cell_figures(block: Floats, groups: Integers, units: Floats, rows: Floats, shares: Floats) -> CellFigures:
    """The figures of one cell: records (columns x rows) and the groups' rows in clustering units, rows as released too.

    ``shares`` says how much of each centre its most important record makes up; none where there are no centres.
    """
    squares = ((block - units[groups].T) ** 2).sum(axis=1)
    return whole_figures(block.shape[1], squares, rows, nearest_distances(block, units), shares)


def whole_figures(records: int, squares: Floats, rows: Floats, nearest: Floats, shares: Floats) -> CellFigures:
    """The same from squared distances in each column, and each row's distance to the nearest record."""
    return CellFigures(
        records,
        records,
        records,
        1,
        squares,
        rows.min(axis=0),
        rows.max(axis=0),
        len(rows),
        int((nearest < _ON_RECORD * np.sqrt(squares.sum() / records)).sum()),
        float(nearest.min()),
        len(shares),
        int((shares > _DOMINATED).sum()),
        float(shares.max(initial=0.0)),
    )


def nearest_distances(block: Floats, points: Floats) -> Floats:
    """From each point (points x columns) the distance to the nearest record of the block."""
    records = np.ascontiguousarray(block.T)
    near = labels(np.ascontiguousarray(points.T), records)
    distances: Floats = np.sqrt(((points - records[near]) ** 2).sum(axis=1))
    return distances


@dataclass(frozen=True)
class GroupFigures:
    """The figures of one group of variables, or the worst of several."""

    columns: tuple[str, ...]
    expected: float
    sizes: GroupSizes
    parts: CellFigures
    leaving: tuple[str, ...]

    @property
    def smallest(self) -> int:
        """Records in the smallest group of equal released rows."""
        return self.sizes.smallest

    @property
    def below_k(self) -> float:
        """Share of records in groups smaller than expected."""
        return self.sizes.below(np.floor(self.expected)) / self.sizes.records

    @property
    def on_records(self) -> float:
        """Share of released rows that lie on a record: a twentieth of the way that records of their cell have moved."""
        return self.parts.on_records / self.parts.rows

    @property
    def dominated(self) -> float:
        """Share of centres of which one record makes up more than half."""
        return self.parts.dominated / max(self.parts.centers, 1)

    @property
    def loss(self) -> float:
        """Mean squared error of a standardised variable."""
        return float(self.parts.squares.mean() / self.parts.records)

    def histogram(self) -> dict[str, int]:
        """How many groups there are of each size, the largest sizes together."""
        shown = {str(size): count for size, count in self.sizes.groups.items() if size <= _LARGEST_SHOWN}
        rest = sum(count for size, count in self.sizes.groups.items() if size > _LARGEST_SHOWN)
        return shown | ({f"more than {_LARGEST_SHOWN}": rest} if rest else {})

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "columns": list(self.columns),
            "expected_size": self.expected,
            "smallest": self.smallest,
            "below_k": self.below_k,
            "distinct_rows": self.sizes.distinct,
            "groups_by_size": self.histogram(),
            "cells": self.parts.cells,
            "records_in_a_cell": [self.parts.smallest_cell, self.parts.largest_cell],
            "nearest_record": self.parts.nearest,
            "on_records": self.on_records,
            "dominated": self.dominated,
            "largest_weight_share": self.parts.largest_share,
            "loss": self.loss,
            "bounds_to_add": list(self.leaving),
        }


_DRAWN = {
    "expected_size": Exhibit("number", "records in a group, expected"),
    "smallest": Exhibit("number", "records in the smallest group of equal rows"),
    "below_k": Exhibit("share", "records in groups smaller than expected"),
    "distinct_rows": Exhibit("number", "different rows"),
    "cells": Exhibit("number", "cells"),
    "records_in_a_cell": Exhibit("text", "records in the smallest and the largest cell", term="cells"),
    "nearest_record": Exhibit("number", "smallest distance of a row to a record, in standard deviations"),
    "on_records": Exhibit("share", "rows that lie on a record"),
    "dominated": Exhibit("share", "centres of which one record makes up more than half"),
    "largest_weight_share": Exhibit("number", "largest share of one record in a centre"),
    "loss": Exhibit("number", "mean squared error of a standardised variable"),
    "groups_by_size": Exhibit("sizes", "Group sizes", term="group_sizes"),
}


@dataclass(frozen=True)
class Figures:
    """All groups of variables; a policy judges the worst of them."""

    groups: tuple[GroupFigures, ...]

    judged: ClassVar[tuple[str, ...]] = ("smallest", "below_k", "on_records", "dominated", "loss")
    exhibits: ClassVar[Mapping[str, Exhibit]] = {"groups": Exhibit("sections", "Groups of", of=_DRAWN)}

    @property
    def smallest(self) -> int:
        """Records in the smallest group of equal rows."""
        return min(group.smallest for group in self.groups)

    @property
    def below_k(self) -> float:
        """The largest share of records in groups smaller than expected."""
        return max(group.below_k for group in self.groups)

    @property
    def on_records(self) -> float:
        """The largest share of released rows that lie on a record."""
        return max(group.on_records for group in self.groups)

    @property
    def dominated(self) -> float:
        """The largest share of centres of which one record makes up more than half."""
        return max(group.dominated for group in self.groups)

    @property
    def loss(self) -> float:
        """Mean squared error of a standardised variable, over all of them."""
        return sum(g.loss * len(g.columns) for g in self.groups) / sum(len(g.columns) for g in self.groups)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        worst = {name: getattr(self, name) for name in self.judged}
        return {**worst, "groups": [group.to_dict() for group in self.groups]}


def leaving_sign(columns: Sequence[str], low: Floats, high: Floats, masked: CellFigures) -> tuple[str, ...]:
    """The bounds that would keep masked columns on the side of zero where all originals are."""
    return tuple(
        [f"{name} >= 0" for name, one, two in zip(columns, low, masked.low, strict=True) if one >= 0.0 > two]
        + [f"{name} <= 0" for name, one, two in zip(columns, high, masked.high, strict=True) if one <= 0.0 < two]
    )
