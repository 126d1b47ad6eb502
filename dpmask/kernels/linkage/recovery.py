"""Undoing a transformation from a few known pairs of records: x is sought from its masked y.

By rotation: the orthogonal R that minimises |X - Y R| over the known records, both centred, is U V' of the singular
value decomposition Y' X = U S V' (Schoenemann 1966). By least squares: any matrix, the smallest one where the known
records leave it open. By membership: each column as a fuzzy set, S or Z, whose ends two values give away, or one that
rises and falls, which leaves two candidates (dpmask/kernels/linkage/two_sided.py). By both: a rotation of such
memberships, with the moments of the columns known.

Every map gives one or two candidates for each value, the likelier first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats
from dpmask.kernels.elementary import power
from dpmask.kernels.linkage.two_sided import TwoSided, bell_distance, side_of_peak, triangle_distance, two_sided
from dpmask.kernels.membership import gaussian, s_shape, s_shape_undone, triangular
from dpmask.kernels.moments import Moments

_FAR = 0.1
_RARELY = 1e-9


class Undone(Protocol):
    """A map fitted to known records."""

    def candidates(self, masked: Floats) -> Floats:
        """What masked records (columns x records) may have been: candidates x columns x records."""


Fit = Callable[[Floats, Floats, Moments], Undone]
"""From known records, original and masked (columns x records), and the moments of the originals."""


class Map(NamedTuple):
    """x is taken to be (y - origin) matrix + target."""

    matrix: Floats
    origin: Floats
    target: Floats

    def recovered(self, masked: Floats) -> Floats:
        """Masked records (columns x records) mapped back."""
        return self.matrix.T @ (masked - self.origin[:, None]) + self.target[:, None]

    def candidates(self, masked: Floats) -> Floats:
        """The same as the only candidate."""
        return self.recovered(masked)[None]


def rotation(original: Floats, masked: Floats) -> Map:
    """The rotation, or reflection, that fits known records (columns x records) best."""
    target, origin = original.mean(axis=1), masked.mean(axis=1)
    left, _, right = np.linalg.svd((masked - origin[:, None]) @ (original - target[:, None]).T)
    return Map(left @ right, origin, target)


def linear(original: Floats, masked: Floats) -> Map:
    """The linear map that fits known records best."""
    target, origin = original.mean(axis=1), masked.mean(axis=1)
    matrix = np.linalg.lstsq((masked - origin[:, None]).T, (original - target[:, None]).T, rcond=None)[0]
    return Map(matrix, origin, target)


def guess(original: Floats, masked: Floats) -> Map:
    """The mean of the known records for everybody."""
    return Map(np.zeros((len(masked), len(original))), masked.mean(axis=1), original.mean(axis=1))


class ShapeCurve(NamedTuple):
    """x is taken to be start + t width of each column, where t is what S or Z was made of."""

    start: Floats
    width: Floats

    def recovered(self, masked: Floats) -> Floats:
        """Masked records (columns x records) mapped back."""
        return self.start[:, None] + self.width[:, None] * s_shape_undone(masked)

    def candidates(self, masked: Floats) -> Floats:
        """The same as the only candidate."""
        return self.recovered(masked)[None]


def membership(original: Floats, masked: Floats) -> ShapeCurve:
    """The ends of each column's fuzzy set that fit known records best; for Z they are exchanged."""
    target, shares = original.mean(axis=1), s_shape_undone(masked)
    origin = shares.mean(axis=1)
    off = shares - origin[:, None]
    squares = (off**2).sum(axis=1)
    products = (off * (original - target[:, None])).sum(axis=1)
    width = np.where(squares > 0.0, products / np.where(squares > 0.0, squares, 1.0), 0.0)
    return ShapeCurve(target - width * origin, width)


class Turned(NamedTuple):
    """Memberships are sought by a rotation, x from these."""

    turn: Map
    shape: Undone

    def candidates(self, masked: Floats) -> Floats:
        """Masked records turned back, then each membership undone."""
        return self.shape.candidates(self.turn.recovered(masked))


def _hybrid_s(original: Floats, masked: Floats, moments: Moments) -> Turned:
    """The rotation of S-shaped memberships that fits known records best; Z is S turned round."""
    ends = zip(original, moments.low, moments.high, strict=True)
    shares = np.array([s_shape(*column) for column in ends])
    return Turned(rotation(shares, masked), ShapeCurve(moments.low, moments.high - moments.low))


def _hybrid_triangular(original: Floats, masked: Floats, moments: Moments) -> Turned:
    low, peak, high = moments.low, moments.mean, moments.high
    shares = np.array([triangular(*column) for column in zip(original, low, peak, high, strict=True)])
    shape = TwoSided(triangle_distance, peak, peak - low, high - peak, side_of_peak(original, peak))
    return Turned(rotation(shares, masked), shape)


def _hybrid_gaussian(original: Floats, masked: Floats, moments: Moments) -> Turned:
    mean, sd = moments.mean, moments.sd
    shares = np.array([gaussian(*column) for column in zip(original, mean, sd, strict=True)])
    return Turned(rotation(shares, masked), TwoSided(bell_distance, mean, sd, sd, side_of_peak(original, mean)))


def _plain(fit: Callable[[Floats, Floats], Undone]) -> Fit:
    return lambda original, masked, _: fit(original, masked)


MAPS: dict[str, Fit] = {
    "rotation": _plain(rotation),
    "linear": _plain(linear),
    "membership": _plain(membership),
    "triangular": lambda x, y, _: two_sided(x, y, triangle_distance, even=False),
    "gaussian": lambda x, y, _: two_sided(x, y, bell_distance, even=True),
    "hybrid": _hybrid_s,
    "hybrid, triangular": _hybrid_triangular,
    "hybrid, gaussian": _hybrid_gaussian,
    "guess": _plain(guess),
}
"""All that an intruder tries."""


class Recovered(NamedTuple):
    """Shares of values recovered, of records in all columns, and of the largest values; the root mean square error."""

    values: float
    records: float
    top: float
    error: float


def recovered(found: Undone, x: Floats, y: Floats, moments: Moments, tolerance: float, top: Floats) -> Recovered:
    """How well a map recovers records: values within so many standard deviations, those above ``top`` within 10 %.

    Of two candidates that are both possible the likelier is taken, or either with probability 1/2, whichever is right
    more often; one outside the column's range is impossible.
    """
    sd = moments.sd[:, None]
    candidates = found.candidates(y)
    reach = tolerance * sd
    possible = (candidates >= moments.low[:, None] - reach) & (candidates <= moments.high[:, None] + reach)
    possible |= ~possible.any(axis=0)
    close, near = np.abs(candidates - x) <= reach, np.abs(candidates - x) <= _FAR * np.abs(x)
    high = x >= top[:, None]
    first = np.take_along_axis(candidates, possible.argmax(axis=0)[None], axis=0)[0]
    shares = [_share(close, possible, weight) for weight in (1.0, _RARELY)]
    large = [_share(near, possible, weight)[high] for weight in (1.0, _RARELY)]
    return Recovered(
        max(float(one.mean()) for one in shares),
        max(float(one.prod(axis=0).mean()) for one in shares),
        max(float(one.mean()) if one.size else 0.0 for one in large),
        float(np.sqrt((np.minimum(np.abs(first - x) / sd, 1e150) ** 2).mean())),
    )


def _share(right: NDArray[np.bool_], possible: NDArray[np.bool_], weight: float) -> Floats:
    """How likely each value is taken rightly, if each further candidate is taken ``weight`` times as often."""
    weights = power(weight, np.arange(len(right)))[:, None, None] * possible
    taken: Floats = (weights * right).sum(axis=0) / weights.sum(axis=0)
    return taken


def recovered_by_all(
    known: tuple[Floats, Floats], others: tuple[Floats, Floats], moments: Moments, tolerance: float, top: Floats
) -> dict[str, Recovered]:
    """What every map that is fitted to known records recovers of others; both original and masked."""
    return {name: recovered(fit(*known, moments), *others, moments, tolerance, top) for name, fit in MAPS.items()}


def mean_of(found: Sequence[Recovered]) -> Recovered:
    """The mean over intruders; the error is the median one's."""
    values, records, top, _ = (float(np.mean(part)) for part in zip(*found, strict=True))
    return Recovered(values, records, top, float(np.median([one.error for one in found])))
