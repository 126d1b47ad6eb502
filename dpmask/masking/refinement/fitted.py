"""A refinement that was found: what every value is masked to, which records are dropped, and how it is described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from dpmask.engine.draws import Subkey
from dpmask.kernels.refinement.information import TIE
from dpmask.lake.reading import Rows
from dpmask.masking.method import FittedMethod
from dpmask.masking.refinement.attributes import SUPPRESSED
from dpmask.masking.refinement.columns import WHO, DroppedGroups, Released, interval, parsed_bound
from dpmask.masking.refinement.guide import DISTORTION, Labels
from dpmask.masking.refinement.search import RefinementStep
from dpmask.results import LESS_RISK, MORE_LOSS, NEUTRAL, Exhibit, Plain, Result, Term, plain
from dpmask.table import table as tables
from dpmask.table.columns import require_known
from dpmask.table.new_columns import with_new_columns

if TYPE_CHECKING:
    from dpmask.masking.refinement.method import TopDownRefinement

_FUNG = "Fung, Wang, Wang and Hung 2009, section 3 and Algorithm 1."

_IN_ORDER = "What was refined, in this order"
_REFINED = {"attribute": Exhibit("text"), "value": Exhibit("text"), "score": Exhibit("number")}
_TREES = Exhibit("trees", "what its values are masked to")


@dataclass(frozen=True, repr=False)
class Figures(Result):
    """What a refinement came to: the smallest group of each requirement that counts, steps, trees, records dropped."""

    groups: Mapping[str, int]
    steps: tuple[RefinementStep, ...]
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
    about: ClassVar[Term] = Term("Records in the smallest group of any requirement.", LESS_RISK, _FUNG)
    terms: ClassVar[Mapping[str, Term]] = {
        "refinements": Term("Refinements that were taken.", NEUTRAL, _FUNG),
        "suppressed": Term("The share of records that were dropped.", MORE_LOSS, "dpmask."),
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
        """The share of records that were dropped."""
        return self.dropped / self.rows

    def explain(self) -> str:
        """The numbers in a sentence."""
        return (
            f"{self.refinements} refinements; at least {self.smallest:,} records share every row of a requirement; "
            f"{self.dropped:,} of {self.rows:,} records were dropped."
        )

    def to_dict(self) -> dict[str, Plain]:
        """The numbers, for JSON."""
        return {name: plain(getattr(self, name)) for name in self.judged} | {
            "suppressed_records": self.dropped,
            "requirements": plain(self.groups),
            "steps": [plain(step._asdict()) for step in self.steps],
            "trees": plain(self.trees),
        }

    def __repr__(self) -> str:
        """No step and no tree: bounds of intervals are values of records."""
        return f"<{type(self).__name__}: {self.explain()}>"


@dataclass(frozen=True, repr=False)
class FittedRefinement(FittedMethod):
    """The solution: what every value is masked to, and which records are dropped, if any."""

    method: TopDownRefinement
    released: tuple[Released, ...]
    cuts: Mapping[str, list[Any]]
    """For each attribute the leaves of its tree that are left, by name, or the edges of its intervals."""
    figures: Figures = field()
    guide: Labels = field()
    key: Subkey = field()
    dropped: DroppedGroups | None = None

    solution_exhibits: ClassVar[Mapping[str, Exhibit]] = {
        "refinements": Exhibit("steps", _IN_ORDER, of=_REFINED),
        "trees": _TREES,
    }

    @property
    def steps(self) -> tuple[RefinementStep, ...]:
        """The refinements in their order: attribute, value, score, smallest group after it."""
        return self.figures.steps

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it masks, and those it adds for them."""
        return tuple(dict.fromkeys([*self.inputs, *(new.name for one in self.released for new in one.new_columns)]))

    def check(self, table: tables.Table) -> None:
        """Refuse a table that does not fit; a part of the one it was fitted to may be small."""
        self.method.check_schema(table.masked_schema)

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block, masked."""
        return with_new_columns(rows, {one.column: (one.new_columns, one.columns(rows)) for one in self.released})

    def labels(self, table: Any) -> Any:
        """The guide's class of each record, as a series."""
        return tables.derive_rows(table, self.guide.inputs, self._labels, require_known, WHO)["label"]

    def _labels(self, rows: Rows) -> dict[str, Any]:
        return {"label": self.guide.of(rows)}

    def claims(self) -> list[dict[str, Plain]]:
        """Every requirement, in the columns that are released; anybody can count them again."""
        names = {one.column: [new.name for new in one.new_columns] for one in self.released}
        return [
            {"columns": [name for column in one["columns"] for name in names[column]], "smallest_group": one["k"]}
            for one in self.method.requirements
        ]

    def solution(self) -> dict[str, Plain]:
        """What a release may show: the solution set, the trees as far as they were refined, and the scores.

        Scores have two digits: all of them would reveal how many records of each group are of which class. Those of
        the distortion are numbers of records, also of dropped ones, and are not shown.
        """
        guided = self.method.guide != DISTORTION
        steps = [
            {"attribute": step.attribute, "value": step.value} | ({"score": _rounded(step.score)} if guided else {})
            for step in self.steps
        ]
        return {"cuts": plain(self.cuts), "trees": plain(self.figures.trees), "refinements": plain(steps)}

    def statement(self) -> str:
        """What a reader of the release may know: the requirements and the solution."""
        required = "; ".join(f"{', '.join(one['columns'])}: {one['k']}" for one in self.method.requirements)
        cuts = "; ".join(
            f"{column}: {_described_cut(cut, column in self.method.domains)}" for column, cut in self.cuts.items()
        )
        dropped = f" {self.figures.dropped:,} of {self.figures.rows:,} records were left out for it."
        return (
            "Values were made coarser, the same everywhere, so that every row of these columns is shared by at least "
            f"so many records: {required}.{dropped if self.figures.dropped else ''} Values are masked to: {cuts}. "
            f"'{SUPPRESSED}' stands for a value that is not told; intervals hold their lower bound, not their upper "
            "one. The manifest's solution has all of them, the trees, and the refinements in their order."
        )

    def warnings(self) -> list[str]:
        """Columns without any information left."""
        return [
            f"{WHO}: '{column}' could not be refined and has no information left. Lower k, or split its requirement."
            for column, tree in self.figures.trees.items()
            if "children" not in tree
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            "Groups are as large as required only for the declared columns: an intruder who knows other released "
            "columns, too, may find a record among fewer.",
            "Records of a group may share their sensitive values: measure groups for l-diversity and confidence.",
            *([_EDGES] if self.method.domains else []),
            *([_ABSENT] if self.figures.dropped else []),
            *self.warnings(),
        ]


_SHOWN = 12
_EDGES = "The inner bounds of intervals are values of released records: of each the smallest one above it."
_ABSENT = (
    "Records were left out: totals of the release are off by as many, and an intruder who knows that a person is in "
    "the source and finds no group for them learns that they were rare. Files are blocks of the source without them: "
    "their numbers of rows reveal how many each block lost to an intruder who knows how large blocks were."
)


def _described_cut(cut: Sequence[Any], ordered: bool) -> str:
    """All values; of very many only how many, and from where to where."""
    values = [str(one) for one in cut]
    if ordered:
        date, bounds = isinstance(cut[0], str), [parsed_bound(one) for one in cut]
        values = [interval(low, high, date) for low, high in pairwise(bounds)]
    if len(values) > _SHOWN:
        return f"{len(values)} values" + (f" from {values[0]} to {values[-1]}" if ordered else "")
    return ", ".join(values)


def _rounded(score: float) -> float:
    """Two digits; 0 for what is only rounding."""
    return float(f"{score:.2g}") if score > TIE else 0.0
