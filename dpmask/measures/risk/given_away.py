"""How much of their sensitive values the released rows of some records say, and the rows of strangers beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpmask.kernels.arrays import Flags, Floats
from dpmask.kernels.linkage.nearest import Masked
from dpmask.measures.risk.exposed import GivenAway
from dpmask.measures.risk.linkage_attack import Pairs
from dpmask.measures.risk.linkage_values import Categories, GroupNumbers, Points, Ranges, Values

_NEAR = 0.05  # standard deviations


def given_away(values: Sequence[Values], pairs: Pairs, sought: Sequence[int]) -> GivenAway | None:
    """The share of these columns' values that rows say; None without a column or a record."""
    records = pairs.points.shape[1]
    if not sought or not records:
        return None
    strangers = Masked(*(np.roll(part, records // 2, axis=1) for part in pairs.masked))
    own, other = (_share(values, pairs._replace(masked=rows), sought) for rows in (pairs.masked, strangers))
    return GivenAway(own, other, records)


def _share(values: Sequence[Values], pairs: Pairs, sought: Sequence[int]) -> float:
    point = at = 0
    readable: list[Flags] = []
    for number, one in enumerate(values):
        if number in sought:
            readable.append(_readable(one, pairs, point, at))
        point, at = point + isinstance(one, Points), at + len(one.rulers)
    return float(np.mean(readable))


def _readable(one: Values, pairs: Pairs, point: int, at: int) -> Flags:
    """Of each record whether its value can be read off its row; a missing one can where the row is missing, too."""
    if isinstance(one, Points):
        return np.abs(_in_original_units(one, pairs.masked.points[point]) - pairs.points[point]) <= _NEAR
    known, low, high = pairs.ranges[at], pairs.masked.low[at], pairs.masked.high[at]
    if isinstance(one, Categories | GroupNumbers):
        return (low == high) & (low == known)
    if one.masked is not None:
        inside = np.abs(_in_original_units(one, low) - known) <= _NEAR
    else:
        inside = (low <= known) & (known <= high) & (high - low <= 2 * _NEAR * float(one.original.sd))
    missing = np.isnan(known)
    return np.where(missing, pairs.masked.low[at + 1] == 1.0, inside)


def _in_original_units(one: Points | Ranges, values: Floats) -> Floats:
    """Masked values, which are in units of their own table, in those of the original."""
    assert one.masked is not None
    return one.original.to_units(one.masked.to_original(values))
