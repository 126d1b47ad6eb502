"""Undoing a linear transformation from a few known pairs of records: x is sought from its masked y.

By rotation: the orthogonal R that minimises |X - Y R| over the known records, both centred, is U V' of the singular
value decomposition Y' X = U S V' (Schoenemann 1966). By least squares: any matrix, the smallest one where the known
records leave it open. By membership: each column as an S- or Z-shaped fuzzy set, whose ends two values give away. By
both: a rotation of such memberships, with the ends of the columns known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.membership import s_shape, s_shape_undone

Floats = NDArray[np.float64]


class Map(NamedTuple):
    """x is taken to be (y - origin) matrix + target."""

    matrix: Floats
    origin: Floats
    target: Floats

    def recovered(self, masked: Floats) -> Floats:
        """Masked records (columns x records) mapped back."""
        return self.matrix.T @ (masked - self.origin[:, None]) + self.target[:, None]


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


class Curve(NamedTuple):
    """x is taken to be start + t width of each column, where t is what S or Z was made of."""

    start: Floats
    width: Floats

    def recovered(self, masked: Floats) -> Floats:
        """Masked records (columns x records) mapped back."""
        return self.start[:, None] + self.width[:, None] * s_shape_undone(masked)


def membership(original: Floats, masked: Floats) -> Curve:
    """The ends of each column's fuzzy set that fit known records best; for Z they are exchanged."""
    target, shares = original.mean(axis=1), s_shape_undone(masked)
    origin = shares.mean(axis=1)
    off = shares - origin[:, None]
    squares = (off**2).sum(axis=1)
    products = (off * (original - target[:, None])).sum(axis=1)
    width = np.where(squares > 0.0, products / np.where(squares > 0.0, squares, 1.0), 0.0)
    return Curve(target - width * origin, width)


class Turned(NamedTuple):
    """Memberships are sought by a rotation, x from these and the ends of its column."""

    turn: Map
    start: Floats
    width: Floats

    def recovered(self, masked: Floats) -> Floats:
        """Masked records (columns x records) mapped back."""
        return Curve(self.start, self.width).recovered(self.turn.recovered(masked))


def hybrid(original: Floats, masked: Floats, low: Floats, high: Floats) -> Turned:
    """The rotation of S-shaped memberships that fits known records best; Z is S turned round."""
    shares = np.array([s_shape(*column) for column in zip(original, low, high, strict=True)])
    return Turned(rotation(shares, masked), low, high - low)


def guess(original: Floats, masked: Floats) -> Map:
    """The mean of the known records for everybody."""
    return Map(np.zeros((len(masked), len(original))), masked.mean(axis=1), original.mean(axis=1))


class Recovered(NamedTuple):
    """For each map: records recovered within the tolerance in all columns, and squared errors in units of sd."""

    close: NDArray[np.int64]
    squares: Floats
    records: NDArray[np.int64]


def recovered(
    maps: Sequence[Map | Curve | Turned],
    known: Sequence[NDArray[np.bool_]],
    x: Floats,
    y: Floats,
    sd: Floats,
    tolerance: float,
) -> Recovered:
    """How well maps recover the records that are not known (to the intruder of each map)."""
    close, squares, records = [], [], []
    for one, mine in zip(maps, known, strict=True):
        gaps = ((one.recovered(y) - x) / sd[:, None])[:, ~mine]
        close.append(int((np.abs(gaps) <= tolerance).all(axis=0).sum()))
        squares.append(float((gaps**2).sum()))
        records.append(gaps.shape[1])
    return Recovered(np.array(close), np.array(squares), np.array(records))


def merge_recovered(left: Recovered, right: Recovered) -> Recovered:
    """Both parts together."""
    return Recovered(left.close + right.close, left.squares + right.squares, left.records + right.records)
