"""Rank swapping: values of a column change places with values of about the same rank, each column by itself.

The values of a column are ranked, equal ones by lot, and cut into windows of neighbours. Of each window a random
``share`` is paired at random, and the two of a pair change places. So every column keeps its values, all of them and to
the last digit; what changes is whose they are.

Protects against: being sure that the values of a record belong together. Does not protect against: learning a value
about, as a swapped one is within the window; nor the values themselves, which are all real: the largest income is in
the release. Relations between columns weaken, the more the wider the window; sums such as net + tax = gross break.

Moore (1996) swaps within a reach that moves with the rank; windows do the same for values that never meet in one place.
With noise before it, this is the additive perturbation of Ahmad, Haque and Tauhid (2014). Missing values stay missing.

Passes over the data: one for the number of values, up to four for the windows, one to send each column to its windows,
one to mask. No column is ever in one place: exact quantiles cut it into shards of about half a million values, or a
thousandth of the table if that is more. A window larger than that is dealt by lot to several shards. Memory per task:
one block, or one shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey, record_uniforms, uniforms_at, words_at
from dpmask.engine.exchange import Piece, hold_exchanged
from dpmask.engine.passes import Run, Span
from dpmask.errors import InputError
from dpmask.kernels.order.float_order import order_keys
from dpmask.kernels.swapping import Cuts, shard_of, swapped
from dpmask.lake.reading import Rows
from dpmask.masking.column_method import ColumnMethod
from dpmask.masking.method import FittedMethod
from dpmask.parameters import require_columns, require_number
from dpmask.table.columns import floats, stored
from dpmask.table.quantiles import order_statistics, value_positions
from dpmask.table.table import Table

Integers = NDArray[np.int64]

_SHARD = 500_000
_MOST_SHARDS = 1000
_FEW = 4
_BYTES = 24  # of a value on its way, its position and its rank
_SECONDS = 1e-6
"""What plans count for each value that is sent to its window, swapped and sent back."""


@dataclass(frozen=True, kw_only=True)
class RankSwapping(ColumnMethod["FittedSwapping"]):
    """Values swapped with others of about the same rank, each column by itself.

    Parameters
    ----------
    columns
        The columns of numbers to mask.
    share
        How many of the values are swapped, as a share.
    window
        How far apart in rank two swapped values may be, as a share of the column's values (the p per cent of rank
        swapping).

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"income": range(1000, 1100)})
    >>> masked = RankSwapping(columns=["income"], share=0.9, window=0.2).fit(people, seed=7).mask(people)
    >>> sorted(masked["income"]) == sorted(people["income"])
    True

    """

    columns: tuple[str, ...]
    share: float
    window: float

    passes: ClassVar[int] = 6

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        require_number(self, "share", above=0, at_most=1)
        require_number(self, "window", above=0, at_most=1)

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table, about; see tests/benchmarks/bench_transforms.py."""
        return _SECONDS * rows * len(self.columns)

    def fit_table(self, table: Table, key: Subkey) -> FittedSwapping:
        """Find the ranks at which each column is cut."""
        moments = self.moments(table, "swapping: values")
        counts = moments.values.tolist()
        layouts = {count: self._layout(name, count) for name, count in zip(self.columns, counts, strict=True)}
        cuts = _cuts(table, self.columns, layouts)
        windows = {
            name: Windows(layouts[count].window, layouts[count].dealt, cut)
            for name, count, cut in zip(self.columns, counts, cuts, strict=True)
        }
        own = self.bound_key(key, f"swapping {self.share!r} {self.window!r}", table, moments)
        return FittedSwapping(self, windows, own)

    def _layout(self, column: str, values: int) -> _Layout:
        window = int(self.window * values)
        if window < 2:  # noqa: PLR2004
            raise InputError(
                f"{self.who}: a window of {self.window:g} of the {values:,} values of '{column}' has no two of them. "
                "Make window larger."
            )
        return _layout(values, window)


class _Layout(NamedTuple):
    """How a column is cut: its window, how many shards a large one is dealt to, and the ranks of the cuts."""

    window: int
    dealt: int
    ranks: tuple[int, ...]


class Windows(NamedTuple):
    """The windows of a column: the most values in one, how many shards one is dealt to, and the cuts between shards."""

    size: int
    dealt: int
    cuts: Cuts


def _layout(values: int, window: int) -> _Layout:
    """Cuts at every window, or at every so many small ones."""
    shard = max(_SHARD, values // _MOST_SHARDS)
    windows = -(-values // window)
    together = max(1, shard // window)
    ranks = tuple(values * first // windows for first in range(together, windows, together))
    return _Layout(window, -(-window // shard), ranks)


def _cuts(table: Table, columns: Sequence[str], layouts: Mapping[int, _Layout]) -> list[Cuts]:
    """For each column the values at its cuts, and where these and their equals lie; a layout by number of values."""
    if not any(layout.ranks for layout in layouts.values()):
        none = np.empty(0, np.int64)
        return [Cuts(none, none, none, none)] * len(columns)
    found = order_statistics(table, columns, lambda values: layouts[values].ranks, "swapping: cuts")
    values = [np.unique(one.values) for one in found]
    places = value_positions(table, columns, values, "swapping: ranks")
    return [
        Cuts(np.array(layouts[one.size].ranks, np.int64), order_keys(some), *place)
        for one, some, place in zip(found, values, places, strict=True)
    ]


@dataclass(frozen=True)
class FittedSwapping(FittedMethod):
    """Windows ready to be swapped in. The cuts between them are values of records."""

    method: RankSwapping
    windows: Mapping[str, Windows]
    key: Subkey

    def mask_table(self, table: Table) -> Table:
        """The table with every column swapped."""
        masked = table
        for column in self.inputs:
            masked = masked.with_values(column, self._swapped(table, column))
        return masked

    def _swapped(self, table: Table, column: str) -> list[Run]:
        """For each block the places of one column that have another's value, and these values."""
        exchange = _WindowExchange(column, self.windows[column], self.method.share, self.key.subkey(column))
        exchanged = hold_exchanged(
            table.on_rows([column], exchange.split),
            exchange.swap,
            table.blocks,
            [Span(number, 0) for number in range(exchange.targets)],
            "swapping: windows",
            size=_BYTES * table.rows,
        )
        firsts = np.array([block.first for block in table.blocks] + [table.rows])
        spans = [Span(number, block.first) for number, block in enumerate(table.blocks)]
        size = _BYTES * table.rows
        return hold_exchanged(partial(_split_back, firsts), _at_places, exchanged, spans, "swapping: back", size=size)

    def statement(self) -> str:
        """What a reader of the release may know."""
        return (
            f"A random share of {self.method.share:.4g} of the values of {', '.join(self.method.columns)} changed "
            f"places with values at most {self.method.window:.4g} of the column away in rank, each column by itself. "
            "Every column has the values it had, so its distribution is exact; relations between columns are weaker."
        )

    def warnings(self) -> list[str]:
        """Columns whose windows are so small that few values find a partner."""
        return [
            f"{self.who}: a window of '{column}' has {one.size} values, of which about "
            f"{self.method.share * one.size:.2g} are to be swapped: many find no partner. Make window or share larger."
            for column, one in self.windows.items()
            if self.method.share * one.size < _FEW
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            "Every value in the release is somebody's real one, extremes among them.",
            "A record's value is near its own in rank: interval_disclosure measures how near.",
            f"About {1 - self.method.share:.0%} of the values stay where they are, and more where many are equal.",
            *self.warnings(),
        ]


class _WindowExchange(NamedTuple):
    """How the values of one column are exchanged within their windows."""

    column: str
    windows: Windows
    share: float
    key: Subkey

    @property
    def targets(self) -> int:
        """How many tasks values are sent to."""
        return self.windows.cuts.shards * self.windows.dealt

    def split(self, rows: Rows, span: Span) -> list[Piece]:
        """A block's values by shard: positions, what they are ranked by, and the values as they are stored."""
        values = floats(rows, self.column)
        known = np.flatnonzero(~np.isnan(values))
        keys = order_keys(values[known])
        owner = shard_of(keys, self._drawn("cut", span.first, len(values))[known], self.windows.cuts)
        if self.windows.dealt > 1:
            lots = self._drawn("deal", span.first, len(values))[known] * self.windows.dealt
            owner = owner * self.windows.dealt + lots.astype(np.int64)
        order = np.argsort(owner.astype(np.uint16), kind="stable")  # a counting sort, in 16 bits
        ends = np.searchsorted(owner[order], np.arange(self.targets + 1))
        positions, kept = known + span.first, stored(rows, self.column)[known]
        parts = [order[low:high] for low, high in pairwise(ends)]
        return [(positions[part], keys[part], kept[part]) for part in parts]

    def _drawn(self, purpose: str, first: int, count: int) -> NDArray[np.float64]:
        return record_uniforms(self.key.subkey(purpose), first, count)

    def swap(self, pieces: list[Piece], span: Span) -> Piece:
        """The positions in a shard that get another value, and these values."""
        positions, keys, values = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        ties = words_at(self.key.subkey("ties"), positions)
        draws = uniforms_at(self.key.subkey("swap"), positions)
        source = swapped(keys, ties, draws, self.share, self.windows.size)
        moved = np.flatnonzero(source != np.arange(len(source)))
        return positions[moved], values[source[moved]]


def _split_back(firsts: Integers, content: Piece, span: Span) -> list[Piece]:
    positions, values = content
    ends = np.searchsorted(positions, firsts)
    return [(positions[low:high], values[low:high]) for low, high in pairwise(ends)]


def _at_places(pieces: list[Piece], span: Span) -> Piece:
    positions, values = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return positions - span.first, values
