"""What each attribute of a refinement is masked to, and how that may be refined: decisions only, no table.

Everything but validity follows from how often each value occurs with each class: gains, splits of intervals and the
number of records a refinement touches. Codes 0, 1, ... are an attribute's values; a taxonomy's leaves and numbers are
coded in their order, so that every node covers a range of codes; a missing value, if there is any, has the last code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.refinement.grouping import Values
from dpmask.kernels.refinement.information import best_cut, information_gain
from dpmask.table.taxonomy import Branch

SUPPRESSED = "*"
"""How a suppressed value is written (the papers' _|_)."""
MISSING = "missing"
"""The name of a missing value in reports; it is released as missing."""


class Candidate(NamedTuple):
    """A refinement that might be next; ``slot`` is the value where each one is a candidate of its own."""

    node: int
    slot: int
    gain: float
    records: int


class Refined(NamedTuple):
    """A node that was refined, and what became of it."""

    node: int
    children: tuple[int, ...]


class Attribute(ABC):
    """An attribute under refinement, at first masked as a whole."""

    apart = False

    def __init__(self, name: str, histogram: Counts) -> None:
        self.name, self.histogram = name, histogram
        self.totals: Counts = histogram.sum(axis=1)
        self.nodes = np.zeros(len(histogram), np.int32)
        self.slots = np.zeros(len(histogram), np.int32)
        self.widths: list[int] = []
        self.importance = 1.0
        """What its scores are multiplied by."""

    def copied(self) -> Self:
        """Another one of the same state, to try a refinement on. Counts are never changed, so both share them."""
        twin = copy(self)
        for name, value in vars(self).items():
            if name not in {"histogram", "totals"} and isinstance(value, list | dict | np.ndarray):
                setattr(twin, name, value.copy())
        return twin

    @property
    def values(self) -> Values:
        """What blocks need, as it is now."""
        return Values(self.nodes.copy(), self.slots.copy(), np.array(self.widths, np.int64), self.apart)

    @abstractmethod
    def candidates(self) -> list[Candidate]:
        """What may be refined, in the order of the cut."""

    @abstractmethod
    def finish(self, candidate: Candidate) -> None:
        """Never try this one again."""

    @abstractmethod
    def loss(self) -> float:
        """The mean over all records of what their values lost: 0 as it was, 1 for nothing left.

        This is the normalised certainty penalty: of an interval its share of the domain, of a node of a taxonomy the
        share of the tree's values below it, 0 for one value (Xu et al. 2006).
        """

    @abstractmethod
    def refine(self, candidate: Candidate) -> Refined:
        """Take a candidate."""

    @abstractmethod
    def reopened(self) -> Self:
        """Another one, with all that was given up among its candidates."""

    @property
    @abstractmethod
    def lows(self) -> Counts:
        """For each code the lowest one of its node, where nodes are ranges of codes."""

    @abstractmethod
    def codes_of(self, candidate: Candidate) -> tuple[int, int]:
        """The codes that a candidate concerns: the first, and the one after the last."""

    @abstractmethod
    def label_of(self, candidate: Candidate) -> str:
        """The name of what a candidate refines."""

    @abstractmethod
    def separates(self, candidate: Candidate) -> bool:
        """Whether a refinement that was taken still separates records, after ``hide_dropped``."""

    @abstractmethod
    def hide_dropped(self, lowest: Floats) -> None:
        """Undo what only separates dropped records; ``lowest`` is inf for each code that no other record has.

        For a number or a date it is otherwise the lowest value with this code. Nothing can be refined after it.
        """

    @abstractmethod
    def tree(self) -> dict[str, Any]:
        """The tree as far as it was refined, as {value, children}."""


class _CodeRange(NamedTuple):
    """A range of codes; ``bounds`` says where its children begin, and then its end. A leaf has none."""

    low: int
    high: int
    branch: Branch | None
    bounds: tuple[int, ...]


class Ranged(Attribute):
    """A tree over ranges of codes: a taxonomy's, or one that is grown by cutting intervals in two."""

    def __init__(self, name: str, histogram: Counts, tree: Branch | None, missing: bool) -> None:
        super().__init__(name, histogram)
        self.missing, self.root = missing, 0
        self.tree_nodes: list[_CodeRange] = []
        self.found: dict[int, Candidate] = {}
        self.children: dict[int, tuple[int, ...]] = {}
        self.cut: list[int] = [self._open(0, len(histogram), tree)]

    def _open(self, low: int, high: int, branch: Branch | None) -> int:
        """A new node over these codes, with the children it would have; where nobody is, there is nothing to refine."""
        bounds = self._bounds(low, high, branch) if self.totals[low:high].any() else ()
        number = len(self.tree_nodes)
        self.tree_nodes.append(_CodeRange(low, high, branch, bounds))
        self.widths.append(max(len(bounds) - 1, 0))
        self.nodes[low:high] = number
        for slot, (start, end) in enumerate(pairwise(bounds)):
            self.slots[start:end] = slot
        if bounds:
            self.found[number] = self._candidate(number, bounds)
        return number

    def _bounds(self, low: int, high: int, branch: Branch | None) -> tuple[int, ...]:
        missing_too = self.missing and high - low == len(self.totals)
        if branch is not None:
            if not branch.children and not missing_too:
                return ()
            below = branch.children or (branch,)
            ends = np.cumsum([low, *(child.leaves for child in below)]).tolist()
            return (*ends, high) if missing_too else tuple(ends)
        if missing_too:
            return (0, high - 1, high) if high > 1 else ()
        return (low, low + self._cut_at(low, high), high) if high - low > 1 else ()

    def _cut_at(self, low: int, high: int) -> int:
        """Where an interval is cut in two."""
        return best_cut(self.histogram[low:high])

    def candidates(self) -> list[Candidate]:
        """One for each node of the cut that has children and was not given up."""
        return [self.found[number] for number in self.cut if self.widths[number]]

    def _candidate(self, number: int, bounds: tuple[int, ...]) -> Candidate:
        parts = np.array([self.histogram[start:end].sum(axis=0) for start, end in pairwise(bounds)])
        return Candidate(number, 0, information_gain(parts), int(parts.sum()))

    def finish(self, candidate: Candidate) -> None:
        """The node stays as it is."""
        self.widths[candidate.node] = 0

    def loss(self) -> float:
        """By the nodes of the cut."""
        nodes = [self.tree_nodes[number] for number in self.cut]
        lost = sum(self._lost(node) * float(self.totals[node.low : node.high].sum()) for node in nodes)
        return lost / max(float(self.totals.sum()), 1.0)

    def _lost(self, node: _CodeRange) -> float:
        values = len(self.totals) - self.missing
        below = min(node.high, values) - node.low
        return below / values if below > 1 or node.high - node.low > 1 else 0.0

    def refine(self, candidate: Candidate) -> Refined:
        """Put the children in the node's place."""
        _, _, branch, bounds = self.tree_nodes[candidate.node]
        below: list[Branch | None] = [] if branch is None else list(branch.children or (branch,))
        below += [None] * (len(bounds) - 1 - len(below))
        children = tuple(self._open(*ends, child) for ends, child in zip(pairwise(bounds), below, strict=True))
        place = self.cut.index(candidate.node)
        self.cut[place : place + 1] = children
        self.children[candidate.node] = children
        return Refined(candidate.node, children)

    def reopened(self) -> Self:
        """Another one, with all nodes of the cut that have children."""
        twin = self.copied()
        for number in twin.cut:
            twin.widths[number] = max(len(twin.tree_nodes[number].bounds) - 1, 0)
        return twin

    def is_missing(self, number: int) -> bool:
        """Whether a node stands for missing values alone."""
        return self.missing and self.tree_nodes[number].low == len(self.totals) - 1

    def label(self, number: int) -> str:
        """The name of a node."""
        return MISSING if self.is_missing(number) else self._label(self.tree_nodes[number])

    def _label(self, node: _CodeRange) -> str:
        assert node.branch is not None
        return node.branch.value

    @property
    def lows(self) -> Counts:
        """By the ranges of the nodes."""
        return np.array([node.low for node in self.tree_nodes])[self.nodes]

    def codes_of(self, candidate: Candidate) -> tuple[int, int]:
        """The range of the node."""
        return self.tree_nodes[candidate.node][:2]

    def label_of(self, candidate: Candidate) -> str:
        """The node that is refined."""
        return self.label(candidate.node)

    def separates(self, candidate: Candidate) -> bool:
        """Whether the node still has children."""
        return candidate.node in self.children

    def hide_dropped(self, lowest: Floats) -> None:
        """Undo refinements of nodes that nobody has; of others hide children that reveal who was dropped.

        Where one child is left that is all of its node, it replaces the node.
        """
        present, replaced = np.isfinite(lowest), dict[int, int]()
        for number, children in reversed(list(self.children.items())):  # children come before their parents
            low, high, branch, _ = self.tree_nodes[number]
            kept = tuple(replaced.get(one, one) for one in children if self._is_public(one, present))
            alone = len(kept) == 1 and self.tree_nodes[kept[0]].branch is branch
            if alone:
                replaced[number] = kept[0]
            if alone or not present[low:high].any():
                del self.children[number]
            else:
                self.children[number] = kept
        self.root = replaced.get(0, 0)
        self.cut = self._leaves(self.root)
        for number in self.cut:
            self.nodes[self.tree_nodes[number].low : self.tree_nodes[number].high] = number

    def _is_public(self, number: int, present: NDArray[np.bool_]) -> bool:
        """Whether a node's name may be shown: a taxonomy is known to all, but not whether a value was missing."""
        return not self.is_missing(number) or bool(present[-1])

    def _leaves(self, number: int) -> list[int]:
        children = self.children.get(number)
        return [leaf for child in children for leaf in self._leaves(child)] if children else [number]

    def tree(self) -> dict[str, Any]:
        """From the root to the cut."""
        return self._below(self.root)

    def _below(self, number: int) -> dict[str, Any]:
        below = [self._below(one) for one in self.children.get(number, ())]
        return {"value": self.label(number)} | ({"children": below} if below else {})


class Intervals(Ranged):
    """Numbers or dates, grown by cutting intervals in two; ``begins``: the codes' lower bounds, and all's upper.

    ``frozen``: the intervals that other releases have cut, and where: they are cut there or not at all.
    """

    def __init__(
        self,
        name: str,
        histogram: Counts,
        missing: bool,
        begins: Floats,
        name_of: Callable[[float, float], str],
        frozen: Mapping[tuple[float, float], float],
    ) -> None:
        self.begins, self.name_of, self.frozen = begins, name_of, frozen
        super().__init__(name, histogram, None, missing)

    def _cut_at(self, low: int, high: int) -> int:
        at = self.frozen.get((float(self.begins[low]), float(self.begins[high])))
        return super()._cut_at(low, high) if at is None else int(np.searchsorted(self.begins, at)) - low

    def splits(self) -> list[list[float]]:
        """The intervals that were cut in two: lower bound, upper bound, and where."""
        found = []
        for number, (_, second) in self.children.items():
            if not self.is_missing(second):
                nodes = (self.tree_nodes[one] for one in (number, second))
                (low, high), (at, _) = ((one.low, one.high) for one in nodes)
                found.append([float(self.begins[place]) for place in (low, high, at)])
        return sorted(found)

    def bounds(self) -> list[float]:
        """Where the intervals of the cut begin, and where the last one ends."""
        lows = [self.tree_nodes[number].low for number in self.cut if not self.is_missing(number)]
        return [float(self.begins[low]) for low in lows or [0]] + [float(self.begins[-1])]

    def _lost(self, node: _CodeRange) -> float:
        if node.low == len(self.begins) - 1:
            return 0.0  # missing values, by themselves
        width = self.begins[min(node.high, len(self.begins) - 1)] - self.begins[node.low]
        return float(width / (self.begins[-1] - self.begins[0]))

    def _label(self, node: _CodeRange) -> str:
        high = min(node.high, len(self.begins) - 1)  # of all and missing values, too, it is that of all
        return self.name_of(float(self.begins[node.low]), float(self.begins[high]))

    def _is_public(self, number: int, present: NDArray[np.bool_]) -> bool:
        return bool(present[self.tree_nodes[number].low : self.tree_nodes[number].high].any())

    def hide_dropped(self, lowest: Floats) -> None:
        """Merge intervals that nobody has, and let others begin with the lowest value in them; outer bounds stay."""
        super().hide_dropped(lowest)
        lowest = lowest[: len(self.begins) - 1]
        upwards = np.minimum.accumulate(lowest[::-1])[::-1]  # the lowest value from each code on
        inner = np.where(np.isfinite(upwards), upwards, self.begins[-1])
        first = int(np.argmax(np.isfinite(lowest)))
        self.begins = np.concatenate([np.full(first + 1, self.begins[0]), inner[first + 1 :], self.begins[-1:]])
