"""Known records: an intruder who knows a few people's values undoes the transformation and reads everybody's.

The intruder knows the originals of some records and which masked records they are (people one knows, or outliers that
can be recognised), the methods, and the least, mean and largest value and the standard deviation of each column. A map
that takes masked to original values is fitted to the known records and applied to all others: a rotation (Procrustes,
Schoenemann 1966), any linear map, a membership of each column (S, Z, triangular, Gaussian), and such memberships
rotated. A rotation protects nobody once about as many records are known as there are columns (Liu, Giannella and
Kargupta 2006), a membership S or Z once two are. Triangular and Gaussian memberships leave two candidates, one on each
side of the peak; one outside the column's range is impossible, and of two the side is taken on which more known records
lie, or either (1/2), whichever is right more often.

``rate`` is the share of the others' values recovered within ``tolerance`` standard deviations by the best of these
maps, at the worst number of known records, averaged over several intruders who each know other records; its interval
is Student's over them. ``records`` is the share of records recovered in all columns at once, ``top`` that of the
largest hundredth of each column's values recovered within 10 %. Records with a missing value are left out. One pass
over both tables. Memory per task: one block; the driver has the known records and a sample of the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.hash_sample import HashSample, hash_sample, merge_hash_samples, position_words
from dpmask.kernels.linkage.recovery import MAPS, Recovered, mean_of, recovered_by_all
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.measures.measure import Measure, require_integers, timed
from dpmask.results import LESS_RISK, MORE_RISK, RATE, Headline, Interval, Risk, Term
from dpmask.table.checks import require_spread
from dpmask.table.pairs import POSITION, pair_numbers
from dpmask.table.table import Frame

_WHO = "known_records"
_MOST_KNOWN, _MOST_INTRUDERS, _MOST_SAMPLED = 10_000, 1000, 100_000
_TOP = 0.99
_OTHERS = 1 << 41  # beyond any seed
_LIU = "Liu, Giannella and Kargupta 2006, An attacker's view of distance preserving maps"


@dataclass(frozen=True, kw_only=True)
class KnownRecords(Risk):
    """``rate`` of values by the best map; ``records`` in all columns; ``top`` of the largest; ``error`` of that map."""

    rate: float
    records: float
    top: float
    error: float
    known: int
    rates: tuple[float, ...] = field(repr=False)  # of each intruder

    judged: ClassVar[tuple[str, ...]] = ("rate", "records", "top", "error")
    shares: ClassVar[tuple[str, ...]] = ("rate", "records", "top")
    unreported: ClassVar[tuple[str, ...]] = ("rates",)
    headlines: ClassVar[Sequence[Headline]] = [
        Headline("learned", "rate", "of other people's values are recovered by an intruder who knows some records"),
    ]
    about: ClassVar[Term] = Term(
        "The share of other people's values that an intruder who knows some records recovers within a tolerance, by "
        "the best of a rotation, a linear map, memberships and rotated memberships fitted to the known ones.",
        "Larger shares and a smaller error mean more risk.",
        "Liu, Giannella and Kargupta 2006; Schoenemann 1966",
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "records": Term("Share of records recovered within the tolerance in all columns at once.", MORE_RISK, _LIU),
        "top": Term(
            "Share of the largest hundredth of each column's values that are recovered within 10 %.", MORE_RISK, _LIU
        ),
        "error": Term("Root mean square error of recovered values, in standard deviations.", LESS_RISK, _LIU),
    }

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """Student's of the mean over the intruders, limited to 0..1."""
        rates = np.array(self.rates)
        reach = float(stdtrit(len(rates) - 1, 0.975) * rates.std(ddof=1) / math.sqrt(len(rates)))
        return {"rate": (max(self.rate - reach, 0.0), min(self.rate + reach, 1.0))}

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"An intruder who knows {self.known} records recovers {self.rate:.2%} of the values of others "
            f"({self.records:.2%} of the records in all columns, {self.top:.2%} of the largest values within 10 %), "
            f"with a root mean square error of {self.error:.3g} standard deviations, where the mean of the known "
            f"recovers {self.guessing:.2%}. Larger shares and a smaller error mean more risk."
        )


@timed
def known_records(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    known: int | Sequence[int] = (6, 20, 100),
    intruders: int = 10,
    tolerance: float = 0.05,
    sample: int = 5000,
    seed: int = 0,
) -> KnownRecords:
    """What an intruder who knows a few people's values recovers of everybody's.

    Parameters
    ----------
    columns
        The numeric columns that are recovered.
    known
        How many records each intruder knows, or several such numbers; a table with fewer is attacked by the others.
    intruders
        How many intruders there are, each of whom knows other records.
    tolerance
        How close a recovered value must be, in standard deviations.
    sample
        How many of the other records are attacked.
    seed
        Chooses the records known, and those attacked.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": range(100)})
    >>> masked = 3.0 * original + 7.0
    >>> dpmask.risk.known_records(original, masked, columns=["income"], known=5).rate
    1.0
    """
    numbers = (known,) if isinstance(known, int) else tuple(known)
    attack = _Intruders(numbers, intruders, tolerance, sample, seed).checked()
    pairs, names = pair_numbers(original, masked, columns, _WHO, marks=True)
    drawn = pairs.floats([*names, POSITION]).reduce(attack.drawn, attack.merged, f"{_WHO}: known")
    if drawn.moments.values[0] <= min(numbers):
        raise InputError(f"{_WHO}: more than {min(numbers)} records must be complete before and after masking.")
    require_spread(drawn.moments, columns, _WHO)
    found = {number: attack.recovered(drawn, number) for number in numbers if number < drawn.moments.values[0]}
    return _result(found, attack.least_attacked(drawn))


class _DrawnRecords(NamedTuple):
    """Moments of the originals of complete records, and some of the records: known to an intruder, or attacked."""

    moments: Moments
    some: HashSample


class _Intruders(NamedTuple):
    """How many records how many intruders know, how close counts as recovered, and how many records are attacked."""

    known: tuple[int, ...]
    intruders: int
    tolerance: float
    sample: int
    seed: int

    def checked(self) -> _Intruders:
        """Refuse numbers that mean nothing."""
        if not self.known:
            raise JobError(f"{_WHO}: known must be an integer, or some; got none.")
        for known in self.known:
            require_integers(_WHO, 2, _MOST_KNOWN, known=known)
        require_integers(_WHO, 2, _MOST_INTRUDERS, intruders=self.intruders)
        require_integers(_WHO, 1, _MOST_SAMPLED, sample=self.sample)
        require_integers(_WHO, 0, 1 << 31, seed=self.seed)
        number = isinstance(self.tolerance, int | float) and not isinstance(self.tolerance, bool)
        if not number or not 0 < self.tolerance < math.inf:
            raise JobError(f"{_WHO}: tolerance must be a number > 0; got {self.tolerance!r}.")
        return self

    def drawn(self, columns: list[Floats]) -> _DrawnRecords:
        """A block's share of the records drawn."""
        values = _complete(columns)
        some = hash_sample(*position_words(values[-1], self.seed), values[:-1], self._drawn)
        return _DrawnRecords(column_moments(list(np.split(values[:-1], 2)[0])), some)

    @property
    def _drawn(self) -> int:
        """So many that enough are left without the known ones."""
        return self.sample + max(self.known)

    def merged(self, left: _DrawnRecords, right: _DrawnRecords) -> _DrawnRecords:
        """Those of two parts."""
        return _DrawnRecords(
            merge_moments(left.moments, right.moments), merge_hash_samples(left.some, right.some, self._drawn)
        )

    def order(self, drawn: _DrawnRecords, intruder: int) -> NDArray[np.intp]:
        """The records drawn in an intruder's own order: the first are those that one knows."""
        words, _ = position_words(drawn.some.positions.astype(np.float64), _OTHERS + intruder)
        return np.argsort(words, kind="stable")

    def recovered(self, drawn: _DrawnRecords, known: int) -> list[dict[str, Recovered]]:
        """What each intruder who knows so many records recovers of the others, by each map."""
        values = drawn.some.values
        top = np.quantile(np.split(values, 2)[0], _TOP, axis=1)
        orders = [self.order(drawn, intruder) for intruder in range(self.intruders)]
        return [
            recovered_by_all(
                _sides(values[:, order[:known]]),
                _sides(values[:, order[known:][: self.sample]]),
                drawn.moments,
                self.tolerance,
                top,
            )
            for order in orders
        ]

    def least_attacked(self, drawn: _DrawnRecords) -> int:
        """How many records every intruder attacked."""
        complete = int(drawn.moments.values[0])
        return min(self.sample, complete - max(one for one in self.known if one < complete))


def _sides(values: Floats) -> tuple[Floats, Floats]:
    original, masked = np.split(values, 2)
    return original, masked


def _complete(columns: list[Floats]) -> Floats:
    """Records without a missing or infinite value."""
    values = np.array(columns)
    return values[:, np.isfinite(values).all(axis=0)]


def _result(found: Mapping[int, list[dict[str, Recovered]]], attacked: int) -> KnownRecords:
    """By the map that recovers more on average, at the worst number known; where none does, by the one that errs less.

    ``top`` and ``records`` are the largest of all maps.
    """
    means = {known: {name: mean_of([one[name] for one in each]) for name in MAPS} for known, each in found.items()}
    maps = [name for name in MAPS if name != "guess"]
    worst, best = max(
        ((known, name) for known in means for name in maps),
        key=lambda at: (means[at[0]][at[1]].values, -means[at[0]][at[1]].error),
    )
    at_worst = means[worst]
    parts = {f"{name}: rate": at_worst[name].values for name in MAPS}
    parts |= {f"{name}: error": at_worst[name].error for name in MAPS}
    parts |= {f"{known} known: rate": max(one[name].values for name in maps) for known, one in means.items()}
    return KnownRecords(
        rate=at_worst[best].values,
        records=max(one[name].records for one in means.values() for name in maps),
        top=max(one[name].top for one in means.values() for name in maps),
        error=at_worst[best].error,
        guessing=at_worst["guess"].values,
        attacked=attacked,
        known=worst,
        rates=tuple(one[best].values for one in found[worst]),
        parts=parts,
    )


MEASURE = Measure(
    function=known_records,
    result=KnownRecords,
    passes=1,
    varied=True,
    kernels=KernelUse((), (Task("membership"),)),
)
