"""How a clustering searches: numbers that change its cost and its path, never its objective."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchSettings:
    """Internal: every clustering class has one as ``settings``; tests make tables of a few hundred records large by it.

    Of more than ``sample`` records a sample of that size is clustered first. A two-grid correction takes no more CPU
    than ``correction`` passes over all the data; where that leaves it fewer than ``fewest_sweeps`` passes over the
    sample it is not worth making.
    """

    sample: int = 50_000
    correction: float = 2.0
    fewest_sweeps: int = 10

    def share(self, rows: int) -> float:
        """How much of a table of so many records the sample is."""
        return min(1.0, self.sample / max(rows, 1))

    def sweeps(self, rows: int) -> int:
        """Passes over the sample in one two-grid correction; 0 where it is not worth making."""
        most = int(self.correction / self.share(rows))
        return most if most >= self.fewest_sweeps else 0
