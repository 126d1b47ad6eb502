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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import attrgetter
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import exchange, itself
from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import Position
from dpmask.errors import InputError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.intervals import (
    PERCENTS,
    Inside,
    PlacedValues,
    Ranked,
    RankedShard,
    inside_by_rank,
    inside_by_sd,
    merge_inside,
    rank_shard,
    split_ranks,
    split_values,
)
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.warm_up import ORDER
from dpmask.measures.measure import Measure, timed
from dpmask.results import MORE_RISK, RATE, Exhibit, Headline, Risk, Term
from dpmask.table.checks import require_finite, require_spread
from dpmask.table.pairs import masked_name, pair_numbers
from dpmask.table.quantiles import quantiles, sampled_splitters, value_positions
from dpmask.table.table import Frame, Table

_WHO = "interval_disclosure"
_RANK_BYTES = 64
_TORRA = "Domingo-Ferrer and Torra 2001, A quantitative comparison of disclosure control methods"
_STAND_INS = 99
"""Quantiles of a column that stand in for its values when the score of guessing is computed."""


@dataclass(frozen=True, kw_only=True)
class IntervalDisclosure(Risk):
    """``rate`` is the larger of ``by_sd`` and ``by_rank``; the joint ones: records close in all columns."""

    rate: float
    by_sd: float
    by_rank: float
    joint: float
    joint_by_masked_sd: float

    exhibits: ClassVar[Mapping[str, Exhibit]] = dict.fromkeys(
        ("by_sd", "by_rank", "joint", "joint_by_masked_sd"), Exhibit("share")
    )
    judged: ClassVar[tuple[str, ...]] = ("rate", "by_sd", "by_rank", "joint", "joint_by_masked_sd")
    headlines: ClassVar[Sequence[Headline]] = [
        Headline("learned", "rate", "of the values lie close to the value that is released for them"),
    ]
    about: ClassVar[Term] = Term(
        "The share of original values inside an interval around their masked value, by standard deviation or by "
        "rank, averaged over widths of 1 to 10 % and over the columns; rate is the larger of the two.",
        "1 means that every value is disclosed; larger means more risk.",
        "Domingo-Ferrer and Torra 2001; Mateo-Sanz, Sebe and Domingo-Ferrer 2004",
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "by_sd": Term(
            "Share of values within 1 to 10 % of a standard deviation of their masked value, on average.",
            MORE_RISK,
            _TORRA,
        ),
        "by_rank": Term(
            "Share of values within 1 to 10 % of the ranks around their masked value, on average.", MORE_RISK, _TORRA
        ),
        "joint": Term(
            "Share of records within 5 % of the originals' standard deviation in all columns at once.",
            MORE_RISK,
            "dpmask explain interval_disclosure",
        ),
        "joint_by_masked_sd": Term(
            "The same by the masked columns' standard deviation, sdcMicro's rule.",
            MORE_RISK,
            "Templ, Kowarik and Meindl 2015, Statistical disclosure control for micro-data using the R package "
            "sdcMicro",
        ),
    }

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"{self.rate:.2%} of the values lie within 1 to 10 % of their masked value ({self.by_sd:.2%} by standard "
            f"deviation, {self.by_rank:.2%} by rank), where a guess scores {self.guessing:.2%}; {self.joint:.2%} of "
            "the records lie within 5 % of the original standard deviation in all columns "
            f"({self.joint_by_masked_sd:.2%} by that of the masked columns). Larger means more risk."
        )


@timed
def interval_disclosure(original: Frame, masked: Frame, *, columns: Sequence[str]) -> IntervalDisclosure:
    """How often an original value lies close to its masked value.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": range(100)})
    >>> masked = original + 2.0
    >>> round(dpmask.risk.interval_disclosure(original, masked, columns=["income"]).by_sd, 2)
    0.4
    """
    pairs, names = pair_numbers(original, masked, columns, _WHO)
    both = pairs.reduce(names, column_moments, merge_moments, f"{_WHO}: standard deviations")
    moments, after = both.of(slice(len(columns))), both.of(slice(len(columns), None))
    require_spread(moments, columns, _WHO)
    require_finite(after, columns, _WHO, what="masked column")
    sd, masked_sd = _sample_sd(moments), _sample_sd(after)
    by_sd = pairs.reduce(names, partial(inside_by_sd, sd, masked_sd), merge_inside, f"{_WHO}: by sd")
    for column, count in zip(columns, by_sd.pairs, strict=True):
        if not count:
            raise InputError(f"{_WHO}: column '{column}' has no record with a value before and after masking.")
    cuts = sampled_splitters(pairs, names[len(columns) :], -(-pairs.rows // current_limits().rank_shard_rows), _WHO)
    ranked = [
        _by_rank(pairs, column, one, int(count)) for column, one, count in zip(columns, cuts, after.values, strict=True)
    ]
    by_rank = Inside(np.concatenate([one.inside for one in ranked]), by_sd.pairs)
    # a guess, too, has nothing to hand to those whose values were not released
    guesses = [guess * by_sd.pairs / moments.values for guess in _guesses(pairs, columns, sd, after.values)]
    return _result(columns, (by_sd, by_rank), moments.values, guesses, pairs.rows)


def _sample_sd(moments: Moments) -> Floats:
    """Divided by n - 1; 0 where there is one value only."""
    return moments.sd * np.sqrt(moments.values / np.maximum(moments.values - 1, 1))


def _by_rank(pairs: Table, column: str, cuts: Floats, size: int) -> Inside:
    """Values meet by size, which gives them their ranks; ranks meet by record."""
    sources = [
        pairs.floats([name]).with_positions().transform(partial(_split_values, cuts))
        for name in (column, masked_name(column))
    ]
    shard, move = current_limits().rank_shard_rows, _RANK_BYTES * pairs.rows
    ranks = exchange(sources, rank_shard, len(cuts) + 1, f"{_WHO}: ranks", size=move)
    offsets = [0, *accumulate(ranks.map(attrgetter("size"), f"{_WHO}: sizes"))][:-1]
    shards = -(-pairs.rows // shard)
    split, join = partial(_split_ranks, offsets, shard, shards), partial(inside_by_rank, size=size, shard_rows=shard)
    found = ranks.with_positions().exchange(split, join, shards, f"{_WHO}: records", size=move)
    return found.reduce(itself, merge_inside, f"{_WHO}: by rank")


def _split_values(cuts: Floats, columns: list[Floats], position: Position) -> list[PlacedValues]:
    return split_values(columns[0], position.first, cuts)


def _split_ranks(
    offsets: list[int], shard: int, shards: int, found: RankedShard, position: Position
) -> list[tuple[Ranked, Ranked]]:
    return split_ranks(found, offsets[position.number], shard, shards)


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
        parts=parts,
    )


MEASURE = Measure(
    function=interval_disclosure,
    result=IntervalDisclosure,
    passes=6,
    varied=True,
    passes_per_column=1,
    kernels=ORDER,
)
