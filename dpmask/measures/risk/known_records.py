"""Known records: an intruder who knows a few people's values undoes the transformation and reads everybody's.

The intruder knows the originals of ``known`` records and which masked records they are (people one knows, or outliers
that can be recognised), fits the map that takes masked to original values and applies it to all other records: once as
a rotation (Procrustes, Schoenemann 1966), once as any linear map, once as an S- or Z-shaped membership of each column,
and once as such memberships rotated, for who also knows the least and the largest value of each column. A rotation
protects nobody once about as many records are known as there are columns (Liu, Giannella and Kargupta 2006), a
membership once two are; masking that is no such map withstands.

``rate`` is the share of the other records recovered within ``tolerance`` standard deviations in all columns, by the
best of these maps, averaged over several intruders who each know other records; its interval is Student's over
them. Records with a missing value are left out. Passes: two over both tables. Memory per task: one block.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from dpmask.engine.passes import Span, reduce_blocks
from dpmask.errors import InputError, JobError
from dpmask.kernels.hash_sample import Chosen, choose, merge_chosen, record_words_of
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
from dpmask.table.checks import require_spread
from dpmask.table.columns import require_numeric
from dpmask.table.pairs import masked_name, pair

Floats = NDArray[np.float64]

_WHO = "known_records"
PASSES = 2  # over both tables, about
_Fit = Callable[..., Map | Curve | Turned]
_MAPS: dict[str, _Fit] = {
    "rotation": rotation,
    "linear": linear,
    "membership": membership,
    "hybrid": hybrid,
    "guess": guess,
}
_MOST_KNOWN, _MOST_INTRUDERS = 10_000, 1000


@dataclass(frozen=True)
class KnownRecords:
    """``rate`` by the best map; ``error`` is its root mean square error in standard deviations."""

    rate: float
    error: float
    interval: tuple[float, float]
    guessing: float
    attacked: int
    known: int
    seconds: float
    parts: Mapping[str, float] = field(default_factory=dict)

    shares: ClassVar[tuple[str, ...]] = ("rate",)
    judged: ClassVar[tuple[str, ...]] = ("rate", "error")
    public: ClassVar[bool] = False
    definition: ClassVar[str] = (
        "The share of other records that an intruder who knows some recovers within a tolerance in all columns, by "
        "the best of a rotation, a linear map, memberships and rotated memberships fitted to the known ones."
    )
    direction: ClassVar[str] = "A larger rate and a smaller error mean more risk."
    source: ClassVar[str] = "Liu, Giannella and Kargupta 2006; Schoenemann 1966."

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"Who knows {self.known} records recovers {self.rate:.2%} of the {self.attacked:,} others, with a root "
            f"mean square error of {self.error:.3g} standard deviations, where the mean of the known recovers "
            f"{self.guessing:.2%}. A larger rate and a smaller error mean more risk."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {**vars(self), "interval": list(self.interval), "parts": dict(self.parts)}


def known_records(
    original: Any,
    masked: Any,
    *,
    columns: Sequence[str],
    known: int = 20,
    intruders: int = 10,
    tolerance: float = 0.05,
    seed: int = 0,
) -> KnownRecords:
    """The Procrustes attack between two tables: frames paired by index, or lakes by position."""
    start = time.perf_counter()
    attack = _Attack(known, intruders, tolerance, seed).checked()
    pairs = pair(original, masked, columns, _WHO)
    names = [*columns, *(masked_name(column) for column in columns)]
    require_numeric(pairs.masked_schema, names, _WHO)
    task = pairs.on_floats(names, attack.drawn)
    seen: _Seen = reduce_blocks(task, attack.merged, pairs.blocks, f"{_WHO}: known")
    if seen.moments.values[0] <= known:
        raise InputError(f"{_WHO}: more than {known} records must be complete before and after masking.")
    require_spread(seen.moments, columns, _WHO)
    fits: dict[str, _Fit] = {**_MAPS, "hybrid": partial(hybrid, low=seen.moments.low, high=seen.moments.high)}
    maps = [fit(*np.split(one.values, 2)) for one in seen.chosen for fit in fits.values()]
    words = [one.words for one in seen.chosen for _ in _MAPS]
    back = partial(attack.recovered, maps, words, seen.moments.sd)
    found: Recovered = reduce_blocks(pairs.on_floats(names, back), merge_recovered, pairs.blocks, f"{_WHO}: recover")
    return _result(found, len(columns), known, time.perf_counter() - start)


class _Seen(NamedTuple):
    """Moments of the originals of complete records, and the records that each intruder knows."""

    moments: Moments
    chosen: tuple[Chosen, ...]


class _Attack(NamedTuple):
    """How many records how many intruders know, and how close counts as recovered."""

    known: int
    intruders: int
    tolerance: float
    seed: int

    def checked(self) -> _Attack:
        """Refuse numbers that mean nothing."""
        limits = {"known": (2, _MOST_KNOWN), "intruders": (2, _MOST_INTRUDERS), "seed": (0, 1 << 31)}
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise JobError(f"{_WHO}: {name} must be an integer from {low} to {high}; got {value!r}.")
        number = isinstance(self.tolerance, int | float) and not isinstance(self.tolerance, bool)
        if not number or not 0 < self.tolerance < math.inf:
            raise JobError(f"{_WHO}: tolerance must be a number > 0; got {self.tolerance!r}.")
        return self

    @property
    def draws(self) -> range:
        """A number for each intruder's draw."""
        return range(self.seed * _MOST_INTRUDERS, self.seed * _MOST_INTRUDERS + self.intruders)

    def drawn(self, columns: list[Floats], span: Span) -> _Seen:
        values, positions = _complete(columns, span)
        x, _ = np.split(values, 2)
        words = (record_words_of(list(x), draw) for draw in self.draws)
        return _Seen(column_moments(list(x)), tuple(choose(one, positions, values, self.known) for one in words))

    def merged(self, left: _Seen, right: _Seen) -> _Seen:
        chosen = zip(left.chosen, right.chosen, strict=True)
        return _Seen(
            merge_moments(left.moments, right.moments),
            tuple(merge_chosen(one, two, self.known) for one, two in chosen),
        )

    def recovered(
        self,
        maps: list[Map | Curve | Turned],
        words: list[NDArray[np.uint64]],
        sd: Floats,
        columns: list[Floats],
        span: Span,
    ) -> Recovered:
        values, _ = _complete(columns, span)
        x, y = np.split(values, 2)
        own = [record_words_of(list(x), draw) for draw in self.draws]
        known = [np.isin(own[number // len(_MAPS)], one) for number, one in enumerate(words)]
        return recovered(maps, known, x, y, sd, self.tolerance)


def _complete(columns: list[Floats], span: Span) -> tuple[Floats, NDArray[np.int64]]:
    """Records without a missing or infinite value, and their positions."""
    values = np.array(columns)
    whole = np.flatnonzero(np.isfinite(values).all(axis=0))
    return values[:, whole], whole + span.first


def _result(found: Recovered, columns: int, known: int, seconds: float) -> KnownRecords:
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
        interval=_student(rates[best]),
        guessing=float(rates["guess"].mean()),
        attacked=int(found.records.min()),
        known=known,
        seconds=seconds,
        parts=parts,
    )


def _student(rates: Floats) -> tuple[float, float]:
    """The 95 % interval of the mean over the intruders, held to 0..1."""
    reach = float(stdtrit(len(rates) - 1, 0.975) * rates.std(ddof=1) / math.sqrt(len(rates)))
    mean = float(rates.mean())
    return max(mean - reach, 0.0), min(mean + reach, 1.0)
