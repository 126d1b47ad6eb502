"""Top-down refinement: k-anonymity for several quasi-identifiers jointly, which keeps clusters recognisable.

All attributes start fully masked: a category with a taxonomy at its root, one without suppressed, a number or a date as
one interval. Then the best refinement that leaves every requirement (columns, k) with no group of fewer than k records
is taken, again and again. Best is InfoGain / (AnonyLoss + 1): the information on the guide's classes for the anonymity
it costs. A guide is a clustering of the raw table, a column, or ``distortion``, which counts the records refined
instead. With ``suppress_records`` small groups may be dropped instead (dpmask.masking.refinement.search); then what
only dropped records have is hidden again: values without a tree, intervals, and bounds of intervals, which become the
lowest remaining value above them. With ``suppress_cells`` records of small groups lose single cells instead
(dpmask.masking.refinement.local): a missing cell matches every value. With ``search="mondrian"`` each region of records
has a box of its own (dpmask.masking.refinement.mondrian).

Protects against: finding a person by a declared quasi-identifier among fewer than k records. Does not protect against:
an intruder who knows other columns than were declared, nor, without models, against groups whose members share a
sensitive value (kernels/models.py has the models, search.py how they enter the score). Missing values are values of
their own; weights never count as people.

Paper: Fung, Wang, Wang and Hung 2009, Algorithm 1 and eqs. 1-5. Passes over the data: two (values, codes) and those of
the guide; rounds run over codes of two bytes an attribute, which stay in memory where they fit. Masking is one look-up
an attribute. Memory per task: one block and its codes; with records dropped, one more pass, and 16 bytes for each
dropped group; with cells suppressed, some passes over the codes and one over the data more, and the small groups; with
regions, a shard of a million rows, and for each region 20 bytes and 2 a column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from dpmask.engine.draws import Subkey
from dpmask.errors import InputError, JobError
from dpmask.kernels.warm_up import CRISP, ORDER, KernelUse, Task
from dpmask.masking.method import Method, Schema
from dpmask.masking.refinement.asked import AskedGroups
from dpmask.masking.refinement.attributes import MISSING, SUPPRESSED, Attribute
from dpmask.masking.refinement.blocks import CodedTable, coded_table
from dpmask.masking.refinement.columns import (
    FORMS,
    WHO,
    DroppedGroups,
    MaskedColumn,
    added_names,
    interval_columns,
    masked_columns,
    parsed_bound,
)
from dpmask.masking.refinement.figures import Figures
from dpmask.masking.refinement.fitted import FittedRefinement
from dpmask.masking.refinement.fitted_regions import FittedRegions
from dpmask.masking.refinement.guide import DISTORTION, Labels, checked_guide, guide_columns, guide_labels
from dpmask.masking.refinement.labels import box_sets, label_sets
from dpmask.masking.refinement.left_out import without_cells, without_groups, without_households
from dpmask.masking.refinement.local import CellLimits, refine_with_cells
from dpmask.masking.refinement.mondrian import partitions
from dpmask.masking.refinement.parameters import (
    MONDRIAN,
    ONE_CUT,
    check_cells,
    check_column,
    check_households,
    check_regions,
    checked_domains,
    checked_keep,
    checked_numbers,
    checked_start,
    checked_trees,
    require_unkept,
)
from dpmask.masking.refinement.search import refine
from dpmask.masking.refinement.series import Series, check_series
from dpmask.masking.refinement.solution import Quasi, RefinementSolution
from dpmask.masking.refinement.stops import Stops, explained
from dpmask.masking.refinement.suppressed_cells import Suppression
from dpmask.parameters import require_choice, require_number
from dpmask.table import table as tables
from dpmask.table.columns import require_known
from dpmask.table.encoders.interval import is_date
from dpmask.table.households import DroppedHouseholds, require_households_by_footers
from dpmask.table.label_sets import LabelSets
from dpmask.table.new_columns import NewColumn, replaced_schema, text_column
from dpmask.table.requirement import HOUSEHOLDS, MODELS, RECORDS, Requirement, parse_requirements, require_household
from dpmask.table.row_keys import require_groupable
from dpmask.table.sensitive import SensitiveColumn, check_models, checked_bands, sensitive_columns
from dpmask.table.taxonomy import read_taxonomy

_SECONDS_PER_ROW, _SECONDS_PER_SET, _SECONDS_PER_VALUE, _SECONDS_PER_MEMBER = 4e-7, 5e-8, 8e-8, 1.2e-6
_SECONDS_OF_CLUSTERS = 5e-6
"""What plans count: from the ready jobs with 1e5 and 1e6 people, and regions and sets of their columns."""
_UNSPELLED = {
    "household",
    "suppress_cells",
    "cell_limits",
    "importance",
    "start",
    "keep",
    "at_least",
    "bands",
}  # where empty
_ROUNDING = 1e-9  # 0.29 of 100 records are 29


@dataclass(frozen=True, kw_only=True)
class TopDownRefinement(Method[FittedRefinement]):
    """Refine fully masked columns while every requirement is met.

    Parameters
    ----------
    requirements : sequence of (columns, k) or {"columns": [...], "k": k, "models": [...], "known": number}
        At least k records share every row of these columns, or of any ``known`` of them. ``models`` limit what each
        such group gives away of sensitive columns: {"model": "distinct_l", "column": NAME, "l": 3}, and likewise
        "entropy_l" (l), "recursive_l" (c, l), "confidence" (values, most), "t_closeness" (t, distance). With
        {"columns": [...], "k": k, "of": "households"} at least k households have members with the same rows.
    household
        The column that numbers households, for requirements of these; in a job, by default the one declared so.
    taxonomies : mapping of columns to trees, optional
        For a category a tree: a file, or a mapping. Without one, its values are suppressed; None for a number too.
    domains : mapping of columns to [low, high), optional
        For a number or a date the outer bounds of its intervals.
    guide : "distortion", {"column": NAME} or {"clusters": 6, "algorithm": "bisecting_kmeans", "columns": [...]}
        What refinements should preserve: classes of a column or of a clustering of the raw table ("kmeans" and
        "fuzzy_c_means" are the other algorithms); by default, as many records refined as possible.
    intervals : {"label", "bounds", "midpoint"}
        How intervals are released.
    search : {"one_cut", "mondrian"}
        Whether all records share the cuts of a column, or each region of records has a box of its own, with less loss.
        Boxes overlap, which an analyst must bear with, and are not for a series of releases. Not with suppressed
        records or cells, ``at_least``, bounds or midpoints.
    suppress_records : float
        The share of all records that may be dropped to keep the others finer; no column ends coarser for it. With a
        requirement of households, whole ones, those that too few are like.
    suppress_cells : float
        The share of all cells of the masked columns that may be set to missing, instead, to keep the others finer. A
        missing cell then matches every value, and models are counted over all records that match a row.
    cell_limits : mapping of columns to shares, optional
        How many of a column's own cells that may be at most, such as 0 for a column that must stay complete.
    importance : mapping of columns to numbers, optional
        What scores of a column are multiplied by: what analysts need is refined first; 1 by default.
    start : mapping of columns to edges, optional
        For a number or a date the edges of its finest intervals, such as bands that are published anyway.
    keep : sequence of columns, optional
        Columns that are released as they are; the others of their requirements pay for it.
    at_least : mapping of columns to numbers, optional
        How many different values a column must keep; a fit that leaves fewer is refused with what blocks it.
    bands : mapping of sensitive columns to edges, optional
        Where the bands begin that a sensitive number or date is counted in; by default its deciles.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"age": [21, 23, 25, 41, 43, 48], "town": ["x", "x", "x", "y", "y", "z"]})
    >>> method = dpmask.TopDownRefinement(requirements=[(["age", "town"], 2)], domains={"age": [0, 100]})
    >>> fitted = method.fit(people, seed=1)
    >>> fitted.cuts
    {'age': [0.0, 41.0, 100.0], 'town': ['x', '*']}
    >>> fitted.mask(people)["age"].tolist()[2:4]
    ['[0, 41)', '[41, 100)']

    """

    requirements: Any
    taxonomies: Any = None
    domains: Any = None
    guide: Any = DISTORTION
    intervals: str = "label"
    search: str = ONE_CUT
    suppress_records: float = 0.0
    suppress_cells: float = 0.0
    cell_limits: Any = None
    importance: Any = None
    start: Any = None
    keep: Any = ()
    at_least: Any = None
    bands: Any = None
    household: str | None = None

    figures: ClassVar[type[Figures]] = Figures
    series: ClassVar[Series | None] = None
    """The earlier releases of a series, if it is ``after`` any."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", parse_requirements(self.requirements, WHO))
        if not self.of_households:
            object.__setattr__(self, "household", None)  # a job fills it in, needed or not
        require_household(self.requirements, self.household, WHO)
        object.__setattr__(self, "keep", checked_keep(self.keep, self.grouped))
        trees = checked_trees(self.taxonomies, [*self.grouped, *self.sensitive])
        object.__setattr__(self, "taxonomies", trees)
        object.__setattr__(self, "start", checked_start(self.start, self.grouped, trees))
        ends = {column: [edges[0], edges[-1]] for column, edges in self.start.items()}
        object.__setattr__(self, "domains", checked_domains(self.domains, self.grouped, trees, ends))
        object.__setattr__(self, "importance", checked_numbers(self.importance, "importance", self.grouped, above=0))
        object.__setattr__(self, "at_least", checked_numbers(self.at_least, "at_least", self.grouped, at_least=1))
        object.__setattr__(self, "bands", checked_bands(self.bands, WHO))
        require_unkept(self)
        object.__setattr__(self, "guide", checked_guide(self.guide, WHO))
        require_choice(self, "intervals", FORMS)
        require_number(self, "suppress_records", at_least=0, at_most=0.5)
        require_number(self, "suppress_cells", at_least=0, at_most=0.5)
        object.__setattr__(self, "cell_limits", checked_numbers(self.cell_limits, "cell_limits", self.masks))
        check_cells(self)
        require_choice(self, "search", (ONE_CUT, MONDRIAN))
        if self.search == MONDRIAN:
            check_regions(self)
        check_households(self)

    @property
    def kernels(self) -> KernelUse:
        """What it runs."""
        models = (Task("models"),) if any(one.models or one.known for one in self.requirements) else ()
        regions = (Task("regions"),) if self.search == MONDRIAN else ()
        persons = (Task("refinement"),) if len(self.of_households) < len(self.requirements) else ()
        return KernelUse((*persons, *models, *regions), (Task("refinement"), *ORDER.all, *CRISP, Task("fuzzy", 1.2)))

    @property
    def passes(self) -> int:
        """Values, codes, and the class counts; of sensitive columns values, deciles and shares."""
        return 6 if self.sensitive else 3

    @property
    def required_groups(self) -> list[list[str]]:
        """The columns of each requirement."""
        return [one.columns for one in self.requirements if one.known is None and one.of == RECORDS]

    @property
    def judged(self) -> tuple[str, ...]:
        """The figures that a policy may name: those of models only where a requirement has them."""
        models = {model.model for one in self.requirements for model in one.models}
        return tuple(name for name in Figures.judged if name not in MODELS or name in models)

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks: all that a requirement names, but for those that are kept."""
        return tuple(column for column in self.grouped if column not in self.keep)

    @property
    def grouped(self) -> tuple[str, ...]:
        """All columns that a requirement names, in the order in which they do."""
        return tuple(dict.fromkeys(column for one in self.requirements for column in one.columns))

    @property
    def of_households(self) -> tuple[Requirement, ...]:
        """The requirements that count households."""
        return tuple(one for one in self.requirements if one.of == HOUSEHOLDS)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of requirements, those of models, of households and of the guide."""
        numbered = () if self.household is None else (self.household,)
        return (*self.grouped, *self.sensitive, *guide_columns(self.guide), *numbered)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns of all models, each once."""
        return tuple(dict.fromkeys(column for one in self.requirements for column in one.sensitive))

    @property
    def _asked(self) -> AskedGroups:
        return AskedGroups(self.requirements, self.grouped, self.sensitive)

    @property
    def drops(self) -> bool:
        """Whether it may drop records."""
        return self.suppress_records > 0

    @property
    def origins(self) -> Mapping[str, str]:
        """Columns of bounds, and those they come from."""
        return {name: column for column in self.domains for name in added_names(column, self.intervals)}

    def after(self, series: Series) -> TopDownRefinement:
        """The same as the next release of a series: what earlier ones show besides must leave k records, too."""
        check_series(self, series)
        found = copy(self)
        object.__setattr__(found, "series", series)
        return found

    def takes(self, fitted: Method[Any]) -> bool:
        """One by larger k, too: a fit with a reserve, so that later tables keep the k of this one."""
        if not isinstance(fitted, TopDownRefinement) or len(fitted.requirements) != len(self.requirements):
            return False
        pairs = zip(self.requirements, fitted.requirements, strict=True)
        enough = all(one.k <= other.k for one, other in pairs)
        return enough and self == replace(fitted, requirements=self.requirements)

    def parameters(self) -> dict[str, Any]:
        """Its parameters by name, as a job spells them."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        given |= {"requirements": tuple(one.to_dict() for one in self.requirements)}
        if self.search == ONE_CUT:
            del given["search"]
        return {name: value for name, value in given.items() if value or name not in _UNSPELLED}

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table."""
        sets = sum(len(one.sets) for one in self.requirements if one.known)
        regions = _SECONDS_PER_VALUE * len(self.masks) if self.search == MONDRIAN else 0.0
        members = _SECONDS_PER_MEMBER if self.of_households else 0.0  # what finds and measures who lives together
        guide = _SECONDS_OF_CLUSTERS if "clusters" in self.guide else 0.0
        return (_SECONDS_PER_ROW + _SECONDS_PER_SET * sets + regions + members + guide) * rows

    def check(self, table: tables.Table) -> None:
        """Refuse a table that does not fit, before anything is read."""
        self.check_schema(table.masked_schema)
        if self.of_households and self.household is not None:
            require_households_by_footers(table, self.household, WHO)
        most = max(one.k for one in self.requirements)
        if table.rows < most:
            raise InputError(f"{WHO}: there are {table.rows} records, fewer than k = {most}.")

    def check_schema(self, schema: Schema) -> None:
        """Refuse columns that are not there, or that cannot be masked as declared."""
        require_groupable(schema, self.grouped, WHO)
        require_known(schema, guide_columns(self.guide), WHO)
        require_groupable(schema, self.reads[-1:] if self.household else (), WHO)
        for column in self.masks:
            check_column(column, schema.field(column).type, self.domains, self.taxonomies)
        check_models(schema, [model for one in self.requirements for model in one.models], self.taxonomies, WHO)
        for name, column in self.origins.items():
            if name in schema.names:
                raise JobError(f"{WHO}: bounds of '{column}' would be '{name}', which is there. Rename it.")

    def masked_schema(self, schema: Schema) -> Schema:
        """Categories and labels become texts; bounds and midpoints numbers, or dates."""
        return replaced_schema(schema, {column: self._released_as(column, schema) for column in self.masks})

    def _released_as(self, column: str, schema: Schema) -> Sequence[NewColumn]:
        if column not in self.domains:
            return [text_column(column)]
        return interval_columns(column, self.intervals, is_date(schema.field(column).type))

    def label_sets(self, solution: Mapping[str, Any]) -> LabelSets:
        """Nodes of taxonomies, ``*`` and intervals as sets of values; nothing without a solution."""
        if solution and self.search == MONDRIAN:
            return box_sets(self.masks, self.taxonomies, self.domains)
        return label_sets(solution, self.taxonomies, self.intervals) if solution else {}

    def fit_table(self, table: tables.Table, key: Subkey) -> FittedRefinement:
        """Find the refinements."""
        domains = {column: (parsed_bound(low), parsed_bound(high)) for column, (low, high) in self.domains.items()}
        edges = {column: [parsed_bound(one) for one in given[1:-1]] for column, given in self.start.items()}
        trees = {column: read_taxonomy(tree, WHO) for column, tree in self.taxonomies.items() if tree is not None}
        splits = {column: self.series.splits(column) for column in self.domains} if self.series else {}
        frozen = {column: sorted(found.values()) for column, found in splits.items() if found}
        columns = masked_columns(table, self.grouped, trees, domains, edges, self.keep, frozen)
        sensitive = sensitive_columns(table, self.sensitive, self.bands, trees, WHO)
        encoders = tuple(one.encoder for one in columns)
        labels = guide_labels(table, self.guide, self.grouped, key.subkey("guide"), WHO)
        allowed = math.floor(self.suppress_records * table.rows + _ROUNDING)
        coded = coded_table(
            table,
            (*encoders, *(one.encoder for one in sensitive.values())),
            labels,
            dropping=(allowed > 0 and not self.of_households) or self.suppress_cells > 0,
            household=self.household,
        )
        if self.household is not None:
            coded.gather_households(self.household, len(encoders), allowed)
            allowed = 0
        histograms = coded.class_counts([one.size for one in encoders], labels.classes)
        attributes = [
            one.attribute(counts, splits.get(one.encoder.column, {}))
            for one, counts in zip(columns, histograms, strict=True)
        ]
        for one in attributes:
            one.importance = self.importance.get(one.name, 1.0)
        quasis = self._asked.quasis(sensitive)
        guided, suppression = self.guide != DISTORTION, Suppression()
        condition = None
        if self.series is not None and self.series.releases:
            condition = self.series.condition(table, columns, self.requirements)
        if self.suppress_cells:
            missing = [one.missing for one in encoders]
            limits = self._cell_limits(table.rows)
            solution, suppression = refine_with_cells(coded, attributes, missing, quasis, limits, guided=guided)
        else:
            solution = refine(coded, attributes, quasis, allowed, guided=guided, series=condition)
        if self.search == MONDRIAN:
            return self._fitted_regions(coded, columns, quasis, solution, labels, key, sensitive)
        attributes = solution.attributes
        names = [self._asked.name(one) for one in quasis]
        repaired = bool(suppression.keys)
        stops = explained(coded, attributes, quasis, names, solution, guided=guided, repaired=repaired)
        if condition is not None:
            known = {one.column for one in stops.stops}
            more = [one for column, one in condition.stops.items() if column not in known]
            stops = stops._replace(stops=(*stops.stops, *more))
        self._require_values(columns, attributes, stops)
        dropped: DroppedGroups | DroppedHouseholds | None = None
        cells = None
        lost: dict[str, int] = {}
        if solution.gone is not None:
            dropped = without_households(table, encoders, coded, quasis, solution)
        if solution.drops.records:
            dropped = without_groups(table, encoders, attributes, quasis, solution.drops)
        if suppression.keys:
            records = [one for one in quasis if not one.of_households]
            cells, lost = without_cells(table, encoders, attributes, records, suppression)
        both = [pair for pair in zip(columns, attributes, strict=True) if not pair[0].kept]
        return FittedRefinement(
            self,
            tuple(column.released(attribute, self.intervals) for column, attribute in both),
            {column.encoder.column: column.cut(attribute) for column, attribute in both},
            Figures(
                groups=self._asked.smallest(quasis, solution.smallest),
                models=self._asked.model_figures(quasis, solution.worst),
                steps=solution.steps(),
                trees={attribute.name: attribute.tree() for _, attribute in both},
                rows=table.rows,
                dropped=solution.drops.records if solution.gone is None else solution.gone.lost,
                cells=lost,
                stops=stops.stops,
                alternatives=stops.alternatives,
                losses=_losses(attributes, columns),
                series=() if condition is None else condition.figures(attributes),
            ),
            labels,
            key,
            dropped,
            {column: one.bands for column, one in sensitive.items() if one.bands is not None},
            tuple(dict.fromkeys(self._unseen(sensitive))),
            cells,
            {}
            if dropped or cells  # values that only they have are hidden: no cut of a tree
            else {one.name: column.frozen(one) for column, one in zip(columns, attributes, strict=True)},
        )

    def _fitted_regions(
        self,
        coded: CodedTable,
        columns: Sequence[MaskedColumn],
        quasis: Sequence[Quasi],
        one_cut: RefinementSolution,
        labels: Labels,
        key: Subkey,
        sensitive: Mapping[str, SensitiveColumn],
    ) -> FittedRegions:
        """The regions, beside the solution of one cut for all records."""
        importance = [self.importance.get(column, 1.0) for column in self.grouped]
        found = partitions(coded, columns, quasis, importance, labels.classes)
        worst = {number: figures for one in found for number, figures in one.worst.items()}
        smallest = {number: one.leaves.smallest for one in found for number in one.worst}
        lost = {self.grouped[n]: loss for one in found for n, loss in one.losses(coded.rows).items()}
        figures = Figures(
            groups=self._asked.smallest(quasis, [smallest[number] for number in range(len(quasis))]),
            models=self._asked.model_figures(quasis, [worst[number] for number in range(len(quasis))]),
            steps=(),
            trees={},
            rows=coded.rows,
            losses={column: lost[column] for column in self.masks},
            regions=sum(one.leaves.regions for one in found),
            one_cut=_losses(one_cut.attributes, columns),
        )
        return FittedRegions(
            self,
            (),
            {},
            figures,
            labels,
            key,
            bands={column: one.bands for column, one in sensitive.items() if one.bands is not None},
            unseen=tuple(dict.fromkeys(self._unseen(sensitive))),
            regions=tuple(one.released for one in found),
        )

    def _cell_limits(self, rows: int) -> CellLimits:
        whole = {*self.keep, *(column for one in self.of_households for column in one.columns)}
        shares = [0.0 if column in whole else self.cell_limits.get(column, 1.0) for column in self.grouped]
        return CellLimits(
            math.floor(self.suppress_cells * rows * len(self.masks) + _ROUNDING),
            tuple(math.floor(share * rows + _ROUNDING) for share in shares),
            tuple(self.importance.get(column, 1.0) for column in self.grouped),
        )

    def _unseen(self, columns: Mapping[str, SensitiveColumn]) -> Iterator[tuple[str, str]]:
        """Limited values that no record has: their columns and names."""
        for model in (model for one in self.requirements for model in one.models):
            column = columns[model.column]
            yield from ((model.column, name) for name, _ in model.values if column.code(name) is None)

    def _require_values(self, columns: Sequence[MaskedColumn], attributes: Sequence[Attribute], stops: Stops) -> None:
        """Refuse a solution that leaves a column coarser than it may be."""
        for column, attribute in zip(columns, attributes, strict=True):
            least = self.at_least.get(attribute.name, 0)
            cut = column.cut(attribute)
            values = len(cut) - 1 if column.domain else sum(value not in {SUPPRESSED, MISSING} for value in cut)
            if values < least:
                blocking = [
                    f"Of {one.requirement} {one.blocked_by}." for one in stops.stops if one.column == attribute.name
                ]
                raise InputError(
                    f"{WHO}: '{attribute.name}' is left with {values} value{'s' * (values != 1)}, and must have at "
                    f"least {least}. {' '.join(blocking) or 'It has no more.'} Lower k or another limit, set "
                    f"importance: {{{attribute.name}: 3}} or more, or lower at_least."
                )


def _losses(attributes: Sequence[Attribute], columns: Sequence[MaskedColumn]) -> dict[str, float]:
    """What each column lost that is not kept."""
    return {one.name: one.loss() for one, column in zip(attributes, columns, strict=True) if not column.kept}
