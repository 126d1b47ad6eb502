"""Strata: classes of records by columns that a step does not mask, and by the conditions of its edit rules.

``by`` names columns, each by itself or with how its values are classed: ``{age: [15, 25, 65]}`` cuts numbers into
bands, ``{education: education.yaml}`` names a taxonomy by which near values are known. Strata that are too small are
joined to the nearest: by the columns in which they differ, neighbouring bands and values under one branch being nearer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from dpmask.constraints.conditions import ConditionalRule
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats, Integers
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats, is_nested, is_numeric, require_known
from dpmask.table.encoders.texts import text_values
from dpmask.table.taxonomy import Branch, read_taxonomy

StratumColumn = str | Mapping[str, object]
"""What ``by`` names: a column whose values are strata, or one with the edges of its bands or a taxonomy."""

Label = str | int | bool | None
Stratum = tuple[Label, ...]
"""What the records of a stratum have in common: a label of each column, then whether each rule applies."""

MOST_STRATA = 4096
_APART = 1000.0
"""Strata to which different rules apply are joined last of all."""


@dataclass(frozen=True)
class Classing:
    """How the values of a column are classed."""

    column: str
    edges: tuple[float, ...] = ()
    tree: Branch | None = None

    def classes(self, rows: Rows) -> tuple[Integers, list[Label]]:
        """The class of each row, and the labels of the classes: texts, or the numbers of bands."""
        if self.edges:
            values = floats(rows, self.column)
            bands = np.where(np.isnan(values), len(self.edges) + 1, np.searchsorted(self.edges, values, side="right"))
            return bands, [*range(len(self.edges) + 1), None]
        found = text_values(rows, self.column)
        texts = found.texts(MOST_STRATA + 1)
        if len(texts) > MOST_STRATA:
            raise too_many(self.column)
        return found.places, [texts.get(place) for place in range(len(found.counts))]

    def describe(self, label: Label) -> str:
        """A class in words."""
        if label is None or not self.edges:
            return f"{self.column} {'missing' if label is None else label}"
        low, high = ("", *(f"{edge:g}" for edge in self.edges), "")[int(label) : int(label) + 2]
        return f"{self.column} " + (f"{low} to {high}" if low and high else f"below {high}" if high else f"from {low}")

    def distances(self, labels: Sequence[Label]) -> Floats:
        """How far labels are from each other, 0 to 1: by bands, by the branch they share, or 1 for any other."""
        different, codes = np.unique([str(one) for one in labels], return_inverse=True)
        if self.edges:
            numbers = np.array([np.nan if one is None else float(one) for one in labels])
            gaps = np.abs(numbers[:, None] - numbers) / len(self.edges)
            return np.where(np.isnan(gaps), 1.0, gaps) * (codes[:, None] != codes)
        if self.tree is None:
            return (codes[:, None] != codes).astype(np.float64)
        paths = dict(_paths(self.tree))
        known = [paths.get(one, (one,)) for one in different.tolist()]
        table = np.array([[_gap(one, other, self.tree.levels) for other in known] for one in known])
        return table[codes[:, None], codes]


def _paths(branch: Branch, above: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    here = (*above, branch.value)
    yield branch.value, here
    for child in branch.children:
        yield from _paths(child, here)


def _gap(one: tuple[str, ...], other: tuple[str, ...], levels: int) -> float:
    """How many levels up two values meet, as a share of all."""
    shared = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return (max(len(one), len(other)) - shared) / max(levels, 1)


class Strata(NamedTuple):
    """The columns that strata are made of, and the rules whose conditions make more."""

    classings: tuple[Classing, ...]
    rules: tuple[ConditionalRule, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns they are read from."""
        return tuple(
            dict.fromkeys([*(one.column for one in self.classings), *(c for rule in self.rules for c in rule.columns)])
        )

    def of(self, rows: Rows) -> tuple[Integers, list[Stratum]]:
        """The number of each row's stratum in this block, and the strata in the order of these numbers."""
        parts = [one.classes(rows) for one in self.classings]
        parts += [(rule.applies(rows).astype(np.int64), [False, True]) for rule in self.rules]
        numbers, found = np.zeros(rows.num_rows, np.int64), [()] if rows.num_rows else []
        strata: list[Stratum] = list(found)
        for classes, labels in parts:  # one column after the other, so that numbers stay small
            used, numbers = np.unique(numbers * len(labels) + classes, return_inverse=True)
            strata = [(*strata[one // len(labels)], labels[one % len(labels)]) for one in used.tolist()]
            if len(strata) > MOST_STRATA:
                raise too_many(", ".join(self.columns))
        return numbers, strata

    def describe(self, stratum: Stratum) -> str:
        """A stratum in words."""
        return ", ".join(one.describe(label) for one, label in zip(self.classings, stratum, strict=False)) or "all"

    def distances(self, strata: Sequence[Stratum], totals: Sequence[str] = ()) -> Floats:
        """How far strata are from each other; those of other domains, by ``totals``, farther than all others."""
        far = [len(self.classings) + 1.0 if one.column in totals else 1.0 for one in self.classings]
        columns = [
            weight * one.distances([stratum[at] for stratum in strata])
            for at, (one, weight) in enumerate(zip(self.classings, far, strict=True))
        ]
        rules = np.array([stratum[len(self.classings) :] for stratum in strata], np.int64).reshape(len(strata), -1)
        apart = _APART * (rules[:, None] != rules).sum(axis=2)
        return reduce(np.add, columns, apart.astype(np.float64))


def too_many(columns: str) -> InputError:
    """The error of strata that are no strata."""
    return InputError(
        f"by: {columns} makes more than {MOST_STRATA} strata. Cut numbers into bands, by: [{{age: [15, 25, 65]}}], or "
        "take a column out."
    )


def make_strata(by: Sequence[Any], rules: Sequence[ConditionalRule], masked: Sequence[str], who: str) -> Strata:
    """The strata that parameters ask for; columns that are masked make none."""
    classings = tuple(_classing(one, who) for one in by)
    for column in (one.column for one in classings):
        if column in masked:
            raise JobError(f"{who}: by: column '{column}' is masked by this step, so it makes no strata. Take it out.")
    for rule in rules:
        for column in rule.columns:
            if column in masked:
                raise JobError(
                    f"{who}: rule '{rule.text}': its condition is on '{column}', which this step masks. A condition "
                    "must be on a column that it leaves alone; mask that one in another step."
                )
    return Strata(classings, tuple(rules))


def _classing(given: Any, who: str) -> Classing:
    if isinstance(given, str):
        return Classing(given)
    if not isinstance(given, Mapping) or len(given) != 1:
        raise JobError(f"{who}: by must list columns, each alone or as {{age: [15, 25, 65]}}; got {given!r}.")
    ((column, how),) = given.items()
    if isinstance(how, list | tuple) and how and all(_is_number(one) for one in how):
        if list(how) != sorted(set(how)):
            raise JobError(f"{who}: by: bands of '{column}' must rise; got {list(how)!r}.")
        return Classing(str(column), edges=tuple(float(one) for one in how))
    return Classing(str(column), tree=read_taxonomy(how, f"{who}: by"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_strata(strata: Strata, schema: Any, who: str) -> None:
    """Refuse a table that lacks a column of the strata, or has another type there."""
    require_known(schema, [one.column for one in strata.classings], who)
    for one in strata.classings:
        kind = schema.field(one.column).type
        if is_nested(kind) or (one.edges and not is_numeric(kind)):
            raise JobError(
                f"{who}: by: column '{one.column}' is {kind}, which has no {'bands' if one.edges else 'classes'}."
            )
    for rule in strata.rules:
        for comparison in rule.comparisons:
            comparison.check(schema, rule.text)
