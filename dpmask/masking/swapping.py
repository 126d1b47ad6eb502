"""Rank swapping: values of a column change places with values of about the same rank, each column by itself.

The values of a column are ranked, equal ones by lot. Each of a random ``share`` of them goes by a random distance from
its rank and changes places with the one that it then lies next to. So every column keeps its values, all of them and
to the last digit; what changes is whose they are.

Protects against: being sure that the values of a record belong together. Does not protect against: learning a value
about, as most move by no more than the window; linkage by many columns at once, as each of them narrows down where a
record came from (``rank_linkage`` measures what an intruder who knows share and window links; every job takes it); nor
the values themselves, which are all real: the largest income is in the release. Relations between columns weaken, the
more the wider the window; sums such as net + tax = gross break.

Moore (1996) swaps within a reach that bounds every swap, so that an intruder who knows it has but to intersect the
windows of several columns. Nin, Herranz and Torra (2008) therefore draw distances from a law without a bound, such as
the normal one, which is ours, too (dpmask/kernels/swapping.py); its scale loses as much as swaps in fixed windows.
With noise before it, this is the additive perturbation of Ahmad, Haque and Tauhid (2014). Missing values stay missing.

Passes over the data: one for the number of values, two for the ranks, one to send each value to where it meets its
partner, one to mask. No column is ever in one place: where values meet is cut into shards of about half a million, or a
thousandth of the table if that is more. Ranks are exact up to 8,192 different values, and to less than a thousandth of
the column otherwise. Memory per task: one block, or one shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.constraints.column_strata import ColumnStrata
from dpmask.constraints.zeros import AUTO, MASK, describe_kept
from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey, record_normals, record_uniforms
from dpmask.engine.exchange import Piece
from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import Position
from dpmask.errors import InputError
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.order.ranks import RankKnots, rank_intervals
from dpmask.kernels.patterns import shard_firsts
from dpmask.kernels.swapping import fewest_values, mean_distance, meeting_places, shard_of, shards_for, swapped
from dpmask.kernels.warm_up import ORDER, KernelUse, Task
from dpmask.lake.reading import Rows
from dpmask.masking.column_method import StratifiedColumnMethod, column_key
from dpmask.masking.method import FittedMethod
from dpmask.masking.movable import ParameterRange, Trial
from dpmask.parameters import Names, Several, require_columns, require_number
from dpmask.table.columns import floats, stored
from dpmask.table.ranks import rank_knots, rank_knots_of
from dpmask.table.routing import joined_rows, rows_by_target, sent_back
from dpmask.table.table import Table

_FEW = 1.5
_FEWEST_KNOTS = 4
_BYTES = 24  # of a value on its way, its position and its rank
_SECONDS = 5e-7
"""What plans count for each value that is sent to its window, swapped and sent back."""


@dataclass(frozen=True, kw_only=True)
class RankSwapping(StratifiedColumnMethod["FittedSwapping"]):
    """Values swapped with others of about the same rank, each column by itself.

    Parameters
    ----------
    columns
        The columns of numbers to mask.
    window
        How far values move in rank, as a share of the column's values (the p per cent of rank swapping): 97 % of those
        that are swapped by at most this, and by three eighths of it on average.
    share
        How many of the values are swapped, as a share. The others stay as they are, and an intruder who knows a value
        may find its record by it.
    by
        Columns that make strata, in which values are swapped: "sex", or {"age": [15, 25, 65]} for bands, or
        {"region": a taxonomy}.
    zeros
        "keep": zeros stay where they are; "mask": they are values as any other; "auto", the default: those of columns
        of which at least 5 % are zero stay.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"income": range(1000, 1100)})
    >>> masked = dpmask.RankSwapping(columns=["income"], window=0.2).fit(people, seed=7).mask(people)
    >>> sorted(masked["income"]) == sorted(people["income"])
    True

    """

    columns: Names
    window: float
    share: float = 1.0
    by: Several = ()
    zeros: str = AUTO

    neutral: ClassVar[tuple[str, ...]] = ("by", "zeros")
    once_default: ClassVar[Mapping[str, Any]] = {"zeros": MASK}
    ranges: ClassVar[Mapping[str, ParameterRange]] = {
        "window": ParameterRange(
            0.001, 1, trial=Trial("wide windows are on the frontier of risk and loss on all tables of the gallery")
        ),
        "share": ParameterRange(0.01, 1),
    }

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        self.settle_strata()
        require_number(self, "share", above=0, at_most=1)
        require_number(self, "window", above=0, at_most=1)

    @property
    def passes(self) -> int:
        """Passes over the data to fit: one more counts strata."""
        return 4 + self.stratified

    @property
    def kernels(self) -> KernelUse:
        """What it runs."""
        return KernelUse((Task("normals"),), ORDER.all)

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table, about; see tests/benchmarks/bench_transforms.py."""
        return _SECONDS * rows * len(self.columns)

    def attacks(self) -> Mapping[str, Mapping[str, Any]]:
        """An intruder who knows how far values move."""
        known = {"window": self.window, "share": self.share, "by": list(self.by), "zeros": self.zeros}
        return {"rank_linkage": {"columns": list(self.masks), **known}}

    def fit_table(self, table: Table, key: Subkey) -> FittedSwapping:
        """Find where the ranks of each column lie."""
        moments = self.moments(table, "swapping: values")
        strata = self.column_strata(table, moments, fewest_values(self.window))
        sizes = dict(zip(self.columns, moments.values.tolist(), strict=True))
        if strata is not None:
            sizes = {name: int(one.sizes.min()) for name, one in strata.columns.items()}
        for column, values in sizes.items():
            self._require_neighbours(column, values)
        if strata is None:
            knots = rank_knots(table, self.columns, "swapping")
        else:
            split = table.select(strata.reads).transform(strata.split)
            knots = rank_knots_of(split, table.rows, "swapping")
        found = iter(_without_lone_ends(one) for one in knots)
        counts = [1] * len(sizes) if strata is None else strata.sizes
        of_columns = {name: [next(found) for _ in range(n)] for name, n in zip(sizes, counts, strict=True)}
        return FittedSwapping(self, of_columns, key, strata)

    def _require_neighbours(self, column: str, values: int) -> None:
        if int(self.window * values) < 2:  # noqa: PLR2004
            raise InputError(
                f"{self.who}: a window of {self.window:g} of the {values:,} values of '{column}' has no two of them. "
                "Make window larger."
            )


def _without_lone_ends(knots: RankKnots) -> RankKnots:
    """The knots less an extreme that one record alone has: what travels and is kept need not show it."""
    lone = knots.through - knots.below == 1
    if len(lone) < _FEWEST_KNOTS:
        return knots
    inner = slice(int(lone[0]), len(lone) - int(lone[-1]))
    return RankKnots(knots.size, knots.values[inner], knots.below[inner], knots.through[inner])


@dataclass(frozen=True)
class FittedSwapping(FittedMethod):
    """Ranks ready to be swapped by. The knots are values of records."""

    method: RankSwapping
    knots: Mapping[str, Sequence[RankKnots]]
    """Of each column, by its strata."""
    key: Subkey
    strata: ColumnStrata | None = None

    def check(self, table: Table) -> None:
        """Refuse a table that cannot be masked, before anything is read."""
        self.method.check(table)

    @property
    def of_one_table(self) -> str:
        """Values of another table would move by other shares than the window allows."""
        return "the ranks that values are swapped by are those of that table"

    def mask_table(self, table: Table) -> Table:
        """The table with every column swapped."""
        masked = table
        for column in self.changes:
            masked = masked.with_values(column, self._swapped(table, column))
        return masked

    def _swapped(self, table: Table, column: str) -> Collection[Piece]:
        """For each block the places of one column that have another's value, and these values."""
        knots, limits = self.knots[column], current_limits()
        sizes = np.array([one.size for one in knots])
        capacity = max(limits.swap_shard_values, int(sizes.sum()) // limits.swap_shards)
        shards = np.array([shards_for(one, self.method.window, capacity) for one in sizes.tolist()])
        firsts, total = shard_firsts(shards, sizes, capacity)
        key = column_key(self.key, column, self.strata, self.method.zeros)
        meeting = _PartnerLines(column, knots, self.method, shards, firsts, total, key, self.strata)
        rows, size = table.select(meeting.reads).with_positions(), _BYTES * table.rows
        moved = rows.exchange(meeting.split, _swap, total, "swapping: meet", size=size)
        back = sent_back(table, moved, joined_rows, "swapping: back", size=size)
        return back.with_positions().transform(_at_places)

    def statement(self) -> str:
        """What a reader of the release may know."""
        share, window = self.method.share, self.method.window
        which = "The values" if share == 1 else f"A random share of {share:.4g} of the values"
        return (
            f"{which} of {', '.join(self.method.columns)} changed places with values of about the same rank, each "
            f"column by itself: on average {mean_distance(window):.3g} of the column away, 97 % of them at most "
            f"{window:.4g}. Every column has the values it had, so its distribution is exact; relations between "
            "columns are weaker." + self._particulars()
        )

    def for_analysts(self) -> list[str]:
        """What is exact, and what is weakened."""
        names, by = ", ".join(self.method.columns), ", ".join(one.column for one in self.method.strata.classings)
        where = f" and within {by}" if by else ""
        return [
            f"Distributions, totals and quantiles of {names} (unweighted) are exact overall{where}; correlations with "
            "other columns are attenuated, and totals by any other column, or weighted, are not exact."
        ]

    def _particulars(self) -> str:
        """What differs by strata and zeros."""
        names = ", ".join(one.column for one in self.method.strata.classings)
        strata = f" Values changed places within strata by {names} only, small ones joined." if names else ""
        kept = describe_kept(self.strata.zeros if self.strata else (), self.method.zeros)
        return " ".join([strata, *([kept] if kept else [])])

    def warnings(self) -> list[str]:
        """Columns in which values hardly move."""
        least = {name: min(one.size for one in some) for name, some in self.knots.items()}
        ranks = {name: size * mean_distance(self.method.window) for name, size in least.items()}
        still = [
            f"{self.who}: values of '{name}' move by {moved:.2g} ranks on average, hardly at all. Make window larger."
            for name, moved in ranks.items()
            if moved < _FEW
        ]
        return [*(self.strata.joined() if self.strata else ()), *still]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        share, columns = self.method.share, len(self.changes)
        kept = f"About {1 - share:.0%} of the values stay where they are, and more where many are equal"
        return [
            "Every value in the release is somebody's real one, extremes among them.",
            "A record's value is near its own in rank: interval_disclosure measures how near, and rank_linkage what "
            "that gives away over all columns.",
            f"{kept}: {1 - share**columns:.0%} of the records keep at least one of {columns}, by which they can be "
            "found. Swap all of them (share: 1)."
            if share < 1 < columns
            else f"{kept}.",
            *self.warnings(),
        ]


class _PartnerLines(NamedTuple):
    """Where the values of one column meet their partners: each stratum on a line of its own."""

    column: str
    knots: Sequence[RankKnots]
    method: RankSwapping
    shards: Integers  # of each stratum
    firsts: Integers  # the first shard of each
    total: int
    key: Subkey
    strata: ColumnStrata | None

    @property
    def reads(self) -> list[str]:
        """The column, and those of the strata."""
        return [self.column, *(() if self.strata is None else self.strata.strata.columns)]

    def split(self, rows: Rows, position: Position) -> list[Piece]:
        """A block's values that are swapped, by shard: positions, strata, meeting places, values as they are stored."""
        values, strata = self._values(rows)
        swapping = self._drawn("swap", position.first, len(values)) < self.method.share
        chosen = np.flatnonzero((strata >= 0) & swapping)
        lots = self._drawn("ties", position.first, len(values))[chosen]
        normals = record_normals(self.key.subkey("distance"), position.first, len(values))[chosen]
        low, high, of = np.empty(len(chosen)), np.empty(len(chosen)), strata[chosen]
        lines = list(enumerate(rows_by_target(of, len(self.knots))))
        for line, part in lines:
            low[part], high[part] = rank_intervals(values[chosen[part]], self.knots[line])
        places = meeting_places(low, high, lots, normals, self.method.window)
        owner = np.empty(len(chosen), np.int64)
        for line, part in lines:
            owner[part] = self.firsts[line] + shard_of(places[part], self.method.window, int(self.shards[line]))
        positions, kept = chosen + position.first, stored(rows, self.column)[chosen]
        return [(positions[p], of[p], places[p], kept[p]) for p in rows_by_target(owner, self.total)]

    def _values(self, rows: Rows) -> tuple[Floats, Integers]:
        """A block's values, and the stratum of each; -1 for those that stay."""
        if self.strata is not None:
            return self.strata.of(rows, self.column)
        values = floats(rows, self.column)
        return values, np.where(np.isnan(values), -1, 0)

    def _drawn(self, purpose: str, first: int, count: int) -> NDArray[np.float64]:
        return record_uniforms(self.key.subkey(purpose), first, count)


def _swap(pieces: list[Piece]) -> Piece:
    """The positions in a shard that get another value, and these values; strata swap by themselves."""
    positions, strata, places, values = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    source = np.arange(len(places))
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        source[members] = members[swapped(places[members])]
    moved = np.flatnonzero(source != np.arange(len(source)))
    return positions[moved], values[source[moved]]


def _at_places(content: Piece, position: Position) -> Piece:
    return content[0] - position.first, content[1]
