"""What several measures need of two tables, from passes they share.

Pass 1 looks at every value: moments, a keyed sample of each column, counts of categories, distances within records.
Pass 2 counts at the sampled values: how far the two distributions lie apart, and between which values quantiles are.
Pass 3 collects what lies there, which gives exact quantiles. Pass 4 counts around and between these. Each pass is made
only if a measure asks for it, and none after the first for tables no larger than the sample. A quantile that the
sample does not bracket closely enough costs a pass more (lake/order.py). Memory per task: one block, and counts at the
sampled values, at most half a million in all columns together.

Tables are read each by itself, so that they may have different records; side by side only for distances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dpmask.engine.passes import Span
from dpmask.errors import InputError, JobError
from dpmask.kernels.comoments import CoMoments, comoments, merge_comoments
from dpmask.kernels.deviation import Gaps, gaps, merge_gaps
from dpmask.kernels.order import (
    Bracket,
    Counts,
    Floats,
    Keys,
    Positions,
    between,
    count_at,
    join_values,
    merge_counts,
    order_keys,
    positions_in,
    window,
)
from dpmask.kernels.tally import MOST_VALUES, Tally, merge_tallies, tally
from dpmask.lake.columns import Rows, floats, is_numeric, require_known, require_numeric
from dpmask.lake.keys import require_groupable, row_keys
from dpmask.lake.order import Sample, Search, draw_samples, join_samples, sampled_share, sorted_samples
from dpmask.lake.pairs import masked_name, pair
from dpmask.lake.table import Table, as_table

PERCENTS = np.arange(5, 100, 5)
"""Which percentiles are compared; they are also the edges of the bins."""
WINDOW = 1000
"""The density at a quantile is that within the range over this on either side."""

_FEWEST, _APART = 1 << 11, 1 << 13  # sampled values of a column: at least so many, and one in so many records
_SPLITTERS = 1 << 18  # those of all columns together, at most
_Found = TypeVar("_Found")


class Need(Flag):
    """What a measure needs of the two tables."""

    MOMENTS = auto()  # means, variances and covariances
    HIGHER = auto()  # the original's moments up to order 4
    QUANTILES = auto()  # of both tables, and the original's density there
    STEPS = auto()  # both distribution functions at sampled values
    BINS = auto()  # how many values lie in each bin, and have each category
    DISTANCES = auto()  # between a record and its masked record


class Look(NamedTuple):
    """What the first pass finds in one table."""

    rows: int
    moments: CoMoments | None
    samples: list[Sample]
    tallies: list[Tally]


class Steps(NamedTuple):
    """How many of a column's values lie below, and at or below, some values in both tables."""

    original: Positions
    masked: Positions


@dataclass(frozen=True)
class Summary:
    """Two tables, summarised: a pair of things is one of the original and one of the masked table."""

    numbers: list[str]
    categories: list[str]
    looks: tuple[Look, Look]
    gaps: Gaps | None
    steps: list[Steps]
    quantiles: tuple[list[Floats], list[Floats]]
    within: list[Counts]  # for each column and quantile: how many originals lie within the window
    bins: tuple[list[Counts], list[Counts]]

    @property
    def columns(self) -> list[str]:
        """All columns, numbers first."""
        return [*self.numbers, *self.categories]

    @property
    def before(self) -> CoMoments:
        """The original's moments, where they were asked for."""
        assert self.looks[0].moments is not None
        return self.looks[0].moments

    @property
    def after(self) -> CoMoments:
        """The masked table's."""
        assert self.looks[1].moments is not None
        return self.looks[1].moments

    def sizes(self, who: str) -> list[tuple[int, int]]:
        """How many values each number has in both tables; none in one of them is refused."""
        sizes = list(zip(*([one.values for one in look.samples] for look in self.looks), strict=True))
        for name, both in zip(self.numbers, sizes, strict=True):
            if not all(both):
                where = "one of the tables" if any(both) else "any record"
                raise InputError(f"{who}: column '{name}' has no value in {where}. Take it out of columns.")
        return sizes

    def shares(self, who: str) -> list[tuple[Floats, Floats]]:
        """For each column the share of records with each value or in each bin, missing values among them."""
        if not all(look.rows for look in self.looks):
            raise InputError(f"{who}: one of the tables has no record.")
        self.sizes(who)
        tallies = zip(self.looks[0].tallies, self.looks[1].tallies, strict=True)
        counts = [*zip(*self.bins, strict=True), *(one.beside(two) for one, two in tallies)]
        return [(one / self.looks[0].rows, two / self.looks[1].rows) for one, two in counts]


def require_columns(columns: Sequence[str], who: str) -> None:
    """Refuse no column at all, or one twice."""
    if isinstance(columns, str) or not columns or len(set(columns)) < len(columns):
        raise JobError(f"{who}: columns must be a list of one or more different columns; got {columns!r}.")


def summarised(original: Any, masked: Any, columns: Sequence[str], needs: Need, who: str) -> Summary:
    """What is needed, in as few passes as that takes."""
    require_columns(columns, who)
    sides = _sides(original, masked, columns, needs, who)
    sides.check(columns, needs, who)
    numbers = [name for name in columns if sides.is_numeric(name)]
    categories = [name for name in columns if name not in numbers]
    reading = _Reading(sides, numbers, categories, who)
    looks, distances = reading.look(needs)
    _require_few(categories, looks, who)
    search = _Searches(reading, looks, needs)
    steps = search.narrow()
    quantiles = search.quantiles()
    within, bins = search.around(quantiles[0])
    return Summary(numbers, categories, looks, distances, steps, quantiles, within, bins)


def _require_few(categories: Sequence[str], looks: tuple[Look, Look], who: str) -> None:
    for look in looks:
        for name, one in zip(categories, look.tallies, strict=True):
            if one.many:
                raise JobError(
                    f"{who}: column '{name}' has more than {MOST_VALUES:,} different values, so it tells records apart "
                    "by itself. Take it out of columns."
                )


class _Sides(NamedTuple):
    """The two tables; or one with their records side by side, where somebody asked for that."""

    tables: tuple[Table, ...]

    @property
    def rows(self) -> tuple[int, int]:
        """How many records each has."""
        return self.tables[0].rows, self.tables[-1].rows

    def is_numeric(self, column: str) -> bool:
        """Whether a column is numeric in both."""
        return all(is_numeric(schema.field(name).type) for schema, name in self.named(column))

    def check(self, columns: Sequence[str], needs: Need, who: str) -> None:
        """Refuse columns that are neither numbers nor categories; also categories where only bins take them."""
        require = require_groupable if needs & Need.BINS else require_numeric
        for column in columns:
            for schema, name in self.named(column):
                require(schema, [name], who)

    def named(self, column: str) -> list[tuple[Any, str]]:
        """A column in both: the schema it stands in, and its name there."""
        schemas = [table.masked_schema for table in self.tables]
        names = [column, column if len(schemas) > 1 else masked_name(column)]
        return list(zip((schemas[0], schemas[-1]), names, strict=True))

    def reduce(
        self,
        columns: Sequence[str],
        functions: Sequence[Callable[[Rows, Span], _Found]],
        merge: Callable[[_Found, _Found], _Found],
        label: str,
    ) -> list[_Found]:
        """A function for each table, in one pass over both."""
        if len(self.tables) > 1:
            return [
                table.reduce_rows(columns, function, merge, label)
                for table, function in zip(self.tables, functions, strict=True)
            ]
        both = partial(_both, tuple(columns), functions)
        return self.tables[0].reduce_rows(_twice(columns), both, partial(_merge_both, merge), label)


def _sides(original: Any, masked: Any, columns: Sequence[str], needs: Need, who: str) -> _Sides:
    if needs & Need.DISTANCES:
        return _Sides((pair(original, masked, columns, who),))
    tables = as_table(original, who), as_table(masked, who)
    for table in tables:
        require_known(table.masked_schema, columns, who)
    return _Sides(tables)


def _twice(columns: Sequence[str]) -> list[str]:
    return [*columns, *(masked_name(name) for name in columns)]


def _both(columns: tuple[str, ...], functions: Sequence[Callable[..., _Found]], rows: Rows, span: Span) -> list[_Found]:
    sides = rows.select(columns), rows.select([masked_name(name) for name in columns]).rename_columns(list(columns))
    return [function(side, span) for function, side in zip(functions, sides, strict=True)]


def _merge_both(merge: Callable[..., _Found], left: list[_Found], right: list[_Found]) -> list[_Found]:
    return [merge(one, two) for one, two in zip(left, right, strict=True)]


@dataclass(frozen=True)
class _Reading:
    """Passes over both tables."""

    sides: _Sides
    numbers: list[str]
    categories: list[str]
    who: str

    def look(self, needs: Need) -> tuple[tuple[Look, Look], Gaps | None]:
        """The first pass."""
        orders = [4 if needs & Need.HIGHER else 2, 2] if needs & Need.MOMENTS else [0, 0]
        sampled = bool(needs & (Need.QUANTILES | Need.STEPS | Need.BINS))
        most = _SPLITTERS // max(len(self.numbers), 1)
        shares = [
            sampled_share(rows, min(max(rows // _APART, _FEWEST), most)) if sampled else 0.0 for rows in self.sides.rows
        ]
        functions = [
            partial(_look, self.numbers, self.categories, order, share)
            for order, share in zip(orders, shares, strict=True)
        ]
        names, label = [*self.numbers, *self.categories], f"{self.who}: look"
        if not needs & Need.DISTANCES:
            first, second = self.sides.reduce(names, functions, _merge_looks, label)
            return (_settled(first), _settled(second)), None
        task = partial(_look_at_pairs, self.numbers, tuple(names), functions)
        looks, distances = self.sides.tables[0].reduce_rows(_twice(names), task, _merge_pairs, label)
        return (_settled(looks[0]), _settled(looks[1])), distances

    def count(self, keys: Sequence[list[Keys]], label: str) -> list[list[Positions]]:
        """Each table's counts at the given keys of each column."""
        functions = [partial(_count, self.numbers, some) for some in keys]
        return self.sides.reduce(self.numbers, functions, merge_counts, f"{self.who}: {label}")

    def collect(self, brackets: Sequence[list[list[Bracket]]]) -> list[list[list[Keys]]]:
        """Each table's values inside brackets of each column."""
        functions = [partial(_collect, self.numbers, some) for some in brackets]
        return self.sides.reduce(self.numbers, functions, join_values, f"{self.who}: collect")


def _look(numbers: Sequence[str], categories: Sequence[str], order: int, share: float, rows: Rows, span: Span) -> Look:
    columns = [floats(rows, name) for name in numbers]
    return Look(
        rows.num_rows,
        comoments(columns, order) if order and columns else None,
        draw_samples(share, columns, span) if share and columns else [],
        [tally(row_keys(rows, [name]).first) for name in categories],
    )


def _look_at_pairs(
    numbers: Sequence[str], columns: tuple[str, ...], functions: Sequence[Callable[..., Look]], rows: Rows, span: Span
) -> tuple[list[Look], Gaps]:
    both = [floats(rows, name) for name in _twice(numbers)]
    return _both(columns, functions, rows, span), gaps(both)


def _merge_looks(left: Look, right: Look) -> Look:
    return Look(
        left.rows + right.rows,
        merge_comoments(left.moments, right.moments) if left.moments and right.moments else None,
        join_samples(left.samples, right.samples),
        [merge_tallies(one, two) for one, two in zip(left.tallies, right.tallies, strict=True)],
    )


def _merge_pairs(left: tuple[list[Look], Gaps], right: tuple[list[Look], Gaps]) -> tuple[list[Look], Gaps]:
    return _merge_both(_merge_looks, left[0], right[0]), merge_gaps(left[1], right[1])


def _settled(look: Look) -> Look:
    return look._replace(samples=sorted_samples(look.samples))


def _count(columns: Sequence[str], keys: list[Keys], rows: Rows, span: Span) -> list[Positions]:
    return count_at(keys, [floats(rows, name) for name in columns])


def _collect(columns: Sequence[str], brackets: list[list[Bracket]], rows: Rows, span: Span) -> list[list[Keys]]:
    return between(brackets, [floats(rows, name) for name in columns])


class _Searches:
    """The search for both tables' quantiles."""

    def __init__(self, reading: _Reading, looks: tuple[Look, Look], needs: Need) -> None:
        self.reading, self.looks, self.needs = reading, looks, needs
        self.samples = [look.samples for look in looks]
        wanted = bool(needs & (Need.QUANTILES | Need.BINS)), bool(needs & Need.QUANTILES)
        self.ranks = [
            [_ranks(one.values) if asked else [] for one in side]
            for side, asked in zip(self.samples, wanted, strict=True)
        ]
        self.sides = [list(map(Search, *side)) for side in zip(self.ranks, self.samples, strict=True)]

    def count(self, keys: Sequence[list[Keys]], label: str) -> list[list[Positions]]:
        """Both tables' counts at keys; without a pass where the samples hold all values."""
        if all(one.whole for side in self.samples for one in side):
            return [
                [positions_in(one.keys, cuts) for one, cuts in zip(side, some, strict=True)]
                for side, some in zip(self.samples, keys, strict=True)
            ]
        return self.reading.count(keys, label)

    def narrow(self) -> list[Steps]:
        """Count until each quantile lies between two values that are close; the first counts are the steps."""
        steps: list[Steps] = []
        cuts = self._splitters()
        if self.needs & Need.STEPS:
            union = [np.union1d(one.keys, two.keys) for one, two in zip(*self.samples, strict=True)]
            cuts = [union, union]
        while any(len(some) for side in cuts for some in side):
            counted = self.count(cuts, "count")
            steps = steps or [Steps(*both) for both in zip(*counted, strict=True)]
            for side, some, found in zip(self.sides, cuts, counted, strict=True):
                for search, keys, positions in zip(side, some, found, strict=True):
                    search.narrow(keys, positions)
            cuts = self._splitters()
        return steps

    def _splitters(self) -> list[list[Keys]]:
        return [[search.splitters() for search in side] for side in self.sides]

    def quantiles(self) -> tuple[list[Floats], list[Floats]]:
        """The values at the wanted ranks."""
        brackets = [[search.brackets() for search in side] for side in self.sides]
        if any(some for side in brackets for some in side):
            for side, collected in zip(self.sides, self.reading.collect(brackets), strict=True):
                for search, keys in zip(side, collected, strict=True):
                    search.answer(keys)
        original, masked = (
            [search.values(ranks) for search, ranks in zip(side, some, strict=True)]
            for side, some in zip(self.sides, self.ranks, strict=True)
        )
        return original, masked

    def around(self, quantiles: list[Floats]) -> tuple[list[Counts], tuple[list[Counts], list[Counts]]]:
        """How many originals lie close to each quantile; and how many values of both tables between them."""
        edges = [np.unique(order_keys(some)) for some in quantiles] if self.needs & Need.BINS else self._none
        near = self._windows(quantiles) if self.needs & Need.QUANTILES and quantiles else self._none
        if not any(len(some) for some in (*edges, *near)):
            return [], ([], [])
        asked = [np.concatenate(both) for both in zip(edges, near, strict=True)]
        original, masked = self.count([asked, edges], "around")
        within = [np.diff(_halves(len(cuts), found), axis=0)[0] for cuts, found in zip(edges, original, strict=True)]
        bins = [
            list(map(partial(_bins, look.rows), edges, look.samples, found))
            for look, found in zip(self.looks, (original, masked), strict=True)
        ]
        return within, (bins[0], bins[1])

    @property
    def _none(self) -> list[Keys]:
        return [np.empty(0, np.int64)] * len(self.reading.numbers)

    def _windows(self, quantiles: list[Floats]) -> list[Keys]:
        """The first and then the last value that count as close to each quantile."""
        moments = self.looks[0].moments
        assert moments is not None
        reach = (moments.high - moments.low) / WINDOW
        return [np.concatenate(window(some, float(h))) for some, h in zip(quantiles, reach, strict=True)]


def _ranks(count: int) -> list[int]:
    return ((count - 1) * PERCENTS // 100).tolist() if count else []


def _halves(start: int, found: Positions) -> Counts:
    """How many values lie below the first ends of some windows, and how many through the last ones."""
    middle = (start + len(found.below)) // 2
    return np.array([found.below[start:middle], found.through[middle:]])


def _bins(rows: int, edges: Keys, column: Sample, found: Positions) -> Counts:
    """How many values lie between neighbouring edges, and how many are missing."""
    return np.diff(np.concatenate([[0], found.below[: len(edges)], [column.values, rows]]))
