"""Known records: an intruder who knows a few people's values undoes the transformation and reads everybody's.

The intruder knows the originals of ``known`` records and which masked records they are (people one knows, or outliers
that can be recognised), fits the map that takes masked to original values and applies it to all other records: once as
a rotation (Procrustes, Schoenemann 1966), once as any linear map, once as an S- or Z-shaped membership of each column,
and once as such memberships rotated, by one who also knows the least and the largest value of each column. A rotation
protects nobody once about as many records are known as there are columns (Liu, Giannella and Kargupta 2006), a
membership once two are; masking that is no such map withstands.

``rate`` is the share of the other records recovered within ``tolerance`` standard deviations in all columns, by the
best of these maps, averaged over several intruders who each know other records; its interval is Student's over
them. Records with a missing value are left out. Passes: two over both tables. Memory per task: one block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from dpmask.engine.tasks import Position
from dpmask.errors import InputError, JobError
from dpmask.kernels.hash_sample import HashSample, hash_sample, merge_hash_samples, record_words_of
from dpmask.kernels.linkage.recovery import (
    Curve,
    Map,
    Recovered,
    Turned,
    guess,
    hybrid,
    linear,
    membership,
    merge_recovered,
    recovered,
    rotation,
)
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.measures.measure import Measure, require_integers, timed
from dpmask.results import LESS_RISK, RATE, Interval, Risk, Term
from dpmask.table.checks import require_spread
from dpmask.table.pairs import pair_numbers
from dpmask.table.table import Frame

Floats = NDArray[np.float64]

_WHO = "known_records"
_Fit = Callable[..., Map | Curve | Turned]
_MAPS: dict[str, _Fit] = {
    "rotation": rotation,
    "linear": linear,
    "membership": membership,
    "hybrid": hybrid,
    "guess": guess,
}
_MOST_KNOWN, _MOST_INTRUDERS = 10_000, 1000


@dataclass(frozen=True, kw_only=True)
class KnownRecords(Risk):
    """``rate`` by the best map; ``error`` is its root mean square error in standard deviations."""

    rate: float
    error: float
    known: int
    rates: tuple[float, ...] = field(repr=False)  # of each intruder

    judged: ClassVar[tuple[str, ...]] = ("rate", "error")
    unreported: ClassVar[tuple[str, ...]] = ("rates",)
    about: ClassVar[Term] = Term(
        "The share of other records that an intruder who knows some recovers within a tolerance in all columns, by "
        "the best of a rotation, a linear map, memberships and rotated memberships fitted to the known ones.",
        "A larger rate and a smaller error mean more risk.",
        "Liu, Giannella and Kargupta 2006; Schoenemann 1966",
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "error": Term(
            "Root mean square error of recovered values, in standard deviations.",
            LESS_RISK,
            "Liu, Giannella and Kargupta 2006, An attacker's view of distance preserving maps",
        ),
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
            f"An intruder who knows {self.known} records recovers {self.rate:.2%} of the {self.attacked:,} others, "
            f"with a root mean square error of {self.error:.3g} standard deviations, where the mean of the known "
            f"recovers {self.guessing:.2%}. A larger rate and a smaller error mean more risk."
        )


@timed
def known_records(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    known: int = 20,
    intruders: int = 10,
    tolerance: float = 0.05,
    seed: int = 0,
) -> KnownRecords:
    """What an intruder who knows a few people's values recovers of everybody's.

    Parameters
    ----------
    original, masked
        The tables: frames are paired by index, lakes by position.
    columns
        The numeric columns that are recovered.
    known
        How many records each intruder knows.
    intruders
        How many intruders there are, each of whom knows other records.
    tolerance
        How close a recovered value must be, in standard deviations.
    seed
        Chooses the records known.

    Returns
    -------
    KnownRecords
        The share of records recovered by the best map, and its error; those of each map in ``parts``.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": range(100)})
    >>> masked = 3.0 * original + 7.0
    >>> dpmask.risk.known_records(original, masked, columns=["income"], known=5).rate
    1.0
    """
    attack = _Intruders(known, intruders, tolerance, seed).checked()
    pairs, names = pair_numbers(original, masked, columns, _WHO)
    both = pairs.floats(names)
    drawn = both.with_positions().reduce(attack.drawn, attack.merged, f"{_WHO}: known")
    if drawn.moments.values[0] <= known:
        raise InputError(f"{_WHO}: more than {known} records must be complete before and after masking.")
    require_spread(drawn.moments, columns, _WHO)
    fits: dict[str, _Fit] = {**_MAPS, "hybrid": partial(hybrid, low=drawn.moments.low, high=drawn.moments.high)}
    maps = [fit(*np.split(one.values, 2)) for one in drawn.chosen for fit in fits.values()]
    words = [one.words for one in drawn.chosen for _ in _MAPS]
    back = partial(attack.recovered, maps, words, drawn.moments.sd)
    found = both.reduce(back, merge_recovered, f"{_WHO}: recover")
    return _result(found, len(columns), known)


class _KnownSamples(NamedTuple):
    """Moments of the originals of complete records, and the records that each intruder knows."""

    moments: Moments
    chosen: tuple[HashSample, ...]


class _Intruders(NamedTuple):
    """How many records how many intruders know, and how close counts as recovered."""

    known: int
    intruders: int
    tolerance: float
    seed: int

    def checked(self) -> _Intruders:
        """Refuse numbers that mean nothing."""
        require_integers(_WHO, 2, _MOST_KNOWN, known=self.known)
        require_integers(_WHO, 2, _MOST_INTRUDERS, intruders=self.intruders)
        require_integers(_WHO, 0, 1 << 31, seed=self.seed)
        number = isinstance(self.tolerance, int | float) and not isinstance(self.tolerance, bool)
        if not number or not 0 < self.tolerance < math.inf:
            raise JobError(f"{_WHO}: tolerance must be a number > 0; got {self.tolerance!r}.")
        return self

    @property
    def draws(self) -> range:
        """A number for each intruder's draw."""
        return range(self.seed * _MOST_INTRUDERS, self.seed * _MOST_INTRUDERS + self.intruders)

    def drawn(self, columns: list[Floats], position: Position) -> _KnownSamples:
        values, places = _complete(columns)
        x, positions = np.split(values, 2)[0], places + position.first
        words = (record_words_of(list(x), draw) for draw in self.draws)
        return _KnownSamples(
            column_moments(list(x)), tuple(hash_sample(one, positions, values, self.known) for one in words)
        )

    def merged(self, left: _KnownSamples, right: _KnownSamples) -> _KnownSamples:
        chosen = zip(left.chosen, right.chosen, strict=True)
        return _KnownSamples(
            merge_moments(left.moments, right.moments),
            tuple(merge_hash_samples(one, two, self.known) for one, two in chosen),
        )

    def recovered(
        self,
        maps: list[Map | Curve | Turned],
        words: list[NDArray[np.uint64]],
        sd: Floats,
        columns: list[Floats],
    ) -> Recovered:
        x, y = np.split(_complete(columns)[0], 2)
        own = [record_words_of(list(x), draw) for draw in self.draws]
        known = [np.isin(own[number // len(_MAPS)], one) for number, one in enumerate(words)]
        return recovered(maps, known, x, y, sd, self.tolerance)


def _complete(columns: list[Floats]) -> tuple[Floats, NDArray[np.int64]]:
    """Records without a missing or infinite value, and their places in the block."""
    values = np.array(columns)
    whole = np.flatnonzero(np.isfinite(values).all(axis=0))
    return values[:, whole], whole


def _result(found: Recovered, columns: int, known: int) -> KnownRecords:
    """By the map that recovers more on average; where none recovers anything, by the one that errs less."""
    records = np.maximum(found.records, 1).reshape(-1, len(_MAPS))
    rates = dict(zip(_MAPS, (found.close.reshape(-1, len(_MAPS)) / records).T, strict=True))
    means = np.sqrt(found.squares.reshape(-1, len(_MAPS)) / (records * columns)).T
    errors = {name: float(np.median(error)) for name, error in zip(_MAPS, means, strict=True)}
    best = max((name for name in _MAPS if name != "guess"), key=lambda name: (float(rates[name].mean()), -errors[name]))
    parts = {f"{name}: rate": float(rates[name].mean()) for name in _MAPS}
    parts |= {f"{name}: error": errors[name] for name in _MAPS}
    return KnownRecords(
        rate=float(rates[best].mean()),
        error=errors[best],
        guessing=float(rates["guess"].mean()),
        attacked=int(found.records.min()),
        known=known,
        rates=tuple(rates[best].tolist()),
        parts=parts,
    )


MEASURE = Measure(function=known_records, result=KnownRecords, passes=2)
