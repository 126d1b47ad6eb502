"""What a grouping of records came to: how large its groups are, how near its rows lie to real records, what it cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import add
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats
from dpmask.kernels.fuzzy.labels import labels
from dpmask.masking.parts import PartsReport
from dpmask.results import LESS_RISK, MORE_LOSS, MORE_RISK, NEUTRAL, Exhibit, Result, Term, worst
from dpmask.table.grouping import GroupSizes

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_ON_RECORD = 0.05
"""A row as good as shows a record that it is this much nearer to than records of its cell are to their rows (rms)."""
_EXACTLY = 1e-18
"""A squared distance that is only rounding: the row has all values of the record."""
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
        return CellFigures(*(merge(*parts) for merge, *parts in zip(_MERGES, self, other, strict=True)))


_Merge = Callable[[Any, Any], Any]
_MERGES: tuple[_Merge, ...] = (add, min, max, add, add, np.minimum, np.maximum, add, add, min, add, add, max)
"""How each of the fields is merged."""


def cell_figures(block: Floats, groups: Integers, units: Floats, rows: Floats, shares: Floats) -> CellFigures:
    """The figures of one cell: records (columns x rows) and the groups' rows in clustering units, rows as released too.

    ``shares`` says how much of each centre its most important record makes up; none where there are no centres.
    """
    squares = ((block - units[groups].T) ** 2).sum(axis=1)
    records = np.ascontiguousarray(block.T)
    near = labels(np.ascontiguousarray(units.T), records)
    nearest: Floats = np.sqrt(((units - records[near]) ** 2).sum(axis=1))
    reach, own = reach_of_rows(len(records), squares), np.zeros(len(rows), np.bool_)
    for row in np.flatnonzero(nearest < reach):
        own[row] = singled_out(around(block, units[row], reach), len(rows), len(records))
    return whole_figures(len(records), squares, rows, nearest, shares, own)


class Nearby(NamedTuple):
    """Who is near a row: the squared distance of the nearest record, how many lie at it, and how many within reach."""

    distance: float
    nearest: int
    within: int

    def plus(self, other: Nearby) -> Nearby:
        """Those of two blocks."""
        low = min(self.distance, other.distance)
        nearest = sum(one.nearest for one in (self, other) if one.distance == low)
        return Nearby(low, nearest, self.within + other.within)


def around(block: Floats, row: Floats, reach: float) -> Nearby:
    """Who of a block's records (columns x rows) is near a row."""
    squares = ((block - row[:, None]) ** 2).sum(axis=0)
    low = float(squares.min(initial=np.inf))
    return Nearby(low, int((squares == low).sum()), int((squares < reach * reach).sum()))


def singled_out(found: Nearby, groups: int, records: int) -> bool:
    """Whether a row shows the record that it lies on.

    Not where a whole group of records is equal, such as zeros, nor where others are within reach, too: then the row
    lies in a crowd, and on nobody in particular. But all values of a record, to the last digit, show it in any crowd.
    """
    alone = found.within <= found.nearest or found.distance <= _EXACTLY
    return alone and found.nearest * groups < records


def reach_of_rows(records: int, squares: Floats) -> float:
    """How near a row lies on a record: a twentieth of the way that records have moved."""
    return float(_ON_RECORD * np.sqrt(squares.sum() / records))


def whole_figures(
    records: int, squares: Floats, rows: Floats, nearest: Floats, shares: Floats, own: Flags
) -> CellFigures:
    """The same from squared distances in each column, each row's distance to a record, and which rows show one."""
    return CellFigures(
        records,
        records,
        records,
        1,
        squares,
        rows.min(axis=0),
        rows.max(axis=0),
        len(rows),
        int(own.sum()),
        float(nearest.min()),
        len(shares),
        int((shares > _DOMINATED).sum()),
        float(shares.max(initial=0.0)),
    )


@dataclass(frozen=True)
class GroupFigures:
    """The figures of one group of variables."""

    columns: tuple[str, ...]
    expected_size: float
    smallest: int
    """Records in the smallest group of equal released rows."""
    below_k: float
    """Share of records in groups smaller than expected."""
    distinct_rows: int
    groups_by_size: Mapping[str, int]
    """How many groups there are of each size, the largest sizes together."""
    cells: int
    records_in_a_cell: tuple[int, int]
    """Of the smallest and of the largest cell."""
    nearest_record: float
    on_records: float
    """Share of released rows that lie on a record: a twentieth of the way that records of their cell have moved.

    Not on values that a whole group of records has, such as zeros, nor near several records, unless it has all values
    of one.
    """
    dominated: float
    """Share of centres of which one record makes up more than half."""
    largest_weight_share: float
    loss: float
    """Mean squared error of a standardised variable."""
    bounds_to_add: tuple[str, ...]
    """Constraints that would keep masked values on the side of zero where all originals are."""
    strata: int = 1
    strata_joined: int = 0
    """Strata of fewer than three groups, joined to the nearest; and their records."""
    records_joined: int = 0
    patterns: int = 1
    """Patterns of zeros and missing values, over all strata."""
    patterns_merged: int = 0
    """Patterns of fewer records than a group in their stratum; and their records."""
    records_merged: int = 0
    values_to_zero: int = 0
    """Values set to zero, as too few records of the table have the pattern, and those set to missing."""
    values_to_missing: int = 0
    records_across: int = 0
    """Records that were masked with those of other strata, as their pattern, or that of these, is rare there."""
    totals_kept: int = 0
    """Totals by domain that means were calibrated to; and those left alone, as too few records contribute."""
    totals_left: int = 0
    totals_sensitive: int = 0
    """Totals left alone, as they would show the largest contribution (p % rule)."""
    totals_dominated: int = 0
    """Totals that are kept, and of which one record makes up more than half."""
    totals_off: float = 0.0
    """The largest difference of a total that is kept from the original one, relative to it."""


def group_figures(
    columns: Sequence[str],
    signs: tuple[Flags, Flags],
    expected: float,
    sizes: GroupSizes,
    parts: CellFigures,
    report: PartsReport | None = None,
) -> GroupFigures:
    """The figures of variables; ``signs`` says which of them have originals on one side of zero only."""
    return GroupFigures(
        tuple(columns),
        expected,
        sizes.smallest,
        sizes.below(np.floor(expected)) / sizes.records,
        sizes.distinct,
        _histogram(sizes),
        parts.cells,
        (parts.smallest_cell, parts.largest_cell),
        parts.nearest,
        parts.on_records / parts.rows,
        parts.dominated / max(parts.centers, 1),
        parts.largest_share,
        float(parts.squares.mean() / parts.records),
        _bounds_to_add(columns, *signs, parts),
        *(report or ()),
    )


def _histogram(sizes: GroupSizes) -> dict[str, int]:
    shown = {str(size): count for size, count in sizes.groups.items() if size <= _LARGEST_SHOWN}
    rest = sum(count for size, count in sizes.groups.items() if size > _LARGEST_SHOWN)
    return shown | ({f"more than {_LARGEST_SHOWN}": rest} if rest else {})


_SAMARATI = "Samarati 2001, Protecting respondents' identities in microdata release"
_GUIDE = "dpmask explain microaggregation"
_STRATA = "dpmask explain strata"
_DEVILLE = "Deville and Sarndal 1992, Calibration estimators in survey sampling"
_PERCENT = "Hundepool et al. 2012, Statistical disclosure control, section 4.2"
_DRAWN = {
    "expected_size": Exhibit("number", "records in a group, expected"),
    "smallest": Exhibit("number", "records in the smallest group of equal rows"),
    "below_k": Exhibit("share", "records in groups smaller than expected"),
    "distinct_rows": Exhibit("number", "different rows"),
    "cells": Exhibit("number", "cells"),
    "records_in_a_cell": Exhibit("text", "records in the smallest and the largest cell"),
    "nearest_record": Exhibit("number", "smallest distance of a row to a record, in standard deviations"),
    "on_records": Exhibit("share", "rows that lie on a record"),
    "dominated": Exhibit("share", "centres of which one record makes up more than half"),
    "largest_weight_share": Exhibit("number", "largest share of one record in a centre"),
    "loss": Exhibit("number", "mean squared error of a standardised variable"),
    "strata": Exhibit("number", "strata"),
    "strata_joined": Exhibit("number", "strata of fewer than three groups, joined to the nearest"),
    "records_joined": Exhibit("number", "records in these"),
    "patterns": Exhibit("number", "patterns of zeros and missing values, over all strata"),
    "patterns_merged": Exhibit("number", "patterns of fewer records than a group in their stratum"),
    "records_merged": Exhibit("number", "records with these"),
    "values_to_zero": Exhibit("number", "values set to zero, as too few records of the table have their pattern"),
    "values_to_missing": Exhibit("number", "values set to missing likewise"),
    "records_across": Exhibit("number", "records masked with those of other strata, for rare patterns"),
    "totals_kept": Exhibit("number", "totals by domain that are kept"),
    "totals_left": Exhibit("number", "totals left alone, as too few records contribute"),
    "totals_sensitive": Exhibit("number", "totals left alone, as one record dominates them (p % rule)"),
    "totals_dominated": Exhibit("number", "totals kept of which one record makes up more than half"),
    "totals_off": Exhibit("share", "largest relative difference of a total that is kept"),
    "groups_by_size": Exhibit("sizes", "Group sizes"),
}


@dataclass(frozen=True)
class MicroaggregationFigures(Result):
    """All groups of variables; a policy judges the worst of them."""

    groups: tuple[GroupFigures, ...]

    judged: ClassVar[tuple[str, ...]] = ("smallest", "below_k", "on_records", "dominated", "loss", "totals_off")
    about: ClassVar[Term] = Term(
        "How large the groups of equal released rows are, how near these rows lie to records, and what they cost.",
        NEUTRAL,
        _GUIDE,
    )
    terms: ClassVar[Mapping[str, Term]] = {
        "smallest": Term("Records in the smallest group of equal released rows.", LESS_RISK, _SAMARATI),
        "below_k": Term("Share of records in groups smaller than expected.", MORE_RISK, _SAMARATI),
        "on_records": Term("Share of released rows that lie on a record of the original.", MORE_RISK, _GUIDE),
        "dominated": Term("Share of centres of which one record makes up more than half.", MORE_RISK, _GUIDE),
        "loss": Term(
            "Mean squared error of a standardised variable.",
            MORE_LOSS,
            "Domingo-Ferrer and Mateo-Sanz 2002, Practical data-oriented microaggregation",
        ),
        "expected_size": Term("Records in a group, as the parameters ask for.", NEUTRAL, _GUIDE),
        "distinct_rows": Term("Different rows among the released ones.", NEUTRAL, _GUIDE),
        "groups_by_size": Term("How many groups of equal released rows have so many records.", NEUTRAL, _GUIDE),
        "cells": Term("Parts of the table that were masked by themselves.", NEUTRAL, _GUIDE),
        "records_in_a_cell": Term("Records in the smallest and in the largest cell.", NEUTRAL, _GUIDE),
        "nearest_record": Term("Smallest distance of a row to a record.", LESS_RISK, _GUIDE),
        "largest_weight_share": Term("Largest share of one record in a centre.", MORE_RISK, _GUIDE),
        "strata": Term("Classes of records that are masked by themselves.", NEUTRAL, _STRATA),
        "strata_joined": Term("Strata of fewer than three groups, joined to the nearest.", NEUTRAL, _STRATA),
        "records_joined": Term("Records in strata that were joined to another.", NEUTRAL, _STRATA),
        "patterns": Term("Patterns of zeros and missing values in a stratum, over all strata.", NEUTRAL, _STRATA),
        "patterns_merged": Term(
            "Patterns of fewer records than a group in their stratum: masked with the same of the nearest strata.",
            MORE_LOSS,
            _STRATA,
        ),
        "records_merged": Term("Records whose pattern is rare in their stratum.", MORE_LOSS, _STRATA),
        "values_to_zero": Term("Values set to zero, as too few records have one there.", MORE_LOSS, _STRATA),
        "values_to_missing": Term("Values set to missing, as too few records have one there.", MORE_LOSS, _STRATA),
        "totals_kept": Term("Totals by domain that group means were calibrated to.", NEUTRAL, _DEVILLE),
        "totals_left": Term("Totals by domain left alone: fewer than k records contribute.", MORE_LOSS, _DEVILLE),
        "totals_sensitive": Term("Totals by domain left alone: they show one record (p % rule).", MORE_LOSS, _PERCENT),
        "totals_dominated": Term("Kept totals of which one record makes up more than half.", MORE_RISK, _DEVILLE),
        "totals_off": Term(
            "Largest difference of a kept total from the original one, relative to it.", MORE_LOSS, _DEVILLE
        ),
        "records_across": Term(
            "Records masked with those of other strata, as a pattern is rare in one of them.", NEUTRAL, _STRATA
        ),
    }
    exhibits: ClassVar[Mapping[str, Exhibit]] = {"groups": Exhibit("sections", "Groups of", of=_DRAWN)}

    smallest = worst("groups", "smallest", min, "Records in the smallest group of equal rows.")
    below_k = worst("groups", "below_k", max, "The largest share of records in groups smaller than expected.")
    on_records = worst("groups", "on_records", max, "The largest share of released rows that lie on a record.")
    dominated = worst(
        "groups", "dominated", max, "The largest share of centres of which one record makes up more than half."
    )

    totals_off = worst("groups", "totals_off", max, "The largest relative difference of a total that is kept.")

    @property
    def loss(self) -> float:
        """Mean squared error of a standardised variable, over all of them."""
        return sum(g.loss * len(g.columns) for g in self.groups) / sum(len(g.columns) for g in self.groups)

    @property
    def _rows_of(self) -> str:
        """Of which columns rows are, if they are not of all."""
        names = [", ".join(group.columns) for group in self.groups]
        return f"of {'; or of '.join(names)}, each by itself, " if len(names) > 1 else ""

    def explain(self) -> str:
        """What the numbers mean, in a sentence."""
        return (
            f"Every released row {self._rows_of}is shared by at least {self.smallest} records, {self.below_k:.1%} of "
            f"the records are in groups smaller than expected, and {self.on_records:.1%} of the rows lie on a record; "
            f"the mean squared error of a standardised variable is {self.loss:.4g}."
        )


def _bounds_to_add(
    columns: Sequence[str], not_negative: Flags, not_positive: Flags, masked: CellFigures
) -> tuple[str, ...]:
    below = [f"{name} >= 0" for name in compress(columns, not_negative & (masked.low < 0.0))]
    return (*below, *(f"{name} <= 0" for name in compress(columns, not_positive & (masked.high > 0.0))))
