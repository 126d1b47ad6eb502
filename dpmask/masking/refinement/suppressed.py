"""An attribute without a tree: its values are released one by one, the others are suppressed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.refinement.information import gains_of_each
from dpmask.masking.refinement.attributes import SUPPRESSED, Attribute, Candidate, Refined


class Suppressed(Attribute):
    """Values without a tree: all suppressed at first, then released one by one. Node 0 is what is suppressed."""

    apart = True

    def __init__(self, name: str, histogram: Counts, name_of: Callable[[int], str]) -> None:
        super().__init__(name, histogram)
        self.name_of = name_of
        self.slots = np.arange(len(histogram), dtype=np.int32)
        self.widths = [len(histogram)]
        self.open = self.totals > 0
        self.present = self.totals > 0

    @classmethod
    def released(cls, name: str, histogram: Counts, name_of: Callable[[int], str]) -> Self:
        """One that is never masked: all values are released."""
        found = cls(name, histogram, name_of)
        found.nodes = np.arange(1, len(histogram) + 1, dtype=np.int32)
        found.widths = [0] * (len(histogram) + 1)
        found.open[:] = False
        return found

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """Which codes are suppressed."""
        return self.nodes == 0

    @property
    def released_values(self) -> list[str]:
        """The values that are released, and SUPPRESSED where anybody has another one."""
        names = [self.name_of(code) for code in np.flatnonzero(self.nodes).tolist()]
        return names + ([SUPPRESSED] if (self.hidden & self.present).any() else [])

    def candidates(self) -> list[Candidate]:
        """One for each suppressed value that was not given up."""
        codes = np.flatnonzero(self.open)
        if not len(codes):
            return []
        gains = gains_of_each(np.where(self.hidden[:, None], self.histogram, 0))
        return [Candidate(0, int(code), float(gains[code]), int(self.totals[code])) for code in codes]

    @property
    def lows(self) -> Counts:
        """Of one that is never masked, every code is a node."""
        return np.arange(len(self.totals))

    def codes_of(self, candidate: Candidate) -> tuple[int, int]:
        """The value's own."""
        return candidate.slot, candidate.slot + 1

    def finish(self, candidate: Candidate) -> None:
        """The value stays suppressed."""
        self.open[candidate.slot] = False
        if not self.open.any():
            self.widths[0] = 0

    def loss(self) -> float:
        """The share of records whose value is suppressed."""
        return float(self.totals[self.hidden].sum()) / max(float(self.totals.sum()), 1.0)

    def refine(self, candidate: Candidate) -> Refined:
        """Release one value."""
        number = len(self.widths)
        self.nodes[candidate.slot] = number
        self.widths.append(0)
        self.finish(candidate)
        return Refined(0, (number, 0))

    def reopened(self) -> Self:
        """Another one, with all values that are suppressed."""
        twin = self.copied()
        twin.open = self.hidden & (self.totals > 0)
        twin.widths[0] = len(self.totals) if twin.open.any() else 0
        return twin

    def label_of(self, candidate: Candidate) -> str:
        """The value that is released."""
        return self.name_of(candidate.slot)

    def separates(self, candidate: Candidate) -> bool:
        """Whether the value is not suppressed again."""
        return not self.hidden[candidate.slot]

    def hide_dropped(self, lowest: Floats) -> None:
        """Suppress values that nobody has."""
        self.present = np.isfinite(lowest)
        self.nodes[~self.present] = 0

    def tree(self) -> dict[str, Any]:
        """What is released, and beside it what is suppressed."""
        children = [{"value": name} for name in self.released_values]
        return {"value": SUPPRESSED} | ({"children": children} if self.nodes.any() else {})
