"""Sensitive columns as codes, and what the models of a requirement ask of the codes of a group.

A category has a code for each value, in the order of its taxonomy if it has one; a number or a date with more than ten
different values one for each of its bands: declared ones, by where each begins, or deciles. Missing is a value, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dpmask.engine.limits import current_limits
from dpmask.errors import JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.models import Condition, Node
from dpmask.table.encoders.base import CodeEncoder, Summarise, learn
from dpmask.table.encoders.category import CategoryEncoder, category_encoder, taxonomy_encoder
from dpmask.table.encoders.interval import DistinctNumbers, IntervalEncoder, day_number, day_text, is_date, is_ordered
from dpmask.table.encoders.texts import TextCounts
from dpmask.table.encoders.value_codes import code_shares
from dpmask.table.quantiles import order_statistics
from dpmask.table.requirement import MISSING, Model, Requirement
from dpmask.table.row_keys import require_groupable
from dpmask.table.table import Table
from dpmask.table.taxonomy import Branch

_BANDS = 10


@dataclass(frozen=True, repr=False)
class SensitiveColumn:
    """The codes of a sensitive column, the share of each in the whole table, and its taxonomy, if any.

    ``values``: those of a number that has few.
    """

    encoder: CategoryEncoder | IntervalEncoder
    shares: Floats
    tree: Branch | None
    date: bool
    values: Floats | None

    @property
    def names(self) -> list[str | None]:
        """What each code stands for; None for missing."""
        missing = [None] if self.encoder.missing else []
        if isinstance(self.encoder, CategoryEncoder):
            return [*self.encoder.known, *missing]
        shown = day_text if self.date else "{:g}".format
        if self.values is not None:
            return [*map(shown, self.values.tolist()), *missing]
        ends = list(map(shown, self.encoder.edges.tolist()))
        inner = [f"[{low}, {high})" for low, high in pairwise(ends)]
        return [*([f"below {ends[0]}", *inner, f"from {ends[-1]} on"] if ends else ["any"]), *missing]

    def code(self, name: str) -> int | None:
        """The code of a value by its name; None if nobody has it."""
        names = self.names
        known = name if name in names else None if name == MISSING else name
        return names.index(known) if known in names else None

    @property
    def bands(self) -> list[Any] | None:
        """Where its bands begin, if it is counted in bands."""
        if isinstance(self.encoder, CategoryEncoder) or self.values is not None:
            return None
        edges: list[Any] = self.encoder.edges.tolist()
        return list(map(day_text, edges)) if self.date else edges

    @property
    def steps(self) -> Floats:
        """What a share that moves from each code to the next one costs, of those that occur."""
        occurs = np.flatnonzero(self.shares > 0)
        steps = np.zeros(len(self.shares))
        steps[occurs[:-1]] = 1.0 / max(len(occurs) - 1, 1)
        return steps

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The taxonomy over the codes, children first; missing is a child of the root."""
        assert self.tree is not None
        found: list[Node] = []
        leaves = {value: code for code, value in enumerate(self.tree.values())}
        top = max(self.tree.levels - 1, 1)

        def place(branch: Branch) -> int:
            if not branch.children:
                return leaves[branch.value]
            children = tuple(place(child) for child in branch.children)
            missing = (len(leaves),) if branch is self.tree and self.encoder.missing else ()
            found.append(Node((branch.levels - 1) / top, children + missing))
            return len(self.shares) + len(found) - 1

        place(self.tree)
        return tuple(found)


class Limit(NamedTuple):
    """One limit of a model: of any value, or of the one that is named."""

    model: Model
    value: str | None
    condition: Condition

    @property
    def name(self) -> str:
        """What is limited, for reports."""
        named = f" = {self.value}" if self.condition.code >= 0 else ""
        return f"{self.model.model} of {self.model.column}{named}"


def check_models(schema: Any, models: Sequence[Model], trees: Mapping[str, Any], who: str) -> None:
    """Refuse sensitive columns that are not there, and distances that need an order or a tree."""
    for one in models:
        require_groupable(schema, [one.column], who)
        ordered = is_ordered(schema.field(one.column).type)
        if one.distance == "hierarchical" and trees.get(one.column) is None:
            raise JobError(
                f"{who}: the hierarchical distance of '{one.column}' needs a tree: taxonomies: {{{one.column}: ...}}."
            )
        if one.distance == "ordered" and not ordered and trees.get(one.column) is None:
            raise JobError(
                f"{who}: '{one.column}' has no order. Take distance: equal, or give it a taxonomy in the order of its "
                "values."
            )


def checked_bands(given: Any, who: str) -> dict[str, list[Any]]:
    """Where the bands of numbers or dates begin, by column."""
    if given is not None and not isinstance(given, Mapping):
        raise JobError(f"{who}: bands must map columns to where each band begins; got {type(given).__name__}.")
    found = {}
    for column, edges in (given or {}).items():
        try:
            found[column] = [edge if isinstance(edge, int | float) else str(edge) for edge in edges]
            rising = np.diff(_numbers(found[column])) > 0
            if not found[column] or isinstance(edges, str) or not rising.all():
                raise ValueError
        except (TypeError, ValueError):
            raise JobError(f"{who}: the bands of '{column}' must be rising numbers or dates; got {edges!r}.") from None
    return found


def _numbers(edges: Sequence[Any]) -> Floats:
    numbers = np.array([day_number(edge) if isinstance(edge, str) else float(edge) for edge in edges])
    if not np.isfinite(numbers).all():
        raise ValueError
    return numbers


def sensitive_columns(
    table: Table, columns: Sequence[str], bands: Mapping[str, Sequence[Any]], trees: Mapping[str, Branch], who: str
) -> dict[str, SensitiveColumn]:
    """The codes of some columns; two passes over them, and one for deciles."""
    types = {column: table.masked_schema.field(column).type for column in columns}
    ordered = {column for column in columns if is_ordered(types[column]) and column not in trees}
    most = current_limits().code_values
    looks: dict[str, Summarise[Any]] = {
        column: partial(DistinctNumbers.of, most=_BANDS) if column in ordered else partial(TextCounts.of, most=most)
        for column in columns
    }
    found = learn(table, looks, f"{who}: sensitive values")
    many = [column for column in columns if column in ordered and found[column].many and column not in bands]
    for column in many:
        if is_date(types[column]):
            raise JobError(
                f"{who}: '{column}' has many days: say where its bands begin, bands: {{{column}: [2000-01-01]}}."
            )
    deciles = dict(zip(many, order_statistics(table, many, _deciles, f"{who}: deciles"), strict=True)) if many else {}
    encoders: dict[str, CategoryEncoder | IntervalEncoder] = {}
    for column, one in found.items():
        if column in trees:
            encoders[column] = taxonomy_encoder(column, trees[column], one, who)
        elif column not in ordered:
            encoders[column] = category_encoder(column, one, who)
        else:
            values = deciles[column].values if column in deciles else one.values
            edges = _numbers(bands[column]) if column in bands else np.unique(values)[1:]
            encoders[column] = IntervalEncoder(column, edges, one.missing > 0)
    plain: dict[str, CodeEncoder] = dict(encoders)
    shares = code_shares(table, plain, who)
    return {
        column: SensitiveColumn(
            encoders[column],
            shares[column],
            trees.get(column),
            is_date(types[column]),
            found[column].values if column in ordered and column not in {*bands, *many} else None,
        )
        for column in columns
    }


def _deciles(size: int) -> list[int]:
    return [size * number // _BANDS for number in range(_BANDS)]


def limits_of(requirement: Requirement, columns: Mapping[str, SensitiveColumn]) -> list[Limit]:
    """What all models of a requirement ask; counts of its sensitive columns stand one after another."""
    found, low = [], 0
    for column in requirement.sensitive:
        high = low + columns[column].encoder.size
        for model in requirement.models:
            if model.column == column:
                found += _limits(model, columns[column], low, high)
        low = high
    return found


def _limits(model: Model, column: SensitiveColumn, low: int, high: int) -> list[Limit]:
    condition = Condition(model.model, low, high, float(model.limit), model.rank)
    if model.model == "confidence":
        codes = [(value, column.code(value), share) for value, share in model.values]
        named = [
            Limit(model, value, condition._replace(code=code, limit=float(share)))
            for value, code, share in codes
            if code is not None  # of a value that nobody has there is nothing to infer
        ]
        return named + ([Limit(model, None, condition)] if model.limit < 1 or not named else [])
    if model.model == "t_closeness":
        steps = column.steps if model.distance == "ordered" else condition.steps
        tree = column.nodes if model.distance == "hierarchical" else ()
        condition = condition._replace(shares=column.shares, steps=steps, tree=tree)
    return [Limit(model, None, condition)]
