"""Rank linkage: an intruder who knows how rank swapping moved values links records by the ranks of all columns.

The intruder has the originals of all columns, knows that a share of each column's values changed places, how far they
move in rank (the window), and sees the released values, which are the original ones. So the rank of every value is
known before and after. Two attacks:

* ``likeliest``: the masked record that the person most likely became. A value stays with probability 1 - share, else it
  moves by a normal distance (dpmask/kernels/swapping.py), in each column by itself: the likelihoods of the columns are
  multiplied. As likely ones share.
* ``windows``: of the masked records within the window of the known value in every column, one at random: the attack on
  swaps that a window bounds (Nin, Herranz and Torra 2008).

Where values were swapped in strata (``by``), or zeros stay (``zeros``), the strata of all records are taken as
known, since every released value is somebody's in the register: ranks are those in a stratum, and a record of another
stratum, or with a zero where the person has none, is nobody's.

``rate`` is that of the better one, over a sample of persons that is chosen by a hash of their positions, against all
masked records. Works for any swapped table, not only of this tool. Passes: one to count strata, two for the ranks, one
to choose persons, one to link them. Memory per task: one block; the sample travels with it. Time: sample x records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.constraints.column_strata import ColumnStrata, column_strata
from dpmask.constraints.strata import StratumColumn
from dpmask.constraints.zeros import AUTO
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats, Integers, stacked
from dpmask.kernels.hash_sample import HashSample, hash_sample, merge_hash_samples, position_words
from dpmask.kernels.linkage.swapped import (
    Candidates,
    Persons,
    RankedRecords,
    candidates,
    merge_candidates,
    own_costs,
    worth_of_equal,
)
from dpmask.kernels.order.ranks import RankKnots, rank_intervals
from dpmask.kernels.swapping import distance_sd, fewest_values
from dpmask.kernels.warm_up import ORDER, KernelUse, Task
from dpmask.kernels.wilson import wilson
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, require_integers, timed
from dpmask.measures.risk.distance_linkage import DistanceLinkage, compared_values
from dpmask.measures.risk.known_strata import KnownStrata, known_zeros, pair_with_strata
from dpmask.measures.risk.linkage_values import Points, Values
from dpmask.results import MORE_RISK, RATE, Headline, Interval, Risk, Term
from dpmask.table.columns import floats, require_numeric
from dpmask.table.label_sets import LabelSets
from dpmask.table.pairs import POSITION, masked_name
from dpmask.table.ranks import rank_knots_of
from dpmask.table.routing import rows_by_target
from dpmask.table.table import Frame, as_table

_WHO = "rank_linkage"
_MOST_SAMPLED = 100_000
_APART = 4.0  # between the ranks of two strata: farther than any distance that says more than another
_NIN = "Nin, Herranz and Torra 2008, Rethinking rank swapping to decrease disclosure risk"


@dataclass(frozen=True, kw_only=True)
class RankLinkage(Risk):
    """``rate`` by the better of two attacks: ``likeliest`` by the law of the distances, ``windows`` by intersection."""

    rate: float
    likeliest: float
    windows: float
    records: int

    judged: ClassVar[tuple[str, ...]] = ("rate", "likeliest", "windows")
    shares: ClassVar[tuple[str, ...]] = ("rate", "likeliest", "windows")
    headlines: ClassVar[Sequence[Headline]] = [
        Headline("linked", "rate", "of records can be linked to their own by the ranks of their values"),
    ]
    about: ClassVar[Term] = Term(
        "The share of persons whose masked record is found by the ranks of their values, by an intruder who knows how "
        "far rank swapping moves values.",
        MORE_RISK,
        _NIN,
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "likeliest": Term("The same, taking the likeliest record; as likely ones share.", MORE_RISK, _NIN),
        "windows": Term(
            "The same, taking one of the records that are within the window in every column.", MORE_RISK, _NIN
        ),
    }

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """Wilson's, but for a sample of all records."""
        if self.attacked >= self.records:
            return {name: (getattr(self, name), getattr(self, name)) for name in self.judged}
        return {name: wilson(getattr(self, name), self.attacked) for name in self.judged}

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"An intruder who knows how far values move in rank finds the masked record of {self.rate:.2%} of "
            f"{self.attacked:,} persons ({self.likeliest:.2%} as the likeliest one, {self.windows:.2%} by intersecting "
            f"windows), where guessing finds {self.guessing:.2g}. Larger means more risk."
        )


@timed
def rank_linkage(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    window: float,
    share: float = 1.0,
    by: Sequence[StratumColumn] = (),
    zeros: str = AUTO,
    by_masked: Sequence[str] = (),
    labels: Sequence[str] = (),
    sets: LabelSets | None = None,
    sample: int = 1000,
    seed: int = 0,
) -> RankLinkage:
    """How many records of a rank-swapped table are found by an intruder who knows how it was swapped.

    Parameters
    ----------
    original, masked
        The tables: frames are paired by index, lakes by position.
    columns
        The numeric columns that were swapped and are known.
    window
        How far values were swapped in rank, as a share of the column: the parameter of ``swapping``.
    share
        The share of the values that were swapped.
    by, zeros
        The strata in which values were swapped, and whether zeros stayed: the parameters of ``swapping``. "auto", the
        default: they did in columns that have many, if all of these are still zero.
    by_masked
        Those of the strata's columns that were masked before: strata are of their masked values. In a job, by default
        those that an earlier step masks.
    labels
        Further columns that are known, categories or generalised ones: a record whose label is not a person's is not
        theirs. In a job, by default those that it releases.
    sets
        What their labels stand for, as of ``distance_linkage``.
    sample
        How many persons are attacked.
    seed
        Chooses the persons.

    Returns
    -------
    RankLinkage
        The rate of the better of two attacks, and both.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": range(100), "age": [(7 * n) % 100 for n in range(100)]})
    >>> masked = dpmask.RankSwapping(columns=["income", "age"], window=0.05).fit(original, seed=7).mask(original)
    >>> dpmask.risk.rank_linkage(original, masked, columns=["income", "age"], window=0.05).rate > 0.5
    True
    """
    _require(window, share, sample, seed)
    known = _labels(original, masked, labels, sets or {})
    of_labels = [one.column for one in known]
    pairs, known_strata = pair_with_strata(
        original, masked, [*columns, *of_labels], KnownStrata(by, zeros, by_masked), _WHO
    )
    names = [*columns, *map(masked_name, columns)]
    require_numeric(pairs.masked_schema, names, _WHO)
    kept = known_zeros(pairs, columns, zeros, _WHO)
    strata = column_strata(pairs, columns, known_strata, kept, fewest_values(window), _WHO)
    knots = rank_knots_of(pairs.select(strata.reads).transform(strata.split), pairs.rows, _WHO)
    attack = _RankAttack(tuple(columns), tuple(knots), strata, tuple(known), window, share, sample, seed)
    both = pairs.select([*names, *of_labels, *map(masked_name, of_labels), *known_strata.columns, POSITION])
    chosen = both.reduce(attack.chosen, attack.merged, f"{_WHO}: persons")
    if not len(chosen.words):
        raise InputError(f"{_WHO}: no record has a value in all of {', '.join(columns)}, before and after masking.")
    persons = attack.persons(chosen)
    released = pairs.select([*names, *map(masked_name, of_labels), *known_strata.columns])
    found = released.reduce(partial(attack.candidates, persons), merge_candidates, f"{_WHO}: link")
    return _result(found, persons.inside, pairs.rows)


def _labels(original: Frame, masked: Frame, labels: Sequence[str], sets: LabelSets) -> list[Values]:
    """How labels are compared; what they stand for is read from both tables."""
    if not labels:
        return []
    asked = DistanceLinkage(columns=labels, sets={name: one for name, one in sets.items() if one}, sample=1, limit=1)
    values = compared_values(as_table(original, _WHO), as_table(masked, _WHO), asked)
    return [one for one in values if not isinstance(one, Points)]


def _require(window: float, share: float, sample: int, seed: int) -> None:
    require_integers(_WHO, 1, _MOST_SAMPLED, sample=sample)
    require_integers(_WHO, 0, 1 << 31, seed=seed)
    for name, value in {"window": window, "share": share}.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value <= 1:
            raise JobError(f"{_WHO}: {name} must be a number > 0 and <= 1; got {value!r}.")


class _RankAttack(NamedTuple):
    """What the intruder knows: strata and ranks in every column, labels, and how values were swapped."""

    columns: tuple[str, ...]
    knots: tuple[RankKnots, ...]  # of each column, by its strata
    strata: ColumnStrata
    labels: tuple[Values, ...]
    window: float
    share: float
    sample: int
    seed: int

    def chosen(self, rows: Rows) -> HashSample:
        """A block's persons: their values before and after masking. One who lacks a value before is left out."""
        lines, after = self._lines(rows), self._masked(rows)
        known = stacked([one for label in self.labels for one in label.known(rows)], rows.num_rows)
        before = self._ranked([floats(rows, column) for column in self.columns], lines, known, known, like=0.0)
        t = len(self.columns)
        whole = ~np.isnan(np.concatenate([before.values[:t], after.values[:t]])).any(axis=0)
        some = np.concatenate([*before, *after, self._sizes(lines)])[:, whole]
        return hash_sample(*position_words(floats(rows, POSITION)[whole], self.seed), some, self.sample)

    def merged(self, left: HashSample, right: HashSample) -> HashSample:
        return merge_hash_samples(left, right, self.sample)

    def persons(self, chosen: HashSample) -> Persons:
        """The persons attacked."""
        t = len(self.columns)
        parts, sizes = np.split(chosen.values[:-t], 6), chosen.values[-t:].astype(np.int64)
        before, after = RankedRecords(*parts[:3]), RankedRecords(*parts[3:])
        sd, worth = distance_sd(self.window), np.zeros(before.values.shape)
        worth[:t] = worth_of_equal(before.low[:t], before.high[:t], self.share, sd, sizes)
        return Persons(before, worth, *own_costs(before, after, worth, t, sd, self.window))

    def candidates(self, persons: Persons, rows: Rows) -> Candidates:
        """Those among a block's masked records."""
        return candidates(persons, self._masked(rows), len(self.columns), distance_sd(self.window), self.window)

    def _lines(self, rows: Rows) -> list[Integers]:
        """Of each column, in which stratum a block's values are; -1 for those that stay."""
        return [self.strata.of(rows, column)[1] for column in self.columns]

    def _sizes(self, lines: Sequence[Integers]) -> Floats:
        """How many values each value's stratum has; 1 for those that stay."""
        each = zip(lines, self._of_columns(), strict=True)
        return np.array([np.array([*(one.size for one in knots), 1])[line] for line, knots in each], np.float64)

    def _of_columns(self) -> Iterator[Sequence[RankKnots]]:
        following = iter(self.knots)
        return ([next(following) for _ in range(size)] for size in self.strata.sizes)

    def _masked(self, rows: Rows) -> RankedRecords:
        ends = [end for one in self.labels for end in one.released(rows, masked_name(one.column))]
        low, high = (stacked([end[side] for end in ends], rows.num_rows) for side in (0, 1))
        values = [floats(rows, masked_name(column)) for column in self.columns]
        return self._ranked(values, self._lines(rows), low, high, like=1.0)

    def _ranked(
        self, values: Sequence[Floats], lines: Sequence[Integers], low: Floats, high: Floats, like: float
    ) -> RankedRecords:
        """Values and their ranks; then labels by the codes they stand for, none of them like that of a person."""
        ranks = [_ranks(*one) for one in zip(values, lines, self._of_columns(), strict=True)]
        first, last = (np.array(part) for part in zip(*ranks, strict=True))
        labels = np.full(low.shape, like)
        return RankedRecords(*map(np.concatenate, ((np.array(values), labels), (first, low), (last, high))))


def _ranks(values: Floats, lines: Integers, knots: Sequence[RankKnots]) -> tuple[Floats, Floats]:
    """The first and the last rank of each value in its stratum; strata lie too far apart for any window."""
    low, high = (np.where(np.isnan(values), np.nan, -_APART) for _ in range(2))
    for line, places in enumerate(rows_by_target(lines + 1, len(knots) + 1)[1:]):
        first, last = rank_intervals(values[places], knots[line])
        low[places], high[places] = first + line * _APART, last + line * _APART
    return low, high


def _result(found: Candidates, inside: NDArray[np.bool_], records: int) -> RankLinkage:
    likeliest = float(np.mean((found.likelier == 0) / np.maximum(found.equal, 1)))
    windows = float(np.mean(inside / np.maximum(found.inside, 1)))
    return RankLinkage(
        rate=max(likeliest, windows),
        likeliest=likeliest,
        windows=windows,
        guessing=1.0 / records,
        attacked=len(inside),
        records=records,
    )


MEASURE = Measure(
    function=rank_linkage,
    result=RankLinkage,
    passes=5,
    kernels=KernelUse((*ORDER.always, Task("swapped")), ORDER.sometimes),
)
