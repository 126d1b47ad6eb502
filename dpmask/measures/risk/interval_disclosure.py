"""Interval disclosure: how often an original value lies close to its masked value.

For p = 1, ..., 10 a cell is disclosed if its original lies inside an interval around the masked value x':

    by standard deviation   |x - x'| <= p % of the original's standard deviation (divided by n - 1)
    by rank                 s[max(0, L - w)] <= x <= s[min(n - 1, R + w)], s the masked column in order, L and R the
                            first and the last place of x' in it, w = floor(p n / 100)

and the share of disclosed cells is averaged over p, then over the columns (Domingo-Ferrer and Torra 2001; Mateo-Sanz,
Sebe and Domingo-Ferrer 2004). ``rate`` is the larger of the two. The joint rules count records whose columns all lie
within 5 % of a standard deviation: ``joint`` of that of the original columns, ``joint_by_masked_sd`` of that of the
masked ones, as sdcMicro's dRisk does. Originals that are missing are left out; one whose masked value is missing,
or whose record was dropped, counts as not disclosed.

Exact. Passes: six over the columns, and for each column one in which values meet by size, to learn their ranks, and
their ranks meet again by record. Memory per task: one block, or about a million values.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.exchange import Source, exchange_blocks
from dpmask.engine.passes import Span, map_blocks, reduce_blocks
from dpmask.errors import InputError
from dpmask.kernels.intervals import (
    PERCENTS,
    Inside,
    Ranked,
    RankedShard,
    Values,
    inside_by_rank,
    inside_by_sd,
    merge_inside,
    rank_shard,
    split_ranks,
    split_values,
)
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.table.checks import require_spread
from dpmask.table.columns import require_numeric
from dpmask.table.pairs import masked_name, pair
from dpmask.table.quantiles import quantiles, sampled_splitters, value_positions
from dpmask.table.table import Table

Floats = NDArray[np.float64]

_WHO = "interval_disclosure"
PASSES, PASSES_PER_COLUMN = 6, 1  # over both tables, about
_STRETCH = 1 << 19
_RANK_BYTES = 64
_STAND_INS = 99
"""Quantiles of a column that stand in for its values when the score of guessing is computed."""


@dataclass(frozen=True)
class IntervalDisclosure:
    """``rate`` is the larger of ``by_sd`` and ``by_rank``; the joint ones: records close in all columns."""

    rate: float
    by_sd: float
    by_rank: float
    joint: float
    joint_by_masked_sd: float
    guessing: float
    attacked: int
    seconds: float
    parts: Mapping[str, float] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = ("rate", "by_sd", "by_rank", "joint", "joint_by_masked_sd")
    public: ClassVar[bool] = False
    definition: ClassVar[str] = (
        "The share of original values inside an interval around their masked value, by standard deviation or by "
        "rank, averaged over widths of 1 to 10 % and over the columns; rate is the larger of the two."
    )
    direction: ClassVar[str] = "1 means that every value is disclosed; larger means more risk."
    source: ClassVar[str] = "Domingo-Ferrer and Torra 2001; Mateo-Sanz, Sebe and Domingo-Ferrer 2004."

    @property
    def interval(self) -> tuple[float, float]:
        """The rate itself: all records were attacked, none were sampled."""
        return self.rate, self.rate

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"{self.rate:.2%} of the values lie within 1 to 10 % of their masked value ({self.by_sd:.2%} by standard "
            f"deviation, {self.by_rank:.2%} by rank), where a guess scores {self.guessing:.2%}; {self.joint:.2%} of "
            "the records lie within 5 % of the original standard deviation in all columns "
            f"({self.joint_by_masked_sd:.2%} by that of the masked columns). Larger means more risk."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {**vars(self), "interval": list(self.interval), "parts": dict(self.parts)}


def interval_disclosure(original: Any, masked: Any, *, columns: Sequence[str]) -> IntervalDisclosure:
    """Interval disclosure between two tables: frames paired by index, or lakes by position."""
    start = time.perf_counter()
    pairs = pair(original, masked, columns, _WHO)
    others = [masked_name(column) for column in columns]
    require_numeric(pairs.masked_schema, [*columns, *others], _WHO)
    both = pairs.reduce([*columns, *others], column_moments, merge_moments, f"{_WHO}: standard deviations")
    moments, after = both.of(slice(len(columns))), both.of(slice(len(columns), None))
    require_spread(moments, columns, _WHO)
    _require_finite(after.infinite, columns)
    sd, masked_sd = _sample_sd(moments), _sample_sd(after)
    by_sd = pairs.reduce([*columns, *others], partial(inside_by_sd, sd, masked_sd), merge_inside, f"{_WHO}: by sd")
    for column, count in zip(columns, by_sd.pairs, strict=True):
        if not count:
            raise InputError(f"{_WHO}: column '{column}' has no record with a value before and after masking.")
    cuts = sampled_splitters(pairs, others, -(-pairs.rows // _STRETCH), _WHO)
    ranked = [
        _by_rank(pairs, column, one, int(count)) for column, one, count in zip(columns, cuts, after.values, strict=True)
    ]
    by_rank = Inside(np.concatenate([one.inside for one in ranked]), by_sd.pairs)
    # a guess, too, has nothing to hand to those whose values were not released
    guesses = [guess * by_sd.pairs / moments.values for guess in _guesses(pairs, columns, sd, after.values)]
    return _result(columns, (by_sd, by_rank), moments.values, guesses, pairs.rows, time.perf_counter() - start)


def _sample_sd(moments: Moments) -> Floats:
    """Divided by n - 1; 0 where there is one value only."""
    sd: Floats = moments.sd * np.sqrt(moments.values / np.maximum(moments.values - 1, 1))
    return sd


def _require_finite(infinite: NDArray[np.int64], columns: Sequence[str]) -> None:
    for column, count in zip(columns, infinite, strict=True):
        if count:
            raise InputError(f"{_WHO}: masked column '{column}' holds infinite values in {count} records.")


def _by_rank(pairs: Table, column: str, cuts: Floats, size: int) -> Inside:
    """Values meet by size, which gives them their ranks; ranks meet by record."""
    sources = [
        Source(pairs.on_floats([name], partial(_split_values, cuts)), pairs.blocks)
        for name in (column, masked_name(column))
    ]
    move = _RANK_BYTES * pairs.rows
    held = exchange_blocks(sources, rank_shard, len(cuts) + 1, f"{_WHO}: ranks", size=move)
    sizes = map_blocks(_size, held, f"{_WHO}: sizes")
    offsets = [0, *accumulate(sizes)][:-1]
    stretches = -(-pairs.rows // _STRETCH)
    split, gather = partial(_split_ranks, offsets, stretches), partial(_gather_ranks, size)
    found = exchange_blocks([Source(split, held)], gather, stretches, f"{_WHO}: records", size=move)
    return reduce_blocks(_itself, merge_inside, found, f"{_WHO}: by rank")


def _split_values(cuts: Floats, columns: list[Floats], span: Span) -> list[Values]:
    return split_values(columns[0], span.first, cuts)


def _size(found: RankedShard, span: Span) -> int:
    return found.size


def _split_ranks(offsets: list[int], stretches: int, found: RankedShard, span: Span) -> list[tuple[Ranked, Ranked]]:
    return split_ranks(found, offsets[span.number], _STRETCH, stretches)


def _gather_ranks(size: int, parts: list[tuple[Ranked, Ranked]]) -> Inside:
    return inside_by_rank(parts, size, _STRETCH)


def _itself(found: Inside, span: Span) -> Inside:
    return found


def _guesses(pairs: Table, columns: Sequence[str], sd: Floats, sizes: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """What each rule finds, by column, when masked values belong to anybody: quantiles stand in for the originals."""
    shares = (np.arange(_STAND_INS) + 0.5) / _STAND_INS
    stand_ins = quantiles(pairs, columns, shares.tolist(), f"{_WHO}: guessing")
    reach = [one * PERCENTS[:, None] / 100 for one in sd]
    values = [np.concatenate([x[None], x - r, x + r]) for x, r in zip(stand_ins, reach, strict=True)]
    order = [np.argsort(some, axis=None) for some in values]
    sorted_values = [some.ravel()[at] for some, at in zip(values, order, strict=True)]
    found = value_positions(pairs, [masked_name(name) for name in columns], sorted_values, f"{_WHO}: guessing")
    by_sd, by_rank = np.empty(len(columns)), np.empty(len(columns))
    for number, (at, counts, size) in enumerate(zip(order, found, sizes, strict=True)):
        below, through = (_unsorted(part, at).reshape(2 * len(PERCENTS) + 1, -1) for part in counts)
        by_sd[number] = (through[1 + len(PERCENTS) :] - below[1 : 1 + len(PERCENTS)]).mean() / size
        w = (PERCENTS * size // 100)[:, None]
        reached = np.minimum(through[0] + w, size) - np.maximum(below[0] - w, 0)
        within = (through[0] > 0) & (below[0] < size)
        by_rank[number] = (reached * within).mean() / size
    return by_sd, by_rank


def _unsorted(values: NDArray[np.int64], order: NDArray[np.intp]) -> NDArray[np.int64]:
    back = np.empty_like(values)
    back[order] = values
    return back


def _result(
    columns: Sequence[str],
    found: tuple[Inside, Inside],
    values: NDArray[np.int64],
    guesses: Sequence[Floats],
    records: int,
    seconds: float,
) -> IntervalDisclosure:
    by_sd, _ = found
    rates = [one.inside.mean(axis=1) / values for one in found]
    parts: dict[str, float] = {}
    for rule, rate, guess in zip(("by sd", "by rank"), rates, guesses, strict=True):
        for column, share, chance in zip(columns, rate.tolist(), guess.tolist(), strict=True):
            parts |= {f"{column}: {rule}": share, f"{column}: {rule}, by guessing": chance}
    means = [float(rate.mean()) for rate in rates]
    worse = int(means[1] > means[0])
    return IntervalDisclosure(
        rate=means[worse],
        by_sd=means[0],
        by_rank=means[1],
        joint=by_sd.joint / max(by_sd.complete, 1),
        joint_by_masked_sd=by_sd.joint_masked / max(by_sd.complete, 1),
        guessing=float(guesses[worse].mean()),
        attacked=records,
        seconds=seconds,
        parts=parts,
    )
