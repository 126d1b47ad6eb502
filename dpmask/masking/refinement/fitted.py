"""A refinement that was found: what every value is masked to, which records are dropped, and how it is described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from dpmask.clustering.partition import FittedPartition, PreservedClusters
from dpmask.engine.draws import Subkey
from dpmask.kernels.refinement.information import TIE
from dpmask.lake.reading import Rows
from dpmask.masking.method import FittedMethod
from dpmask.masking.refinement.attributes import SUPPRESSED
from dpmask.masking.refinement.columns import WHO, Released, parsed_bound
from dpmask.masking.refinement.dropped_groups import DroppedGroups
from dpmask.masking.refinement.figures import IN_ORDER, REFINED, TREES, Figures
from dpmask.masking.refinement.guide import DISTORTION, Labels
from dpmask.masking.refinement.solution import RefinementStep
from dpmask.masking.refinement.suppressed_cells import SuppressedCells
from dpmask.results import Exhibit, Plain, plain
from dpmask.table import table as tables
from dpmask.table.columns import require_known
from dpmask.table.encoders.interval import interval_text
from dpmask.table.households import DroppedHouseholds
from dpmask.table.new_columns import with_missing, with_new_columns
from dpmask.table.requirement import HOUSEHOLDS, RECORDS, Model, Requirement

if TYPE_CHECKING:
    from dpmask.masking.refinement.method import TopDownRefinement


@dataclass(frozen=True, repr=False)
class FittedRefinement(FittedMethod):
    """The solution: what every value is masked to, and which records are dropped, if any."""

    method: TopDownRefinement
    released: tuple[Released, ...]
    cuts: Mapping[str, list[str | float]]
    """For each attribute the leaves of its tree that are left, by name, or the edges of its intervals."""
    figures: Figures = field()
    guide: Labels = field()
    key: Subkey = field()
    dropped: DroppedGroups | DroppedHouseholds | None = None
    bands: Mapping[str, list[float]] = field(default_factory=dict)
    """Where the bands begin that sensitive numbers with many values are counted in."""
    unseen: tuple[tuple[str, str], ...] = ()
    """Columns and values whose share is limited, though no record has them."""
    cells: SuppressedCells | None = None
    frozen: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    """The cut and the tree of each column, for later releases of a series; none where records or cells are left out."""

    solution_exhibits: ClassVar[Mapping[str, Exhibit]] = {
        "refinements": Exhibit("steps", IN_ORDER, of=REFINED),
        "trees": TREES,
    }

    @property
    def preserved(self) -> PreservedClusters | None:
        """The clusters that guide, if any do."""
        source, guide = self.guide.source, self.method.guide
        if not isinstance(source, FittedPartition) or isinstance(guide, str):
            return None
        return PreservedClusters(source, guide["algorithm"])

    @property
    def series_cuts(self) -> Mapping[str, Mapping[str, Any]] | None:
        """The cut and the tree of each column."""
        if self.dropped is not None or self.cells is not None:
            return None
        found = {name: one for name, one in self.frozen.items() if one is not None}
        return found if len(found) == len(self.frozen) else None

    @property
    def steps(self) -> tuple[RefinementStep, ...]:
        """The refinements in their order: attribute, value, score, smallest group after it."""
        return self.figures.steps

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of its requirements, and that of households that are dropped."""
        return (*self.method.grouped, *(self.dropped.inputs if isinstance(self.dropped, DroppedHouseholds) else ()))

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it masks, and those it adds for them."""
        names = [*self.method.masks, *(new.name for one in self.released for new in one.new_columns)]
        return tuple(dict.fromkeys(names))

    def check(self, table: tables.Table) -> None:
        """Refuse a table that does not fit; a part of the one it was fitted to may be small."""
        self.method.check_schema(table.masked_schema)

    @property
    def of_one_table(self) -> str:
        """What was left out was so by its records; models of a column that is masked here cannot be counted again."""
        if self.dropped is not None or self.cells is not None:
            return "which records or cells are left out was decided by the records of that table"
        masked = [column for column in self.method.sensitive if column in self.changes]
        return f"models limit '{masked[0]}', which this step masks, so they cannot be counted again" if masked else ""

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block, masked."""
        new = {one.column: (one.new_columns, one.columns(rows)) for one in self.released}
        if self.cells is not None:
            for column, gone in zip(self.method.grouped, self.cells.of(rows), strict=True):
                if gone.any():
                    fields, arrays = new[column]
                    new[column] = fields, [with_missing(one, gone) for one in arrays]
        return with_new_columns(rows, new)

    def explain(self) -> str:
        """Why each column was not refined further, and what would allow one refinement more; not for publication."""
        found = self.figures
        stopped = {one.column for one in found.stops}
        lines = [found.explain(), *map(str, found.stops)]
        lines += [f"{column}: all that can be released is." for column in self.cuts if column not in stopped]
        lines += [f"{column}: released as it is (keep)." for column in self.method.keep]
        if self.cells is not None:
            return "\n".join([*lines, _MORE_CELLS])
        lines += ["One refinement more would be possible with"] if found.alternatives else []
        lines += [f"  {one.change}: {one.column}, '{one.value}' (gain {_gain(one.gain)})" for one in found.alternatives]
        return "\n".join(lines)

    def labels(self, table: tables.Frame) -> tables.Frame:
        """The guide's class of each record, as a series."""
        return tables.derive_rows(table, self.guide.inputs, self._labels, require_known, WHO)["label"]

    def _labels(self, rows: Rows) -> dict[str, Any]:
        return {"label": self.guide.of(rows)}

    def released_names(self) -> Mapping[str, list[str]]:
        """The columns that each column is released as."""
        names = {column: [column] for column in self.method.keep}
        return names | {one.column: [new.name for new in one.new_columns] for one in self.released}

    def claims(self) -> list[dict[str, Plain]]:
        """Every requirement, in the columns that are released; anybody can count them again.

        Models are among them where their column is not masked here, each with the bands or the tree it is counted by.
        """
        names = self.released_names()
        found = []
        for one in self.method.group_requirements:
            several = one.known and any(len(names[column]) > 1 for column in one.columns)
            models = [self._claimed(model) for model in one.models if model.column not in self.changes]
            more: dict[str, Any] = {"models": models} if models else {}
            for columns in one.sets if several else [one.columns]:
                released = [name for column in columns for name in names[column]]
                known = {"known": one.known} if one.known and not several else {}
                wild = () if self.cells is None else self.cells.columns
                suppressed = [name for column in columns if column in wild for name in names[column]]
                missing = {"suppressed": suppressed} if suppressed else {}
                households = {} if one.of == RECORDS else {"households": self.method.household}
                found.append({"columns": released, "smallest_group": one.k, **known, **more, **missing, **households})
        return plain(found)  # type: ignore[return-value]

    def _claimed(self, model: Model) -> dict[str, Any]:
        bands, tree = self.bands.get(model.column), self.method.taxonomies.get(model.column)
        counted = {} if bands is None else {"bands": bands}
        return model.to_dict() | counted | ({} if tree is None else {"taxonomy": tree})

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
        required = "; ".join(map(described, self.method.group_requirements))
        cuts = "; ".join(
            f"{column}: {_described_cut(cut, column in self.method.domains)}" for column, cut in self.cuts.items()
        )
        paid = ""
        if self.figures.dropped:
            paid = f" {self.figures.dropped:,} of {self.figures.rows:,} records were left out for it."
        if self.figures.cells:
            lost = ", ".join(f"{column}: {count:,}" for column, count in self.figures.cells.items())
            paid += (
                f" For it, cells were set to missing ({lost}); a missing cell of these columns counts as any value, "
                "and a row as shared by all records that agree with it wherever both have a value"
                + (", over which its sensitive values are counted." if self.method.sensitive else ".")
            )
        return (
            "Values were made coarser, the same everywhere, so that every row of these columns is shared by at least "
            f"so many records: {required}.{paid} Values are masked to: {cuts}. "
            f"'{SUPPRESSED}' stands for a value that is withheld; intervals hold their lower bound, not their upper "
            "one. The manifest's solution has all of them, the trees, and the refinements in their order."
        )

    def for_analysts(self) -> list[str]:
        """What coarser values leave exact, and what is left out."""
        names = ", ".join(self.method.masks)
        found = [
            f"{names} are coarser, not wrong: counts of records by the released classes, and totals of columns that "
            "no step masks by them, are exact"
            + (", of the records and cells that are left." if self.figures.dropped or self.figures.cells else ".")
            + " Means and variances of numbers that became classes can be bounded by these, and no more."
        ]
        if self.figures.dropped:
            share = self.figures.dropped / self.figures.rows
            found.append(
                f"{share:.1%} of the records were left out, the rare ones: totals are too small by about as much, more "
                "for rare classes. Weights were not raised for it."
            )
        if self.figures.cells:
            found.append(
                "Missing cells are not missing at random: they belong to rare combinations. Complete records alone "
                "understate these; treat a missing cell as any value of its column."
            )
        return found

    def warnings(self) -> list[str]:
        """Columns without any information left, and limits of values that nobody has."""
        unseen = [
            f"{WHO}: no record has '{value}' in '{column}', so its share limits nothing. Is it spelled as in the data?"
            for column, value in self.unseen
        ]
        blocked = {one.column: f"Of {one.requirement} {one.blocked_by}. " for one in self.figures.stops}
        return unseen + [
            f"{WHO}: '{column}' could not be refined and has no information left. {blocked.get(column, '')}Lower k or "
            f"another limit, {'' if self._has_steps(column) else 'give it a taxonomy, '}or split its requirement."
            for column in self.unrefined
        ]

    def _has_steps(self, column: str) -> bool:
        """Whether a column has classes between all its values together and each alone."""
        return column in {**(self.method.taxonomies or {}), **(self.method.domains or {})}

    @property
    def unrefined(self) -> list[str]:
        """The columns without any information left."""
        return [column for column, tree in self.figures.trees.items() if "children" not in tree]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            OTHERS,
            *([] if self.method.of_households else [_FAMILIES]),
            *([] if self.method.sensitive else [UNLIMITED]),
            *([EDGES] if self.method.domains else []),
            *([_ABSENT] if self.figures.dropped else []),
            *([_WILD] if self.figures.cells else []),
            *self.warnings(),
        ]


def described(one: Requirement) -> str:
    """A requirement in words."""
    known = "" if one.known is None else f"any {one.known} of "
    models = "".join(f"; in each {model.describe()}" for model in one.models)
    households = " households, whose members have the same rows" if one.of == HOUSEHOLDS else ""
    return f"{known}{', '.join(one.columns)}: {one.k}{households}{models}"


_SHOWN = 12
OTHERS = (
    "Groups are as large as required only for the declared columns: an intruder who knows other released columns, too, "
    "may find a record among fewer."
)
_FAMILIES = (
    "Records are counted one by one: an intruder who sees which of them form a household may find it by all its "
    "members together. Where the release shows that, require it of households, too (of: households)."
)
UNLIMITED = "Records of a group may share their sensitive values: give requirements models, or measure groups for them."
EDGES = "The inner bounds of intervals are values of released records: of each the smallest one above it."
_WILD = (
    "Cells were set to missing, and a missing cell counts as any value: an intruder who knows the value that is "
    "missing, and that the person is in the release, may exclude the records that have another one, and be left with "
    "fewer than k, or one. Where that matters, leave records out instead (suppress_records)."
)
_MORE_CELLS = (
    "Columns stopped where the next refinement of any would take more cells than suppress_cells and cell_limits allow. "
    "The nearest alternatives are listed only without suppress_cells."
)
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
        values = [interval_text(low, high, date) for low, high in pairwise(bounds)]
    if len(values) > _SHOWN:
        return f"{len(values)} values" + (f" from {values[0]} to {values[-1]}" if ordered else "")
    return ", ".join(values)


def _gain(gain: float) -> str:
    """Bits, or records in whole numbers."""
    return f"{gain:,.0f}" if gain >= 1000 else f"{gain:.4g}"  # noqa: PLR2004


def _rounded(score: float) -> float:
    """Two digits; 0 for what is only rounding."""
    return float(f"{score:.2g}") if score > TIE else 0.0
