"""A refinement by regions that was found: each record is released as the box that it lies in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpmask.lake.reading import Rows
from dpmask.masking.refinement.attributes import SUPPRESSED
from dpmask.masking.refinement.fitted import EDGES, OTHERS, UNLIMITED, FittedRefinement, described
from dpmask.masking.refinement.trees import ReleasedRegions
from dpmask.results import Plain
from dpmask.table.new_columns import with_new_columns

_OVERLAP = (
    "Each region has a box of its own, so released values overlap: [20, 40) and [30, 60) stand beside each other. "
    "Counts by one released column are no counts of its values; analysts must take labels as sets of them."
)
_SERIES = (
    "Regions follow the records: those of a changed table are others, and an intruder who intersects the boxes of two "
    "releases of the same people may be left with fewer than k, or one. Release a table once; for a series take "
    "search: one_cut."
)


@dataclass(frozen=True, repr=False)
class FittedRegions(FittedRefinement):
    """The solution of the search ``mondrian``: regions, each a box of its own."""

    regions: tuple[ReleasedRegions, ...] = ()

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it masks."""
        return self.method.masks

    def released_names(self) -> Mapping[str, list[str]]:
        """The columns that each column is released as."""
        return {column: [column] for column in self.method.grouped}

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block, masked."""
        new = [one.columns(rows) for one in self.regions]
        return with_new_columns(rows, {column: found for one in new for column, found in one.items()})

    def explain(self) -> str:
        """What each column lost, beside what it would lose if all records shared their cuts; not for publication."""
        found = self.figures
        lines = [found.explain()]
        lines += [f"{column}: {loss:.4g}, one cut {found.one_cut[column]:.4g}" for column, loss in found.losses.items()]
        return "\n".join(lines)

    def solution(self) -> dict[str, Plain]:
        """What a release may show: how many regions there are. Their boxes are in the records."""
        return {"search": self.method.search, "regions": self.figures.regions}

    def statement(self) -> str:
        """What a reader of the release may know."""
        required = "; ".join(map(described, self.method.group_requirements))
        return (
            f"Records were put into {self.figures.regions:,} regions, and every value was replaced by the part of its "
            "column that its region covers: an interval, a node of a tree, or the value itself. Every row of these "
            f"columns is shared by at least so many records: {required}. Values of different regions may overlap. "
            f"'{SUPPRESSED}' stands for any value; intervals hold their lower bound, not their upper one."
        )

    def for_analysts(self) -> list[str]:
        """What boxes that overlap leave."""
        names = ", ".join(self.method.masks)
        return [
            f"{names} are intervals and nodes that overlap between regions, not classes of one table: count by a class "
            "only where regions lie inside it, and share the others out, such as evenly over their intervals. Counts "
            "and totals by regions are exact, those by other classes are bounded by them."
        ]

    @property
    def unrefined(self) -> list[str]:
        """The columns without any information left."""
        return [column for column, loss in self.figures.losses.items() if loss >= 1.0]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        unlimited = [] if self.method.sensitive else [UNLIMITED]
        edges = [EDGES] if self.method.domains else []
        return [OTHERS, *unlimited, _OVERLAP, _SERIES, *edges, *self.warnings()]
