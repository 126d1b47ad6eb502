"""Top-down refinement: k-anonymity for several quasi-identifiers jointly, keeping what tells clusters apart.

All attributes start fully masked: a category with a taxonomy at its root, one without suppressed, a number or a date as
one interval. Then the best refinement that leaves every requirement (columns, k) with no group of fewer than k records
is taken, again and again. Best is InfoGain / (AnonyLoss + 1): what it tells of the guide's classes for the anonymity it
costs. A guide is a clustering of the raw table, a column, or ``distortion``, which counts the records refined instead.
With ``suppress_records`` small groups may be left out instead (dpmask.masking.refinement.drops).

Protects against: finding a person by a declared quasi-identifier among fewer than k records. Does not protect against:
an intruder who knows other columns than were declared, nor against groups whose members share a sensitive value
(measure groups). Missing values are values of their own; weights never count as people.

Paper: Fung, Wang, Wang and Hung 2009, Algorithm 1 and eqs. 1-5. Passes over the data: two (values, codes) and those of
the guide; rounds run over codes of two bytes an attribute, which stay in memory where they fit. Masking is one look-up
an attribute. Memory per task: one block and its codes; with records dropped, one more pass, and 16 bytes for each
dropped group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from dpmask.engine.draws import Subkey, make_key
from dpmask.errors import InputError, JobError
from dpmask.masking.refinement.attributes import Attribute
from dpmask.masking.refinement.blocks import Coded
from dpmask.masking.refinement.checks import WHO, check_column, checked_domains, checked_requirements, checked_trees
from dpmask.masking.refinement.coding import class_counts, coded_blocks
from dpmask.masking.refinement.dropped import DroppedGroups, values_left
from dpmask.masking.refinement.drops import refine_dropping
from dpmask.masking.refinement.fitted import Figures, FittedRefinement
from dpmask.masking.refinement.guide import DISTORTION, checked_guide, guide_columns, guide_labels
from dpmask.masking.refinement.release import FORMS, MaskedColumn, interval_columns, interval_names, parsed_bound
from dpmask.masking.refinement.rounds import Outcome, Quasi, refine
from dpmask.parameters import require_choice, require_number
from dpmask.table import table as tables
from dpmask.table.columns import require_known
from dpmask.table.encoders.base import CodeEncoder, Summarise, learn
from dpmask.table.encoders.category import MOST_CODES, CategoryEncoder, category_encoder, taxonomy_encoder
from dpmask.table.encoders.interval import DistinctNumbers, interval_encoders, is_date
from dpmask.table.encoders.texts import TextCounts
from dpmask.table.new_columns import NewColumn, replaced_schema, text_column
from dpmask.table.row_keys import require_groupable
from dpmask.table.taxonomy import Branch, read_taxonomy

_SECONDS_PER_ROW = 4e-6
_ROUNDING = 1e-9  # 0.29 of 100 records are 29


@dataclass(frozen=True, kw_only=True)
class TopDownRefinement:
    """Parameters of a refinement.

    ``requirements``: pairs (columns, k), or {columns, k}; at least k records share every row of these columns.
    ``taxonomies``: for a category a tree (a file, or a mapping); without one, values are suppressed. ``domains``: for a
    number or a date [low, high), the outer bounds of its intervals. ``guide``: 'distortion', {column: NAME}, or
    {clusters: 6, algorithm: bisecting_kmeans}; kmeans and fuzzy_c_means are the others.
    ``intervals``: how these are released, as 'label', 'bounds' or 'midpoint'. ``suppress_records``: the share of all
    records that may be left out to keep the others finer.
    """

    requirements: Any
    taxonomies: Any = None
    domains: Any = None
    guide: Any = DISTORTION
    intervals: str = "label"
    suppress_records: float = 0.0

    judged: ClassVar[tuple[str, ...]] = Figures.judged
    passes: ClassVar[int] = 3
    withheld: ClassVar[tuple[str, ...]] = ()
    undone_by: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", checked_requirements(self.requirements))
        object.__setattr__(self, "taxonomies", checked_trees(self.taxonomies, self.masks))
        object.__setattr__(self, "domains", checked_domains(self.domains, self.masks, self.taxonomies))
        object.__setattr__(self, "guide", checked_guide(self.guide, WHO))
        require_choice(self, "intervals", FORMS)
        require_number(self, "suppress_records", at_least=0, at_most=0.5)

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks: all that a requirement names, in the order in which they do."""
        return tuple(dict.fromkeys(column for one in self.requirements for column in one["columns"]))

    @property
    def drops(self) -> bool:
        """Whether it may leave records out."""
        return self.suppress_records > 0

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table."""
        return _SECONDS_PER_ROW * rows

    def check(self, table: tables.Table) -> None:
        """Refuse a table that does not fit, before anything is read."""
        self.check_schema(table.masked_schema)
        most = max(one["k"] for one in self.requirements)
        if table.rows < most:
            raise InputError(f"{WHO}: there are {table.rows} records, fewer than k = {most}.")

    def check_schema(self, schema: Any) -> None:
        """Refuse columns that are not there, or that cannot be masked as declared."""
        require_groupable(schema, self.masks, WHO)
        require_known(schema, guide_columns(self.guide), WHO)
        for column in self.masks:
            check_column(column, schema.field(column).type, self.domains, self.taxonomies)
        for column in self.domains:
            for name in interval_names(column, self.intervals):
                if name != column and name in schema.names:
                    raise JobError(f"{WHO}: bounds of '{column}' would be '{name}', which is there. Rename it.")

    def masked_schema(self, schema: Any) -> Any:
        """The schema of what it makes of a table with this one."""
        return replaced_schema(schema, {column: self._new_columns(column, schema) for column in self.masks})

    def _new_columns(self, column: str, schema: Any) -> Sequence[NewColumn]:
        if column not in self.domains:
            return [text_column(column)]
        return interval_columns(column, self.intervals, is_date(schema.field(column).type))

    @property
    def origins(self) -> dict[str, str]:
        """New columns, and those they come from."""
        return {
            name: column for column in self.domains for name in interval_names(column, self.intervals) if name != column
        }

    def fit(self, table: Any, *, key: str | bytes | Subkey | None = None, seed: int | None = None) -> FittedRefinement:
        """Find the refinements."""
        source = tables.as_table(table, WHO)
        secret = make_key(WHO, key=key, seed=seed)
        self.check(source)
        columns = self._columns(source)
        coded = [one.coding for one in columns]
        labels = guide_labels(source, self.guide, self.masks, secret.subkey("guide"), WHO)
        blocks = coded_blocks(source, coded, labels)
        histograms = class_counts(coded, labels.classes, blocks)
        attributes = [one.attribute(counts) for one, counts in zip(columns, histograms, strict=True)]
        outcome, dropped = self._refined(source, blocks, coded, attributes)
        both = list(zip(columns, attributes, strict=True))
        trees = {one.name: one.drawn() for one in attributes}
        records = 0 if dropped is None else dropped.drops.records
        return FittedRefinement(
            self,
            tuple(column.released(attribute, self.intervals) for column, attribute in both),
            {column.coding.column: column.cut(attribute) for column, attribute in both},
            Figures(self._told(outcome), outcome.steps, trees, source.rows, records),
            labels,
            secret.subkey(f"refinement {source.rows}"),
            dropped,
        )

    def _refined(
        self, source: tables.Table, blocks: Coded, coded: Sequence[CodeEncoder], attributes: list[Attribute]
    ) -> tuple[Outcome, DroppedGroups | None]:
        """Refine the attributes; what is left out for it, if anything is."""
        quasis, rows, guided = self._quasis(), source.rows, self.guide != DISTORTION
        if not self.drops:
            return refine(blocks, attributes, quasis, rows, guided=guided), None
        allowed = math.floor(self.suppress_records * rows + _ROUNDING)
        solved = refine_dropping(blocks, attributes, quasis, rows, allowed, guided=guided)
        if not solved.drops.records:
            return solved.outcome(attributes), None
        nodes = tuple(one.nodes.copy() for one in attributes)
        dropped = DroppedGroups(tuple(coded), nodes, tuple(quasis), solved.drops)
        for attribute, left in zip(attributes, values_left(source, dropped), strict=True):
            attribute.forget(left)
        return solved.outcome(attributes), dropped

    def _told(self, outcome: Outcome) -> dict[str, int]:
        names = [" + ".join(self.masks[number] for number in quasi.attributes) for quasi in self._quasis()]
        return dict(zip(names, outcome.smallest, strict=True))

    def _columns(self, source: tables.Table) -> list[MaskedColumn]:
        """Codes for every column; whatever a taxonomy lacks or a domain does not hold is told here."""
        domains = {column: (parsed_bound(low), parsed_bound(high)) for column, (low, high) in self.domains.items()}
        count = partial(TextCounts.of, most=MOST_CODES)
        looks: dict[str, Summarise[Any]] = {
            column: partial(DistinctNumbers.of, most=MOST_CODES, domain=domains[column]) if column in domains else count
            for column in self.masks
        }
        found = learn(source, looks, f"{WHO}: values")
        numbers = {column: one for column, one in found.items() if isinstance(one, DistinctNumbers)}
        ordered = interval_encoders(source, numbers, WHO)
        columns = []
        for column, one in found.items():
            tree, domain = self._tree(column), domains.get(column)
            coding = self._category(column, tree, one) if isinstance(one, TextCounts) else ordered[column]
            dated = domain is not None and is_date(source.masked_schema.field(column).type)
            columns.append(MaskedColumn(coding, domain, tree, dated))
        return columns

    def _category(self, column: str, tree: Branch | None, found: TextCounts) -> CategoryEncoder:
        return category_encoder(column, found, WHO) if tree is None else taxonomy_encoder(column, tree, found, WHO)

    def _tree(self, column: str) -> Branch | None:
        tree = self.taxonomies.get(column)
        return None if tree is None else read_taxonomy(tree, WHO)

    def _quasis(self) -> list[Quasi]:
        """The requirements that no other one covers (observation 3.1)."""
        given = {(frozenset(one["columns"]), one["k"]): one for one in self.requirements}
        kept = [
            one
            for (columns, k), one in given.items()
            if not any(columns <= more and k <= most and (columns, k) != (more, most) for more, most in given)
        ]
        return [Quasi(tuple(map(self.masks.index, one["columns"])), one["k"]) for one in kept]
