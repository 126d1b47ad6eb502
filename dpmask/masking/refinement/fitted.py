"""A refinement that was found: what every value is masked to, who is left out, and what people are told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from dpmask.engine.draws import Subkey
from dpmask.kernels.refinement.information import TIE
from dpmask.lake.reading import Rows
from dpmask.masking.refinement.attributes import SUPPRESSED
from dpmask.masking.refinement.checks import WHO
from dpmask.masking.refinement.dropped import DroppedGroups
from dpmask.masking.refinement.guide import DISTORTION, Labels
from dpmask.masking.refinement.release import Released, interval, parsed_bound
from dpmask.masking.refinement.rounds import Step
from dpmask.results import Exhibit
from dpmask.table import table as tables
from dpmask.table.columns import require_known
from dpmask.table.new_columns import with_new_columns

if TYPE_CHECKING:
    from dpmask.masking.refinement.method import TopDownRefinement


_IN_ORDER = "What was refined, in this order"
_REFINED = {"attribute": Exhibit("text"), "value": Exhibit("text"), "score": Exhibit("number")}
_TREES = Exhibit("trees", "what its values are masked to")


@dataclass(frozen=True)
class Figures:
    """What a refinement came to: the smallest group of each requirement that counts, steps, trees, records dropped."""

    groups: Mapping[str, int]
    steps: tuple[Step, ...]
    trees: Mapping[str, Any]
    rows: int
    dropped: int = 0

    judged: ClassVar[tuple[str, ...]] = ("smallest", "refinements", "suppressed")
    exhibits: ClassVar[Mapping[str, Exhibit]] = {
        "suppressed_records": Exhibit("number", "records left out"),
        "suppressed": Exhibit("share", "share of records left out"),
        "requirements": Exhibit("numbers", "Smallest groups", term="smallest"),
        "steps": Exhibit("steps", _IN_ORDER, of={**_REFINED, "smallest": Exhibit("number", "smallest group after it")}),
        "trees": _TREES,
    }

    @property
    def smallest(self) -> int:
        """Records in the smallest group of any requirement."""
        return min(self.groups.values())

    @property
    def refinements(self) -> int:
        """How many refinements there were."""
        return len(self.steps)

    @property
    def suppressed(self) -> float:
        """The share of records that were left out."""
        return self.dropped / self.rows

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "smallest": self.smallest,
            "refinements": self.refinements,
            "suppressed": self.suppressed,
            "suppressed_records": self.dropped,
            "requirements": dict(self.groups),
            "steps": [step._asdict() for step in self.steps],
            "trees": dict(self.trees),
        }


@dataclass(frozen=True)
class FittedRefinement:
    """The solution: what every value is masked to, and which records are left out, if any."""

    method: TopDownRefinement
    released: tuple[Released, ...]
    cuts: Mapping[str, list[Any]]
    """For each attribute the leaves of its tree that are left, by name, or the edges of its intervals."""
    figures: Figures
    guide: Labels
    key: Subkey
    dropped: DroppedGroups | None = None

    solution_exhibits: ClassVar[Mapping[str, Exhibit]] = {
        "refinements": Exhibit("steps", _IN_ORDER, of=_REFINED),
        "trees": _TREES,
    }

    @property
    def steps(self) -> tuple[Step, ...]:
        """The refinements in their order: attribute, value, score, smallest group after it."""
        return self.figures.steps

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it masks."""
        return self.method.masks

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it masks, and those it makes of them."""
        return tuple(dict.fromkeys([*self.method.masks, *(name for one in self.released for name in one.names)]))

    def check(self, table: tables.Table) -> None:
        """Refuse a table that does not fit; a part of the one it was fitted to may be small."""
        self.method.check_schema(table.masked_schema)

    def mask(self, table: Any) -> Any:
        """The masked table, without what is dropped: pandas as pandas, a Dask frame or a lake as a lazy Dask frame."""
        return tables.mask(self, table, WHO)

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block, masked."""
        return with_new_columns(rows, {one.column: (one.new_columns, one.columns(rows, WHO)) for one in self.released})

    def masked_schema(self, schema: Any) -> Any:
        """Categories and labels become texts; bounds and midpoints numbers, or dates."""
        return self.method.masked_schema(schema)

    def labels(self, table: Any) -> Any:
        """The guide's class of each record, as a series."""
        return tables.derive_rows(table, self.guide.inputs, self._labels, require_known, WHO)["label"]

    def _labels(self, rows: Rows) -> dict[str, Any]:
        return {"label": self.guide.of(rows)}

    def claims(self) -> list[dict[str, Any]]:
        """Every requirement, in the columns that are released; anybody can count them again."""
        names = {one.column: one.names for one in self.released}
        return [
            {"columns": [name for column in one["columns"] for name in names[column]], "smallest_group": one["k"]}
            for one in self.method.requirements
        ]

    def solution(self) -> dict[str, Any]:
        """What a release may tell programs: the solution set, the trees as far as they were refined, and the scores.

        Scores are told to two digits: all of them would tell how many records of each group are of which class. Those
        of the distortion are numbers of records, also of such as are left out, and are not told.
        """
        guided = self.method.guide != DISTORTION
        steps = [
            {"attribute": step.attribute, "value": step.value} | ({"score": _rounded(step.score)} if guided else {})
            for step in self.steps
        ]
        return {"cuts": dict(self.cuts), "trees": dict(self.figures.trees), "refinements": steps}

    def statement(self) -> str:
        """What a reader of the release may know: the requirements and the solution."""
        held = "; ".join(f"{', '.join(one['columns'])}: {one['k']}" for one in self.method.requirements)
        cuts = "; ".join(
            f"{column}: {_told_cut(cut, column in self.method.domains)}" for column, cut in self.cuts.items()
        )
        dropped = f" {self.figures.dropped:,} of {self.figures.rows:,} records were left out for it."
        return (
            "Values were made coarser, the same everywhere, so that every row of these columns is shared by at least "
            f"so many records: {held}.{dropped if self.figures.dropped else ''} Values are masked to: {cuts}. "
            f"'{SUPPRESSED}' stands for a value that is not told; intervals hold their lower bound, not their upper "
            "one. The manifest's solution has all of them, the trees, and the refinements in their order."
        )

    def warnings(self) -> list[str]:
        """Columns that tell nothing any more."""
        return [
            f"{WHO}: '{column}' could not be refined and tells nothing. Lower k, or split its requirement."
            for column, tree in self.figures.trees.items()
            if "children" not in tree
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            "Groups are as large as required only for the declared columns: who knows other released columns, too, may "
            "find a record among fewer.",
            "Records of a group may share their sensitive values: measure groups for l-diversity and confidence.",
            *([_EDGES] if self.method.domains else []),
            *([_ABSENT] if self.figures.dropped else []),
            *self.warnings(),
        ]


_SHOWN = 12
_EDGES = "The inner bounds of intervals are values of released records: of each the smallest one above it."
_ABSENT = (
    "Records were left out: totals of the release are off by as many, and who knows that a person is in the source and "
    "finds no group for them learns that they were rare. Files are blocks of the source without them: their numbers of "
    "rows tell how many each block lost, to whoever knows how large blocks were."
)


def _told_cut(cut: Sequence[Any], ordered: bool) -> str:
    """All values; of very many only how many, and from where to where."""
    values = [str(one) for one in cut]
    if ordered:
        date, bounds = isinstance(cut[0], str), [parsed_bound(one) for one in cut]
        values = [interval(low, high, date) for low, high in pairwise(bounds)]
    if len(values) > _SHOWN:
        return f"{len(values)} values" + (f" from {values[0]} to {values[-1]}" if ordered else "")
    return ", ".join(values)


def _rounded(score: float) -> float:
    """Two digits; what is only rounding is nothing."""
    return float(f"{score:.2g}") if score > TIE else 0.0
