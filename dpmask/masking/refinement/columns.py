"""The masked columns: their codes, what each value is released as, in which columns, and which records are dropped.

All use of encoders of columns is here and in guide.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from dpmask.engine.limits import current_limits
from dpmask.errors import InputError, PolicyRefusal
from dpmask.kernels.arrays import Counts, Floats
from dpmask.lake.reading import Rows
from dpmask.masking.refinement.attributes import MISSING, SUPPRESSED, Attribute, Intervals, Ranged
from dpmask.masking.refinement.suppressed import Suppressed
from dpmask.table.encoders.base import Summarise, learn
from dpmask.table.encoders.category import CategoryEncoder, category_encoder, taxonomy_encoder
from dpmask.table.encoders.interval import (
    DistinctNumbers,
    IntervalEncoder,
    bound_text,
    day_number,
    interval_encoders,
    interval_text,
    is_date,
    numbers,
)
from dpmask.table.encoders.texts import TextCounts
from dpmask.table.new_columns import NewColumn, date_column, float_column, text_column
from dpmask.table.table import Table
from dpmask.table.taxonomy import Branch

WHO = "TopDownRefinement"
FORMS = ("label", "bounds", "midpoint")
"""How an interval is released: as text such as [20, 40), as two columns, or as the number in its middle."""


def parsed_bound(value: Any) -> float:
    """A bound of a domain as a number: a number itself, or a date such as 1985-03-01."""
    return day_number(value) if isinstance(value, str) else float(value)


def interval_columns(column: str, form: str, date: bool) -> list[NewColumn]:
    """The columns that a column of intervals is released as."""
    if form == "label":
        return [text_column(column)]
    make = date_column if date else float_column
    return [make(name) for name in ((f"{column}_low", f"{column}_high") if form == "bounds" else (column,))]


def added_names(column: str, form: str) -> list[str]:
    """The names among them that the column itself does not have."""
    return [one.name for one in interval_columns(column, form, date=False) if one.name != column]


@dataclass(frozen=True, repr=False)
class ReleasedTexts:
    """A column of categories: the text of each code, or None where it is missing."""

    encoder: CategoryEncoder
    texts: tuple[str | None, ...]
    strict: bool

    @property
    def column(self) -> str:
        """The column it comes from."""
        return self.encoder.column

    @property
    def new_columns(self) -> list[NewColumn]:
        """The columns it is released as."""
        return [text_column(self.column)]

    def columns(self, rows: Rows) -> list[Any]:
        """The released columns of one block."""
        codes = self.encoder.encode(rows)
        unknown = int((codes >= len(self.texts)).sum())
        if unknown and self.strict:
            raise InputError(
                f"{WHO}: column '{self.column}' has a value in {unknown} records that the table it was fitted to has "
                "not. Fit to all of the data."
            )
        return [text_column(self.column).taken([*self.texts, SUPPRESSED], codes)]


def require_inside(rows: Rows, column: str, domain: Sequence[float]) -> Floats:
    """The numbers of a column, NaN where missing; one outside its domain is refused."""
    values = numbers(rows, column)
    outside = int(((values < domain[0]) | (values >= domain[-1])).sum())
    if outside:
        raise InputError(f"{WHO}: column '{column}' has values outside its domain in {outside} records.")
    return values


@dataclass(frozen=True, repr=False)
class ReleasedIntervals:
    """A column of numbers or dates: the bounds of its intervals. All values are suppressed where ``hidden``."""

    column: str
    bounds: tuple[float, ...]
    form: str
    date: bool
    missing: bool
    hidden: bool

    @property
    def new_columns(self) -> list[NewColumn]:
        """The columns it is released as."""
        return interval_columns(self.column, self.form, self.date)

    def columns(self, rows: Rows) -> list[Any]:
        """The released columns of one block."""
        values = require_inside(rows, self.column, self.bounds)
        missing = np.isnan(values)
        if missing.any() and not self.missing:
            raise InputError(
                f"{WHO}: column '{self.column}' is missing in {int(missing.sum())} records, and nowhere in the table "
                "it was fitted to. Fit to all of the data."
            )
        places = np.searchsorted(np.array(self.bounds[1:-1]), values, side="right")
        places = np.where(missing | self.hidden, len(self.bounds) - 1, places)
        return [one.taken([*texts, None], places) for one, texts in zip(self.new_columns, self._texts(), strict=True)]

    def _texts(self) -> list[list[Any]]:
        """What each interval is in each released column."""
        ends = list(pairwise(self.bounds))
        if self.form == "bounds":
            return [[low for low, _ in ends], [high for _, high in ends]]
        if self.form == "midpoint":
            return [[(low + high) / 2.0 for low, high in ends]]
        return [[interval_text(low, high, self.date) for low, high in ends]]


Released = ReleasedTexts | ReleasedIntervals


@dataclass(frozen=True, repr=False)
class MaskedColumn:
    """One masked column: its codes, and its domain or its tree."""

    encoder: CategoryEncoder | IntervalEncoder
    domain: tuple[float, float] | None
    tree: Branch | None
    date: bool
    kept: bool

    def attribute(self, histogram: Counts, frozen: Mapping[tuple[float, float], float]) -> Attribute:
        """The attribute before any refinement; ``frozen``: where other releases have cut its intervals."""
        name, missing = self.encoder.column, self.encoder.missing
        if self.kept:
            return Suppressed.released(name, histogram, self.names.__getitem__)
        if self.domain is not None:
            return Intervals(name, histogram, missing, self.begins, partial(interval_text, date=self.date), frozen)
        if self.tree is not None:
            return Ranged(name, histogram, self.tree, missing)
        return Suppressed(name, histogram, self.names.__getitem__)

    @property
    def begins(self) -> Floats:
        """Of intervals the lower bound of each code, and the upper one of all."""
        assert isinstance(self.encoder, IntervalEncoder)
        assert self.domain is not None
        return np.array([self.domain[0], *self.encoder.edges, self.domain[1]])

    @property
    def names(self) -> list[str]:
        """The values, in the order of their codes; the last one is for missing values."""
        assert isinstance(self.encoder, CategoryEncoder)
        return [*self.encoder.known, MISSING]

    def cut(self, attribute: Attribute) -> list[Any]:
        """Leaves, in order of their names, or edges."""
        if isinstance(attribute, Suppressed):
            return attribute.released_values
        if isinstance(attribute, Intervals):
            bounds = attribute.bounds()
            return [bound_text(bound, self.date) for bound in bounds] if self.date else bounds
        assert isinstance(attribute, Ranged)
        return sorted(attribute.label(number) for number in attribute.cut)

    def frozen(self, attribute: Attribute) -> dict[str, Any] | None:
        """The cut and the tree for later releases of a series, as JSON; None for values that have no tree.

        Of a taxonomy the codes are those of its leaves. ``whole``: missing values are released like all others.
        """
        if isinstance(attribute, Suppressed):
            return {"kept": True} if self.kept else None
        assert isinstance(attribute, Ranged)
        whole = self.encoder.missing and not attribute.lows[-1]
        if isinstance(attribute, Intervals):
            return {"edges": attribute.bounds(), "splits": attribute.splits(), "whole": whole}
        assert self.tree is not None
        lows = np.unique(attribute.lows[: self.tree.leaves]).tolist()
        return {"taxonomy": self.tree.to_dict(), "lows": lows, "whole": whole}

    def frozen_lows(self, frozen: Mapping[str, Any]) -> Counts:
        """For each code the lowest one of its node in another release's cut; one of another tree is refused."""
        size = self.encoder.size
        if frozen.get("kept"):
            return np.arange(size)
        ends = None if self.domain is None else list(self.domain)
        tree = None if self.tree is None else self.tree.to_dict()
        if not self.kept and (
            frozen.get("taxonomy") != tree or (ends and [frozen["edges"][0], frozen["edges"][-1]] != ends)
        ):
            raise PolicyRefusal(
                f"{WHO}: '{self.encoder.column}' has another tree (a taxonomy or a domain) than in an earlier release "
                "of the series. Releases of the same people must cut the same trees."
            )
        if self.kept:
            raise PolicyRefusal(
                f"{WHO}: '{self.encoder.column}' is kept as it is, and was generalised in an earlier release of the "
                "series. Generalise it here, too."
            )
        starts = np.array(frozen["lows"]) if ends is None else np.searchsorted(self.begins, frozen["edges"][:-1])
        codes = np.arange(size - self.encoder.missing)
        lows = starts[np.searchsorted(starts, codes, side="right") - 1]
        return np.append(lows, 0 if frozen["whole"] else len(codes)) if self.encoder.missing else lows

    def released(self, attribute: Attribute, form: str) -> Released:
        """What its values become."""
        if isinstance(attribute, Suppressed):
            assert isinstance(self.encoder, CategoryEncoder)
            names = self.names[: len(attribute.totals)]
            texts = [SUPPRESSED if hidden else name for hidden, name in zip(attribute.hidden, names, strict=True)]
            if self.encoder.missing and not attribute.hidden[-1]:
                texts[-1] = None  # type: ignore[call-overload]
            return ReleasedTexts(self.encoder, tuple(texts), strict=False)
        if isinstance(attribute, Intervals):
            missing = self.encoder.missing
            hidden = missing and int(attribute.nodes[-1]) == 0  # missing values were not separated from numbers
            bounds = tuple(attribute.bounds())
            return ReleasedIntervals(self.encoder.column, bounds, form, self.date, missing, hidden)
        assert isinstance(attribute, Ranged)
        assert isinstance(self.encoder, CategoryEncoder)
        labels = [None if attribute.is_missing(n) else attribute.label(n) for n in range(len(attribute.tree_nodes))]
        return ReleasedTexts(self.encoder, tuple(labels[node] for node in attribute.nodes), strict=True)


def masked_columns(
    source: Table,
    columns: Sequence[str],
    trees: Mapping[str, Branch],
    domains: Mapping[str, tuple[float, float]],
    edges: Mapping[str, Sequence[float]],
    kept: Sequence[str],
    frozen: Mapping[str, Sequence[float]],
) -> list[MaskedColumn]:
    """Codes for every column; values that a taxonomy lacks, or outside of a domain, are refused here.

    ``edges``: of columns that are cut at these alone. ``kept``: columns that are released as they are. ``frozen``:
    where columns must be cut, too, if at all, as other releases are.
    """
    trees = {column: tree for column, tree in trees.items() if column not in kept}
    most = current_limits().code_values
    looks: dict[str, Summarise[Any]] = {
        column: partial(DistinctNumbers.of, most=most, domain=domains[column])
        if column in domains
        else partial(TextCounts.of, most=most)
        for column in columns
    }
    found = learn(source, looks, f"{WHO}: values")
    encoders: dict[str, CategoryEncoder | IntervalEncoder] = {
        **interval_encoders(source, {column: found[column] for column in domains}, WHO)
    }
    for column, inner in edges.items():
        encoders[column] = IntervalEncoder(column, np.array(inner), found[column].missing > 0)
    for column, places in frozen.items():
        known = encoders[column]
        assert isinstance(known, IntervalEncoder)
        if column in edges and not set(places).issubset(known.edges.tolist()):
            raise PolicyRefusal(
                f"{WHO}: '{column}' was cut at other places than those of start in an earlier release of the series. "
                "Give it the same start."
            )
        encoders[column] = IntervalEncoder(column, np.union1d(known.edges, places), known.missing)
    for column in columns:
        if column in trees:
            encoders[column] = taxonomy_encoder(column, trees[column], found[column], WHO)
        elif column not in domains:
            encoders[column] = category_encoder(column, found[column], WHO)
    dates = {column for column in domains if is_date(source.masked_schema.field(column).type)}
    return [MaskedColumn(encoders[one], domains.get(one), trees.get(one), one in dates, one in kept) for one in columns]
