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

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from dpmask.engine.draws import Subkey
from dpmask.errors import InputError, JobError
from dpmask.kernels.warm_up import CRISP, ORDER, KernelUse, Task
from dpmask.lake.reading import Schema
from dpmask.masking.earlier_releases import EarlierReleases
from dpmask.masking.method import Method
from dpmask.masking.movable import Movable
from dpmask.masking.refinement.asked import AskedGroups
from dpmask.masking.refinement.columns import FORMS, WHO, added_names, interval_columns
from dpmask.masking.refinement.figures import Figures
from dpmask.masking.refinement.fitted import FittedRefinement
from dpmask.masking.refinement.fitting import fitted_refinement
from dpmask.masking.refinement.guide import DISTORTION, checked_guide, guide_columns
from dpmask.masking.refinement.labels import box_sets, label_sets
from dpmask.masking.refinement.movable import movable_parts
from dpmask.masking.refinement.parameters import (
    MONDRIAN,
    ONE_CUT,
    Edges,
    Guide,
    Kept,
    Numbers,
    Requirements,
    Trees,
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
from dpmask.masking.refinement.series import Series, check_series
from dpmask.parameters import require_choice, require_number
from dpmask.table import table as tables
from dpmask.table.columns import require_known
from dpmask.table.encoders.interval import is_date
from dpmask.table.households import require_households_by_footers
from dpmask.table.label_sets import LabelSets
from dpmask.table.new_columns import NewColumn, replaced_schema, text_column
from dpmask.table.requirement import HOUSEHOLDS, MODELS, RECORDS, Requirement, parse_requirements, require_household
from dpmask.table.row_keys import require_groupable
from dpmask.table.sensitive import check_models, checked_bands

_SECONDS_PER_ROW, _SECONDS_PER_SET, _SECONDS_PER_VALUE, _SECONDS_PER_MEMBER = 4e-7, 5e-8, 8e-8, 1.2e-6
_SECONDS_OF_CLUSTERS = 5e-6
"""What plans count: from the ready jobs with 1e5 and 1e6 people, and regions and sets of their columns."""
_NONE: Any = None
"""Where nothing is given; empty once it is checked."""
_UNSPELLED = {"household", "suppress_cells", "cell_limits", "importance", "start", "keep", "at_least", "bands"}
"""Parameters that are not spelled where they are empty."""


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

    requirements: Requirements
    taxonomies: Trees = _NONE
    domains: Edges = _NONE
    guide: Guide = DISTORTION
    intervals: str = "label"
    search: str = ONE_CUT
    suppress_records: float = 0.0
    suppress_cells: float = 0.0
    cell_limits: Numbers = _NONE
    importance: Numbers = _NONE
    start: Edges = _NONE
    keep: Kept = ()
    at_least: Numbers = _NONE
    bands: Edges = _NONE
    household: str | None = None

    figures: ClassVar[type[Figures]] = Figures
    counted_in_series: ClassVar[bool] = True
    series: ClassVar[Series | None] = None
    """The earlier releases of a series, if it is ``after`` any."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", parse_requirements(self.requirements, WHO))
        if not self.of_households:
            object.__setattr__(self, "household", None)  # a job fills it in, needed or not
        require_household(self.group_requirements, self.household, WHO)
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
        models = (Task("models"),) if any(one.models or one.known for one in self.group_requirements) else ()
        regions = (Task("regions"),) if self.search == MONDRIAN else ()
        persons = (Task("refinement"),) if len(self.of_households) < len(self.group_requirements) else ()
        return KernelUse((*persons, *models, *regions), (Task("refinement"), *ORDER.all, *CRISP, Task("fuzzy", 1.2)))

    @property
    def passes(self) -> int:
        """Values, codes, and the class counts; of sensitive columns values, deciles and shares."""
        return 6 if self.sensitive else 3

    @property
    def required_groups(self) -> list[tuple[str, ...]]:
        """The columns of each requirement."""
        return [one.columns for one in self.group_requirements if one.known is None and one.of == RECORDS]

    @property
    def group_requirements(self) -> tuple[Requirement, ...]:
        """All of them."""
        found: Any = self.requirements  # as they were parsed
        return found

    @property
    def judged(self) -> tuple[str, ...]:
        """The figures that a policy may name: those of models only where a requirement has them."""
        models = {model.model for one in self.group_requirements for model in one.models}
        return tuple(name for name in Figures.judged if name not in MODELS or name in models)

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks: all that a requirement names, but for those that are kept."""
        return tuple(column for column in self.grouped if column not in self.keep)

    @property
    def grouped(self) -> tuple[str, ...]:
        """All columns that a requirement names, in the order in which they do."""
        return tuple(dict.fromkeys(column for one in self.group_requirements for column in one.columns))

    @property
    def of_households(self) -> tuple[Requirement, ...]:
        """The requirements that count households."""
        return tuple(one for one in self.group_requirements if one.of == HOUSEHOLDS)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of requirements, those of models, of households and of the guide."""
        numbered = () if self.household is None else (self.household,)
        return (*self.grouped, *self.sensitive, *guide_columns(self.guide), *numbered)

    @property
    def draws(self) -> bool:
        """Only where the clusters of a guide begin."""
        return False

    @property
    def repeatable(self) -> tuple[str, ...]:
        """Without one cut for all, and where cells are suppressed, a value may have any of several labels."""
        return self.masks if self.search == MONDRIAN or self.suppress_cells else ()

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns of all models, each once."""
        return tuple(dict.fromkeys(column for one in self.group_requirements for column in one.sensitive))

    @property
    def asked(self) -> AskedGroups:
        """The groups that the requirements are about."""
        return AskedGroups(self.group_requirements, self.grouped, self.sensitive)

    @property
    def drops(self) -> bool:
        """Whether it may drop records."""
        return self.suppress_records > 0

    @property
    def origins(self) -> Mapping[str, str]:
        """Columns of bounds, and those they come from."""
        return {name: column for column in self.domains for name in added_names(column, self.intervals)}

    def after(self, earlier: EarlierReleases) -> Self:
        """The same as the next release of a series: what earlier ones show besides must leave k records, too."""
        series = Series(*earlier)
        check_series(self, series)
        found = copy(self)
        object.__setattr__(found, "series", series)
        return found

    def takes(self, fitted: Method[Any]) -> bool:
        """One by larger k, too: a fit with a reserve, so that later tables keep the k of this one."""
        if not isinstance(fitted, TopDownRefinement) or len(fitted.group_requirements) != len(self.group_requirements):
            return False
        pairs = zip(self.group_requirements, fitted.group_requirements, strict=True)
        enough = all(one.k <= other.k for one, other in pairs)
        return enough and self == replace(fitted, requirements=self.requirements)

    def parameters(self) -> dict[str, Any]:
        """Its parameters by name, as a job spells them."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        given |= {"requirements": tuple(one.to_dict() for one in self.group_requirements)}
        if self.search == ONE_CUT:
            del given["search"]
        return {name: value for name, value in given.items() if value or name not in _UNSPELLED}

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table."""
        sets = sum(len(one.sets) for one in self.group_requirements if one.known)
        regions = _SECONDS_PER_VALUE * len(self.masks) if self.search == MONDRIAN else 0.0
        members = _SECONDS_PER_MEMBER if self.of_households else 0.0  # what finds and measures who lives together
        guide = _SECONDS_OF_CLUSTERS if "clusters" in self.guide else 0.0
        return (_SECONDS_PER_ROW + _SECONDS_PER_SET * sets + regions + members + guide) * rows

    def check(self, table: tables.Table) -> None:
        """Refuse a table that does not fit, before anything is read."""
        self.check_schema(table.masked_schema)
        if self.of_households and self.household is not None:
            require_households_by_footers(table, self.household, WHO)
        most = max(one.k for one in self.group_requirements)
        if table.rows < most:
            raise InputError(f"{WHO}: there are {table.rows} records, fewer than k = {most}.")

    def check_schema(self, schema: Schema) -> None:
        """Refuse columns that are not there, or that cannot be masked as declared."""
        require_groupable(schema, self.grouped, WHO)
        require_known(schema, guide_columns(self.guide), WHO)
        require_groupable(schema, self.reads[-1:] if self.household else (), WHO)
        for column in self.masks:
            check_column(column, schema.field(column).type, self.domains, self.taxonomies)
        check_models(schema, [model for one in self.group_requirements for model in one.models], self.taxonomies, WHO)
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

    def movable(self, given: Mapping[str, Any]) -> Iterator[Movable]:
        """Shares that are left out, requirements, the guide and importance."""
        return movable_parts(given, self.masks)

    def label_sets(self, solution: Mapping[str, Any]) -> LabelSets:
        """Nodes of taxonomies, ``*`` and intervals as sets of values; nothing without a solution."""
        if solution and self.search == MONDRIAN:
            return box_sets(self.masks, self.taxonomies, self.domains)
        return label_sets(solution, self.taxonomies, self.intervals) if solution else {}

    def fit_table(self, table: tables.Table, key: Subkey) -> FittedRefinement:
        """Find the refinements."""
        return fitted_refinement(self, table, key)
