"""Top-down refinement: k-anonymity for several quasi-identifiers jointly, which keeps clusters recognisable.

All attributes start fully masked: a category with a taxonomy at its root, one without suppressed, a number or a date as
one interval. Then the best refinement that leaves every requirement (columns, k) with no group of fewer than k records
is taken, again and again. Best is InfoGain / (AnonyLoss + 1): the information on the guide's classes for the anonymity
it costs. A guide is a clustering of the raw table, a column, or ``distortion``, which counts the records refined
instead. With ``suppress_records`` small groups may be dropped instead (dpmask.masking.refinement.search); then what
only dropped records have is hidden again: values without a tree, intervals, and bounds of intervals, which become the
lowest remaining value above them.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dpmask.engine.draws import Subkey
from dpmask.errors import InputError, JobError
from dpmask.kernels.refinement.dropped import Drops
from dpmask.masking.method import Method, Schema
from dpmask.masking.refinement.attributes import Attribute
from dpmask.masking.refinement.blocks import coded_table
from dpmask.masking.refinement.columns import (
    FORMS,
    WHO,
    DroppedGroups,
    added_names,
    interval_columns,
    masked_columns,
    parsed_bound,
)
from dpmask.masking.refinement.fitted import Figures, FittedRefinement
from dpmask.masking.refinement.guide import DISTORTION, checked_guide, guide_columns, guide_labels
from dpmask.masking.refinement.parameters import check_column, checked_domains, checked_requirements, checked_trees
from dpmask.masking.refinement.search import Quasi, refine
from dpmask.parameters import require_choice, require_number
from dpmask.table import table as tables
from dpmask.table.columns import require_known
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.encoders.interval import is_date
from dpmask.table.new_columns import NewColumn, replaced_schema, text_column
from dpmask.table.row_keys import require_groupable
from dpmask.table.taxonomy import read_taxonomy

_SECONDS_PER_ROW = 4e-6
_ROUNDING = 1e-9  # 0.29 of 100 records are 29


@dataclass(frozen=True, kw_only=True)
class TopDownRefinement(Method[FittedRefinement]):
    """Refine fully masked columns while every requirement is met.

    Parameters
    ----------
    requirements : sequence of (columns, k) or {"columns": [...], "k": k}
        At least k records share every row of these columns.
    taxonomies : mapping of columns to trees, optional
        For a category a tree: a file, or a mapping. Without one, its values are suppressed; None for a number too.
    domains : mapping of columns to [low, high), optional
        For a number or a date the outer bounds of its intervals.
    guide : "distortion", {"column": NAME} or {"clusters": 6, "algorithm": "bisecting_kmeans", "columns": [...]}
        What refinements should preserve: classes of a column or of a clustering of the raw table ("kmeans" and
        "fuzzy_c_means" are the other algorithms); by default, as many records refined as possible.
    intervals : {"label", "bounds", "midpoint"}
        How intervals are released.
    suppress_records : float
        The share of all records that may be dropped to keep the others finer.

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
    suppress_records: float = 0.0

    figures: ClassVar[type[Figures]] = Figures

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", checked_requirements(self.requirements))
        object.__setattr__(self, "taxonomies", checked_trees(self.taxonomies, self.masks))
        object.__setattr__(self, "domains", checked_domains(self.domains, self.masks, self.taxonomies))
        object.__setattr__(self, "guide", checked_guide(self.guide, WHO))
        require_choice(self, "intervals", FORMS)
        require_number(self, "suppress_records", at_least=0, at_most=0.5)

    @property
    def passes(self) -> int:
        """Values, codes, and the class counts."""
        return 3

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks: all that a requirement names, in the order in which they do."""
        return tuple(dict.fromkeys(column for one in self.requirements for column in one["columns"]))

    @property
    def drops(self) -> bool:
        """Whether it may drop records."""
        return self.suppress_records > 0

    @property
    def origins(self) -> Mapping[str, str]:
        """Columns of bounds, and those they come from."""
        return {name: column for column in self.domains for name in added_names(column, self.intervals)}

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table."""
        return _SECONDS_PER_ROW * rows

    def check(self, table: tables.Table) -> None:
        """Refuse a table that does not fit, before anything is read."""
        self.check_schema(table.masked_schema)
        most = max(one["k"] for one in self.requirements)
        if table.rows < most:
            raise InputError(f"{WHO}: there are {table.rows} records, fewer than k = {most}.")

    def check_schema(self, schema: Schema) -> None:
        """Refuse columns that are not there, or that cannot be masked as declared."""
        require_groupable(schema, self.masks, WHO)
        require_known(schema, guide_columns(self.guide), WHO)
        for column in self.masks:
            check_column(column, schema.field(column).type, self.domains, self.taxonomies)
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

    def fit_table(self, table: tables.Table, key: Subkey) -> FittedRefinement:
        """Find the refinements."""
        domains = {column: (parsed_bound(low), parsed_bound(high)) for column, (low, high) in self.domains.items()}
        trees = {column: read_taxonomy(tree, WHO) for column, tree in self.taxonomies.items() if tree is not None}
        columns = masked_columns(table, self.masks, trees, domains)
        encoders = tuple(one.encoder for one in columns)
        labels = guide_labels(table, self.guide, self.masks, key.subkey("guide"), WHO)
        allowed = math.floor(self.suppress_records * table.rows + _ROUNDING)
        coded = coded_table(table, encoders, labels, dropping=allowed > 0)
        histograms = coded.class_counts([one.size for one in encoders], labels.classes)
        attributes = [one.attribute(counts) for one, counts in zip(columns, histograms, strict=True)]
        quasis = self._quasis()
        solution = refine(coded, attributes, quasis, allowed, guided=self.guide != DISTORTION)
        dropped = None
        if solution.drops.records:
            dropped = _hidden(table, encoders, attributes, quasis, solution.drops)
        both = list(zip(columns, attributes, strict=True))
        names = [" + ".join(self.masks[number] for number in quasi.attributes) for quasi in quasis]
        return FittedRefinement(
            self,
            tuple(column.released(attribute, self.intervals) for column, attribute in both),
            {column.encoder.column: column.cut(attribute) for column, attribute in both},
            Figures(
                groups=dict(zip(names, solution.smallest, strict=True)),
                steps=solution.steps(attributes),
                trees={one.name: one.tree() for one in attributes},
                rows=table.rows,
                dropped=solution.drops.records,
            ),
            labels,
            key.subkey(f"refinement {table.rows}"),
            dropped,
        )

    def _quasis(self) -> list[Quasi]:
        """The requirements that no other one covers (observation 3.1)."""
        given = {(frozenset(one["columns"]), one["k"]): one for one in self.requirements}
        kept = [
            one
            for (columns, k), one in given.items()
            if not any(columns <= more and k <= most and (columns, k) != (more, most) for more, most in given)
        ]
        return [Quasi(tuple(map(self.masks.index, one["columns"])), one["k"]) for one in kept]


def _hidden(
    table: tables.Table,
    encoders: tuple[CodeEncoder, ...],
    attributes: Sequence[Attribute],
    quasis: Sequence[Quasi],
    drops: Drops,
) -> DroppedGroups:
    """What is dropped; the attributes then hide what only dropped records have."""
    nodes = tuple(one.nodes.copy() for one in attributes)
    dropped = DroppedGroups(encoders, nodes, tuple(one.attributes for one in quasis), drops)
    for attribute, lowest in zip(attributes, dropped.lowest_remaining(table), strict=True):
        attribute.hide_dropped(lowest)
    return dropped
