"""Top-down refinement: k-anonymity for several quasi-identifiers jointly, keeping what tells clusters apart.

All attributes start fully masked: a category with a taxonomy at its root, one without suppressed, a number or a date as
one interval. Then the best refinement that leaves every requirement (columns, k) with no group of fewer than k records
is taken, again and again. Best is InfoGain / (AnonyLoss + 1): what it tells of the guide's classes for the anonymity it
costs. A guide is a clustering of the raw table, a column, or ``distortion``, which counts the records refined instead.

Protects against: finding a person by a declared quasi-identifier among fewer than k records. Does not protect against:
an intruder who knows other columns than were declared, nor against groups whose members share a sensitive value
(measure groups). Missing values are values of their own; weights never count as people.

Paper: Fung, Wang, Wang and Hung 2009, Algorithm 1 and eqs. 1-5. Passes over the data: two (values, codes) and those of
the guide; rounds run over codes of two bytes an attribute, which stay in memory where they fit. Masking is one look-up
an attribute. Memory per task: one block and its codes.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey, make_key
from dpmask.engine.passes import Span, fits_in_memory, hold_blocks, reduce_blocks
from dpmask.errors import InputError, JobError
from dpmask.lake import coding as codings
from dpmask.lake import table as tables
from dpmask.lake.coding import Coding
from dpmask.lake.columns import Rows, require_known
from dpmask.lake.keys import require_groupable
from dpmask.lake.made import Made, replaced_schema, text_column, with_made
from dpmask.lake.taxonomy import Branch, read_taxonomy
from dpmask.masking.refinement_attributes import SUPPRESSED
from dpmask.masking.refinement_blocks import Coded, CodedBlock, as_held
from dpmask.masking.refinement_guide import (
    DISTORTION,
    Labels,
    checked_guide,
    guide_columns,
    guide_labels,
)
from dpmask.masking.refinement_release import (
    FORMS,
    MaskedColumn,
    Released,
    interval,
    interval_columns,
    interval_names,
    parsed_bound,
)
from dpmask.masking.refinement_rounds import Outcome, Quasi, Step, refine
from dpmask.parameters import require_choice, require_number

Counts = NDArray[np.int64]

_WHO = "TopDownRefinement"
_SECONDS_PER_ROW = 4e-6
_OTHER_BYTES = 16  # a row's class and its groups


@dataclass(frozen=True, kw_only=True)
class TopDownRefinement:
    """Parameters of a refinement.

    ``requirements``: pairs (columns, k), or {columns, k}; at least k records share every row of these columns.
    ``taxonomies``: for a category a tree (a file, or a mapping); without one, values are suppressed. ``domains``: for a
    number or a date [low, high), the outer bounds of its intervals. ``guide``: 'distortion', {column: NAME}, or
    {clusters: 6, algorithm: bisecting_kmeans}; kmeans and fuzzy_c_means are the others.
    ``intervals``: how these are released, as 'label', 'bounds' or 'midpoint'.
    """

    requirements: Any
    taxonomies: Any = None
    domains: Any = None
    guide: Any = DISTORTION
    intervals: str = "label"
    suppress_records: float = 0.0

    judged: ClassVar[tuple[str, ...]] = ("smallest", "refinements")
    passes: ClassVar[int] = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", _checked_requirements(self.requirements))
        object.__setattr__(self, "taxonomies", self._trees())
        object.__setattr__(self, "domains", self._domains())
        object.__setattr__(self, "guide", checked_guide(self.guide, _WHO))
        require_choice(self, "intervals", FORMS)
        require_number(self, "suppress_records", at_least=0, at_most=1)
        if self.suppress_records:
            raise JobError(f"{_WHO}: suppress_records is not built yet: no record can be dropped. Leave it out.")

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks: all that a requirement names, in the order in which they do."""
        return tuple(dict.fromkeys(column for one in self.requirements for column in one["columns"]))

    def _trees(self) -> dict[str, Any]:
        given = {} if self.taxonomies is None else self.taxonomies
        if not isinstance(given, Mapping):
            raise JobError(f"{_WHO}: taxonomies must map columns to trees; got {type(given).__name__}.")
        self._refuse_others(given, "taxonomies")
        return {
            column: None if tree is None else read_taxonomy(tree, f"{_WHO}: {column}").to_dict()
            for column, tree in given.items()
        }

    def _domains(self) -> dict[str, list[Any]]:
        given = {} if self.domains is None else self.domains
        if not isinstance(given, Mapping):
            raise JobError(f"{_WHO}: domains must map columns to [low, high]; got {type(given).__name__}.")
        self._refuse_others(given, "domains")
        both = sorted(set(given) & set(self.taxonomies))
        if both:
            raise JobError(f"{_WHO}: column '{both[0]}' has a taxonomy and a domain. Give it one of them.")
        return {column: _checked_domain(column, domain) for column, domain in given.items()}

    def _refuse_others(self, given: Mapping[str, Any], name: str) -> None:
        for column in given:
            if column not in self.masks:
                raise JobError(f"{_WHO}: {name} names column '{column}', which no requirement does.")

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table."""
        return _SECONDS_PER_ROW * rows

    def check(self, table: tables.Table) -> None:
        """Refuse a table that does not fit, before anything is read."""
        self.check_schema(table.masked_schema)
        most = max(one["k"] for one in self.requirements)
        if table.rows < most:
            raise InputError(f"{_WHO}: there are {table.rows} records, fewer than k = {most}.")

    def check_schema(self, schema: Any) -> None:
        """Refuse columns that are not there, or that cannot be masked as declared."""
        require_groupable(schema, self.masks, _WHO)
        require_known(schema, guide_columns(self.guide), _WHO)
        for column in self.masks:
            self._check_column(column, schema.field(column).type)
        for column in self.domains:
            for name in interval_names(column, self.intervals):
                if name != column and name in schema.names:
                    raise JobError(f"{_WHO}: bounds of '{column}' would be '{name}', which is there. Rename it.")

    def _check_column(self, column: str, kind: Any) -> None:
        if column in self.domains:
            if not codings.is_ordered(kind):
                raise JobError(
                    f"{_WHO}: column '{column}' has a domain, but is {kind}. Give it a taxonomy, or neither."
                )
            dated = isinstance(self.domains[column][0], str)
            if dated != codings.is_date(kind):
                form = "dates such as 1900-01-01" if codings.is_date(kind) else "numbers"
                raise JobError(f"{_WHO}: the domain of '{column}', which is {kind}, must be two {form}.")
        elif column not in self.taxonomies and codings.is_ordered(kind):
            raise JobError(
                f"{_WHO}: column '{column}' is {kind}: declare its domain, such as domains: {{{column}: [0, 120]}}, "
                f"or a taxonomy; or say taxonomies: {{{column}: null}} to suppress its values one by one."
            )

    def masked_schema(self, schema: Any) -> Any:
        """The schema of what it makes of a table with this one."""
        return replaced_schema(schema, {column: self._made(column, schema) for column in self.masks})

    def _made(self, column: str, schema: Any) -> Sequence[Made]:
        if column not in self.domains:
            return [text_column(column)]
        return interval_columns(column, self.intervals, codings.is_date(schema.field(column).type))

    @property
    def origins(self) -> dict[str, str]:
        """New columns, and those they come from."""
        return {
            name: column for column in self.domains for name in interval_names(column, self.intervals) if name != column
        }

    def fit(self, table: Any, *, key: str | bytes | Subkey | None = None, seed: int | None = None) -> FittedRefinement:
        """Find the refinements."""
        source = tables.as_table(table, _WHO)
        secret = make_key(_WHO, key=key, seed=seed)
        self.check(source)
        domains = {column: (parsed_bound(low), parsed_bound(high)) for column, (low, high) in self.domains.items()}
        found = codings.find_values(source, self.masks, domains, _WHO)
        coded = self._codings(source, found)
        labels = guide_labels(source, self.guide, self.masks, secret.subkey("guide"), _WHO)
        blocks = _coded(source, coded, labels)
        count = partial(_histograms, tuple(one.size for one in coded), labels.classes, blocks.read)
        histograms = reduce_blocks(count, _added, blocks.blocks, "refinement: classes")
        dates = {column for column in self.domains if codings.is_date(source.masked_schema.field(column).type)}
        columns = [
            MaskedColumn(one, domains.get(one.column), self._tree(one.column), one.column in dates) for one in coded
        ]
        attributes = [one.attribute(counts) for one, counts in zip(columns, histograms, strict=True)]
        quasis = self._quasis()
        outcome = refine(blocks, attributes, quasis, source.rows, guided=self.guide != DISTORTION)
        both = list(zip(columns, attributes, strict=True))
        return FittedRefinement(
            self,
            tuple(column.released(attribute, self.intervals) for column, attribute in both),
            {column.coding.column: column.cut(attribute) for column, attribute in both},
            Figures(self._told(quasis, outcome), outcome.steps, {one.name: one.drawn() for one in attributes}),
            labels,
            secret.subkey(f"refinement {source.rows}"),
        )

    def _told(self, quasis: Sequence[Quasi], outcome: Outcome) -> dict[str, int]:
        names = [" + ".join(self.masks[number] for number in quasi.attributes) for quasi in quasis]
        return dict(zip(names, outcome.smallest, strict=True))

    def _tree(self, column: str) -> Branch | None:
        tree = self.taxonomies.get(column)
        return None if tree is None else read_taxonomy(tree, _WHO)

    def _codings(self, source: tables.Table, found: Mapping[str, codings.Found]) -> list[Coding]:
        """Codes for every column; whatever a taxonomy lacks or a domain does not hold is told here."""
        ordered = codings.number_codings(source, {column: found[column] for column in self.domains}, _WHO)
        made = []
        for column in self.masks:
            tree = self._tree(column)
            if column in ordered:
                made.append(ordered[column])
            elif tree is not None:
                made.append(codings.tree_coding(column, tree, found[column], _WHO))
            else:
                made.append(codings.value_coding(column, found[column], _WHO))
        return made

    def _quasis(self) -> list[Quasi]:
        """The requirements that no other one covers (observation 3.1)."""
        given = {(frozenset(one["columns"]), one["k"]): one for one in self.requirements}
        kept = [
            one
            for (columns, k), one in given.items()
            if not any(columns <= more and k <= most and (columns, k) != (more, most) for more, most in given)
        ]
        return [Quasi(tuple(map(self.masks.index, one["columns"])), one["k"]) for one in kept]


def _checked_requirements(given: Any) -> tuple[dict[str, Any], ...]:
    """Requirements in one spelling."""
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise JobError(f"{_WHO}: requirements must be a list of (columns, k) pairs; got {given!r}.")
    return tuple(_checked_requirement(one) for one in given)


def _checked_requirement(given: Any) -> dict[str, Any]:
    columns: Any = None
    k: Any = None
    if isinstance(given, Mapping) and set(given) == {"columns", "k"}:
        columns, k = given["columns"], given["k"]
    elif isinstance(given, list | tuple) and len(given) == 2:  # noqa: PLR2004
        columns, k = given
    named = isinstance(columns, list | tuple) and columns and all(isinstance(one, str) for one in columns)
    if not named or len(set(columns)) < len(columns) or isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise JobError(
            f"{_WHO}: a requirement must be {{columns: [different names], k: a number >= 1}}; got {given!r}."
        )
    return {"columns": list(columns), "k": k}


def _checked_domain(column: str, given: Any) -> list[Any]:
    """Two numbers, or two dates as texts."""
    try:
        ends = [str(one) if isinstance(one, datetime.date) else one for one in given]
        low, high = map(parsed_bound, ends)
        fits = len(ends) == 2 and isinstance(ends[0], str) == isinstance(ends[1], str)  # noqa: PLR2004
        if not (fits and np.isfinite([low, high]).all() and low < high):
            raise ValueError
    except (TypeError, ValueError):
        raise JobError(
            f"{_WHO}: the domain of '{column}' must be [low, high], two numbers or two dates such as 1900-01-01, the "
            f"lower one first; got {given!r}."
        ) from None
    return ends


def _coded(source: tables.Table, columns: Sequence[Coding], labels: Labels) -> Coded:
    """The table as codes, held where they fit in memory and otherwise made anew in every round."""
    names = tuple(dict.fromkeys([*(one.column for one in columns), *labels.inputs]))
    read = source.on_rows(names, partial(_code, tuple(columns), labels))
    if not fits_in_memory(source.rows * (2 * len(columns) + _OTHER_BYTES)):
        return Coded(source.blocks, read)
    return Coded(hold_blocks(read, source.blocks, "refinement: codes"), as_held)


def _code(coded: tuple[Coding, ...], labels: Labels, rows: Rows, span: Span) -> CodedBlock:
    codes = np.empty((rows.num_rows, len(coded)), np.uint16)
    for place, one in enumerate(coded):
        codes[:, place] = one.codes(rows)
    return CodedBlock(codes, labels.of(rows))


def _histograms(sizes: tuple[int, ...], classes: int, read: Any, content: Any, span: Span) -> list[Counts]:
    """For every attribute how often each code occurs with each class."""
    block: CodedBlock = read(content, span)
    assert block.classes is not None
    return [
        np.bincount(block.codes[:, place].astype(np.int64) * classes + block.classes, minlength=size * classes).reshape(
            size, classes
        )
        for place, size in enumerate(sizes)
    ]


def _added(left: list[Counts], right: list[Counts]) -> list[Counts]:
    return [one + other for one, other in zip(left, right, strict=True)]


@dataclass(frozen=True)
class Figures:
    """What a refinement came to: the smallest group of each requirement that counts, the steps, and the trees."""

    groups: Mapping[str, int]
    steps: tuple[Step, ...]
    trees: Mapping[str, Any]

    judged: ClassVar[tuple[str, ...]] = TopDownRefinement.judged

    @property
    def smallest(self) -> int:
        """Records in the smallest group of any requirement."""
        return min(self.groups.values())

    @property
    def refinements(self) -> int:
        """How many refinements there were."""
        return len(self.steps)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "smallest": self.smallest,
            "refinements": self.refinements,
            "requirements": dict(self.groups),
            "steps": [step._asdict() for step in self.steps],
            "trees": dict(self.trees),
        }


@dataclass(frozen=True)
class FittedRefinement:
    """The solution: what every value is masked to."""

    method: TopDownRefinement
    released: tuple[Released, ...]
    cuts: Mapping[str, list[Any]]
    """For each attribute the leaves of its tree that are left, by name, or the edges of its intervals."""
    figures: Figures
    guide: Labels
    key: Subkey

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
        """The masked table: pandas as pandas, a Dask frame or a lake as a lazy Dask frame."""
        return tables.mask(self, table, _WHO)

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block, masked."""
        return with_made(rows, {one.column: (one.made, one.columns(rows, _WHO)) for one in self.released})

    def masked_schema(self, schema: Any) -> Any:
        """Categories and labels become texts; bounds and midpoints numbers, or dates."""
        return self.method.masked_schema(schema)

    def labels(self, table: Any) -> Any:
        """The guide's class of each record, as a series."""
        return tables.derive_rows(table, self.guide.inputs, self._labels, require_known, _WHO)["label"]

    def _labels(self, rows: Rows) -> dict[str, Any]:
        return {"label": self.guide.of(rows)}

    def claims(self) -> list[dict[str, Any]]:
        """Every requirement, in the columns that are released; anybody can count them again."""
        names = {one.column: one.names for one in self.released}
        return [
            {"columns": [name for column in one["columns"] for name in names[column]], "smallest_group": one["k"]}
            for one in self.method.requirements
        ]

    def statement(self) -> str:
        """What a reader of the release may know: the requirements and the solution."""
        held = "; ".join(f"{', '.join(one['columns'])}: {one['k']}" for one in self.method.requirements)
        cuts = "; ".join(f"{column}: {_told_cut(cut)}" for column, cut in self.cuts.items())
        return (
            "Values were made coarser, the same everywhere, so that every row of these columns is shared by at least "
            f"so many records: {held}. Values are masked to: {cuts}. '{SUPPRESSED}' stands for a value that is not "
            "told; intervals hold their lower bound, not their upper one."
        )

    def warnings(self) -> list[str]:
        """Columns that tell nothing any more."""
        return [
            f"{_WHO}: '{column}' could not be refined and tells nothing. Lower k, or split its requirement."
            for column, tree in self.figures.trees.items()
            if "children" not in tree
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            "Groups are as large as required only for the declared columns: who knows other released columns, too, may "
            "find a record among fewer.",
            "Records of a group may share their sensitive values: measure groups for l-diversity and confidence.",
            *self.warnings(),
        ]


def _told_cut(cut: Sequence[Any]) -> str:
    if all(isinstance(one, float) for one in cut):
        return ", ".join(interval(low, high, date=False) for low, high in pairwise(cut))
    return ", ".join(cut)
