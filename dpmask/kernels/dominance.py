"""Who makes up a total: contributions of which too few matter, by the p % rule of statistical offices.

A total is sensitive if the second largest contributor, who takes their own part away, learns the largest one to within
p %: if all others together make up less than p % of the largest (Hundepool et al. 2012, Statistical disclosure
control, section 4.2). Signs do not matter: sizes count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Flags, Floats, Integers


class Contributors(NamedTuple):
    """Of each total the sum of the sizes of what records contribute, and the two largest of these."""

    size: Floats
    first: Floats
    second: Floats

    def plus(self, other: Contributors) -> Contributors:
        """Both parts together."""
        low, high = np.minimum(self.first, other.first), np.maximum(self.first, other.first)
        return Contributors(self.size + other.size, high, np.maximum(low, np.maximum(self.second, other.second)))

    def sensitive(self, percent: float) -> Flags:
        """Totals that show their largest contribution to within so many per cent; none for 0."""
        rest = self.size - self.first - self.second
        return (self.first > 0.0) & (rest < percent / 100.0 * self.first) & (percent > 0.0)


def contributors(amounts: Floats, places: Integers, count: int) -> Contributors:
    """Of amounts that count in these of so many totals."""
    sizes = np.abs(amounts)
    order = np.lexsort((-sizes, places))
    sizes, places = sizes[order], places[order]
    firsts = np.flatnonzero(np.diff(places, prepend=-1))
    seconds = firsts + 1
    seconds = seconds[seconds < len(places)]
    seconds = seconds[places[seconds] == places[seconds - 1]]
    first, second = np.zeros(count), np.zeros(count)
    first[places[firsts]] = sizes[firsts]
    second[places[seconds]] = sizes[seconds]
    return Contributors(np.bincount(places, sizes, count).astype(np.float64), first, second)
