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
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey, record_uniforms, uniforms_at, words_at
from dpmask.engine.exchange import Piece
from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import Position
from dpmask.errors import InputError
from dpmask.kernels.order.float_order import Positions, order_keys
from dpmask.kernels.swapping import Cuts, shard_of, swapped
from dpmask.lake.reading import Rows
from dpmask.masking.column_method import ColumnMethod
from dpmask.masking.method import FittedMethod
from dpmask.parameters import require_columns, require_number
from dpmask.table.columns import floats, stored
from dpmask.table.quantiles import order_statistics, value_positions
from dpmask.table.routing import joined_rows, rows_by_target, sent_back
from dpmask.table.table import Table

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
        sizes = [self._window_size(*one) for one in zip(self.columns, moments.values.tolist(), strict=True)]
        windows = dict(zip(self.columns, _windows(table, self.columns, moments.values.tolist(), sizes), strict=True))
        return FittedSwapping(
            self, windows, self.bound_key(key, f"swapping {self.share!r} {self.window!r}", table, moments)
        )

    def _window_size(self, column: str, values: int) -> int:
        window = int(self.window * values)
        if window < 2:  # noqa: PLR2004
            raise InputError(
                f"{self.who}: a window of {self.window:g} of the {values:,} values of '{column}' has no two of them. "
                "Make window larger."
            )
        return window


class Windows(NamedTuple):
    """The windows of a column: the most values in one, how many shards one is dealt to, and the cuts between shards."""

    size: int
    dealt: int
    cuts: Cuts


def _windows(table: Table, columns: Sequence[str], counts: Sequence[int], sizes: Sequence[int]) -> list[Windows]:
    """The windows of columns with so many values each, cut at every window, or at every so many small ones."""
    limits = current_limits()
    shards = [max(limits.swap_shard_values, count // limits.swap_shards) for count in counts]
    ranks = {one[0]: _ranks(*one) for one in zip(counts, sizes, shards, strict=True)}
    none = np.empty(0, np.int64)
    found, places = [np.empty(0)] * len(columns), [Positions(none, none)] * len(columns)
    if any(ranks.values()):
        ordered = order_statistics(table, columns, ranks.__getitem__, "swapping: cuts")
        found = [np.unique(one.values) for one in ordered]
        places = value_positions(table, columns, found, "swapping: ranks")
    return [
        Windows(size, -(-size // shard), Cuts(np.array(ranks[count], np.int64), order_keys(values), *place))
        for count, size, shard, values, place in zip(counts, sizes, shards, found, places, strict=True)
    ]


def _ranks(values: int, window: int, shard: int) -> tuple[int, ...]:
    """The ranks at which a column of so many values is cut into shards."""
    windows = -(-values // window)
    together = max(1, shard // window)
    return tuple(values * first // windows for first in range(together, windows, together))


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

    def _swapped(self, table: Table, column: str) -> Collection[Piece]:
        """For each block the places of one column that have another's value, and these values."""
        windows = _WindowExchange(column, self.windows[column], self.method.share, self.key.subkey(column))
        rows, size = table.select([column]).with_positions(), _BYTES * table.rows
        moved = rows.exchange(windows.split, windows.swap, windows.targets, "swapping: windows", size=size)
        back = sent_back(table, moved, joined_rows, "swapping: back", size=size)
        return back.with_positions().transform(_at_places)

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

    def split(self, rows: Rows, position: Position) -> list[Piece]:
        """A block's values by shard: positions, what they are ranked by, and the values as they are stored."""
        values = floats(rows, self.column)
        known = np.flatnonzero(~np.isnan(values))
        keys = order_keys(values[known])
        owner = shard_of(keys, self._drawn("cut", position.first, len(values))[known], self.windows.cuts)
        if self.windows.dealt > 1:
            lots = self._drawn("deal", position.first, len(values))[known] * self.windows.dealt
            owner = owner * self.windows.dealt + lots.astype(np.int64)
        positions, kept = known + position.first, stored(rows, self.column)[known]
        return [(positions[part], keys[part], kept[part]) for part in rows_by_target(owner, self.targets)]

    def _drawn(self, purpose: str, first: int, count: int) -> NDArray[np.float64]:
        return record_uniforms(self.key.subkey(purpose), first, count)

    def swap(self, pieces: list[Piece]) -> Piece:
        """The positions in a shard that get another value, and these values."""
        positions, keys, values = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        ties = words_at(self.key.subkey("ties"), positions)
        draws = uniforms_at(self.key.subkey("swap"), positions)
        source = swapped(keys, ties, draws, self.share, self.windows.size)
        moved = np.flatnonzero(source != np.arange(len(source)))
        return positions[moved], values[source[moved]]


def _at_places(content: Piece, position: Position) -> Piece:
    return content[0] - position.first, content[1]
