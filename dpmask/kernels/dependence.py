"""How nearly one column is a function of another: records in the order of the one, and how far the other jumps.

Of numbers the coefficient of Chatterjee 2021 (A new coefficient of correlation, JASA 116), of categories its
counterpart of shares: both are 1 if and only if the one gives the other exactly, by whatever function, and about 0 if
it shows nothing. Ten bands of a number give 0.9 of it, twenty bands 0.95.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Flags, Floats, Integers

_MOST_EQUAL = 0.5


class Neighbours(NamedTuple):
    """Records in the order of a column, equal ones by chance, and which that follow each other are compared."""

    order: Integers
    compared: Flags


def neighbours(values: Floats, *, ordered: bool) -> Neighbours:
    """All that follow each other in a column of numbers; of codes, whose order means nothing, only equal ones.

    None where fewer than half of the codes are equal to the next one: such a column names records.
    """
    order = np.argsort(values, kind="stable")
    equal = values[order[1:]] == values[order[:-1]]  # of missing values, which are minus infinity, no difference
    return Neighbours(order, np.full(len(equal), True) if ordered else equal & (equal.mean() >= _MOST_EQUAL))


def explained_numbers(near: Neighbours, values: Floats) -> Floats:
    """For each row of ``values`` (columns x records) how nearly it follows from the column that gives the order.

    1 - n sum |r(i+1) - r(i)| / (2 sum l(i) (n - l(i))): r(i) records have at most the value of record i, l(i) at least.
    Where not all are compared the sum is n - 1 times the mean of those that are.
    """
    count = values.shape[1]
    found = np.zeros(len(values))
    for number, column in enumerate(values):
        ordered = np.sort(column)
        most = np.searchsorted(ordered, column, "right")  # r
        least = count - np.searchsorted(ordered, column, "left")  # l
        jumps, room = np.abs(np.diff(most[near.order]))[near.compared], 2.0 * (least * (count - least)).sum()
        found[number] = 1.0 - count * (count - 1) * jumps.mean() / room if room and len(jumps) else 0.0
    return found


def explained_categories(near: Neighbours, codes: Floats) -> Floats:
    """The same of codes whose order means nothing: neighbours that differ, as a share of any two records that do."""
    count = codes.shape[1]
    found = np.zeros(len(codes))
    for number, column in enumerate(codes):
        sizes = np.unique(column, return_counts=True)[1]
        any_two = 1.0 - (sizes * (sizes - 1.0)).sum() / (count * (count - 1.0))
        differ = (column[near.order[1:]] != column[near.order[:-1]])[near.compared]
        found[number] = 1.0 - float(differ.mean()) / any_two if any_two and len(differ) else 0.0
    return found


def needed_for(known: Sequence[Floats], values: Floats, share: float) -> list[int]:
    """Which columns a linear combination needs that explains this share of the variance; none if all do not."""
    kept = list(range(len(known)))
    if not np.ptp(values) or _explained([known[one] for one in kept], values) < share:
        return []
    for one in reversed(range(len(known))):
        fewer = [other for other in kept if other != one]
        if fewer and _explained([known[other] for other in fewer], values) >= share:
            kept = fewer
    return kept


def _explained(known: Sequence[Floats], values: Floats) -> float:
    """R squared of the least squares on these columns and a constant."""
    centred = np.array([(one - one.mean()) / (one.std() or 1.0) for one in known]).T
    target = (values - values.mean()) / values.std()
    solution = np.linalg.lstsq(centred, target, rcond=None)[0]
    return 1.0 - float(((target - centred @ solution) ** 2).mean())
